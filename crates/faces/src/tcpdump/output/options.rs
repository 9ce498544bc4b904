//! The options of tcpdump that change lines.

use sinks::ulogd::Zone;

/// The format of the time of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stamp {
    /// `12:44:33.209820`, local time.
    #[default]
    TimeOfDay,
    /// `-t`: no time.
    None,
    /// `-tt`: seconds since 1970.
    Epoch,
    /// `-ttt`: since the previous packet.
    SincePrevious,
    /// `-tttt`: with the date, local time.
    Date,
    /// `-ttttt`: since the first packet.
    SinceFirst,
}

/// The bytes of a packet that follow its line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dump {
    /// No bytes.
    #[default]
    None,
    /// `-x`: in hexadecimal.
    Hex,
    /// `-X`: in hexadecimal and as text.
    HexAndText,
    /// `-A`: as text.
    Text,
}

/// The protocol of every datagram, regardless of its ports (`-T`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketType {
    /// DNS, also over TCP.
    Domain,
    /// VXLAN.
    Vxlan,
}

/// Returns the name of a local interface by its number, if it has one: for packets captured on `any`.
pub type InterfaceName<'n> = &'n dyn Fn(u32) -> Option<&'n str>;

/// The switches that change lines.
#[derive(Clone, Copy, Debug)]
pub struct TcpdumpOptions {
    /// `-t` … `-ttttt`.
    pub stamp: Stamp,
    /// Nine digits of the second instead of six.
    pub nanoseconds: bool,
    /// `-e`: the link-layer header.
    pub link_header: bool,
    /// Number of `-v` switches.
    pub verbose: u8,
    /// Number of `-q` switches.
    pub quiet: u8,
    /// `-K`: checksums are not verified.
    pub no_checksums: bool,
    /// `-S`: absolute sequence numbers.
    pub absolute_sequence: bool,
    /// `-#`: the number of each packet.
    pub numbers: bool,
    /// `-x`, `-X`, `-A`.
    pub dump: Dump,
    /// `-xx`, `-XX`, `-AA`: the dump includes the link-layer header.
    pub dump_link_header: bool,
    /// `-T`
    pub packet_type: Option<PacketType>,
    /// `-N`: names of hosts end at their first dot.
    pub short_names: bool,
    /// The zone of local times.
    pub zone: Zone,
}

impl TcpdumpOptions {
    /// Returns the options without any switch, with times in `zone`.
    pub fn new(zone: Zone) -> TcpdumpOptions {
        TcpdumpOptions {
            stamp: Stamp::TimeOfDay,
            nanoseconds: false,
            link_header: false,
            verbose: 0,
            quiet: 0,
            no_checksums: false,
            absolute_sequence: false,
            numbers: false,
            dump: Dump::None,
            dump_link_header: false,
            packet_type: None,
            short_names: false,
            zone,
        }
    }
}
