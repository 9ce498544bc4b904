//! Requests that change the table or fetch one entry: create, update, get, delete, flush; likewise for expectations.
//!
//! All of them use one socket, one request after the other, each acknowledged. Needs CAP_NET_ADMIN in the user
//! namespace that owns the network namespace.
use std::ops::ControlFlow;

use netlink::{AnswerMessage, Conversation, DecodeError, DumpError, Query, Request};
use record::Addr;
use record::rows::{Conntrack, CtState, CtTuple, Expectation, ip_proto};
use sys::{Errno, Host, Kernel};

use crate::backends::netlink::ctnetlink::CtDecoder;
use crate::backends::netlink::dump::{DumpResult, dump_entries};
use crate::backends::netlink::expect::ExpectDecoder;
use crate::kernel_filter::{KernelFilter, put_addr, put_tuple};
use crate::table::{CtTable, NetnsRef};
use crate::uapi::{
    AF_INET, AF_INET6, NETLINK_NETFILTER, NFNL_SUBSYS_CTNETLINK, NFNL_SUBSYS_CTNETLINK_EXP, cta, expect, msg, nat,
    protoinfo,
};

/// NLM_F_CREATE and NLM_F_EXCL (include/uapi/linux/netlink.h).
const CREATE: u16 = 0x400;
const EXCL: u16 = 0x200;

/// IPS_CONFIRMED: set on every entry of the table; the kernel refuses to clear it.
const CONFIRMED: u32 = 1 << 3;

/// `nfgenmsg.version` of a flush limited to one family: with 0 the kernel ignores the family and empties both
/// (`ctnetlink_del_conntrack` in net/netfilter/nf_conntrack_netlink.c).
const FAMILY_COUNTS: u8 = 1;
/// First kernel version that does so; older ones empty both families regardless of the version field.
const FAMILY_COUNTS_SINCE: (u32, u32) = (5, 3);
/// Maximum number of passes of a one-by-one flush. A resize of the hash table interrupts a pass; if it interrupts all
/// of them, the flush fails, because some entries may be left.
///
/// Bound: passes of a flush before Linux 5.3. Beyond: the flush fails and is reported. By: root.
const FLUSH_PASSES: u32 = 3;

/// New values for an address and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rewrite {
    /// New address; `None` keeps the old one.
    pub addr: Option<Addr>,
    /// New port; `None` keeps the old one.
    pub port: Option<u16>,
}

/// The attributes of an entry that a request carries. `None` is not sent: a new entry gets the kernel's default, an
/// existing one keeps its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryAttrs<'g> {
    /// Original direction.
    pub orig: Option<CtTuple>,
    /// Reply direction.
    pub reply: Option<CtTuple>,
    /// Status bits.
    pub status: Option<u32>,
    /// Timeout in seconds.
    pub timeout_s: Option<u32>,
    /// Mark.
    pub mark: Option<u32>,
    /// Protocol state.
    pub state: Option<CtState>,
    /// TCP flags for both directions (`IP_CT_TCP_FLAG_…`): these bits are set.
    pub tcp_flags: Option<u8>,
    /// SCTP verification tags in network byte order, original and reply direction.
    pub vtags: [Option<[u8; 4]>; 2],
    /// DCCP role of the original direction.
    pub dccp_role: Option<u8>,
    /// Source NAT. Only a new entry can get it.
    pub snat: Rewrite,
    /// Destination NAT.
    pub dnat: Rewrite,
    /// Zone of both directions.
    pub zone: Option<u16>,
    /// Id: the kernel refuses a change if the entry has another id.
    pub id: Option<u32>,
    /// Label bits, and a mask of the same length that selects the bits to change.
    pub labels: Option<(&'g [u8], Option<&'g [u8]>)>,
}

