//! Completes names of this host: namespaces, containers, users, processes.
//!
//! Unreadable names are skipped silently. Users other than root get fewer proposals.

use super::proposal::Proposal;
use host::cgroups::Cgroups;
use host::{Containers, Users};
use record::{Key, Lookup, Value};
use sys::Host;

/// Maximum number of processes whose names are read.
///
/// Bound: processes whose names a completion reads. Beyond: names of further processes are not proposed. By: a local
/// user.
const PROCESSES_MAX: usize = 20_000;

/// Namespaces with a name from ip-netns(8).
pub(super) fn namespaces() -> Vec<Proposal> {
    proposals(sys::netns::list_named().into_iter().map(|(name, _)| name))
}

/// Containers, found by their cgroups.
pub(super) fn containers() -> Vec<Proposal> {
    let host = Host::live();
    let Ok(cgroups) = Cgroups::read(&host) else { return Vec::new() };
    let containers = Containers::read(&host, std::iter::empty(), Some(&cgroups));
    let name = |(group, _): (u64, &[u8])| match containers.names().value(Key::Pair(group, 0)) {
        Value::Bytes(name) => Some(Box::from(name)),
        _ => None,
    };
    proposals(cgroups.each().filter_map(name))
}

/// Users from /etc/passwd.
pub(super) fn users() -> Vec<Proposal> {
    proposals(Users::names(&Host::live()).unwrap_or_default().into_iter())
}

/// Names of processes.
pub(super) fn processes() -> Vec<Proposal> {
    let host = Host::live();
    let (mut entries, mut name) = (Vec::new(), Vec::new());
    let _ = host.read_names("/proc", &mut entries);
    let pids = entries.split(|b| *b == 0).filter(|entry| entry.first().is_some_and(u8::is_ascii_digit));
    let mut names = Vec::new();
    for pid in pids.filter_map(|pid| std::str::from_utf8(pid).ok()).take(PROCESSES_MAX) {
        if host.read_file(&format!("/proc/{pid}/comm"), &mut name).is_ok() {
            names.push(Box::from(name.strip_suffix(b"\n").unwrap_or(&name)));
        }
    }
    proposals(names.into_iter())
}

/// Sorts names and removes duplicates. Skips names with a comma, which would be parsed as two.
fn proposals(names: impl Iterator<Item = Box<[u8]>>) -> Vec<Proposal> {
    let text = names.filter_map(|name| String::from_utf8(name.into()).ok());
    let mut text: Vec<String> = text.filter(|name| !name.is_empty() && !name.contains(',')).collect();
    text.sort();
    text.dedup();
    text.into_iter().map(Proposal::named).collect()
}
