//! Switches that each protocol adds to the command line.

use super::args::{Long, Value};
use super::options::{Command, check_against};
use super::stop::Stop;
use super::want::{Want, number, wide};
use crate::conntrack::output::{DCCP_ROLES, DCCP_STATES, SCTP_STATES, TCP_STATES};
use record::rows::{CtState, ip_proto};

/// The value that a protocol's switch sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Item {
    OrigSrc,
    OrigDst,
    ReplySrc,
    ReplyDst,
    MaskSrc,
    MaskDst,
    State,
    TupleSrc,
    TupleDst,
    OrigVtag,
    ReplyVtag,
    Role,
    IcmpType,
    IcmpCode,
    IcmpId,
}

/// A protocol with its own switches.
#[derive(Debug)]
pub(super) struct Protocol {
    pub(super) name: &'static str,
    pub(super) number: u8,
    /// Its switches, one bit each in this order.
    items: &'static [(Item, &'static str)],
    /// Alternative names of some switches.
    aliases: &'static [(Item, &'static str)],
    /// The rules for its switches, by command.
    rules: fn(Command) -> &'static str,
    /// The messages for an incomplete pair of switches.
    pairs: Option<[&'static str; 2]>,
    help: &'static str,
}

/// Switches of a protocol have codes above the letters.
const FIRST: u16 = 256;

impl Protocol {
    /// Its long names.
    pub(super) fn longs(&'static self) -> impl Iterator<Item = Long> {
        let code = |item: Item| self.items.iter().position(|(one, _)| *one == item).unwrap_or(0);
        let all = self.items.iter().chain(self.aliases);
        all.map(move |(item, name)| Long { name, value: Value::Needed, code: FIRST + code(*item) as u16 })
    }

    /// Applies the value of a switch; returns the switch's bit.
    pub(super) fn take(&self, code: u16, value: &[u8], want: &mut Want) -> Result<u32, Stop> {
        let bit = code.saturating_sub(FIRST);
        let Some((item, _)) = self.items.get(usize::from(bit)) else { return Ok(0) };
        let of_gre = self.number == ip_proto::GRE;
        let part = Some(if of_gre { wide(value) as u16 } else { number(value) as u16 });
        match item {
            Item::OrigSrc => want.orig.src_part = part,
            Item::OrigDst => want.orig.dst_part = part,
            Item::ReplySrc => want.reply.src_part = part,
            Item::ReplyDst => want.reply.dst_part = part,
            Item::MaskSrc => want.mask.src_part = part,
            Item::MaskDst => want.mask.dst_part = part,
            Item::TupleSrc => want.expected.src_part = part,
            Item::TupleDst => want.expected.dst_part = part,
            Item::State => want.state = Some(self.state(value)?),
            Item::OrigVtag => want.vtags[0] = Some(number(value) as u32),
            Item::ReplyVtag => want.vtags[1] = Some(number(value) as u32),
            Item::Role => want.dccp_role = Some(role(value)?),
            Item::IcmpType => want.icmp_type = Some(number(value) as u8),
            Item::IcmpCode => want.icmp_code = Some(number(value) as u8),
            Item::IcmpId => want.icmp_id = part,
        }
        Ok(1 << bit)
    }

    fn state(&self, word: &[u8]) -> Result<CtState, Stop> {
        let find = |names: &[&str]| names.iter().position(|name| name.as_bytes() == word).map(|at| at as u8);
        match self.number {
            // The name of SYN_SENT2 before 2.6.31.
            ip_proto::TCP if word == b"LISTEN" => Ok(CtState::Tcp(9)),
            ip_proto::TCP => {
                find(TCP_STATES).map(CtState::Tcp).ok_or_else(|| Stop::about("unknown TCP state `%'", word))
            }
            ip_proto::SCTP => {
                find(SCTP_STATES).map(CtState::Sctp).ok_or_else(|| Stop::about("unknown SCTP state `%'", word))
            }
            _ => find(DCCP_STATES).map(CtState::Dccp).ok_or_else(|| Stop::about("Unknown DCCP state `%'", word)),
        }
    }

    /// Checks the given switches, one bit each.
    pub(super) fn check(&self, command: Option<Command>, switches: u32) -> Result<(), Stop> {
        let Some(command) = command else { return Ok(()) };
        let mut names = [""; 11];
        for (place, (_, name)) in names.iter_mut().zip(self.items) {
            *place = name;
        }
        check_against((self.rules)(command), &names, switches, self.pairs.map(|words| ([0b11, 0b1100], words)))
    }

