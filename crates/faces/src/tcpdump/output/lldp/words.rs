//! Words of LLDP.

/// A table of numbers and their words.
pub(super) type ManyWords = [(u16, &'static str)];

/// Returns the word of a number.
pub(super) fn of(words: &ManyWords, number: u16) -> Option<&'static str> {
    super::super::pieces::word_of(words, number)
}

/// Returns the name of a type of entry.
pub(super) fn entry(kind: u16) -> Option<&'static str> {
    of(ENTRIES, kind)
}

/// Returns the name of an address family.
pub(super) fn family(number: u8) -> Option<&'static str> {
    of(FAMILIES, number.into())
}

#[rustfmt::skip]
const FAMILIES: &ManyWords = &[
    (0, "Reserved"), (1, "IPv4"), (2, "IPv6"), (3, "NSAP"), (4, "HDLC"), (5, "BBN 1822"), (6, "802"), (7, "E.163"),
    (8, "E.164"), (9, "F.69"), (10, "X.121"), (11, "Novell IPX"), (12, "Appletalk"), (13, "Decnet IV"),
    (14, "Banyan Vines"), (15, "E.164 with NSAP subaddress"), (196, "Layer-2 VPN"), (25, "VPLS"),
];

/// Entries.
#[rustfmt::skip]
const ENTRIES: &ManyWords = &[
    (0, "End"), (1, "Chassis ID"), (2, "Port ID"), (3, "Time to Live"), (4, "Port Description"), (5, "System Name"),
    (6, "System Description"), (7, "System Capabilities"), (8, "Management Address"), (127, "Organization specific"),
];

/// Types of identifiers of a chassis, from 1.
#[rustfmt::skip]
pub(super) const CHASSIS: [&str; 7] = [
    "Chassis component", "Interface alias", "Port component", "MAC address", "Network address", "Interface name",
    "Local",
];

/// Types of identifiers of a port, from 1.
#[rustfmt::skip]
pub(super) const PORTS: [&str; 7] = [
    "Interface alias", "Port component", "MAC address", "Network Address", "Interface Name", "Agent circuit ID",
    "Local",
];

/// Capabilities of a system.
#[rustfmt::skip]
pub(super) const CAPABILITIES: [(u32, &str); 8] = [
    (0x1, "Other"), (0x2, "Repeater"), (0x4, "Bridge"), (0x8, "WLAN AP"), (0x10, "Router"), (0x20, "Telephone"),
    (0x40, "Docsis"), (0x80, "Station Only"),
];

/// Entries of IEEE 802.1.
#[rustfmt::skip]
pub(super) const IEEE_802_1: &ManyWords = &[
    (1, "Port VLAN Id"), (2, "Port and Protocol VLAN ID"), (3, "VLAN name"), (4, "Protocol Identity"),
    (7, "Link aggregation"), (8, "Congestion Notification"), (9, "ETS Configuration"), (10, "ETS Recommendation"),
    (11, "Priority Flow Control Configuration"), (12, "Application Priority"), (13, "EVB"), (14, "CDCP"),
];

/// Flags of protocol VLANs.
pub(super) const PROTOCOL_VLAN: [(u32, &str); 2] = [(0x2, "supported"), (0x4, "enabled")];

/// Modes of edge virtual bridging.
pub(super) const EVB_MODES: &ManyWords =
    &[(0, "Not Supported"), (1, "EVB Bridge"), (2, "EVB Station"), (3, "Reserved for future Standardization")];

/// Entries of IEEE 802.3.
pub(super) const IEEE_802_3: &ManyWords =
    &[(1, "MAC/PHY configuration/status"), (2, "Power via MDI"), (3, "Link aggregation"), (4, "Max frame size")];

/// Flags of the negotiation of speed.
pub(super) const NEGOTIATION: [(u32, &str); 2] = [(0x1, "supported"), (0x2, "enabled")];

/// Negotiated modes (RFC 3636).
#[rustfmt::skip]
pub(super) const SPEEDS: [(u32, &str); 15] = [
    (0x4000, "10BASE-T hdx"), (0x2000, "10BASE-T fdx"), (0x1000, "100BASE-T4"), (0x800, "100BASE-TX hdx"),
    (0x400, "100BASE-TX fdx"), (0x200, "100BASE-T2 hdx"), (0x100, "100BASE-T2 fdx"), (0x80, "Pause for fdx links"),
    (0x40, "Asym PAUSE for fdx"), (0x20, "Sym PAUSE for fdx"), (0x10, "Asym and Sym PAUSE for fdx"),
    (0x8, "1000BASE-{X LX SX CX} hdx"), (0x4, "1000BASE-{X LX SX CX} fdx"), (0x2, "1000BASE-T hdx"),
    (0x1, "1000BASE-T fdx"),
];

