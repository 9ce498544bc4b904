//! SQLITE3, PGSQL: the keys of a record as values, each with its own index.

use super::UlogdStyle;
use super::clock::SecondText;
use super::keys::{KeyWriter, Name, Record, Stages, put_keys};
use super::names::IfaceNames;
use record::rows::LogRecord;
use record::text::put_addr;
use record::{Addr, Lookups};

/// Keys that may name a column, with `_` for each dot, like in the tool.
pub const KEYS: &[&str] = &[
    "raw.mac",
    "raw.pkt",
    "raw.pktlen",
    "raw.pktcount",
    "oob.prefix",
    "oob.time.sec",
    "oob.time.usec",
    "oob.mark",
    "oob.ifindex_in",
    "oob.ifindex_out",
    "oob.hook",
    "raw.mac_len",
    "oob.seq.local",
    "oob.family",
    "oob.protocol",
    "oob.uid",
    "oob.gid",
    "raw.label",
    "raw.type",
    "ip.saddr",
    "ip.daddr",
    "ip.protocol",
    "ip.tos",
    "ip.ttl",
    "ip.totlen",
    "ip.ihl",
    "ip.csum",
    "ip.id",
    "ip.fragoff",
    "ip6.payloadlen",
    "ip6.priority",
    "ip6.flowlabel",
    "ip6.hoplimit",
    "ip6.nexthdr",
    "ip6.fragoff",
    "ip6.fragid",
    "tcp.sport",
    "tcp.dport",
    "tcp.seq",
    "tcp.ackseq",
    "tcp.offset",
    "tcp.reserved",
    "tcp.window",
    "tcp.urg",
    "tcp.urgp",
    "tcp.ack",
    "tcp.psh",
    "tcp.rst",
    "tcp.syn",
    "tcp.fin",
    "tcp.res1",
    "tcp.res2",
    "tcp.csum",
    "udp.sport",
    "udp.dport",
    "udp.len",
    "udp.csum",
    "icmp.type",
    "icmp.code",
    "icmp.echoid",
    "icmp.echoseq",
    "icmp.gateway",
    "icmp.fragmtu",
    "icmp.csum",
    "icmpv6.type",
    "icmpv6.code",
    "icmpv6.echoid",
    "icmpv6.echoseq",
    "icmpv6.csum",
    "sctp.sport",
    "sctp.dport",
    "sctp.csum",
    "arp.hwtype",
    "arp.protocoltype",
    "arp.operation",
    "arp.shwaddr",
    "arp.saddr",
    "arp.dhwaddr",
    "arp.daddr",
    "oob.in",
    "oob.out",
    "ip.saddr.str",
    "ip.daddr.str",
    "arp.saddr.str",
    "arp.daddr.str",
    "raw.mac.saddr",
    "raw.mac.addrlen",
    "mac.saddr.str",
    "mac.daddr.str",
    "mac.str",
];

/// The value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyValue<'v> {
    /// The record has no value.
    Nothing,
    /// A number.
    Number(u64),
    /// Unescaped text from outside.
    Text(&'v [u8]),
}

#[derive(Clone, Copy)]
enum KeySlot {
    Nothing,
    Number(u64),
    /// Start and end in the texts.
    Text(usize, usize),
}

/// Finds the values of a record's keys.
pub struct KeyValues {
    time: SecondText,
    stages: Stages,
    names: IfaceNames,
    bug_compatible: bool,
    slots: Vec<KeySlot>,
    texts: Vec<u8>,
    /// Index of the last key: the next one usually comes after it.
    at: usize,
}

impl KeyValues {
    /// Uses the keys of these plugins.
    pub fn new(stages: Stages, options: UlogdStyle) -> KeyValues {
        KeyValues {
            time: SecondText::new(options.zone, |_, _| {}),
            stages,
            names: IfaceNames::new(),
            bug_compatible: options.bug_compatible,
            slots: Vec::new(),
            texts: Vec::new(),
            at: 0,
        }
    }

    /// Returns the values of a record, in the order of [`KEYS`].
    pub fn values_of(&mut self, row: &LogRecord<'_>, lookups: &Lookups<'_>) -> impl Iterator<Item = KeyValue<'_>> + '_ {
        self.time.advance(row.time_ns);
        self.slots.clear();
        self.slots.resize(KEYS.len(), KeySlot::Nothing);
        self.texts.clear();
        let second = self.time.second();
        let record = Record { row, stages: self.stages, bug_compatible: self.bug_compatible, second };
        let mut to = KeySlots { slots: &mut self.slots, texts: &mut self.texts, at: &mut self.at };
        put_keys(&mut to, &record, &mut self.names, lookups);
        self.slots.iter().map(|slot| match *slot {
            KeySlot::Nothing => KeyValue::Nothing,
            KeySlot::Number(n) => KeyValue::Number(n),
            KeySlot::Text(from, to) => KeyValue::Text(self.texts.get(from..to).unwrap_or_default()),
        })
    }
}

struct KeySlots<'a> {
    slots: &'a mut Vec<KeySlot>,
    texts: &'a mut Vec<u8>,
    at: &'a mut usize,
}

impl KeySlots<'_> {
    fn put(&mut self, name: &Name, value: KeySlot) {
        let Some(name) = name.plain.strip_suffix(b"=") else { return };
        let is_it = |index: &usize| KEYS.get(*index).is_some_and(|key| key.as_bytes() == name);
        let places = (*self.at..KEYS.len()).chain(0..*self.at);
        if let Some(index) = places.into_iter().find(is_it) {
            *self.at = index;
            if let Some(slot) = self.slots.get_mut(index) {
                *slot = value;
            }
        }
    }

    fn text(&mut self, name: &Name, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.texts.len();
        write(self.texts);
        self.put(name, KeySlot::Text(from, self.texts.len()));
    }
}

impl KeyWriter for KeySlots<'_> {
    fn number(&mut self, name: &Name, n: u64) {
        self.put(name, KeySlot::Number(n));
    }

    fn repeated_number(&mut self, name: &Name, n: u64) {
        self.number(name, n);
    }

    fn outside_text(&mut self, name: &Name, text: &[u8]) {
        self.text(name, |out| out.extend_from_slice(text));
    }

    fn word(&mut self, name: &Name, text: &[u8]) {
        self.outside_text(name, text);
    }

    fn address(&mut self, name: &Name, addr: Addr) {
        self.text(name, |out| put_addr(out, addr));
    }

    /// The tool has an IPv4 address as a number in the host's byte order, and no value for IPv6.
    fn raw_address(&mut self, name: &Name, addr: Addr) {
        match addr {
            Addr::V4(bytes) => self.number(name, u32::from_ne_bytes(bytes).into()),
            Addr::V6(_) => {}
        }
    }

    fn hardware(&mut self, name: &Name, bytes: &[u8]) {
        self.text(name, |out| {
            for (index, byte) in bytes.iter().enumerate() {
                out.extend_from_slice(if index == 0 { b"" } else { b":" });
                for digit in [byte >> 4, byte & 15] {
                    out.push(b"0123456789abcdef".get(usize::from(digit)).copied().unwrap_or(b'0'));
                }
            }
        });
    }

    fn pointer(&mut self, _: &Name) {}
}
