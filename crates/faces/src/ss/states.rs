//! Socket states by ss's words, as bits of the kernel's state mask.

use crate::ss::output::Layout;
use record::{Proto, State};

const LISTEN: u32 = 1 << State::LISTEN.0;
const CLOSE: u32 = 1 << State::CLOSE.0;
const SYN_SENT: u32 = 1 << State::SYN_SENT.0;
const SYN_RECV: u32 = 1 << State::SYN_RECV.0;
const TIME_WAIT: u32 = 1 << State::TIME_WAIT.0;
const NEW_SYN_RECV: u32 = 1 << State::NEW_SYN_RECV.0;
const BOUND_INACTIVE: u32 = 1 << State::BOUND_INACTIVE.0;

/// The states of `-l`: listening and unconnected.
pub(super) const SERVERS: u32 = LISTEN | CLOSE;
/// The state of `-B`.
pub(super) const BOUND: u32 = BOUND_INACTIVE;
/// Connected sockets of a connectionless protocol.
pub(super) const ESTABLISHED: u32 = 1 << State::ESTABLISHED.0;
/// Unconnected.
pub(super) const UNCONNECTED: u32 = CLOSE;

/// All states that a version knows: since 6.8 request sockets and bound ones have their own states.
pub(super) fn all(layout: Layout) -> u32 {
    match layout {
        Layout::V6_1 => (1 << 12) - 1,
        Layout::V6_15 => (1 << 14) - 1,
    }
}

/// The states shown without `-a`, `-l` and `state`.
pub(super) fn connected(layout: Layout) -> u32 {
    all(layout) & !(LISTEN | CLOSE | TIME_WAIT | SYN_RECV)
}

/// The words for single states, indexed by the kernel's number.
#[rustfmt::skip]
const WORDS: [&str; 14] = [
    "unknown", "established", "syn-sent", "syn-recv", "fin-wait-1", "fin-wait-2", "time-wait", "unconnected",
    "close-wait", "last-ack", "listening", "closing", "", "bound-inactive",
];

/// The states that a word stands for, ignoring case; None for a word unknown to ss.
pub(super) fn by_word(word: &[u8], layout: Layout) -> Option<u32> {
    let word = word.to_ascii_lowercase();
    let all = all(layout);
    Some(match word.as_slice() {
        b"" => return None,
        b"close" | b"closed" => CLOSE,
        b"syn-rcv" => SYN_RECV,
        b"all" => all,
        b"connected" => all & !(CLOSE | LISTEN),
        b"synchronized" => all & !(CLOSE | LISTEN | SYN_SENT),
        b"bucket" => SYN_RECV | TIME_WAIT,
        b"big" => all & !(SYN_RECV | TIME_WAIT),
        _ => {
            let known = if layout == Layout::V6_1 { 12 } else { 14 };
            let number = WORDS.iter().take(known).position(|w| w.as_bytes() == word)?;
            1 << number
        }
    })
}

/// The words to filter the field `state` with, for these states and this protocol; None if all states match.
///
/// For TCP the result is never None: a source reads bound sockets only if they are named.
pub(super) fn filter_words(states: u32, proto: Proto) -> Option<Vec<Box<[u8]>>> {
    let all = all(Layout::V6_1) & !1;
    if proto != Proto::Tcp && states & all == all {
        return None;
    }
    let mut words: Vec<Box<[u8]>> = Vec::new();
    let numbers = if proto == Proto::Tcp { 1..14u8 } else { 1..12 };
    for number in numbers {
        // A request socket reports SYN_RECV, whether SYN_RECV or NEW_SYN_RECV was requested.
        let number = if number == State::NEW_SYN_RECV.0 { State::SYN_RECV.0 } else { number };
        let is_selected = states & 1 << number != 0 || (number == State::SYN_RECV.0 && states & NEW_SYN_RECV != 0);
        let word = State(number).name(proto).as_bytes();
        if is_selected && !words.iter().any(|w| **w == *word) {
            words.push(word.into());
        }
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn one_line_a_word() {
        for (word, old, new) in [
            ("established", 0x2, 0x2),
            ("syn-sent", 0x4, 0x4),
            ("syn-recv", 0x8, 0x8),
            ("syn-rcv", 0x8, 0x8),
            ("fin-wait-1", 0x10, 0x10),
            ("fin-wait-2", 0x20, 0x20),
            ("time-wait", 0x40, 0x40),
            ("unconnected", 0x80, 0x80),
            ("close", 0x80, 0x80),
            ("closed", 0x80, 0x80),
            ("close-wait", 0x100, 0x100),
            ("last-ack", 0x200, 0x200),
            ("listening", 0x400, 0x400),
            ("closing", 0x800, 0x800),
            ("unknown", 0x1, 0x1),
            ("all", 0xfff, 0x3fff),
            ("connected", 0xb7f, 0x3b7f),
            ("synchronized", 0xb7b, 0x3b7b),
            ("bucket", 0x48, 0x48),
            ("big", 0xfb7, 0x3fb7),
            ("LISTENING", 0x400, 0x400),
        ] {
            assert_eq!(by_word(word.as_bytes(), Layout::V6_1), Some(old), "{word}");
            assert_eq!(by_word(word.as_bytes(), Layout::V6_15), Some(new), "{word}");
        }
        assert_eq!(by_word(b"bound-inactive", Layout::V6_15), Some(BOUND));
        for (word, layout) in [
            ("bound-inactive", Layout::V6_1),
            ("new-syn-recv", Layout::V6_15),
            ("listen", Layout::V6_1),
            ("", Layout::V6_15),
        ] {
            assert_eq!(by_word(word.as_bytes(), layout), None, "{word}");
        }
    }

    #[test]
    fn words_for_the_filter() {
        let words = |states, proto| -> String {
            let words = filter_words(states, proto).unwrap();
            words.iter().map(|w| String::from_utf8_lossy(w).into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(SERVERS, Proto::Tcp), "close listen");
        assert_eq!(words(SERVERS, Proto::Udp), "unconn listen");
        assert_eq!(words(NEW_SYN_RECV | ESTABLISHED, Proto::Tcp), "established syn_recv");
        assert_eq!(words(BOUND, Proto::Tcp), "bound_inactive");
        assert_eq!(words(1, Proto::Tcp), "");
        assert_eq!(filter_words(all(Layout::V6_1), Proto::Udp), None);
        assert!(words(all(Layout::V6_15), Proto::Tcp).ends_with("closing bound_inactive"));
        assert!(!words(all(Layout::V6_1), Proto::Tcp).contains("bound_inactive"));
    }
}
