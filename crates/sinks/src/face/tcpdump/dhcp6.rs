//! DHCPv6 (RFC 8415): which message it is. What `-v` adds is not told.

use super::bytes::{Printed, array};
use super::line::Line;
use super::pieces::put;

const KINDS: [&str; 15] = [
    "solicit",
    "advertise",
    "request",
    "confirm",
    "renew",
    "rebind",
    "reply",
    "release",
    "decline",
    "reconfigure",
    "inf-req",
    "relay-fwd",
    "relay-reply",
    "leasequery",
    "leasequery-reply",
];

/// Prints a message.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], _length: usize) -> Printed {
    line.protocol = "dhcp6";
    put!(line, "dhcp6");
    line.or_cut(|line| {
        let [kind, ..] = array::<4>(bytes, 0)?;
        match usize::from(kind).checked_sub(1).and_then(|nth| KINDS.get(nth)) {
            Some(name) => put!(line, " ", *name),
            None => put!(line, " msgtype-", kind),
        }
        Ok(())
    });
    Ok(())
}
