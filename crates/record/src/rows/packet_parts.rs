//! Rarely needed parts of packet headers. They are read on demand, so decoding a packet does not pay for them.

use super::packet::PacketHeaders;
use crate::Addr;

/// Parts of the IP header; `None` for the other IP version, or if the part was not captured.
impl PacketHeaders<'_> {
    /// Length of an IPv4 header in units of 4 bytes.
    #[inline]
    pub fn v4_header_words(&self) -> Option<u8> {
        Some(self.v4()?.first()? & 0xf)
    }

    /// Checksum of an IPv4 header.
    #[inline]
    pub fn v4_checksum(&self) -> Option<u16> {
        Some(u16::from_be_bytes(array(self.v4()?, 10)?))
    }

    /// The field with flags and fragment offset of an IPv4 header: 0x8000 reserved, 0x4000 don't fragment, 0x2000 more
    /// fragments, followed by the offset in units of 8 bytes.
    #[inline]
    pub fn v4_fragment_bits(&self) -> Option<u16> {
        Some(u16::from_be_bytes(array(self.v4()?, 6)?))
    }

    /// IPv6 flow label.
    #[inline]
    pub fn flow_label(&self) -> Option<u32> {
        let Addr::V6(_) = self.src else { return None };
        Some(u32::from_be_bytes(array(self.header, 0)?) & 0xf_ffff)
    }

    #[inline]
    fn v4(&self) -> Option<&[u8]> {
        matches!(self.src, Addr::V4(_)).then_some(self.header)
    }
}

/// Parts of the transport header. The caller must check that the packet has the right protocol. `None` if the part was
/// not captured.
impl PacketHeaders<'_> {
    /// TCP checksum.
    #[inline]
    pub fn tcp_checksum(&self) -> Option<u16> {
        self.transport_u16(16)
    }

    /// TCP urgent pointer.
    #[inline]
    pub fn tcp_urgent(&self) -> Option<u16> {
        self.transport_u16(18)
    }

    /// The four TCP bits between header length and flags.
    #[inline]
    pub fn tcp_reserved(&self) -> Option<u8> {
        Some(self.payload.get(12)? & 0xf)
    }

    /// Length in the UDP header.
    #[inline]
    pub fn udp_length(&self) -> Option<u16> {
        self.transport_u16(4)
    }

    /// UDP checksum.
    #[inline]
    pub fn udp_checksum(&self) -> Option<u16> {
        self.transport_u16(6)
    }

    /// SCTP checksum.
    #[inline]
    pub fn sctp_checksum(&self) -> Option<u32> {
        Some(u32::from_be_bytes(array(self.payload, 8)?))
    }

    /// ICMP or ICMPv6 checksum.
    #[inline]
    pub fn icmp_checksum(&self) -> Option<u16> {
        self.transport_u16(2)
    }

    /// The four bytes after the ICMP or ICMPv6 checksum: identifier and sequence number, gateway, MTU, or pointer.
    #[inline]
    pub fn icmp_rest(&self) -> Option<[u8; 4]> {
        array(self.payload, 4)
    }

    #[inline]
    fn transport_u16(&self, at: usize) -> Option<u16> {
        Some(u16::from_be_bytes(array(self.payload, at)?))
    }
}

#[inline]
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_ipv4_and_tcp() {
        let header = [0x46, 0, 0, 64, 0, 1, 0xe0, 3, 64, 6, 0xab, 0xcd];
        let payload = [0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0x5f, 2, 0, 9, 0x12, 0x34, 0, 7];
        let packet = PacketHeaders { src: Addr::V4([0; 4]), header: &header, payload: &payload, ..Default::default() };
        assert_eq!((packet.v4_header_words(), packet.v4_checksum()), (Some(6), Some(0xabcd)));
        assert_eq!((packet.v4_fragment_bits(), packet.flow_label()), (Some(0xe003), None));
        assert_eq!((packet.tcp_checksum(), packet.tcp_urgent()), (Some(0x1234), Some(7)));
        assert_eq!((packet.tcp_reserved(), packet.icmp_rest()), (Some(15), Some([0, 0, 0, 3])));
        let cut = PacketHeaders { payload: &payload[..13], ..packet };
        assert_eq!((cut.tcp_checksum(), cut.tcp_reserved(), cut.sctp_checksum()), (None, Some(15), Some(4)));
    }

    #[test]
    fn parts_of_ipv6_and_udp() {
        let header = [0x6a, 0xbc, 0xde, 0xf1];
        let payload = [0, 1, 0, 2, 0, 12, 0x12, 0x34];
        let packet = PacketHeaders { src: Addr::V6([0; 16]), header: &header, payload: &payload, ..Default::default() };
        assert_eq!((packet.flow_label(), packet.v4_checksum(), packet.v4_header_words()), (Some(0xcdef1), None, None));
        assert_eq!(
            (packet.udp_length(), packet.udp_checksum(), packet.icmp_checksum()),
            (Some(12), Some(0x1234), Some(2))
        );
    }
}
