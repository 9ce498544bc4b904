//! Tries each backend of the table, for `netwren support`.
use std::ops::ControlFlow;

use netlink::DecodeError;
use record::rows::Conntrack;
use sys::{Host, KernelPart, Missing, Modules, Presence, Trial, WalkError, fs};

use crate::backends::bpf::cache::{BackendCache, WalkParameters, parts_for};
use crate::backends::bpf::rows::EntryBytes;
use crate::backends::bpf::walk_filter::WalkFilter;
use crate::backends::netlink::counters::count_entries;
use crate::choose::Via;
use crate::table::NetnsRef;

/// A backend and whether it works here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendTrial {
    /// The backend.
    pub via: Via,
    /// Whether entries could be read and how, or the missing part.
    pub tried: Trial,
}

/// The kernel part that answers netlink requests for the table: such a request also loads connection tracking itself.
const KERNEL_PART: KernelPart = KernelPart { module: "nf_conntrack_netlink", function: "ctnetlink_dump_table" };

/// The reason not to send netlink requests; `None` if they load no module.
pub(crate) fn reason_not_to_ask(modules: &Modules<'_>) -> Option<String> {
    let what = "the module nf_conntrack_netlink (CONFIG_NF_CT_NETLINK)";
    match modules.presence(KERNEL_PART) {
        Presence::There => None,
        Presence::NotLoaded => Some(format!("not loaded: {what}; reading the table makes the kernel load it")),
        Presence::Unknown => Some(format!(
            "not tried: /proc/kallsyms does not show whether {what} is loaded; reading the table makes the kernel load \
             it"
        )),
    }
}

/// Tries every backend and reads at most one block. Takes some milliseconds, nearly all of it to load a BPF program.
/// Loads no kernel module: a backend that needs a missing module is not tried.
pub fn try_backends(host: &Host, modules: &Modules<'_>) -> Vec<BackendTrial> {
    let line = |via, tried: Result<(), Trial>, how: &str| BackendTrial {
        via,
        tried: tried.err().unwrap_or_else(|| Trial::new_working(how)),
    };
    vec![
        line(Via::Netlink, by_netlink(host, modules), "a dump, filtered by the kernel; it evicts expired entries"),
        line(Via::Proc, by_proc(host), "without status, labels, helper, master and id"),
        line(Via::Bpf, by_walk(host, modules), "a walk of the table for all namespaces at once; evicts no entries"),
    ]
}

fn by_netlink(host: &Host, modules: &Modules<'_>) -> Result<(), Trial> {
    if let Some(why) = reason_not_to_ask(modules) {
        return Err(Trial::new_missing(Missing::Module, why));
    }
    // Asks the same part of the kernel that a dump uses. A dump would skip an empty table.
    let counted = count_entries(host, NetnsRef { netns: None, netns_id: 0 });
    counted.map(drop).map_err(|error| Trial::new_refused(error.errno(), error.to_string()))
}

fn by_proc(host: &Host) -> Result<(), Trial> {
    let file = fs::open(&host.proc_path("thread-self/net/nf_conntrack"));
    file.map(drop).map_err(|error| Trial::new_refused(Some(error.errno), error.to_string()))
}

fn by_walk(host: &Host, modules: &Modules<'_>) -> Result<(), Trial> {
    // The program runs where the kernel looks up an entry, and a netlink request triggers that lookup.
    if let Some(why) = reason_not_to_ask(modules) {
        return Err(Trial::new_missing(Missing::Module, why));
    }
    let cache = BackendCache::new();
    if let Some(why) = cache.why_not() {
        let missing = if cfg!(feature = "bpf") { Missing::Right } else { Missing::Build };
        return Err(Trial::new_missing(missing, why));
    }
    let filter = WalkFilter::default();
    let parts = parts_for(0, false);
    let ask = WalkParameters { netns: None, all: false, parts, filter: &filter, expired: false, note: "", netns_id: 0 };
    let none = &mut |_: Result<(&Conntrack<'_>, EntryBytes<'_>), DecodeError>| ControlFlow::Break(());
    cache
        .walk(host, &ask, none)
        .map(drop)
        .map_err(|error| Trial::new_missing(classify_walk_error(&error), error.to_string()))
}

/// Classifies the reason why a walk failed.
fn classify_walk_error(error: &WalkError) -> Missing {
    match error {
        WalkError::Broken(error) => Missing::from_errno(error.errno),
        #[cfg(feature = "bpf")]
        WalkError::Unavailable(error) => {
            error.downcast_ref::<bpf::BpfError>().map_or(Missing::Other, bpf::BpfError::missing_requirement)
        }
        #[cfg(not(feature = "bpf"))]
        WalkError::Unavailable(_) => Missing::Build,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::options::Options;
    use crate::source::ConntrackSource;
    use record::{Demand, Next, Source};

    #[test]
    fn root_every_door_says_how_it_is() {
        testkit::require_root!();
        let host = Host::live();
        let tried = try_backends(&host, &Modules::new(&host));
        assert_eq!(tried.iter().map(|backend| backend.via).collect::<Vec<_>>(), [Via::Netlink, Via::Proc, Via::Bpf]);
        for BackendTrial { via, tried } in tried {
            let options = Options { via: Some(via), ..Options::new(0) };
            // An empty table would not be read by any backend.
            let lab = testkit::netns::Lab::new("ctprobe");
            lab.track(testkit::conntrack::mixed_entries(1));
            let read = lab.run_inside(|| {
                let run = ConntrackSource::new(&Host::live(), options)
                    .run(&Demand::new(&[], Vec::new()), &mut |_| Next::Stop);
                run.is_ok()
            });
            assert_eq!(tried.is_working(), read, "{via:?}: {tried:?}");
        }
    }

    /// Connection tracking is a module here and not loaded: neither the table nor its events may be requested.
    #[test]
    fn replay_issue_10_connection_tracking_is_not_loaded_by_a_probe() {
        let root = tempfile::tempdir().unwrap();
        let proc = root.path().join("proc");
        std::fs::create_dir_all(&proc).unwrap();
        std::fs::write(proc.join("modules"), "").unwrap();
        std::fs::write(proc.join("kallsyms"), "0000000000000000 t nf_tables_dump_table\n").unwrap();
        let host = Host::with_roots(proc.clone(), root.path().join("sys"), root.path().join("etc"));
        // A request sent anyway would fail with another message.
        sys::fault::arm("socket", 0, 100, sys::fault::Fault::Fails(sys::Errno::ACCES));
        let modules = Modules::new(&host);
        let table = by_netlink(&host, &modules).unwrap_err();
        assert_eq!(by_walk(&host, &modules).unwrap_err(), table);
        let events = crate::events::try_events(&host, &modules);
        std::fs::write(proc.join("kallsyms"), "0000000000000000 t ctnetlink_dump_table\n").unwrap();
        let asked = by_netlink(&host, &Modules::new(&host)).unwrap_err();
        sys::fault::disarm_all();
        assert!(table.words.starts_with("not loaded: the module nf_conntrack_netlink"), "{table:?}");
        assert_eq!((table.missing, &events), (Some(Missing::Module), &table));
        assert!(asked.missing == Some(Missing::Right) && asked.words.contains("permission denied"), "{asked:?}");
    }
}
