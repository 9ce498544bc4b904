//! The number of TCP sockets of a namespace, before they are read: it decides whether loading a program pays.
use sys::Host;

/// Number of sockets from which loading the walk pays for a single read. Measured: docs/adr/0006.
pub(crate) const WORTH_LOADING: u64 = 8_000;
/// The same if only sockets of one port are wanted: netlink skips the others at little more cost than the walk.
pub(crate) const WORTH_LOADING_FOR_ONE_PORT: u64 = 150_000;
/// Number of sockets from which loading pays if the table will be read repeatedly.
pub(crate) const WORTH_LOADING_FOR_MANY: u64 = 2_000;
/// Number of sockets from which a loaded walk is cheaper than netlink.
pub(crate) const WORTH_WALKING: u64 = 500;
/// Number of sockets from which loading the kernel's iterator pays, if the kernel has refused the walk.
pub(crate) const WORTH_LOADING_ITERATOR: u64 = 25_000;
/// The same if the table will be read repeatedly, and if the iterator is loaded.
pub(crate) const WORTH_ITERATING: u64 = 5_000;

/// Counters of this namespace's sockets.
const SOCKSTAT: &str = "/proc/thread-self/net/sockstat";
const SOCKSTAT6: &str = "/proc/thread-self/net/sockstat6";

/// TCP sockets of the calling thread's namespace; 0 if the number is unknown; inexact below `least`.
///
/// Reads one file of a few lines, and a second one if the first does not show that there are fewer than `least`.
pub fn tcp_sockets(host: &Host, least: u64) -> u64 {
    let mut text = Vec::new();
    let mut count = |path, words: &[(&str, &str)]| {
        if host.read_file(path, &mut text).is_err() {
            return 0;
        }
        words.iter().map(|(line, word)| number_in(&text, line, word)).sum::<u64>()
    };
    // `used` counts both families and also other protocols, but not time-wait.
    let every = count(SOCKSTAT, &[("sockets:", "used"), ("TCP:", "tw")]);
    if every < least {
        return every;
    }
    count(SOCKSTAT, &[("TCP:", "inuse"), ("TCP:", "tw")]) + count(SOCKSTAT6, &[("TCP6:", "inuse")])
}

/// TCP sockets of all namespaces together, without time-wait; 0 if the number is unknown. Reads one file.
#[cfg(feature = "bpf")]
pub(crate) fn tcp_sockets_of_host(host: &Host) -> u64 {
    let mut text = Vec::new();
    match host.read_file(SOCKSTAT, &mut text) {
        // The kernel counts sockets in use per namespace, but allocated ones for the whole host.
        Ok(_) => number_in(&text, "TCP:", "alloc"),
        Err(_) => 0,
    }
}

// Returns the number after `word` in the line that begins with `line`, or 0.
fn number_in(text: &[u8], line: &str, word: &str) -> u64 {
    let text = String::from_utf8_lossy(text);
    let Some(found) = text.lines().find_map(|l| l.strip_prefix(line)) else { return 0 };
    let mut words = found.split_ascii_whitespace().skip_while(|w| *w != word);
    words.nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_sockstat() {
        let text = b"sockets: used 290\nTCP: inuse 42 orphan 1 tw 7 alloc 44 mem 3\nUDP: inuse 5 mem 2\n";
        assert_eq!(number_in(text, "sockets:", "used"), 290);
        assert_eq!((number_in(text, "TCP:", "inuse"), number_in(text, "TCP:", "tw")), (42, 7));
        assert_eq!(number_in(text, "TCP:", "alloc"), 44);
        assert_eq!(number_in(text, "TCP6:", "inuse"), 0);
        assert_eq!(number_in(b"TCP: tw", "TCP:", "tw"), 0);
        assert_eq!(number_in(b"TCP: tw x", "TCP:", "tw"), 0);
    }

    #[test]
    fn this_host_has_some() {
        let _listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(tcp_sockets(&Host::live(), 0) >= 1);
    }
}