    /// The protocol's text for `-h -p`.
    pub(super) fn help(&self) -> String {
        format!("Proto `{}' help:\n{}", self.name, self.help)
    }
}

fn role(word: &[u8]) -> Result<u8, Stop> {
    let begins = |name: &&&str| name.as_bytes().get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let found = DCCP_ROLES.iter().find(begins).and_then(|name| DCCP_ROLES.iter().position(|one| one == name));
    found.map(|at| at as u8).ok_or_else(|| Stop::about("Unknown DCCP role `%'", word))
}

#[rustfmt::skip]
const PORTS: [(Item, &str); 6] = [
    (Item::OrigSrc, "sport"), (Item::OrigDst, "dport"), (Item::ReplySrc, "reply-port-src"),
    (Item::ReplyDst, "reply-port-dst"), (Item::MaskSrc, "mask-port-src"), (Item::MaskDst, "mask-port-dst"),
];
const PORT_ALIASES: &[(Item, &str)] = &[(Item::OrigSrc, "orig-port-src"), (Item::OrigDst, "orig-port-dst")];
const TUPLE_PORTS: [(Item, &str); 2] = [(Item::TupleSrc, "tuple-port-src"), (Item::TupleDst, "tuple-port-dst")];
const STATE: (Item, &str) = (Item::State, "state");

const PORT_PAIRS: [&str; 2] =
    ["you have to specify `--sport' and `--dport'", "you have to specify `--reply-src-port' and `--reply-dst-port'"];

macro_rules! port_help {
    ($more:expr) => {
        concat!(
            "  --orig-port-src\t\toriginal source port\n  --orig-port-dst\t\toriginal destination port\n",
            "  --reply-port-src\t\treply source port\n  --reply-port-dst\t\treply destination port\n",
            "  --mask-port-src\t\tmask source port\n  --mask-port-dst\t\tmask destination port\n",
            "  --tuple-port-src\t\texpectation tuple src port\n  --tuple-port-src\t\texpectation tuple dst port\n",
            $more
        )
    };
}

const PORT_HELP: &str = port_help!("");

/// Commands grouped by the rules that most protocols have for them.
enum Group {
    /// Commands that select entries.
    Choose,
    /// Commands that create an entry.
    Make,
    Get,
    MakeExpectation,
    OneExpectation,
    Others,
}

fn group(command: Command) -> Group {
    match command {
        Command::List | Command::Delete | Command::Event | Command::Update => Group::Choose,
        Command::Create | Command::Add => Group::Make,
        Command::Get => Group::Get,
        Command::ExpCreate => Group::MakeExpectation,
        Command::ExpDelete | Command::ExpGet => Group::OneExpectation,
        _ => Group::Others,
    }
}

fn ports_rules(command: Command) -> &'static str {
    match group(command) {
        Group::Choose => "22220000",
        Group::Make | Group::Get => "33330000",
        Group::MakeExpectation => "11001111",
        Group::OneExpectation => "11110000",
        Group::Others => "00000000",
    }
}

fn gre_rules(command: Command) -> &'static str {
    match group(command) {
        Group::MakeExpectation => "11111111",
        _ => ports_rules(command),
    }
}

fn tcp_rules(command: Command) -> &'static str {
    match group(command) {
        Group::Choose => "222200200",
        Group::Make => "333300100",
        Group::Get => "333300200",
        Group::MakeExpectation => "110011011",
        Group::OneExpectation => "111100000",
        Group::Others => "000000000",
    }
}

fn sctp_rules(command: Command) -> &'static str {
    match group(command) {
        Group::Choose if command == Command::Update => "22220020022",
        Group::Choose => "22220020000",
        Group::Make => "33330010011",
        Group::Get => "33330020022",
        Group::MakeExpectation => "11001101111",
        Group::OneExpectation => "11110000000",
        Group::Others => "00000000000",
    }
}

fn dccp_rules(command: Command) -> &'static str {
    match group(command) {
        Group::Choose => "2222002000",
        Group::Make => "3333001001",
        Group::Get => "3333002000",
        Group::MakeExpectation => "1100110111",
        Group::OneExpectation => "1111000000",
        Group::Others => "0000000000",
    }
}

fn icmp_rules(command: Command) -> &'static str {
    match group(command) {
        Group::Choose => "222",
        Group::Make | Group::Get => "112",
        _ => "000",
    }
}

/// A protocol with ports.
const fn with_ports(
    name: &'static str,
    number: u8,
    items: &'static [(Item, &'static str)],
    rules: fn(Command) -> &'static str,
    help: &'static str,
) -> Protocol {
    Protocol { name, number, items, aliases: PORT_ALIASES, rules, pairs: Some(PORT_PAIRS), help }
}

