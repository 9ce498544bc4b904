//! `netstat -s`: the kernel's counters in sentences.

use super::counter_words::{BLOCKS, BLOCKS6, Block, BlockSwitch, Print};
use crate::pieces::{Outside, put};

/// The blocks of counters to print. A block that netstat does not know is always printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CounterBlocks {
    /// Ip, Icmp and their IPv6 counterparts (`-w`).
    pub raw: bool,
    /// Tcp and TcpExt (`-t`).
    pub tcp: bool,
    /// Udp and Udp6 (`-u`).
    pub udp: bool,
    /// Sctp (`-S`).
    pub sctp: bool,
}

impl CounterBlocks {
    fn includes(self, block: &Block) -> bool {
        match block.switch {
            BlockSwitch::Raw => self.raw,
            BlockSwitch::Tcp => self.tcp,
            BlockSwitch::Udp => self.udp,
            BlockSwitch::Sctp => self.sctp,
        }
    }
}

/// A file of counters that could not be read to its end: a line of names has no colon or no line of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GarbledFile;

/// Writes blocks of counters. One writer serves a whole run, because the indentation of a block depends on the block
/// before.
#[derive(Debug)]
pub struct Statistics {
    blocks: CounterBlocks,
    /// The last thing printed: after a histogram, lines are indented until a known block begins.
    last: Print,
}

impl Statistics {
    /// Writes statistics of these blocks.
    pub fn new(blocks: CounterBlocks) -> Statistics {
        Statistics { blocks, last: Print::Always }
    }

    /// Appends the counters in /proc/net/snmp or /proc/net/netstat: pairs of lines, names and numbers.
    ///
    /// Blocks whose heading does not begin with `only` are omitted.
    pub fn put_pairs(&mut self, out: &mut Vec<u8>, file: &[u8], only: &str) -> Result<(), GarbledFile> {
        let mut lines = file.split(|&b| b == b'\n').filter(|line| !line.is_empty());
        while let (Some(names), Some(numbers)) = (lines.next(), lines.next()) {
            let (heading, names) = split_colon(names)?;
            let (_, numbers) = split_colon(numbers)?;
            if !heading.starts_with(only.as_bytes()) {
                continue;
            }
            let (block, shown) = self.begin(out, BLOCKS, heading);
            let mut numbers = words(numbers);
            for name in words(names) {
                let number = parse(numbers.next().unwrap_or_default());
                if shown {
                    self.put(out, block, name, number);
                }
            }
        }
        Ok(())
    }

    /// Appends the counters in /proc/net/snmp6: one counter per line, prefixed with the block's name.
    pub fn put_lines6(&mut self, out: &mut Vec<u8>, file: &[u8]) {
        let mut heading: &[u8] = b"";
        let mut block = (None, false);
        for line in file.split(|&b| b == b'\n') {
            let mut words = words(line);
            let (Some(name), number) = (words.next(), parse(words.next().unwrap_or_default())) else { continue };
            if heading.is_empty() || !contains(name, heading) {
                heading = heading6(name);
                block = self.begin(out, BLOCKS6, heading);
            }
            if block.1 {
                self.put(out, block.0, name, number);
            }
        }
    }

    /// Appends the counters in /proc/net/sctp/snmp: one counter per line.
    pub fn put_sctp(&mut self, out: &mut Vec<u8>, file: &[u8]) {
        let (block, shown) = self.begin(out, BLOCKS, b"Sctp");
        for line in file.split(|&b| b == b'\n') {
            let mut words = words(line);
            if let (true, Some(name), Some(number)) = (shown, words.next(), words.next()) {
                self.put(out, block, name, parse(number));
            }
        }
    }

    /// Begins a block: returns its description, and whether its counters are printed.
    fn begin(&mut self, out: &mut Vec<u8>, blocks: &'static [Block], heading: &[u8]) -> (Option<&'static Block>, bool) {
        let block = blocks.iter().find(|b| b.heading.as_bytes() == heading);
        // netstat resets the histogram's indentation only at a known block.
        if block.is_some() {
            self.last = Print::Always;
        }
        let shown = block.is_none_or(|b| self.blocks.includes(b));
        if shown {
            put!(out, Outside(heading, false), ":\n");
        }
        (block, shown)
    }

    fn put(&mut self, out: &mut Vec<u8>, block: Option<&'static Block>, name: &[u8], number: u64) {
        let Some((print, words)) = block.and_then(|b| b.counter(name)) else {
            if number != 0 {
                put!(out, indentation(self.last), Outside(name, false), ": ", number, "\n");
            }
            return;
        };
        if print == Print::Never {
            return;
        }
        if let (Some(title), true) = (title(print), self.last != print) {
            put!(out, indentation(self.last), title);
        }
        self.last = print;
        if number != 0 || print == Print::Always {
            let (before, after) = words.split_once('#').unwrap_or_default();
            put!(out, indentation(print), before, number, after, "\n");
        }
    }
}

fn title(print: Print) -> Option<&'static str> {
    match print {
        Print::IcmpIn => Some("ICMP input histogram:\n"),
        Print::IcmpOut => Some("ICMP output histogram:\n"),
        _ => None,
    }
}

