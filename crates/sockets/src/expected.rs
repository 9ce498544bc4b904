//! How many TCP sockets a namespace has, before they are read: whether loading a program pays depends on it.
use sys::Host;

/// Sockets from which loading the walk pays for one reading. Measured: docs/adr/0006.
pub(crate) const WORTH_LOADING: u64 = 8_000;
/// The same where only sockets of one port are wanted: netlink turns the others away for little more than the walk
/// does.
pub(crate) const WORTH_LOADING_FOR_ONE_PORT: u64 = 150_000;
/// The same where the table will be read again and again.
pub(crate) const WORTH_LOADING_FOR_MANY: u64 = 2_000;
/// Sockets from which a loaded walk is cheaper than netlink.
pub(crate) const WORTH_WALKING: u64 = 500;
/// Sockets from which loading the kernel's iterator pays, where the walk was tried in vain.
pub(crate) const WORTH_LOADING_ITERATOR: u64 = 25_000;
/// The same where the table will be read again and again, and where it is loaded.
pub(crate) const WORTH_ITERATING: u64 = 5_000;

/// The counters of this namespace's sockets.
const SOCKSTAT: &str = "/proc/thread-self/net/sockstat";
const SOCKSTAT6: &str = "/proc/thread-self/net/sockstat6";

/// TCP sockets of the calling thread's namespace; 0 if it is unknown, and not exact below `least`.
///
/// One file of a few lines, and a second one if the first does not rule it out that there are `least`.
pub fn tcp_sockets(host: &Host, least: u64) -> u64 {
    let mut text = Vec::new();
    let mut count = |path, words: &[(&str, &str)]| {
        if host.read_file(path, &mut text).is_err() {
            return 0;
        }
        words.iter().map(|(line, word)| number_in(&text, line, word)).sum::<u64>()
    };
    // Of both families, other protocols among them, but without time-wait.
    let every = count(SOCKSTAT, &[("sockets:", "used"), ("TCP:", "tw")]);
    if every < least {
        return every;
    }
    count(SOCKSTAT, &[("TCP:", "inuse"), ("TCP:", "tw")]) + count(SOCKSTAT6, &[("TCP6:", "inuse")])
}

/// TCP sockets of all namespaces together, without time-wait; 0 if it is unknown. One file.
#[cfg(feature = "bpf")]
pub(crate) fn tcp_sockets_of_host(host: &Host) -> u64 {
    let mut text = Vec::new();
    match host.read_file(SOCKSTAT, &mut text) {
        // The kernel counts those in use by namespace, but those that exist only once.
        Ok(_) => number_in(&text, "TCP:", "alloc"),
        Err(_) => 0,
    }
}

// The number after `word` in the line that begins with `line`; 0 if there is none.
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
