//! Decodes a line of /proc/net/nf_conntrack into a row.
//!
//! `ipv4 2 tcp 6 119 TIME_WAIT src=… dst=… sport=… dport=… [UNREPLIED] src=… … [ASSURED] mark=0 zone=0 use=2`, written
//! by `ct_seq_show` (net/netfilter/nf_conntrack_standalone.c, 6.18). It has no id, labels or helper. It shows only
//! three bits of the status, so the status is left out: see [`record::rows::Conntrack::nat`].
use netlink::DecodeError;
use record::Addr;
use record::rows::{Conntrack, CtCounters, CtState, ip_proto};

/// Decodes one line; `now_ns` is the time of the read, from which `delta-time` gives the start of the entry.
///
/// Fails if a mandatory word is missing or not a number.
pub fn parse_proc_line(line: &[u8], netns_id: u64, now_ns: Option<u64>) -> Result<Conntrack<'_>, DecodeError> {
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).peekable();
    let mut number = |name| {
        words.next();
        words.next().and_then(decimal).ok_or(DecodeError::Word(name))
    };
    let family = number("the family")?;
    let proto = number("the protocol")?;
    let mut row = Conntrack {
        netns_id,
        family: u8::try_from(family).map_err(|_| DecodeError::Word("the family"))?,
        now_ns,
        ..Conntrack::EMPTY
    };
    let proto = u8::try_from(proto).map_err(|_| DecodeError::Word("the protocol"))?;
    (row.orig.proto, row.reply.proto) = (proto, proto);
    // Entries offloaded to a flow table have no timeout.
    if let Some(seconds) = words.peek().copied().and_then(decimal) {
        row.timeout_s = u32::try_from(seconds).ok();
        words.next();
    }
    let mut side = Side::None;
    for word in words {
        match word.iter().position(|byte| *byte == b'=') {
            Some(at) => {
                let (key, value) = (word.get(..at).unwrap_or_default(), word.get(at + 1..).unwrap_or_default());
                pair(&mut row, &mut side, key, value)?;
            }
            None if side == Side::None => row.state = state(proto, word),
            // [UNREPLIED], [ASSURED], [OFFLOAD], and bracketed words that newer kernels may add.
            None => {}
        }
    }
    if side == Side::Reply { Ok(row) } else { Err(DecodeError::Word("an address")) }
}

/// The direction that the words describe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    None,
    Orig,
    Reply,
}

fn pair<'b>(row: &mut Conntrack<'b>, side: &mut Side, key: &[u8], value: &'b [u8]) -> Result<(), DecodeError> {
    if key == b"src" {
        *side = if *side == Side::None { Side::Orig } else { Side::Reply };
    }
    let tuple = if *side == Side::Reply { &mut row.reply } else { &mut row.orig };
    match key {
        b"src" => tuple.src = address(value)?,
        b"dst" => tuple.dst = address(value)?,
        b"sport" | b"id" => tuple.src_part = parse_part(value, "a port")?,
        b"dport" => tuple.dst_part = parse_part(value, "a port")?,
        b"type" => tuple.dst_part |= (parse_part::<u8>(value, "an ICMP type")? as u16) << 8,
        b"code" => tuple.dst_part |= u16::from(parse_part::<u8>(value, "an ICMP code")?),
        b"srckey" => tuple.src_part = key_of(value)?,
        b"dstkey" => tuple.dst_part = key_of(value)?,
        b"zone-orig" | b"zone-reply" => tuple.zone = Some(parse_part(value, "a zone")?),
        b"packets" | b"bytes" => count(row, *side, key, value)?,
        b"mark" => row.mark = Some(parse_part(value, "a mark")?),
        b"zone" => row.zone = Some(parse_part(value, "a zone")?).filter(|zone| *zone != 0),
        b"secctx" => row.secctx = Some(value),
        // The kernel takes one reference itself while it writes the line.
        b"use" => row.uses = Some(parse_part::<u32>(value, "the uses")?.saturating_sub(1)),
        b"delta-time" => {
            let ago = parse_part::<u64>(value, "the age")?.saturating_mul(1_000_000_000);
            row.start_ns = row.now_ns.map(|now| now.saturating_sub(ago));
        }
        _ => {}
    }
    Ok(())
}

fn count(row: &mut Conntrack<'_>, side: Side, key: &[u8], value: &[u8]) -> Result<(), DecodeError> {
    let counters = if side == Side::Reply { &mut row.counters_reply } else { &mut row.counters_orig };
    let counters = counters.get_or_insert(CtCounters { packets: 0, bytes: 0 });
    let number = parse_part(value, "a counter")?;
    if key == b"packets" {
        counters.packets = number
    } else {
        counters.bytes = number
    }
    Ok(())
}

