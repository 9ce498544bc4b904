//! The packet that carries a protocol, for the printers of protocols over IP.

use super::bytes::{Printed, array};
use super::line::Line;

/// TCP.
pub(super) const TCP: u8 = 6;
/// UDP.
pub(super) const UDP: u8 = 17;
/// ICMPv6.
pub(super) const ICMP6: u8 = 58;
const DCCP: u8 = 33;
/// Options of IPv4.
const LOOSE_ROUTE: u8 = 131;
const STRICT_ROUTE: u8 = 137;
/// SCTP.
pub(super) const SCTP: u8 = 132;

/// Prints a packet of `length` bytes, of which some were captured.
pub(super) type Printer = fn(&mut Line<'_>, bytes: &[u8], length: usize) -> Printed;

/// The packet that carries a protocol.
#[derive(Clone, Copy)]
pub(super) struct Network<'n> {
    /// The bytes from its header on, as far as they were captured and are within its length.
    pub(super) header: &'n [u8],
    /// 4 or 6.
    pub(super) version: u8,
    /// True if it is a fragment.
    pub(super) fragmented: bool,
    /// Prints a packet of the same version, for messages that quote one.
    pub(super) again: Printer,
    /// Time to live or hop limit.
    #[allow(dead_code, reason = "for the application protocols")]
    pub(super) ttl: u8,
}

impl<'n> Network<'n> {
    /// Returns the sender's address: four or sixteen bytes.
    pub(super) fn source(&self) -> Printed<&'n [u8]> {
        let (at, len) = if self.version == 4 { (12, 4) } else { (8, 16) };
        super::bytes::part(self.header, at, len)
    }

    /// Returns the receiver's address.
    pub(super) fn dest(&self) -> Printed<&'n [u8]> {
        let (at, len) = if self.version == 4 { (16, 4) } else { (24, 16) };
        super::bytes::part(self.header, at, len)
    }

    /// Returns the last destination of the packet, from a source route.
    fn last_dest(&self) -> Printed<&'n [u8]> {
        let routed = if self.version == 4 { self.routed_by_option()? } else { self.routed_by_header()? };
        routed.map_or_else(|| self.dest(), Ok)
    }

    fn routed_by_option(&self) -> Printed<Option<&'n [u8]>> {
        let header = usize::from(super::bytes::u8_at(self.header, 0)? & 15) * 4;
        let mut at = 20;
        while at + 1 < header {
            let [kind, len] = array(self.header, at)?;
            let len = usize::from(len);
            match kind {
                0 => break,
                1 => at += 1,
                LOOSE_ROUTE | STRICT_ROUTE if len >= 7 => {
                    return super::bytes::part(self.header, at + len - 4, 4).map(Some);
                }
                _ if len < 2 => break,
                _ => at += len,
            }
        }
        Ok(None)
    }

    /// The last address is the last one of a routing header, but the first one of segment routing.
    fn routed_by_header(&self) -> Printed<Option<&'n [u8]>> {
        let (mut next, mut at) = (self.proto()?, 40);
        while matches!(next, 0 | 43 | 44 | 60) {
            let [after, len, kind, _] = array(self.header, at)?;
            let len = usize::from(len);
            match (next, kind) {
                (43, 0 | 2) if len >= 2 => {
                    return super::bytes::part(self.header, at + 8 + (len / 2 - 1) * 16, 16).map(Some);
                }
                (43, 4) if len >= 2 => return super::bytes::part(self.header, at + 8, 16).map(Some),
                _ => {}
            }
            at += if next == 44 { 8 } else { (len + 1) * 8 };
            next = after;
        }
        Ok(None)
    }

    /// Returns the protocol in the header.
    pub(super) fn proto(&self) -> Printed<u8> {
        super::bytes::u8_at(self.header, if self.version == 4 { 9 } else { 6 })
    }

    /// Appends `A > B`.
    pub(super) fn put_addresses(&self, line: &mut Line<'_>) -> Printed {
        put_address(line, self.source()?);
        line.put(" > ");
        put_address(line, self.dest()?);
        Ok(())
    }

    /// Appends `A.1 > B.2`; without addresses if there are extension headers before the protocol, because the
    /// addresses were printed before them.
    #[inline]
    pub(super) fn put_ends(&self, line: &mut Line<'_>, proto: u8, sport: u16, dport: u16) -> Printed {
        if self.proto()? == proto {
            put_address(line, self.source()?);
            line.byte(b'.');
            line.port(proto, sport);
            line.put(" > ");
            put_address(line, self.dest()?);
            line.byte(b'.');
            line.port(proto, dport);
        } else {
            line.port(proto, sport);
            line.put(" > ");
            line.port(proto, dport);
        }
        Ok(())
    }

    /// Appends `A.1 > B.2`, always with addresses, and with the numbers of ports.
    #[inline]
    pub(super) fn put_both_ends(&self, line: &mut Line<'_>, sport: u16, dport: u16) -> Printed {
        put_address(line, self.source()?);
        line.byte(b'.');
        line.dec(sport);
        line.put(" > ");
        put_address(line, self.dest()?);
        line.byte(b'.');
        line.dec(dport);
        Ok(())
    }

    /// Returns the sum over the pseudo header of `proto` and `length` bytes of `payload`; `None` if they were not
    /// captured.
    pub(super) fn sum(&self, proto: u8, payload: &[u8], length: usize) -> Option<u16> {
        let payload = payload.get(..length)?;
        let (source, dest) = (self.source().ok()?, self.last_dest().ok()?);
        let head = [0, proto];
        let length = (length as u32).to_be_bytes();
        Some(super::checksum::sum(&[source, dest, &length, &head, payload]))
    }
}

#[inline]
fn put_address(line: &mut Line<'_>, address: &[u8]) {
    if let Ok(v4) = address.try_into() {
        line.v4(v4);
    } else if let Ok(v6) = array(address, 0) {
        line.v6(v6);
    }
}

/// True for protocols whose printers print the addresses, together with ports.
pub(super) fn prints_addresses(proto: u8) -> bool {
    matches!(proto, TCP | UDP | SCTP | DCCP)
}
