//! What the table can be read through here, each door tried: for `netwren support`.
use std::ops::ControlFlow;

use netlink::DecodeError;
use record::rows::Conntrack;
use sys::{Host, fs};

use crate::bpf_door::{Ask, Doors, parts_for};
use crate::choose::Via;
use crate::dump::Place;
use crate::raw_counters::count_entries;
use crate::walk_filter::WalkFilter;

/// A door and whether it opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Which.
    pub via: Via,
    /// Whether entries could be read.
    pub works: bool,
    /// How, or why not.
    pub words: String,
}

/// Tries every door and reads one block at most; some milliseconds, nearly all of them the loading of a BPF program.
pub fn probe(host: &Host) -> Vec<Probe> {
    let line = |via, tried: Result<(), String>, how: &str| Probe {
        via,
        works: tried.is_ok(),
        words: tried.err().unwrap_or_else(|| how.to_owned()),
    };
    vec![
        line(Via::Netlink, by_netlink(host), "a dump, filtered by the kernel; it evicts what has expired"),
        line(Via::Proc, by_proc(host), "without status, labels, helper, master and id"),
        line(Via::Bpf, by_walk(host), "a walk of the table; evicts nothing, of all namespaces at once"),
    ]
}

fn by_netlink(host: &Host) -> Result<(), String> {
    // Asks the same part of the kernel as a dump does, which an empty table would be spared.
    count_entries(host, Place { netns: None, netns_id: 0 }).map(drop).map_err(|error| error.to_string())
}

fn by_proc(host: &Host) -> Result<(), String> {
    fs::open(&host.proc_path("thread-self/net/nf_conntrack")).map(drop).map_err(|error| error.to_string())
}

fn by_walk(host: &Host) -> Result<(), String> {
    let doors = Doors::new();
    if let Some(why) = doors.why_not() {
        return Err(why.into_string());
    }
    let filter = WalkFilter::default();
    let parts = parts_for(0, false);
    let ask = Ask { netns: None, all: false, parts, filter: &filter, expired: false, note: "", netns_id: 0 };
    let none = &mut |_: Result<&Conntrack<'_>, DecodeError>| ControlFlow::Break(());
    doors.walk(host, &ask, none).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::source::{CtSource, Options};
    use record::{Demand, Next, Source};

    #[test]
    fn root_every_door_says_how_it_is() {
        testkit::require_root!();
        let tried = probe(&Host::live());
        assert_eq!(tried.iter().map(|probe| probe.via).collect::<Vec<_>>(), [Via::Netlink, Via::Proc, Via::Bpf]);
        for Probe { via, works, words } in tried {
            let options = Options { via: Some(via), ..Options::new(0) };
            // An empty table is not read at all, by whatever door.
            let lab = testkit::netns::Lab::new("ctprobe");
            lab.track(testkit::conntrack::mixed(1));
            let read = lab.inside(|| {
                let run = CtSource::new(&Host::live(), options).run(&Demand::new(&[], Vec::new()), &mut |_| Next::Stop);
                run.is_ok()
            });
            assert_eq!(works, read, "{via:?}: {words}");
        }
    }
}