fn decimal(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn parse_part<N: TryFrom<u64>>(word: &[u8], name: &'static str) -> Result<N, DecodeError> {
    decimal(word).and_then(|n| N::try_from(n).ok()).ok_or(DecodeError::Word(name))
}

fn key_of(word: &[u8]) -> Result<u16, DecodeError> {
    let hex = word.strip_prefix(b"0x").and_then(|hex| std::str::from_utf8(hex).ok());
    hex.and_then(|hex| u16::from_str_radix(hex, 16).ok()).ok_or(DecodeError::Word("a GRE key"))
}

// The kernel writes IPv6 addresses uncompressed.
fn address(word: &[u8]) -> Result<Addr, DecodeError> {
    let text = std::str::from_utf8(word).ok();
    text.and_then(|text| text.parse().ok()).ok_or(DecodeError::Word("an address"))
}

// The kernel's state names are ours in capitals; the index in our list is the kernel's number.
fn state(proto: u8, word: &[u8]) -> Option<CtState> {
    let of: fn(u8) -> CtState = match proto {
        ip_proto::TCP => CtState::Tcp,
        ip_proto::SCTP => CtState::Sctp,
        ip_proto::DCCP => CtState::Dccp,
        _ => return None,
    };
    (0..16).map(of).find(|state| state.name().as_bytes().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use record::rows::NatKind;

    fn row(line: &str) -> Conntrack<'_> {
        parse_proc_line(line.as_bytes(), 1, Some(10_000_000_000)).unwrap()
    }

    #[test]
    fn every_word_has_its_place() {
        let tcp = row(
            "ipv4     2 tcp      6 119 TIME_WAIT src=10.0.0.1 dst=10.0.0.2 sport=4000 dport=8080 packets=6 bytes=338 \
             src=172.17.0.2 dst=10.0.0.1 sport=80 dport=4000 packets=4 bytes=256 [ASSURED] mark=7 secctx=a:b zone=5 \
             delta-time=3 use=2",
        );
        assert_eq!((tcp.family, tcp.orig.proto, tcp.timeout_s, tcp.state), (2, 6, Some(119), Some(CtState::Tcp(7))));
        assert_eq!((tcp.orig.sport(), tcp.orig.dport(), tcp.reply.sport()), (Some(4000), Some(8080), Some(80)));
        assert_eq!(tcp.counters_reply, Some(CtCounters { packets: 4, bytes: 256 }));
        assert_eq!((tcp.mark, tcp.zone, tcp.uses, tcp.secctx), (Some(7), Some(5), Some(1), Some(&b"a:b"[..])));
        assert_eq!((tcp.start_ns, tcp.nat()), (Some(7_000_000_000), Some(NatKind::Dnat)));
        let ping =
            row("ipv4     2 icmp     1 29 src=10.0.0.1 dst=10.0.0.2 type=8 code=0 id=77 [UNREPLIED] src=10.0.0.2 \
             dst=203.0.113.1 type=0 code=0 id=77 mark=0 zone=0 use=2");
        assert_eq!(ping.orig.icmp().map(|icmp| (icmp.kind, icmp.code, icmp.id)), Some((8, 0, 77)));
        assert_eq!((ping.nat(), ping.zone, ping.state), (Some(NatKind::Snat), None, None));
        let gre =
            row("ipv6     10 gre      47 17 src=2001:0db8:0000:0000:0000:0000:0000:0001 dst=2001:0db8::2 srckey=0x1f \
             dstkey=0x0 src=2001:0db8::2 dst=2001:0db8::1 srckey=0x0 dstkey=0x1f mark=0 zone=0 use=2");
        assert_eq!((gre.orig.src_part, gre.reply.dst_part, gre.nat()), (31, 31, Some(NatKind::None)));
        let offloaded = row(
            "ipv4     2 tcp      6 src=10.0.0.1 dst=10.0.0.2 sport=1 dport=2 src=10.0.0.2 dst=10.0.0.1 sport=2 dport=1 \
             [OFFLOAD] mark=0 zone=0 use=3",
        );
        assert_eq!((offloaded.timeout_s, offloaded.state), (None, None));
        let zones = row(
            "ipv4     2 unknown  50 599 src=10.0.0.1 dst=10.0.0.2 zone-orig=4 src=10.0.0.2 dst=10.0.0.1 mark=0 use=2",
        );
        assert_eq!((zones.orig.proto, zones.any_zone(), zones.nat()), (50, Some(4), Some(NatKind::None)));
    }

    #[test]
    fn what_is_no_line() {
        for line in ["", "ipv4", "ipv4 x tcp 6", "ipv4 2 tcp 6 9 NONE src=10.0.0.1", "ipv4 2 tcp 600 9", "\0 \0 = ="] {
            assert!(parse_proc_line(line.as_bytes(), 1, None).is_err(), "{line}");
        }
        let no_port = "ipv4 2 udp 17 9 src=10.0.0.1 dst=10.0.0.2 sport=66666 dport=1";
        assert_eq!(parse_proc_line(no_port.as_bytes(), 1, None), Err(DecodeError::Word("a port")));
    }
}
