//! netstat's names for types of hardware, and the forms of their addresses.

use crate::pieces::put;

/// The form of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// The address is not written.
    None,
    /// A blank, then nothing.
    Empty,
    /// This many bytes in lower-case digits, separated by colons.
    Lower(usize),
    /// This many bytes in upper-case digits, separated by colons.
    Upper(usize),
    /// This many bytes in upper-case digits, separated by hyphens.
    Hyphens(usize),
}

/// A type of hardware.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hardware {
    /// `ARPHRD_…`, include/uapi/linux/if_arp.h.
    kind: u16,
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) form: Form,
}

/// Types that are not in the table. Amateur radio, X.25, ARCnet, Ash, IrDA and DLCI are left out: their addresses have
/// special forms, and their drivers have been or will be removed from the kernel.
const UNKNOWN: Hardware = Hardware { kind: u16::MAX, name: "unspec", title: "UNSPEC", form: Form::Hyphens(16) };

const fn kind(kind: u16, name: &'static str, title: &'static str, form: Form) -> Hardware {
    Hardware { kind, name, title, form }
}

#[rustfmt::skip]
const KINDS: &[Hardware] = &[
    kind(772, "loop", "Local Loopback", Form::None), kind(1, "ether", "Ethernet", Form::Lower(6)),
    kind(768, "tunnel", "IPIP Tunnel", Form::Empty), kind(512, "ppp", "Point-to-Point Protocol", Form::None),
    kind(776, "sit", "IPv6-in-IPv4", Form::None), kind(32, "infiniband", "InfiniBand", Form::Upper(20)),
    kind(27, "eui64", "Generic EUI-64", Form::Upper(8)),
    kind(774, "fddi", "Fiber Distributed Data Interface", Form::Hyphens(6)),
    kind(780, "hippi", "HIPPI", Form::Upper(6)), kind(513, "hdlc", "(Cisco)-HDLC", Form::None),
    kind(516, "lapb", "LAPB", Form::None), kind(770, "frad", "Frame Relay Access Device", Form::None),
    kind(256, "slip", "Serial Line IP", Form::None), kind(257, "cslip", "VJ Serial Line IP", Form::None),
    kind(258, "slip6", "6-bit Serial Line IP", Form::None), kind(259, "cslip6", "VJ 6-bit Serial Line IP", Form::None),
    kind(264, "adaptive", "Adaptive Serial Line IP", Form::None),
];

/// Returns the type with this number.
pub(super) fn hardware(number: u16) -> Hardware {
    KINDS.iter().copied().find(|known| known.kind == number).unwrap_or(UNKNOWN)
}

/// Appends a blank and the address, if the type has one. netstat knows only the first eight bytes of longer addresses.
pub(super) fn put_address(out: &mut Vec<u8>, hardware: Hardware, address: &[u8]) {
    const LOWER: &[u8; 16] = b"0123456789abcdef";
    const UPPER: &[u8; 16] = b"0123456789ABCDEF";
    let (count, digits, between) = match hardware.form {
        Form::None => return,
        Form::Empty => return put!(out, " "),
        Form::Lower(count) => (count, LOWER, b':'),
        Form::Upper(count) => (count, UPPER, b':'),
        Form::Hyphens(count) => (count, UPPER, b'-'),
    };
    for i in 0..count {
        let byte = if i < 8 { address.get(i).copied().unwrap_or(0) } else { 0 };
        out.push(if i == 0 { b' ' } else { between });
        let digit = |n: u8| digits.get(usize::from(n & 15)).copied().unwrap_or(b'0');
        out.extend([digit(byte >> 4), digit(byte)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u16, address: &[u8]) -> String {
        let kind = hardware(number);
        let mut out = kind.name.as_bytes().to_vec();
        put_address(&mut out, kind, address);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn every_form() {
        assert_eq!(line(1, &[2, 0xfc, 0, 0, 0, 1]), "ether 02:fc:00:00:00:01");
        assert_eq!(line(772, &[0; 6]), "loop");
        assert_eq!(line(768, &[192, 0, 2, 1]), "tunnel ");
        assert_eq!(line(65534, &[]), "unspec 00-00-00-00-00-00-00-00-00-00-00-00-00-00-00-00");
        assert_eq!(line(778, &[192, 0, 2, 1]), "unspec C0-00-02-01-00-00-00-00-00-00-00-00-00-00-00-00");
        assert_eq!(line(27, &[1; 20]), "eui64 01:01:01:01:01:01:01:01");
        assert!(line(32, &[0xab; 20]).ends_with("AB:AB:AB:00:00:00:00:00:00:00:00:00:00:00:00"));
    }
}
