//! Decides which entries pass.

use super::addresses::masked;
use super::options::{Command, switch};
use super::parse::{Line, kernel_status};
use super::stop::Stop;
use super::want::{NatTarget, Side, Want};
use conntrack::{KernelFilter, TupleFilter};
use record::Addr;
use record::rows::{Conntrack, CtStatus, CtTuple, ip_proto};

const SRC_NAT_DONE: u32 = 1 << 7;
const DST_NAT_DONE: u32 = 1 << 8;

/// The filter of a command line.
pub(super) struct Filter<'l> {
    line: &'l Line,
    want: &'l Want,
    /// True if the tool would compare entries with the given values.
    compares: bool,
}

impl<'l> Filter<'l> {
    /// Makes the filter. Fails for a mask without an address.
    pub(super) fn new(line: &'l Line) -> Result<Filter<'l>, Stop> {
        for (mask, addr, words) in [
            (switch::MASK_SRC, switch::ORIG_SRC, "Can't use --mask-src without --src"),
            (switch::MASK_DST, switch::ORIG_DST, "Can't use --mask-dst without --dst"),
        ] {
            if line.has(mask) && !line.has(addr) {
                return Err(Stop::usage(words));
            }
        }
        let compares = !line.bug_compatible || line.has_any(switch::COMPARISON);
        Ok(Filter { line, want: &line.want, compares })
    }

    /// The part of the filter that the kernel can apply. It is tested again here, because older kernels ignore some of
    /// it.
    pub(super) fn by_kernel(&self) -> KernelFilter {
        let (line, want, old) = (self.line, self.want, self.line.bug_compatible);
        let mut filter = KernelFilter { family: line.family, mark: want.mark, ..KernelFilter::default() };
        if line.command == Some(Command::List) {
            filter.status = want.status.map(|status| kernel_status(status, old));
            filter.zero_counters = line.has(switch::ZERO);
        }
        // The kernel resets counters only without a filter.
        if old || filter.zero_counters {
            return filter;
        }
        let nat = [(switch::SRC_NAT, CtStatus::SRC_NAT), (switch::DST_NAT, CtStatus::DST_NAT)];
        let nat = nat.iter().filter(|(bit, _)| line.has(*bit)).fold(0, |bits, (_, more)| bits | more);
        if nat != 0 && filter.status != Some((0, 0)) {
            let (value, mask) = filter.status.unwrap_or((0, 0));
            filter.status = Some((value | nat, mask | nat));
        }
        filter.zone = want.zone.filter(|zone| *zone != 0);
        let with_ports = matches!(
            want.proto,
            Some(ip_proto::TCP | ip_proto::UDP | ip_proto::UDPLITE | ip_proto::SCTP | ip_proto::DCCP)
        );
        // For IPv6 addresses, the kernel (6.18 included) drops the entries that match (ctnetlink_filter_match_tuple).
        let v4 = |addr: &Addr| matches!(addr, Addr::V4(_));
        filter.orig = TupleFilter {
            src: want.orig.src.filter(|src| v4(src) && !line.has(switch::MASK_SRC)),
            dst: want.orig.dst.filter(|dst| v4(dst) && !line.has(switch::MASK_DST)),
            proto: want.proto,
            sport: want.orig.src_part.filter(|_| with_ports),
            dport: want.orig.dst_part.filter(|_| with_ports),
        };
        filter
    }

    /// True if the entry must be shown (or deleted).
    pub(super) fn passes(&self, row: &Conntrack<'_>) -> bool {
        self.nat(row) && self.mark(row) && self.labels(row) && self.networks(row) && self.like(row)
    }

    /// The same for `-U`, where the mark, the state and so on are the new values.
    pub(super) fn chooses(&self, row: &Conntrack<'_>) -> bool {
        let id = self.want.id.is_none() || row.id.is_none() || self.want.id == row.id;
        let tuples = self.orig(row) && self.reply(row) && self.zones(row);
        self.nat(row) && self.labels(row) && self.networks(row) && id && tuples
    }

    fn mark(&self, row: &Conntrack<'_>) -> bool {
        self.want.mark.is_none_or(|(value, mask)| row.mark.is_some_and(|mark| mark & mask == value))
    }

    fn labels(&self, row: &Conntrack<'_>) -> bool {
        let Some(wanted) = &self.want.labels else { return true };
        let Some(labels) = row.labels else { return false };
        wanted.iter().enumerate().all(|(at, bits)| labels.get(at).copied().unwrap_or(0) & bits == *bits)
    }

    fn networks(&self, row: &Conntrack<'_>) -> bool {
        let Want { orig, mask, .. } = self.want;
        let inside = |bit, mask: Option<Addr>, net: Option<Addr>, addr| match (mask, net) {
            (Some(mask), Some(net)) if self.line.has(bit) => {
                row.family == self.line.family && masked(addr, mask) == masked(net, mask)
            }
            _ => true,
        };
        inside(switch::MASK_SRC, mask.src, orig.src, row.orig.src)
            && inside(switch::MASK_DST, mask.dst, orig.dst, row.orig.dst)
    }

    fn nat(&self, row: &Conntrack<'_>) -> bool {
        let wanted = |bit| self.line.has(bit);
        if wanted(switch::ANY_NAT) {
            return self.snat(row) || self.dnat(row);
        }
        (!wanted(switch::SRC_NAT) || self.snat(row)) && (!wanted(switch::DST_NAT) || self.dnat(row))
    }

    fn snat(&self, row: &Conntrack<'_>) -> bool {
        let (addr, port) = ((row.orig.src, row.reply.dst), (row.orig.src_part, row.reply.dst_part));
        self.rewritten(row, self.want.snat, (CtStatus::SRC_NAT, SRC_NAT_DONE), addr, port)
    }

    fn dnat(&self, row: &Conntrack<'_>) -> bool {
        let (addr, port) = ((row.orig.dst, row.reply.src), (row.orig.dst_part, row.reply.src_part));
        self.rewritten(row, self.want.dnat, (CtStatus::DST_NAT, DST_NAT_DONE), addr, port)
    }

    /// True if NAT rewrote the entry to `to`. `addr` and `port` hold the values before and after.
    fn rewritten(
        &self,
        row: &Conntrack<'_>,
        to: NatTarget,
        (bit, done): (u32, u32),
        (addr, now): (Addr, Addr),
        (port, port_now): (u16, u16),
    ) -> bool {
        if self.line.bug_compatible {
            return rewritten_old(row, to, done, (addr, now), (port, port_now));
        }
        // The status decides; an event without status has only its tuples.
        let has_ports = row.orig.has_ports() || row.orig.proto == ip_proto::GRE;
        let differs = addr != now || has_ports && port != port_now;
        let is = row.status.map_or(differs, |status| status.contains(bit));
        is && to.addr.is_none_or(|to| addr != now && to == now)
            && to.port.is_none_or(|to| has_ports && port != port_now && to == port_now)
    }

    /// Tests all other given values.
    fn like(&self, row: &Conntrack<'_>) -> bool {
        if !self.compares {
            return true;
        }
        let want = self.want;
        let equal = |wanted: Option<u32>, has: Option<u32>| wanted.is_none() || wanted == has;
        let state = want.state.is_none() || want.state == row.state;
        equal(want.id, row.id)
            && equal(want.timeout_s, row.timeout_s)
            && self.status(row)
            && state
            && want.zone.is_none_or(|zone| zone == row.zone.unwrap_or(0))
            && self.orig(row)
            && self.reply(row)
            && self.zones(row)
    }

    fn status(&self, row: &Conntrack<'_>) -> bool {
        let Some(wanted) = self.want.status else { return true };
        let Some(CtStatus(bits)) = row.status else { return false };
        let unset = if self.line.bug_compatible { 0 } else { wanted.unset };
        bits & (wanted.set | unset) == wanted.set
    }

    fn zones(&self, row: &Conntrack<'_>) -> bool {
        let equal = |wanted: Option<u16>, tuple: &CtTuple| wanted.is_none_or(|zone| zone == tuple.zone.unwrap_or(0));
        equal(self.want.orig_zone, &row.orig) && equal(self.want.reply_zone, &row.reply)
    }

    fn orig(&self, row: &Conntrack<'_>) -> bool {
        let want = self.want;
        let masks = (self.line.has(switch::MASK_SRC), self.line.has(switch::MASK_DST));
        let side =
            Side { src: want.orig.src.filter(|_| !masks.0), dst: want.orig.dst.filter(|_| !masks.1), ..want.orig };
        let family = !self.line.has_any(switch::ORIG) || row.family == self.line.family;
        family
            && want.proto.is_none_or(|proto| proto == row.orig.proto)
            && self.side(&side, &row.orig)
            && self.icmp(row)
    }

    fn reply(&self, row: &Conntrack<'_>) -> bool {
        let family = !self.line.has_any(switch::REPLY) || row.family == self.line.family;
        family && self.side(&self.want.reply, &row.reply)
    }

    fn side(&self, side: &Side, tuple: &CtTuple) -> bool {
        // The tool ignores GRE keys.
        let parts = !(self.line.bug_compatible && tuple.proto == ip_proto::GRE);
        let part = |wanted: Option<u16>, has| !parts || wanted.is_none_or(|part| part == has);
        side.src.is_none_or(|addr| addr == tuple.src)
            && side.dst.is_none_or(|addr| addr == tuple.dst)
            && part(side.src_part, tuple.src_part)
            && part(side.dst_part, tuple.dst_part)
    }

    fn icmp(&self, row: &Conntrack<'_>) -> bool {
        let Want { icmp_type, icmp_code, icmp_id, .. } = self.want;
        if icmp_type.is_none() && icmp_code.is_none() && icmp_id.is_none() {
            return true;
        }
        row.orig.icmp().is_some_and(|part| {
            icmp_type.is_none_or(|kind| kind == part.kind)
                && icmp_code.is_none_or(|code| code == part.code)
                && icmp_id.is_none_or(|id| id == part.id)
        })
    }
}

/// The tool's test: it compares the tuples of any protocol if NAT has processed the entry, and ignores a requested
/// IPv6 address.
fn rewritten_old(
    row: &Conntrack<'_>,
    to: NatTarget,
    done: u32,
    (addr, now): (Addr, Addr),
    (port, port_now): (u16, u16),
) -> bool {
    let looked_at = row.status.is_none_or(|status| status.contains(done));
    let (by_addr, by_port) = (looked_at && addr != now, looked_at && port != port_now);
    let to_addr = to.addr.filter(|addr| matches!(addr, Addr::V4(_)));
    match (to_addr, to.port) {
        (None, None) => by_addr || by_port,
        (Some(addr), None) => by_addr && addr == now,
        (None, Some(port)) => by_port && port == port_now,
        (Some(addr), Some(port)) => by_addr && addr == now && by_port && port == port_now,
    }
}
