//! Options of DHCP: the tool's names for them, and the format of their values.

use super::super::pieces::word_of;
use OptionKind::{AddressPairs, Addresses, Bytes, Longs, Shorts, SignedLongs, Special, Switches, Text};

/// The format of the value of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OptionKind {
    Addresses,
    AddressPairs,
    /// Numbers of 32 bits.
    Longs,
    SignedLongs,
    /// Numbers of 16 bits.
    Shorts,
    /// Numbers of eight bits, dots between them.
    Bytes,
    Text,
    /// `Y` or `N`.
    Switches,
    /// A format that only this option has.
    Special,
}

/// In ascending order of the number.
#[rustfmt::skip]
const OPTIONS: [(u8, OptionKind, &str); 105] = [
    (0, Bytes, "PAD"), (1, Addresses, "Subnet-Mask"), (2, SignedLongs, "Time-Zone"), (3, Addresses, "Default-Gateway"),
    (4, Addresses, "Time-Server"), (5, Addresses, "IEN-Name-Server"), (6, Addresses, "Domain-Name-Server"),
    (7, Addresses, "LOG"), (8, Addresses, "CS"), (9, Addresses, "LPR-Server"), (10, Addresses, "IM"),
    (11, Addresses, "RL"), (12, Text, "Hostname"), (13, Shorts, "BS"), (14, Text, "DP"), (15, Text, "Domain-Name"),
    (16, Addresses, "SS"), (17, Text, "RP"), (18, Text, "EP"), (19, Switches, "IPF"), (20, Switches, "SRT"),
    (21, AddressPairs, "PF"), (22, Shorts, "RSZ"), (23, Bytes, "TTL"), (24, Longs, "MTU-Timeout"),
    (25, Shorts, "MTU-Table"), (26, Shorts, "MTU"), (27, Switches, "LSN"), (28, Addresses, "BR"), (29, Switches, "MD"),
    (30, Switches, "MS"), (31, Switches, "Router-Discovery"), (32, Addresses, "RSA"),
    (33, AddressPairs, "Static-Route"), (34, Switches, "UT"), (35, Longs, "AT"), (36, Switches, "IE"),
    (37, Bytes, "TT"), (38, Longs, "KI"), (39, Switches, "KG"), (40, Text, "YD"), (41, Addresses, "YS"),
    (42, Addresses, "NTP"), (43, Bytes, "Vendor-Option"), (44, Addresses, "Netbios-Name-Server"),
    (45, Addresses, "WDD"), (46, Special, "Netbios-Node"), (47, Text, "Netbios-Scope"), (48, Addresses, "XFS"),
    (49, Addresses, "XDM"), (50, Addresses, "Requested-IP"), (51, Longs, "Lease-Time"), (52, Special, "OO"),
    (53, Bytes, "DHCP-Message"), (54, Addresses, "Server-ID"), (55, Bytes, "Parameter-Request"), (56, Text, "MSG"),
    (57, Shorts, "MSZ"), (58, Longs, "RN"), (59, Longs, "RB"), (60, Text, "Vendor-Class"), (61, Special, "Client-ID"),
    (64, Shorts, "N+D"), (65, Addresses, "N+S"), (66, Text, "TFTP"), (67, Text, "BF"), (68, Addresses, "MH"),
    (69, Addresses, "SMTP"), (70, Addresses, "POP3"), (71, Addresses, "NNTP"), (72, Addresses, "WWW"),
    (73, Addresses, "FG"), (74, Addresses, "IRC"), (75, Addresses, "STS"), (76, Addresses, "STDA"),
    (77, Special, "User-Class"), (78, Bytes, "SLP-DA"), (79, Bytes, "SLP-SCOPE"), (80, Text, "SLP-NA"),
    (81, Special, "FQDN"), (82, Special, "Agent-Information"), (83, Bytes, "ARMT"), (88, Text, "TZSTR"),
    (89, Bytes, "FQDNS"), (90, Bytes, "AUTH"), (91, SignedLongs, "Last-Transaction-Time"),
    (92, Addresses, "Associated-IP"), (93, Shorts, "ARCH"), (94, Bytes, "NDI"), (95, Text, "LDAP"), (97, Bytes, "GUID"),
    (98, Text, "UAP"), (100, Text, "POSIX-TZ"), (101, Text, "TZ-Name"), (112, Addresses, "NI"), (113, Text, "NITAG"),
    (114, Text, "URL"), (116, Switches, "NOAUTO"), (117, Shorts, "NSSEARCH"), (118, Addresses, "SUBNET"),
    (121, Special, "Classless-Static-Route"), (150, Addresses, "TFTP-Server-Address"), (161, Text, "MUD-URL"),
    (249, Special, "Classless-Static-Route-Microsoft"), (255, Bytes, "END"),
];

/// Returns the format and the name of an option; for unknown options the format depends on the length.
pub(super) fn option(number: u8, len: usize) -> (OptionKind, &'static str) {
    let known = OPTIONS.binary_search_by_key(&number, |option| option.0).ok().and_then(|at| OPTIONS.get(at));
    match known {
        Some((_, kind, name)) => (*kind, name),
        None if len % 2 == 1 => (Bytes, "Unknown"),
        None if len % 4 == 2 => (Shorts, "Unknown"),
        None => (Longs, "Unknown"),
    }
}

#[rustfmt::skip]
const MESSAGES: [(u8, &str); 12] = [
    (1, "Discover"), (2, "Offer"), (3, "Request"), (4, "Decline"), (5, "ACK"), (6, "NACK"), (7, "Release"),
    (8, "Inform"), (10, "LeaseQuery"), (11, "LeaseUnassigned"), (12, "LeaseUnknown"), (13, "LeaseActive"),
];

/// Returns the name of a type of message.
pub(super) fn message(kind: u8) -> Option<&'static str> {
    word_of(&MESSAGES, kind)
}

/// Returns the name of a type of hardware in the identifier of a client.
pub(super) fn hardware(kind: u8) -> Option<&'static str> {
    let names = [(1, "ether"), (6, "ieee802"), (7, "arcnet"), (0xf, "frelay"), (0x17, "strip"), (0x18, "ieee1394")];
    word_of(&names, kind)
}

/// Returns the name of an option of a relay (RFC 3046, RFC 3993).
pub(super) fn relay_part(kind: u8) -> Option<&'static str> {
    word_of(&[(1, "Circuit-ID"), (2, "Remote-ID"), (6, "Subscriber-ID")], kind)
}

/// Returns the name of a type of node of NetBIOS over TCP.
pub(super) fn netbios_node(kind: u8) -> Option<&'static str> {
    word_of(&[(1, "b-node"), (2, "p-node"), (4, "m-node"), (8, "h-node")], kind)
}

/// Returns the name of the fields that also contain options.
pub(super) fn overloaded(fields: u8) -> Option<&'static str> {
    word_of(&[(1, "file"), (2, "sname"), (3, "file+sname")], fields)
}
