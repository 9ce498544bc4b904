//! Names of the organisations that Ethernet addresses and LLDP name (IEEE OUI): the few that the tool knows.

/// The names by the first three bytes.
#[rustfmt::skip]
const NAMES: [(u32, &str); 26] = [
    (0x000000, "Ethernet"), (0x00000c, "Cisco"), (0x00005e, "IANA"), (0x000081, "Nortel Networks SONMP"),
    (0x0000f8, "Cisco bridged"), (0x0080c2, "Ethernet bridged"), (0x00a03e, "ATM Forum"),
    (0x00e02f, "DOCSIS Spanning Tree"), (0x080007, "Appletalk"), (0x009069, "Juniper"), (0x080009, "Hewlett-Packard"),
    (0x00120f, "IEEE 802.3 Private"), (0x0012bb, "ANSI/TIA"), (0x001b21, "DCBX"), (0x002320, "Nicira Networks"),
    (0x5c16c7, "Big Switch Networks"), (0xb0d2f5, "Vello Systems"), (0x002481, "HP"), (0x0004ea, "HP-Labs"),
    (0x748771, "Infoblox Inc"), (0xa42305, "Open Networking Lab"), (0x00049f, "Freescale"), (0x0015ad, "Netronome"),
    (0x001018, "Broadcom"), (0x00e004, "PMC-Sierra"), (0xd0f0db, "Ericsson"),
];

/// Returns the name of an organisation; `Unknown` for all but a few.
pub(super) fn vendor_name(organisation: u32) -> &'static str {
    super::pieces::word_of(&NAMES, organisation).unwrap_or("Unknown")
}
