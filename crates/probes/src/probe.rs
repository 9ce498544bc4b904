//! The steps of a probe, and what it reads with.

use doctor::seen::Sample;
use host::{HostError, Links};
use lookups::session::Session;
use record::{Accounting, Lookups};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use sys::{Errno, Host};

use crate::counter_window::Samples;
use crate::settings::NetSettings;

/// Reads one kind of data in one round.
///
/// Each step is taken for all probes before the next one begins, so the order of probes does not matter. A step may use
/// what earlier steps of other probes put into the samples; if those probes were not chosen, that is empty.
pub(crate) trait ProbeReader {
    /// Takes a first reading in a network namespace, which the calling thread is in.
    fn first(&mut self, _netns: &InNetns<'_>, _stats: &mut Accounting) {}

    /// Begins the window for the whole host.
    fn begin(&mut self, _round: &Round<'_>, _stats: &mut Accounting) {}

    /// Ends the window for the whole host.
    fn end(&mut self, _round: &Round<'_>, _samples: &mut Samples, _stats: &mut Accounting) {}

    /// Takes the second reading in a network namespace, which the calling thread is in.
    fn second(&mut self, _netns: &InNetns<'_>, _sample: &mut Sample, _stats: &mut Accounting) {}

    /// Reads what is only needed because of the data in the samples.
    fn follow(&mut self, _round: &Round<'_>, _samples: &mut Samples, _stats: &mut Accounting) {}

    /// For a recording of everything: reads data of a network namespace that no table of the recording has.
    fn save(&mut self, netns: &InNetns<'_>, stats: &mut Accounting) {
        self.first(netns, stats);
    }
}

/// Number of threads that close sockets.
const CLOSERS: usize = 16;

/// Closes packet sockets in parallel, because the kernel waits for a grace period of about 16 ms for each.
pub(crate) fn close_in_parallel<T: Send>(mut open: Vec<T>) {
    let share = open.len().div_ceil(CLOSERS);
    std::thread::scope(|scope| {
        while open.len() > share {
            let part = open.split_off(open.len() - share);
            // If no thread can be started, this one closes them.
            let _ = std::thread::Builder::new().spawn_scoped(scope, move || drop(part));
        }
        drop(open);
    });
}

/// The namespaces that a probe watches: the host's first, then an equal number for each user. They are chosen at the
/// first call.
#[derive(Default)]
pub(crate) struct ChosenNetns(Option<BTreeSet<u64>>);

impl ChosenNetns {
    /// True if the namespace is one of at most `most`.
    pub(crate) fn has(&mut self, netns: &InNetns<'_>, most: usize) -> bool {
        let Some(namespaces) = netns.session.namespaces() else { return true };
        let choose = || namespaces.choose(most, netns.session.netns_id()).into_iter().collect();
        self.0.get_or_insert_with(choose).contains(&netns.netns_id)
    }
}

/// A round of readings.
pub(crate) struct Round<'r> {
    pub(crate) session: &'r Session,
    pub(crate) lookups: &'r Lookups<'r>,
    pub(crate) settings: &'r NetSettings,
    /// A time just before the owners of the round were read, in ns of CLOCK_BOOTTIME.
    pub(crate) owners_ns: u64,
}

/// The network namespace that the calling thread is in.
pub(crate) struct InNetns<'n> {
    pub(crate) session: &'n Session,
    pub(crate) netns_id: u64,
    links: OnceCell<Option<Links>>,
}

impl<'n> InNetns<'n> {
    pub(crate) fn new(session: &'n Session, netns_id: u64) -> InNetns<'n> {
        InNetns { session, netns_id, links: OnceCell::new() }
    }

    pub(crate) fn host(&self) -> &'n Host {
        self.session.host()
    }

    /// The text of a small file of this namespace below /proc/sys/net or /proc/thread-self/net; `None` if it does not
    /// exist, or if the recording of an earlier version lacks it.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let (host, mut text) = (self.host(), Vec::new());
        let key = format!("{path}@{}", self.netns_id);
        host.bytes(&key, "", &mut text, |into| sys::fs::read_file(&host.real_path(path), into)).ok()?;
        String::from_utf8(text).ok()
    }

    /// Interfaces and their addresses, read once for all probes; `None` if they cannot be read.
    pub(crate) fn links(&self, stats: &mut Accounting) -> Option<&Links> {
        let links = self.links.get_or_init(|| {
            let mut links = note_error(Links::read(self.host(), self.netns_id, None), stats)?;
            note_error(links.read_inet6(self.host(), self.netns_id, None).map_err(HostError::from), stats);
            Some(links)
        });
        links.as_ref()
    }
}

/// Keeps the first `most` of a list, and adds to `stats` how many of `things` were left out.
pub(crate) fn keep_first<T>(list: &mut Vec<T>, most: usize, things: &str, stats: &mut Accounting) {
    let over = list.len().saturating_sub(most);
    list.truncate(most);
    if over > 0 {
        stats.incomplete(over as u64, format!("{things} after the first {most} are not checked"));
    }
}

/// Adds the error of a reading. A feature that the kernel does not have is not an error.
pub(crate) fn note_error<T>(result: Result<T, HostError>, stats: &mut Accounting) -> Option<T> {
    match result {
        Ok(found) => return Some(found),
        Err(HostError::Sys(sys::SysError { errno: Errno::NOENT, .. })) => {}
        Err(error) if error.is_not_recorded() => {
            stats.unanswered = true;
            stats.add_reason(
                0,
                "the recording holds no interfaces or neighbours (`netwren record FILE` records everything)",
            );
        }
        Err(error) => {
            stats.incomplete(1, error.to_string());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted() {
        let mut stats = Accounting::default();
        let mut list = vec![1, 2, 3];
        keep_first(&mut list, 3, "numbers", &mut stats);
        assert!(!stats.incomplete && stats.why.is_empty());
        keep_first(&mut list, 1, "numbers", &mut stats);
        assert_eq!((list, stats.incomplete, stats.why[0].count), (vec![1], true, 2));
        assert_eq!(&*stats.why[0].text, "numbers after the first 1 are not checked");
    }
}
