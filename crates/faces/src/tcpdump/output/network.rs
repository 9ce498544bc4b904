//! The packet that carries a protocol, for the printers of protocols over IP.

use super::bytes::{Printed, array};
use super::line::{Host, Line, Port};
use super::pieces::put;
use record::Addr;
use record::rows::PacketHeaders;
use record::rows::ip_proto;
pub(super) use record::rows::ip_proto::{ICMPV6, SCTP, TCP, UDP};

/// Options of IPv4.
const LOOSE_ROUTE: u8 = 131;
const STRICT_ROUTE: u8 = 137;

/// Prints a packet of `length` bytes, of which some were captured.
pub(super) type Printer = fn(&mut Line<'_>, bytes: &[u8], length: usize) -> Printed;

/// The packet that carries a protocol.
#[derive(Clone, Copy)]
pub(super) struct Network<'n> {
    /// Its header.
    pub(super) ip: &'n PacketHeaders<'n>,
    /// The bytes from the header on, as far as they were captured and are within its length.
    pub(super) bytes: &'n [u8],
    /// True if it is a fragment.
    pub(super) fragmented: bool,
    /// Prints a packet of the same version, for messages that quote one.
    pub(super) again: Printer,
}

impl<'n> Network<'n> {
    /// True for IPv6.
    pub(super) fn is_v6(&self) -> bool {
        matches!(self.ip.src, Addr::V6(_))
    }

    fn address(&self, at: usize) -> Printed<Addr> {
        if self.is_v6() { array(self.bytes, at).map(Addr::V6) } else { array(self.bytes, at).map(Addr::V4) }
    }

    /// Returns the last destination of the packet, from a source route.
    fn last_dest(&self) -> Printed<Addr> {
        let routed = if self.is_v6() { self.routed_by_header()? } else { self.routed_by_option()? };
        routed.map_or(Ok(self.ip.dst), |at| self.address(at))
    }

    /// Returns the offset of the last address of a source route.
    fn routed_by_option(&self) -> Printed<Option<usize>> {
        let [first] = array(self.bytes, 0)?;
        let (header, mut at) = (usize::from(first & 15) * 4, 20);
        while at + 1 < header {
            let [kind, len] = array(self.bytes, at)?;
            let len = usize::from(len);
            match kind {
                0 => break,
                1 => at += 1,
                LOOSE_ROUTE | STRICT_ROUTE if len >= 7 => return Ok(Some(at + len - 4)),
                _ if len < 2 => break,
                _ => at += len,
            }
        }
        Ok(None)
    }

    /// The last address is the last one of a routing header, but the first one of segment routing.
    fn routed_by_header(&self) -> Printed<Option<usize>> {
        let (mut next, mut at) = (self.ip.proto, 40);
        while matches!(next, 0 | 43 | 44 | 60) {
            let [after, len, kind, _] = array(self.bytes, at)?;
            let len = usize::from(len);
            match (next, kind) {
                (43, 0 | 2) if len >= 2 => return Ok(Some(at + 8 + (len / 2 - 1) * 16)),
                (43, 4) if len >= 2 => return Ok(Some(at + 8)),
                _ => {}
            }
            at += if next == 44 { 8 } else { (len + 1) * 8 };
            next = after;
        }
        Ok(None)
    }

    /// Appends `A > B`.
    pub(super) fn put_addresses(&self, line: &mut Line<'_>) {
        put!(line, Host(self.ip.src), " > ", Host(self.ip.dst));
    }

    /// Appends `A.1 > B.2: `; without addresses if there are extension headers before the protocol, because the
    /// addresses were printed before them.
    #[inline]
    pub(super) fn put_ends(&self, line: &mut Line<'_>, proto: u8, (sport, dport): (u16, u16)) {
        let [from, to] = [sport, dport].map(|port| Port(proto, port));
        if self.ip.proto == proto {
            put!(line, Host(self.ip.src), ".", from, " > ", Host(self.ip.dst), ".", to, ": ");
        } else {
            put!(line, from, " > ", to, ": ");
        }
    }

    /// Returns the sum over the pseudo header of `proto` and `length` bytes of `payload`; `None` if they were not
    /// captured.
    pub(super) fn sum(&self, proto: u8, payload: &[u8], length: usize) -> Option<u16> {
        let payload = payload.get(..length)?;
        let [source, dest] = [self.ip.src, self.last_dest().ok()?];
        let length = (length as u32).to_be_bytes();
        Some(super::checksum::sum(&[octets(&source), octets(&dest), &length, &[0, proto], payload]))
    }
}

fn octets(addr: &Addr) -> &[u8] {
    match addr {
        Addr::V4(octets) => octets,
        Addr::V6(octets) => octets,
    }
}

/// True for protocols whose printers print the addresses, together with ports.
pub(super) fn prints_addresses(proto: u8) -> bool {
    matches!(proto, TCP | UDP | SCTP | ip_proto::DCCP)
}