fn indentation(print: Print) -> &'static str {
    if title(print).is_some() { "        " } else { "    " }
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| matches!(b, b' ' | b'\t' | b'\n')).filter(|word| !word.is_empty())
}

fn split_colon(line: &[u8]) -> Result<(&[u8], &[u8]), GarbledFile> {
    let at = line.iter().position(|&b| b == b':').ok_or(GarbledFile)?;
    Ok((line.get(..at).unwrap_or_default(), line.get(at + 1..).unwrap_or_default()))
}

/// Returns `Icmp6` for `Icmp6InMsgs`; a name without a 6 is itself the heading.
fn heading6(name: &[u8]) -> &[u8] {
    let end = name.iter().position(|&b| b == b'6').map_or(name.len(), |at| at + 1);
    name.get(..end).unwrap_or(name)
}

fn contains(name: &[u8], part: &[u8]) -> bool {
    name.windows(part.len()).any(|window| window == part)
}

/// Parses a number like strtoull(3): a negative one wraps around, one too large becomes the largest, anything else is
/// 0.
fn parse(word: &[u8]) -> u64 {
    let (negative, digits) = match word.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, word.strip_prefix(b"+").unwrap_or(word)),
    };
    let mut number: u64 = 0;
    for digit in digits.iter().take_while(|d| d.is_ascii_digit()) {
        let next = number.checked_mul(10).and_then(|n| n.checked_add(u64::from(digit - b'0')));
        let Some(next) = next else { return u64::MAX };
        number = next;
    }
    if negative { number.wrapping_neg() } else { number }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ALL: CounterBlocks = CounterBlocks { raw: true, tcp: true, udp: true, sctp: true };

    const SNMP: &[u8] = b"\
Ip: Forwarding DefaultTTL InReceives InHdrErrors InDelivers OutTransmits
Ip: 2 64 23578 0 7 21266
Icmp: InMsgs InErrors InDestUnreachs InEchos OutMsgs OutEchos
Icmp: 1 0 1 0 3 3
IcmpMsg: InType3 OutType8
IcmpMsg: 1 0
Tcp: RtoAlgorithm MaxConn ActiveOpens CurrEstab New
Tcp: 1 -1 2599 0 5
UdpLite: InDatagrams
UdpLite: 0
";

    #[test]
    fn pairs_by_example() {
        let mut out = Vec::new();
        Statistics::new(ALL).put_pairs(&mut out, SNMP, "").unwrap();
        let want = "\
Ip:
    Forwarding: 2
    23578 total packets received
    7 incoming packets delivered
    OutTransmits: 21266
Icmp:
    1 ICMP messages received
    0 input ICMP message failed
    ICMP input histogram:
        destination unreachable: 1
    3 ICMP messages sent
    ICMP output histogram:
        echo requests: 3
IcmpMsg:
        InType3: 1
Tcp:
    2599 active connection openings
    0 connections established
    New: 5
UdpLite:
";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn one_protocol_shows_its_blocks_and_the_unknown_ones() {
        let mut out = Vec::new();
        let tcp = CounterBlocks { raw: false, udp: false, sctp: false, ..ALL };
        Statistics::new(tcp).put_pairs(&mut out, SNMP, "").unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("IcmpMsg:\n    InType3: 1\nTcp:\n    2599 active"), "{text}");
    }

    #[test]
    fn lines_of_ipv6_by_example() {
        let mut out = Vec::new();
        let file = b"Ip6InReceives  \t19\nIp6InOctets \t5\nIcmp6InMsgs 1\nIcmp6InEchos 2\nIcmp6OutEchos 0\n\
            UdpLite6InErrors 0\n";
        Statistics::new(ALL).put_lines6(&mut out, file);
        let want = "\
Ip6:
    19 total packets received
    Ip6InOctets: 5
Icmp6:
    1 ICMP messages received
    ICMP input histogram:
        echo requests: 2
        ICMP output histogram:
UdpLite6:
";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn garbage_is_reported_and_never_fatal() {
        let mut statistics = Statistics::new(ALL);
        for file in [&b"no colon here\nnor here\n"[..], b"Tcp: A B\nTcp 1 2\n"] {
            assert_eq!(statistics.put_pairs(&mut Vec::new(), file, ""), Err(GarbledFile));
        }
        for file in
            [&b""[..], b"\n\n\n", b"Tcp: ActiveOpens\n", b":\n:\n", b"\xff\x1b: \x1b\n: 99999999999999999999999\n"]
        {
            let mut out = Vec::new();
            statistics.put_pairs(&mut out, file, "").unwrap();
            statistics.put_lines6(&mut out, file);
            statistics.put_sctp(&mut out, file);
            assert!(!out.contains(&0x1b));
        }
    }

    #[test]
    fn numbers_as_strtoull_reads_them() {
        for (word, number) in
            [("12", 12), ("-1", u64::MAX), ("x", 0), ("5x", 5), ("", 0), ("+7", 7), ("99999999999999999999", u64::MAX)]
        {
            assert_eq!(parse(word.as_bytes()), number, "{word}");
        }
    }
}