impl EntryAttrs<'_> {
    /// 2 (AF_INET) or 10 (AF_INET6), derived from the addresses; 0 without addresses.
    pub fn family(&self) -> u8 {
        let tuple = self.orig.or(self.reply);
        tuple.map_or(0, |tuple| if matches!(tuple.src, Addr::V4(_)) { AF_INET } else { AF_INET6 })
    }

    fn put(&self, request: &mut Request) {
        for (kind, tuple) in [(cta::TUPLE_ORIG, &self.orig), (cta::TUPLE_REPLY, &self.reply)] {
            if let Some(tuple) = tuple {
                put_tuple(request, kind, tuple);
            }
        }
        let status = self.status.map(|status| status | CONFIRMED);
        let numbers =
            [(cta::STATUS, status), (cta::TIMEOUT, self.timeout_s), (cta::MARK, self.mark), (cta::ID, self.id)];
        for (kind, number) in numbers {
            if let Some(number) = number {
                request.attr(kind, &number.to_be_bytes());
            }
        }
        self.put_protocol(request);
        self.snat.put(request, cta::NAT_SRC);
        self.dnat.put(request, cta::NAT_DST);
        if let Some(zone) = self.zone {
            request.attr(cta::ZONE, &zone.to_be_bytes());
        }
        if let Some((labels, mask)) = self.labels {
            request.attr(cta::LABELS, labels);
            if let Some(mask) = mask {
                request.attr(cta::LABELS_MASK, mask);
            }
        }
    }

    fn put_protocol(&self, request: &mut Request) {
        let proto = self.orig.or(self.reply).map(|tuple| tuple.proto);
        let (kind, number) = match (self.state, proto) {
            (Some(CtState::Tcp(state)), _) => (protoinfo::TCP, Some(state)),
            (Some(CtState::Sctp(state)), _) => (protoinfo::SCTP, Some(state)),
            (Some(CtState::Dccp(state)), _) => (protoinfo::DCCP, Some(state)),
            (None, Some(ip_proto::TCP)) if self.tcp_flags.is_some() => (protoinfo::TCP, None),
            (None, Some(ip_proto::SCTP)) if self.vtags.iter().any(Option::is_some) => (protoinfo::SCTP, None),
            (None, Some(ip_proto::DCCP)) if self.dccp_role.is_some() => (protoinfo::DCCP, None),
            _ => return,
        };
        request.nested(cta::PROTOINFO, |inside| {
            inside.nested(kind, |inside| {
                if let Some(number) = number {
                    inside.attr(protoinfo::STATE, &[number]);
                }
                match kind {
                    protoinfo::TCP => self.put_tcp_flags(inside),
                    protoinfo::SCTP => self.put_vtags(inside),
                    _ => {
                        if let Some(role) = self.dccp_role {
                            inside.attr(protoinfo::DCCP_ROLE, &[role]);
                        }
                    }
                }
            });
        });
    }

    /// `struct nf_ct_tcp_flags`: value and mask.
    fn put_tcp_flags(&self, request: &mut Request) {
        let Some(flags) = self.tcp_flags else { return };
        request.attr(protoinfo::TCP_FLAGS_ORIG, &[flags, flags]).attr(protoinfo::TCP_FLAGS_REPLY, &[flags, flags]);
    }

    fn put_vtags(&self, request: &mut Request) {
        for (kind, tag) in [protoinfo::SCTP_VTAG_ORIG, protoinfo::SCTP_VTAG_REPLY].into_iter().zip(self.vtags) {
            if let Some(tag) = tag {
                request.attr(kind, &tag);
            }
        }
    }
}

impl Rewrite {
    fn put(self, request: &mut Request, kind: u16) {
        if self == Rewrite::default() {
            return;
        }
        request.nested(kind, |inside| {
            if let Some(addr) = self.addr {
                let kinds = if matches!(addr, Addr::V4(_)) {
                    [nat::V4_MINIP, nat::V4_MAXIP]
                } else {
                    [nat::V6_MINIP, nat::V6_MAXIP]
                };
                kinds.into_iter().for_each(|kind| put_addr(inside, kind, addr));
            }
            if let Some(port) = self.port {
                inside.nested(nat::PROTO, |inside| {
                    inside.attr(nat::PORT_MIN, &port.to_be_bytes()).attr(nat::PORT_MAX, &port.to_be_bytes());
                });
            }
        });
    }
}

/// The attributes of an expectation that a request carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExpectationAttrs {
    /// Tuple of the expected connection.
    pub tuple: Option<CtTuple>,
    /// Mask: the bits of the tuple that must match.
    pub mask: Option<CtTuple>,
    /// The connection that announced it.
    pub master: Option<CtTuple>,
    /// Timeout in seconds.
    pub timeout_s: Option<u32>,
}

/// An entry to delete. The tuple is not optional: a request without one makes the kernel delete every entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// Original direction.
    pub tuple: CtTuple,
    /// Zone of both directions.
    pub zone: Option<u16>,
    /// Id: the kernel refuses to delete an entry that has another id.
    pub id: Option<u32>,
}

