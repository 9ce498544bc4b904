//! Lines of /proc/net/tcp, udp, udplite, raw and their IPv6 counterparts (net/ipv4/tcp_ipv4.c, tcp4_seq_show, and
//! others).
//!
//! ```text
//!   sl  local_address rem_address   st tx_queue:rx_queue tr:tm->when retrnsmt   uid  timeout inode
//!    0: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 …
//! ```
//! Addresses are 32-bit words in machine byte order, everything before `uid` is hexadecimal.
use netlink::DecodeError;
use record::rows::{Endpoint, Socket};
use record::{Addr, Proto, State, Timer};

use crate::address_families::{AF_INET, AF_INET6};
use crate::backends::netlink::inet_diag::TIMER_TIME_WAIT;
use crate::backends::proc::line::{Words, hex, split_colon};

/// Duration of a clock tick in milliseconds: USER_HZ is 100 on every architecture that Linux still supports except
/// alpha and ia64.
const TICK_MS: u64 = 10;

/// `idiag_timer` of retransmissions.
const TIMER_RETRANSMIT: u8 = 1;

/// Decodes one line, without its newline. The heading is an error like every other malformed line.
///
/// The file lacks marks, interfaces, cookies and the backlog limit of listeners: see [`crate::PROC_LACKS_INET`].
pub fn parse_proc_line(line: &[u8], proto: Proto, netns_id: u64) -> Result<Socket<'static>, DecodeError> {
    let mut words = Words::new(line);
    words.word("sl")?;
    let (family, local) = endpoint(words.word("local_address")?).ok_or(DecodeError::Word("local_address"))?;
    let (_, peer) = endpoint(words.word("rem_address")?).ok_or(DecodeError::Word("rem_address"))?;
    let state = State(convert_number(words.hex("st")?, "st")?);
    let (wqueue, rqueue) = words.hex_pair("tx_queue:rx_queue")?;
    let (timer, when) = words.hex_pair("tr:tm->when")?;
    let timer: u8 = convert_number(timer, "tr:tm->when")?;
    let retransmits = words.hex("retrnsmt")?;
    let uid = words.decimal("uid")?;
    let probes = words.decimal("timeout")?;
    let inode = words.decimal("inode")?;
    // inet_diag reports the one of these two that the running timer counts.
    let retrans = match timer {
        0 | TIMER_TIME_WAIT => 0,
        TIMER_RETRANSMIT => retransmits,
        _ => probes,
    };
    let minisock = timer == TIMER_TIME_WAIT;
    Ok(Socket {
        proto,
        family,
        state,
        local,
        peer,
        rqueue: convert_number(rqueue, "rx_queue")?,
        // A listener's line has 0 here, while inet_diag has the limit.
        wqueue: if state == State::LISTEN { None } else { Some(convert_number(wqueue, "tx_queue")?) },
        uid: if minisock { None } else { Some(convert_number(uid, "uid")?) },
        // Inode numbers of sockets have 32 bits in the kernel's own messages.
        inode: convert_number(inode, "inode")?,
        timer: Timer(timer),
        timer_ms: u32::try_from(when.saturating_mul(TICK_MS)).unwrap_or(u32::MAX),
        retrans: u8::try_from(retrans).unwrap_or(u8::MAX),
        netns_id,
        ..Socket::EMPTY
    })
}

fn convert_number<N: TryFrom<u64>>(number: u64, column: &'static str) -> Result<N, DecodeError> {
    N::try_from(number).map_err(|_| DecodeError::Word(column))
}

/// Parses `0100007F:0016`, or 32 digits before the colon; also returns the family, which follows from the length.
fn endpoint(word: &[u8]) -> Option<(u8, Endpoint)> {
    let (addr, port) = split_colon(word)?;
    let port = u16::try_from(hex(port)?).ok()?;
    let (family, addr) = match addr.len() {
        8 => (AF_INET, Addr::V4(four_octets(addr)?)),
        32 => {
            let mut octets = [0; 16];
            for (into, digits) in octets.chunks_exact_mut(4).zip(addr.chunks_exact(8)) {
                into.copy_from_slice(&four_octets(digits)?);
            }
            (AF_INET6, Addr::V6(octets))
        }
        _ => return None,
    };
    Some((family, Endpoint { addr, port }))
}

// A word in network byte order, printed as if it were a number of this machine.
fn four_octets(digits: &[u8]) -> Option<[u8; 4]> {
    Some(u32::try_from(hex(digits)?).ok()?.to_ne_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn line(text: &str) -> Socket<'static> {
        parse_proc_line(text.as_bytes(), Proto::Tcp, 7).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn lines_of_every_sort() {
        let row = line(
            "   0: 0100007F:0016 00000000:0000 0A 00000000:00000003 00:00000000 00000000  1000        0 12345 1 0 100 \
             0 0 10 0",
        );
        assert_eq!((row.state, row.family, row.local.port, row.inode), (State::LISTEN, AF_INET, 22, 12345));
        assert_eq!(row.local.addr, Addr::V4([127, 0, 0, 1]));
        assert_eq!((row.rqueue, row.wqueue, row.uid, row.netns_id), (3, None, Some(1000), 7));
        // `sl` has outgrown its column, and so has the uid.
        let row = line(
            "123456: 0100007F:0050 0200007F:C350 01 0000000A:00000014 02:00000102 00000005 4294967294        7 \
             4294967295 1",
        );
        assert_eq!((row.timer, row.timer_ms, row.retrans), (Timer(2), 2580, 7));
        assert_eq!((row.rqueue, row.wqueue, row.uid), (20, Some(10), Some(4_294_967_294)));
        let row = line(" 1: 0100007F:0050 0200007F:C350 02 00000001:00000000 01:00000010 00000005 0 7 9 1");
        assert_eq!((row.timer, row.retrans), (Timer(1), 5));
        let row = line(" 2: 0100007F:0050 0200007F:C350 06 00000000:00000000 03:000005DC 00000000 0 0 0 3 0");
        assert_eq!((row.state, row.timer_ms, row.uid, row.inode), (State::TIME_WAIT, 15_000, None, 0));
        let row =
            line(" 3: 0000000000000000FFFF00000100007F:0050 B80D0120000000000000000001000000:1234 01 0:0 0:0 0 0 0 5");
        assert_eq!(row.family, AF_INET6);
        assert_eq!(row.local.addr.unmapped(), Addr::V4([127, 0, 0, 1]));
        assert_eq!(row.peer.addr, "2001:db8::1".parse().unwrap());
    }

    #[test]
    fn what_is_no_line() {
        for (text, column) in [
            ("", "sl"),
            ("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid", "local_address"),
            ("0: 0100007F:0016", "rem_address"),
            ("0: 0100007F:0016 0100007F:10000 01", "rem_address"),
            ("0: 0100007F:0016 00000000:0000 1A1", "st"),
            ("0: 0100007F:0016 00000000:0000 0A 0:0 0:0 0 4294967296 0 1", "uid"),
            ("0: 0100007F:0016 00000000:0000 0A 0:0 0:0 0 0 0 4294967296", "inode"),
        ] {
            assert_eq!(parse_proc_line(text.as_bytes(), Proto::Tcp, 0), Err(DecodeError::Word(column)), "{text}");
        }
    }
}
