//! The values that the command line gives for an entry, to search for it or to create it.

use record::Addr;
use record::rows::{CtState, CtTuple, ip_proto};

/// The given values of one tuple.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Side {
    pub(super) src: Option<Addr>,
    pub(super) dst: Option<Addr>,
    pub(super) src_part: Option<u16>,
    pub(super) dst_part: Option<u16>,
}

/// The address and port that NAT rewrites an entry to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct NatTarget {
    pub(super) addr: Option<Addr>,
    pub(super) port: Option<u16>,
}

/// Status bits that must be set, and bits that must be clear.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Status {
    pub(super) set: u32,
    pub(super) unset: u32,
}

/// The given values.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Want {
    pub(super) orig: Side,
    pub(super) reply: Side,
    /// The tuple of an expectation.
    pub(super) expected: Side,
    /// The mask of an expectation, or from `-s` and `-d`.
    pub(super) mask: Side,
    pub(super) proto: Option<u8>,
    pub(super) icmp_type: Option<u8>,
    pub(super) icmp_code: Option<u8>,
    pub(super) icmp_id: Option<u16>,
    pub(super) state: Option<CtState>,
    pub(super) vtags: [Option<u32>; 2],
    pub(super) dccp_role: Option<u8>,
    pub(super) status: Option<Status>,
    pub(super) timeout_s: Option<u32>,
    /// Value and mask.
    pub(super) mark: Option<(u32, u32)>,
    pub(super) id: Option<u32>,
    pub(super) zone: Option<u16>,
    pub(super) orig_zone: Option<u16>,
    pub(super) reply_zone: Option<u16>,
    pub(super) snat: NatTarget,
    pub(super) dnat: NatTarget,
    /// Label bits to search for.
    pub(super) labels: Option<Vec<u8>>,
    /// Label bits to set or clear.
    pub(super) labels_changed: Option<Vec<u8>>,
    /// 2 (IPv4), 10 (IPv6) or 0 (unknown).
    pub(super) family: u8,
}

impl Want {
    /// The parts of the original tuple in the kernel's layout, including ICMP. Unspecified parts are None.
    pub(super) fn orig_parts(&self) -> (Option<u16>, Option<u16>) {
        if !matches!(self.proto, Some(ip_proto::ICMP | ip_proto::ICMPV6)) {
            return (self.orig.src_part, self.orig.dst_part);
        }
        let has_kind = self.icmp_type.is_some() || self.icmp_code.is_some();
        let pair = [self.icmp_type.unwrap_or(0), self.icmp_code.unwrap_or(0)];
        (self.icmp_id, has_kind.then(|| u16::from_be_bytes(pair)))
    }

    /// The wildcard address of the family.
    fn any(&self) -> Addr {
        if self.family == 10 { Addr::ANY6 } else { Addr::ANY4 }
    }

    /// A tuple from the given values of one side; unspecified values are zero.
    pub(super) fn tuple(&self, side: &Side, proto: u8) -> CtTuple {
        CtTuple {
            src: side.src.unwrap_or(self.any()),
            dst: side.dst.unwrap_or(self.any()),
            proto,
            src_part: side.src_part.unwrap_or(0),
            dst_part: side.dst_part.unwrap_or(0),
            zone: None,
        }
    }

    /// The original tuple.
    pub(super) fn orig_tuple(&self) -> CtTuple {
        let (src_part, dst_part) = self.orig_parts();
        self.tuple(&Side { src_part, dst_part, ..self.orig }, self.proto.unwrap_or(0))
    }
}

/// The inverse of a tuple. An ICMP request has the type of its reply, or 255, which the kernel refuses, if it has no
/// reply.
pub(super) fn inverse(of: &CtTuple) -> CtTuple {
    let unanswered = || {
        let code = of.icmp().map_or(0, |part| part.code);
        CtTuple { src: of.dst, dst: of.src, dst_part: u16::from_be_bytes([255, code]), ..*of }
    };
    of.reply_tuple().unwrap_or_else(unanswered)
}

/// Parses a number like atol(3): blanks, a sign, digits; 0 if it has no digits.
pub(super) fn number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let (value, _) = digits_of(digits, 10);
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    if negative { -value } else { value }
}

/// Parses a number like strtoul(3) with base 0, which accepts the prefixes 0x and 0.
pub(super) fn wide(text: &[u8]) -> u64 {
    wide_and_rest(text).0
}

/// Like [`wide`], and also returns the text after the number.
pub(super) fn wide_and_rest(text: &[u8]) -> (u64, &[u8]) {
    let start = text.trim_ascii_start();
    let (negative, digits) = match start.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, start),
    };
    let (value, rest) = match digits {
        [b'0', b'x' | b'X', hex @ ..] if hex.first().is_some_and(u8::is_ascii_hexdigit) => digits_of(hex, 16),
        [b'0', ..] => digits_of(digits, 8),
        _ => digits_of(digits, 10),
    };
    if rest.len() == digits.len() {
        return (0, text);
    }
    (if negative { value.wrapping_neg() } else { value }, rest)
}

/// Reads all leading digits; saturates at the largest number.
fn digits_of(text: &[u8], base: u32) -> (u64, &[u8]) {
    let mut value = 0u64;
    for (at, byte) in text.iter().enumerate() {
        let Some(digit) = char::from(*byte).to_digit(base) else {
            return (value, text.get(at..).unwrap_or_default());
        };
        value = value.saturating_mul(base.into()).saturating_add(digit.into());
    }
    (value, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_c_reads_them() {
        assert_eq!([number(b" 12x"), number(b"-3"), number(b""), number(b"0x10")], [12, -3, 0, 0]);
        assert_eq!([wide(b"0x10"), wide(b"010"), wide(b"08"), wide(b"12/3"), wide(b"x")], [16, 8, 0, 12, 0]);
        assert_eq!(wide(b"-1") as u32, u32::MAX);
        assert_eq!(wide_and_rest(b"0xf/0x3"), (15, &b"/0x3"[..]));
        assert_eq!(wide_and_rest(b"x"), (0, &b"x"[..]));
        assert_eq!(wide(b"99999999999999999999"), u64::MAX);
    }

    #[test]
    fn answers() {
        let ping = CtTuple { proto: 1, src_part: 7, dst_part: 0x0800, ..CtTuple::EMPTY };
        assert_eq!((inverse(&ping).src_part, inverse(&ping).dst_part), (7, 0));
        assert_eq!(inverse(&inverse(&ping)), ping);
        let odd = CtTuple { dst_part: 0x0500, ..ping };
        assert_eq!(inverse(&odd).dst_part, 0xff00);
        let tcp = CtTuple { proto: 6, src_part: 1, dst_part: 2, ..CtTuple::EMPTY };
        assert_eq!((inverse(&tcp).src_part, inverse(&tcp).dst_part), (2, 1));
    }
}