impl Target {
    fn entry_attrs(&self) -> EntryAttrs<'static> {
        EntryAttrs { orig: Some(self.tuple), zone: self.zone, id: self.id, ..EntryAttrs::default() }
    }
}

/// Changes the table of one namespace.
#[derive(Debug)]
pub struct Changes<'h> {
    host: &'h Host,
    place: NetnsRef<'h>,
    conversation: Conversation,
}

impl<'h> Changes<'h> {
    /// Opens the socket at the first request.
    pub fn new(host: &'h Host, place: NetnsRef<'h>) -> Changes<'h> {
        Changes { host, place, conversation: Conversation::new() }
    }

    /// Creates an entry. Fails with EEXIST if the tuple is taken, with ENOMEM if the table is full.
    pub fn create(&mut self, given: &EntryAttrs<'_>) -> Result<(), DumpError> {
        self.change("a connection-tracking entry", msg::CT_NEW, CREATE | EXCL, given)
    }

    /// Changes an existing entry. Fails with ENOENT if no entry has the tuple, or if the entry has another id.
    ///
    /// The kernel compares the id only when it deletes an entry (`ctnetlink_new_conntrack` ignores it), so an extra
    /// request looks the entry up first. If another entry takes its place between the two requests, that entry is
    /// changed: the kernel has no request that does both.
    pub fn update(&mut self, given: &EntryAttrs<'_>) -> Result<(), DumpError> {
        const WHAT: &str = "a connection-tracking entry";
        if given.id.is_some() {
            let key = EntryAttrs { orig: given.orig, reply: given.reply, zone: given.zone, ..EntryAttrs::default() };
            let mut found = None;
            self.get(&key, |now| found = now.id)?;
            if found != given.id {
                return Err(DumpError::Refused { what: WHAT, errno: Errno::NOENT, kernel_says: None, at_attr: None });
            }
        }
        self.change(WHAT, msg::CT_NEW, 0, given)
    }

    /// Deletes an entry. Fails with ENOENT if no entry has the tuple, or if the entry has another id.
    pub fn delete(&mut self, target: &Target) -> Result<(), DumpError> {
        self.change("a connection-tracking entry", msg::CT_DELETE, 0, &target.entry_attrs())
    }

    fn change(
        &mut self,
        what: &'static str,
        message: u16,
        flags: u16,
        given: &EntryAttrs<'_>,
    ) -> Result<(), DumpError> {
        self.send_request(what, &entry_request(message, flags, given), |_| ControlFlow::Continue(()))
    }

    /// Passes the entry with a given tuple to `each`. Fails with ENOENT if no entry has the tuple.
    pub fn get(&mut self, given: &EntryAttrs<'_>, mut each: impl FnMut(&Conntrack<'_>)) -> Result<(), DumpError> {
        let mut request = Request::for_one(NFNL_SUBSYS_CTNETLINK << 8 | msg::CT_GET);
        request.append(&[given.family(), 0, 0, 0]);
        given.put(&mut request);
        let mut decoder = CtDecoder::new(self.place.netns_id);
        self.ask_for("a connection-tracking entry", &request, |answer| decoder.decode(answer).map(|row| each(&row)))
    }

    /// Deletes every entry of one family (2 or 10), or of both (0).
    ///
    /// This takes one request. Kernels before 5.3 cannot limit it to a family: there the entries are read and deleted
    /// one by one.
    pub fn flush(&mut self, family: u8) -> Result<(), DumpError> {
        if family != 0 && Kernel::read_running().version() < FAMILY_COUNTS_SINCE {
            return self.flush_each(family);
        }
        let version = if family == 0 { 0 } else { FAMILY_COUNTS };
        self.flush_all(NFNL_SUBSYS_CTNETLINK << 8 | msg::CT_DELETE, CtTable::Conntrack, [family, version])
    }

    /// Deletes every expectation of both families; the kernel cannot limit it to one.
    pub fn flush_expectations(&mut self) -> Result<(), DumpError> {
        self.flush_all(NFNL_SUBSYS_CTNETLINK_EXP << 8 | msg::EXP_DELETE, CtTable::Expect, [0, 0])
    }

    // `head` holds the family and the version.
    fn flush_all(&mut self, kind: u16, table: CtTable, head: [u8; 2]) -> Result<(), DumpError> {
        let mut request = Request::for_one(kind);
        request.append(&[head[0], head[1], 0, 0]);
        self.send_request(table.description(), &request, |_| ControlFlow::Continue(()))
    }

    // Deletes the entries of a family one by one, until a pass has read the whole table.
    fn flush_each(&mut self, family: u8) -> Result<(), DumpError> {
        let what = CtTable::Conntrack.description();
        for _ in 0..FLUSH_PASSES {
            let dumped = self.end_entries(family)?;
            fail_if_malformed(what, dumped.first_error)?;
            if !dumped.end.interrupted {
                return Ok(());
            }
        }
        Err(DumpError::CutShort { what, messages: 0, errno: Errno::INTR })
    }

    // Reads the entries of a family, then deletes them: deleting during the dump would shift the rest.
    fn end_entries(&mut self, family: u8) -> Result<DumpResult, DumpError> {
        let (filter, mut found) = (KernelFilter::default().of_family(family), Vec::new());
        let dumped = dump_entries(self.host, self.place, CtTable::Conntrack, &filter, "", |row, _| {
            found.push(Target { tuple: row.orig, zone: row.zone, id: row.id });
            ControlFlow::Continue(())
        })?;
        found.iter().try_for_each(|target| ignore_missing(self.delete(target)))?;
        Ok(dumped)
    }

    /// Creates an expectation. Fails with EOPNOTSUPP if its master has no helper.
    pub fn create_expectation(&mut self, given: &ExpectationAttrs) -> Result<(), DumpError> {
        let request = expectation_request(msg::EXP_NEW, CREATE | EXCL, given);
        self.send_request("an expectation", &request, |_| ControlFlow::Continue(()))
    }

    /// Deletes the expectation with a given tuple. A request without a tuple would delete all expectations.
    pub fn delete_expectation(&mut self, tuple: &CtTuple) -> Result<(), DumpError> {
        let given = ExpectationAttrs { tuple: Some(*tuple), ..ExpectationAttrs::default() };
        let request = expectation_request(msg::EXP_DELETE, 0, &given);
        self.send_request("an expectation", &request, |_| ControlFlow::Continue(()))
    }

    /// Passes the expectation with a given tuple, or of a given master, to `each`.
    pub fn get_expectation(
        &mut self,
        given: &ExpectationAttrs,
        mut each: impl FnMut(&Expectation<'_>),
    ) -> Result<(), DumpError> {
        let request = expectation_request(msg::EXP_GET, 0, given);
        let mut decoder = ExpectDecoder::new(self.place.netns_id);
        self.ask_for("an expectation", &request, |answer| decoder.decode(answer).map(|row| each(&row)))
    }

    /// Sends a request and decodes the rows of its answer. A malformed row does not stop the others; its error is
    /// returned after them.
    fn ask_for(
        &mut self,
        what: &'static str,
        request: &Request,
        mut row: impl FnMut(&[u8]) -> Result<(), DecodeError>,
    ) -> Result<(), DumpError> {
        let mut wrong = None;
        self.send_request(what, request, |part| {
            wrong = row(part.payload).err().or(wrong);
            ControlFlow::Continue(())
        })?;
        fail_if_malformed(what, wrong)
    }

    fn send_request(
        &mut self,
        what: &'static str,
        request: &Request,
        each: impl FnMut(&AnswerMessage<'_>) -> ControlFlow<()>,
    ) -> Result<(), DumpError> {
        // All requests share one name: a recording keeps the answers in their order.
        let key = format!("ctnetlink/change/{}", self.place.netns_id);
        let netns = self.place.netns;
        let ask = Query { what, protocol: NETLINK_NETFILTER, request, key: &key, note: "", netns };
        self.conversation.exchange(self.host, &ask, each).map(|_| ())
    }
}

fn entry_request(message: u16, flags: u16, given: &EntryAttrs<'_>) -> Request {
    let mut request = Request::for_one_with_flags(NFNL_SUBSYS_CTNETLINK << 8 | message, flags);
    request.append(&[given.family(), 0, 0, 0]);
    given.put(&mut request);
    request
}

fn expectation_request(message: u16, flags: u16, given: &ExpectationAttrs) -> Request {
    let mut request = Request::for_one_with_flags(NFNL_SUBSYS_CTNETLINK_EXP << 8 | message, flags);
    let tuples = [(expect::TUPLE, given.tuple), (expect::MASTER, given.master), (expect::MASK, given.mask)];
    let v4 = tuples.iter().find_map(|(_, tuple)| *tuple).is_none_or(|tuple| matches!(tuple.src, Addr::V4(_)));
    request.append(&[if v4 { AF_INET } else { AF_INET6 }, 0, 0, 0]);
    for (kind, tuple) in tuples {
        if let Some(tuple) = tuple {
            put_tuple(&mut request, kind, &tuple);
        }
    }
    if let Some(timeout) = given.timeout_s {
        request.attr(expect::TIMEOUT, &timeout.to_be_bytes());
    }
    request
}

// An entry that has expired by now needs no deletion.
fn ignore_missing(ended: Result<(), DumpError>) -> Result<(), DumpError> {
    match ended {
        Err(error) if error.errno() == Some(Errno::NOENT) => Ok(()),
        ended => ended,
    }
}

fn fail_if_malformed(what: &'static str, wrong: Option<DecodeError>) -> Result<(), DumpError> {
    Err(match wrong {
        None => return Ok(()),
        Some(DecodeError::Attr { attr, claims, has }) => DumpError::Malformed { what, attr: Some(attr), claims, has },
        Some(DecodeError::Short { claims, has, .. }) => DumpError::Malformed { what, attr: None, claims, has },
        Some(_) => DumpError::Malformed { what, attr: None, claims: 1, has: 0 },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use netlink::Attrs;

    fn kinds(request: &Request) -> Vec<u16> {
        let body = &request.bytes().unwrap()[16 + 4..];
        Attrs::new(body).map(|attr| attr.unwrap().kind).collect()
    }

    #[test]
    fn what_is_not_given_is_not_sent() {
        let mut request = Request::for_one(0x100);
        request.append(&[2, 0, 0, 0]);
        EntryAttrs { mark: Some(1), ..EntryAttrs::default() }.put(&mut request);
        assert_eq!(kinds(&request), [cta::MARK]);
    }

    #[test]
    fn everything_has_its_place() {
        let tuple = CtTuple { proto: ip_proto::TCP, ..CtTuple::EMPTY };
        let given = EntryAttrs {
            orig: Some(tuple),
            reply: Some(tuple),
            status: Some(2),
            timeout_s: Some(3),
            state: Some(CtState::Tcp(3)),
            tcp_flags: Some(10),
            snat: Rewrite { addr: Some(Addr::ANY4), port: Some(1) },
            zone: Some(4),
            labels: Some((&[1, 0, 0, 0], Some(&[1, 0, 0, 0]))),
            ..EntryAttrs::default()
        };
        let mut request = Request::for_one(0x100);
        request.append(&[given.family(), 0, 0, 0]);
        given.put(&mut request);
        let expected = [
            cta::TUPLE_ORIG,
            cta::TUPLE_REPLY,
            cta::STATUS,
            cta::TIMEOUT,
            cta::PROTOINFO,
            cta::NAT_SRC,
            cta::ZONE,
            cta::LABELS,
            cta::LABELS_MASK,
        ];
        assert_eq!(kinds(&request), expected);
        assert_eq!(given.family(), AF_INET);
    }

    /// Two entries share an id: each request names its own tuple and zone, and the kernel also compares the id.
    #[test]
    fn replay_issue_10_every_end_carries_its_own_tuple() {
        let tuple = CtTuple { proto: ip_proto::TCP, src_part: 40_000, dst_part: 443, ..CtTuple::EMPTY };
        let first = Target { tuple, zone: Some(3), id: Some(0xdead_beef) };
        let second = Target { tuple: CtTuple { src_part: 40_001, ..tuple }, ..first };
        let bytes = |target: &Target| {
            let request = entry_request(msg::CT_DELETE, 0, &target.entry_attrs());
            assert_eq!(kinds(&request), [cta::TUPLE_ORIG, cta::ID, cta::ZONE]);
            request.bytes().unwrap().to_vec()
        };
        let holds = |bytes: &[u8], port: u16| bytes.windows(2).any(|pair| pair == port.to_be_bytes());
        let (first, second) = (bytes(&first), bytes(&second));
        assert!(holds(&first, 40_000) && !holds(&first, 40_001));
        assert!(holds(&second, 40_001) && !holds(&second, 40_000));
        assert!([first, second].iter().all(|bytes| bytes.windows(4).any(|id| id == 0xdead_beef_u32.to_be_bytes())));
    }

    /// A namespace with entries of both families; the two of IPv4 are in different zones.
    fn furnished(purpose: &str) -> testkit::netns::Lab {
        use testkit::conntrack::Entry;
        let lab = testkit::netns::Lab::new(purpose);
        let (a, b) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let (c, d) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        let ends = |n: u16| [((a, n), (b, 53)), ((c, n), (d, 53))];
        let both = (1..=20).flat_map(ends).map(|(from, to)| Entry::udp(from, to));
        let in_zone = (1..=5).map(|n| Entry::udp((a, n), (b, 53)).zone(7));
        lab.track(both.chain(in_zone));
        lab
    }

    fn families(lab: &testkit::netns::Lab) -> (usize, usize) {
        let mut found = Vec::new();
        lab.run_inside(|| {
            let (host, place) = (Host::live(), NetnsRef { netns: None, netns_id: 0 });
            dump_entries(&host, place, CtTable::Conntrack, &KernelFilter::default(), "", |row, _| {
                found.push(row.family);
                ControlFlow::Continue(())
            })
            .unwrap();
        });
        let of = |family: u8| found.iter().filter(|found| **found == family).count();
        (of(AF_INET), of(AF_INET6))
    }

    #[test]
    fn root_issue_10_a_flush_stays_in_its_family() {
        testkit::require_root!();
        let lab = furnished("ctflush");
        assert_eq!(families(&lab), (25, 20));
        let flush = |family: u8| {
            lab.run_inside(|| Changes::new(&Host::live(), NetnsRef { netns: None, netns_id: 0 }).flush(family))
        };
        flush(AF_INET6).unwrap();
        assert_eq!(families(&lab), (25, 0));
        flush(AF_INET6).unwrap();
        flush(AF_INET).unwrap();
        assert_eq!(families(&lab), (0, 0));
    }

    /// The fallback for kernels before 5.3: entries are deleted one by one, each with its zone.
    #[test]
    fn root_issue_10_a_flush_one_by_one_stays_in_its_family() {
        testkit::require_root!();
        let lab = furnished("ctflushold");
        let end = |family: u8| {
            lab.run_inside(|| {
                let host = Host::live();
                let mut changes = Changes::new(&host, NetnsRef { netns: None, netns_id: 0 });
                changes.flush_each(family)
            })
        };
        end(AF_INET).unwrap();
        assert_eq!(families(&lab), (0, 20));
        end(AF_INET6).unwrap();
        assert_eq!(families(&lab), (0, 0));
    }

    /// The kernel ignores an id in an update: another entry with the tuple would be changed.
    #[test]
    fn root_issue_10_an_update_leaves_another_entry_alone() {
        testkit::require_root!();
        let lab = furnished("ctupdate");
        lab.run_inside(|| {
            let host = Host::live();
            let mut changes = Changes::new(&host, NetnsRef { netns: None, netns_id: 0 });
            let orig = CtTuple {
                src: Addr::V4([192, 0, 2, 1]),
                dst: Addr::V4([192, 0, 2, 2]),
                proto: ip_proto::UDP,
                src_part: 3,
                dst_part: 53,
                zone: None,
            };
            let key = EntryAttrs { orig: Some(orig), zone: Some(7), ..EntryAttrs::default() };
            let now = |changes: &mut Changes<'_>| {
                let mut seen = (None, None);
                changes.get(&key, |row| seen = (row.id, row.mark)).unwrap();
                seen
            };
            let (Some(id), mark) = now(&mut changes) else { panic!("an entry has an id") };
            let change = EntryAttrs { mark: Some(0x55), ..key };
            let refused = changes.update(&EntryAttrs { id: Some(id ^ 1), ..change }).unwrap_err();
            assert_eq!(refused.errno(), Some(Errno::NOENT));
            assert_eq!(now(&mut changes), (Some(id), mark));
            changes.update(&EntryAttrs { id: Some(id), ..change }).unwrap();
            assert_eq!(now(&mut changes), (Some(id), Some(0x55)));
            let ended = changes.delete(&Target { tuple: orig, zone: Some(7), id: Some(id ^ 1) }).unwrap_err();
            assert_eq!(ended.errno(), Some(Errno::NOENT));
            assert_eq!(now(&mut changes), (Some(id), Some(0x55)));
        });
    }
}