/// Types of transceivers.
#[rustfmt::skip]
pub(super) const TRANSCEIVERS: &ManyWords = &[
    (0, "Unknown"), (1, "AUI"), (2, "10BASE_5"), (3, "FOIRL"), (4, "10BASE2"), (5, "10BASET duplex mode unknown"),
    (6, "10BASEFP"), (7, "10BASEFB"), (8, "10BASEFL duplex mode unknown"), (9, "10BROAD36"), (10, "10BASET hdx"),
    (11, "10BASET fdx"), (12, "10BASEFL hdx"), (13, "10BASEFL fdx"), (14, "100BASET4"), (15, "100BASETX hdx"),
    (16, "100BASETX fdx"), (17, "100BASEFX hdx"), (18, "100BASEFX fdx"), (19, "100BASET2 hdx"), (20, "100BASET2 fdx"),
    (21, "1000BASEX hdx"), (22, "1000BASEX fdx"), (23, "1000BASELX hdx"), (24, "1000BASELX fdx"),
    (25, "1000BASESX hdx"), (26, "1000BASESX fdx"), (27, "1000BASECX hdx"), (28, "1000BASECX fdx"),
    (29, "1000BASET hdx"), (30, "1000BASET fdx"), (31, "10GBASEX"), (32, "10GBASELX4"), (33, "10GBASER"),
    (34, "10GBASEER"), (35, "10GBASELR"), (36, "10GBASESR"), (37, "10GBASEW"), (38, "10GBASEEW"), (39, "10GBASELW"),
    (40, "10GBASESW"),
];

/// Flags of power over Ethernet.
pub(super) const POWER: [(u32, &str); 4] =
    [(0x1, "PSE"), (0x2, "supported"), (0x4, "enabled"), (0x8, "can be controlled")];

/// Wires that carry power.
pub(super) const POWER_PAIRS: &ManyWords = &[(1, "signal"), (2, "spare")];

/// Classes of power.
pub(super) const POWER_CLASSES: &ManyWords =
    &[(1, "class0"), (2, "class1"), (3, "class2"), (4, "class3"), (5, "class4")];

/// Flags of link aggregation.
pub(super) const AGGREGATION: [(u32, &str); 2] = [(0x1, "supported"), (0x2, "enabled")];

/// Entries of ANSI/TIA-1057.
#[rustfmt::skip]
pub(super) const MEDIA: &ManyWords = &[
    (1, "LLDP-MED Capabilities"), (2, "Network policy"), (3, "Location identification"), (4, "Extended power-via-MDI"),
    (5, "Inventory - hardware revision"), (6, "Inventory - firmware revision"), (7, "Inventory - software revision"),
    (8, "Inventory - serial number"), (9, "Inventory - manufacturer name"), (10, "Inventory - model name"),
    (11, "Inventory - asset ID"),
];

/// Capabilities of an endpoint.
#[rustfmt::skip]
pub(super) const MEDIA_CAPABILITIES: [(u32, &str); 6] = [
    (0x1, "LLDP-MED capabilities"), (0x2, "network policy"), (0x4, "location identification"),
    (0x8, "extended power via MDI-PSE"), (0x10, "extended power via MDI-PD"), (0x20, "Inventory"),
];

/// Types of devices.
pub(super) const DEVICES: &ManyWords =
    &[(1, "endpoint class 1"), (2, "endpoint class 2"), (3, "endpoint class 3"), (4, "network connectivity")];

/// Uses of a VLAN.
#[rustfmt::skip]
pub(super) const APPLICATIONS: &ManyWords = &[
    (1, "voice"), (2, "voice signaling"), (3, "guest voice"), (4, "guest voice signaling"), (5, "softphone voice"),
    (6, "video conferencing"), (7, "streaming video"), (8, "video signaling"),
];

/// Flags of a VLAN's use.
pub(super) const POLICY: [(u32, &str); 3] = [(0x80, "Unknown"), (0x40, "Tagged"), (0x20, "reserved")];

/// Formats of a location.
pub(super) const LOCATIONS: &ManyWords = &[(1, "coordinate-based LCI"), (2, "civic address LCI"), (3, "ECS ELIN")];

/// Units of altitude.
pub(super) const ALTITUDES: &ManyWords = &[(1, "meters"), (2, "floors")];

/// Reference systems of coordinates.
pub(super) const DATUMS: &ManyWords = &[
    (1, "World Geodesic System 1984"),
    (2, "North American Datum 1983 (NAVD88)"),
    (3, "North American Datum 1983 (MLLW)"),
];

/// Subjects of a location.
pub(super) const PLACES: &ManyWords = &[
    (0, "location of DHCP server"),
    (1, "location of the network element believed to be closest to the client"),
    (2, "location of the client"),
];

/// Parts of a civic address.
#[rustfmt::skip]
pub(super) const CIVIC: &ManyWords = &[
    (1, "national subdivisions (state,canton,region,province,prefecture)"), (2, "county, parish, gun, district"),
    (3, "city, township, shi"), (4, "city division, borough, city district, ward chou"), (5, "neighborhood, block"),
    (6, "street"),
];

/// Sources of power.
pub(super) const POWER_SOURCES: &ManyWords =
    &[(1, "PSE - primary power source"), (2, "local - backup power source"), (3, "PSE+local - reserved")];

/// Priorities of power.
pub(super) const POWER_PRIORITIES: &ManyWords = &[(1, "critical"), (2, "high"), (3, "low")];

/// Types of inventory entries.
#[rustfmt::skip]
pub(super) const INVENTORY: &ManyWords = &[
    (5, "Hardware revision"), (6, "Firmware revision"), (7, "Software revision"), (8, "Serial number"),
    (9, "Manufacturer name"), (10, "Model name"), (11, "Asset ID"),
];

/// Versions of DCBX.
pub(super) const DATA_CENTER: &ManyWords =
    &[(1, "DCB Capability Exchange Protocol Rev 1"), (2, "DCB Capability Exchange Protocol Rev 1.01")];