macro_rules! port_items {
    ($($more:expr),*) => {
        &[PORTS[0], PORTS[1], PORTS[2], PORTS[3], PORTS[4], PORTS[5], $($more),*]
    };
}
const UDP_ITEMS: &[(Item, &str)] = port_items![TUPLE_PORTS[0], TUPLE_PORTS[1]];
const TCP_ITEMS: &[(Item, &str)] = port_items![STATE, TUPLE_PORTS[0], TUPLE_PORTS[1]];
const SCTP_ITEMS: &[(Item, &str)] =
    port_items![STATE, TUPLE_PORTS[0], TUPLE_PORTS[1], (Item::OrigVtag, "orig-vtag"), (Item::ReplyVtag, "reply-vtag")];
const DCCP_ITEMS: &[(Item, &str)] = port_items![STATE, TUPLE_PORTS[0], TUPLE_PORTS[1], (Item::Role, "role")];
const TCP_HELP: &str = port_help!("  --state\t\t\tTCP state, fe. ESTABLISHED\n");
const SCTP_HELP: &str = port_help!(
    "  --state\t\t\tSCTP state, fe. ESTABLISHED\n  --orig-vtag\t\toriginal verification tag\n  \
        --reply-vtag\t\treply verification tag\n"
);
const DCCP_HELP: &str = port_help!("  --state\t\t\tDCCP state, fe. RESPOND\n");

/// The protocols that have switches.
pub(super) static PROTOCOLS: [Protocol; 8] = [
    with_ports("tcp", ip_proto::TCP, TCP_ITEMS, tcp_rules, TCP_HELP),
    with_ports("udp", ip_proto::UDP, UDP_ITEMS, ports_rules, PORT_HELP),
    with_ports("udplite", ip_proto::UDPLITE, UDP_ITEMS, ports_rules, PORT_HELP),
    with_ports("sctp", ip_proto::SCTP, SCTP_ITEMS, sctp_rules, SCTP_HELP),
    Protocol {
        pairs: Some([PORT_PAIRS[0], "you have to specify `--reply-port-src' and `--report-port-dst'"]),
        ..with_ports("dccp", ip_proto::DCCP, DCCP_ITEMS, dccp_rules, DCCP_HELP)
    },
    Protocol {
        name: "icmp",
        number: ip_proto::ICMP,
        items: &[(Item::IcmpType, "icmp-type"), (Item::IcmpCode, "icmp-code"), (Item::IcmpId, "icmp-id")],
        aliases: &[],
        rules: icmp_rules,
        pairs: None,
        help: "  --icmp-type\t\t\ticmp type\n  --icmp-code\t\t\ticmp code\n  --icmp-id\t\t\ticmp id\n",
    },
    Protocol {
        name: "icmpv6",
        number: ip_proto::ICMPV6,
        items: &[(Item::IcmpType, "icmpv6-type"), (Item::IcmpCode, "icmpv6-code"), (Item::IcmpId, "icmpv6-id")],
        aliases: &[],
        rules: icmp_rules,
        pairs: None,
        help: "  --icmpv6-type\t\t\ticmpv6 type\n  --icmpv6-code\t\t\ticmpv6 code\n  --icmpv6-id\t\t\ticmpv6 id\n",
    },
    Protocol {
        name: "gre",
        number: ip_proto::GRE,
        items: &[
            (Item::OrigSrc, "srckey"),
            (Item::OrigDst, "dstkey"),
            (Item::ReplySrc, "reply-key-src"),
            (Item::ReplyDst, "reply-key-dst"),
            (Item::MaskSrc, "mask-key-src"),
            (Item::MaskDst, "mask-key-dst"),
            (Item::TupleSrc, "tuple-key-src"),
            (Item::TupleDst, "tuple-key-dst"),
        ],
        aliases: &[(Item::OrigSrc, "orig-key-src"), (Item::OrigDst, "orig-key-dst")],
        rules: gre_rules,
        pairs: Some([
            "you have to specify `--srckey' and `--dstkey'",
            "you have to specify `--reply-src-key' and `--reply-dst-key'",
        ]),
        help: "  --orig-key-src\t\toriginal source key
  --orig-key-dst\t\toriginal destination key
  --reply-key-src\t\treply source key
  --reply-key-dst\t\treply destination key
  --mask-key-src\t\tmask source key
  --mask-key-dst\t\tmask destination key
  --tuple-key-src\t\texpectation tuple src key
  --tuple-key-src\t\texpectation tuple dst key
",
    },
];
