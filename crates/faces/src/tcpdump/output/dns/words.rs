//! Words of DNS, in the tool's spelling.

use super::super::line::Line;
use super::super::pieces::{put, word_of};

#[rustfmt::skip]
pub(super) const OPERATIONS: [&str; 16] = [
    "", " inv_q", " stat", " op3", " notify", " update", " op6", " op7", " op8", " updateA", " updateD", " updateDA",
    " updateM", " updateMA", " zoneInit", " zoneRef",
];
#[rustfmt::skip]
pub(super) const RESPONSES: [&str; 16] = [
    "", " FormErr", " ServFail", " NXDomain", " NotImp", " Refused", " YXDomain", " YXRRSet", " NXRRSet", " NotAuth",
    " NotZone", " Resp11", " Resp12", " Resp13", " Resp14", " NoChange",
];

/// The names of the types from 1 on; an empty string is a type without a name.
const TYPES: [&str; 49] = [
    "", "A", "NS", "MD", "MF", "CNAME", "SOA", "MB", "MG", "MR", "NULL", "WKS", "PTR", "HINFO", "MINFO", "MX", "TXT",
    "RP", "AFSDB", "X25", "ISDN", "RT", "NSAP", "NSAP_PTR", "SIG", "KEY", "PX", "GPOS", "AAAA", "LOC", "NXT", "EID",
    "NIMLOC", "SRV", "ATMA", "NAPTR", "KX", "CERT", "A6", "DNAME", "SINK", "OPT", "APL", "DS", "SSHFP", "IPSECKEY",
    "RRSIG", "NSEC", "DNSKEY",
];
#[rustfmt::skip]
const HIGH_TYPES: [(u16, &str); 14] = [
    (99, "SPF"), (100, "UINFO"), (101, "UID"), (102, "GID"), (103, "UNSPEC"), (104, "UNSPECA"), (249, "TKEY"),
    (250, "TSIG"), (251, "IXFR"), (252, "AXFR"), (253, "MAILB"), (254, "MAILA"), (255, "ANY"), (256, "URI"),
];
const IN: u16 = 1;
const CLASSES: [(u16, &str); 3] = [(3, "CHAOS"), (4, "HS"), (255, "ANY")];

pub(super) fn put_type(line: &mut Line<'_>, kind: u16) {
    match TYPES.get(usize::from(kind)).copied().filter(|word| !word.is_empty()).or(word_of(&HIGH_TYPES, kind)) {
        Some(word) => put!(line, word),
        None => put!(line, "Type", kind),
    }
}

/// Appends a blank and a class; nothing for the class of the Internet.
pub(super) fn put_class(line: &mut Line<'_>, class: u16) {
    match word_of(&CLASSES, class) {
        _ if class == IN => {}
        Some(word) => put!(line, " ", word),
        None => put!(line, " (Class ", class, ")"),
    }
}
