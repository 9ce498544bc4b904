//! Finds the network namespace of a container, by the container's name.
//!
//! A container is in the namespace of its oldest process: programs inside it may create other namespaces, and cannot be
//! older. Names are checked as in [`crate::containers`].
use std::collections::BTreeMap;

use sys::{Errno, Host, NetNs, SysError};

use crate::containers::ContainerSearch;
use crate::processes::Identity;

/// Maximum number of searches: the oldest process of a container may end between being found and being opened.
///
/// Bound: searches for the oldest process of a container. Beyond: the run ends with an error. By: a container whose
/// processes end at once.
const TRIES_MAX: usize = 3;

/// Number of characters shown of a container's id.
const ID_SHOWN: usize = 12;

/// Containers with a given name.
#[derive(Debug, Default)]
pub(crate) struct FoundContainers {
    /// Their distinct network namespaces, each with the process by which it was found.
    pub(crate) namespaces: Vec<(NetNs, Box<str>)>,
    /// Why containers may be missing.
    pub(crate) missing: Option<String>,
}

/// Finds containers with the name `wanted` (or with this prefix of their id, from 12 digits on), and their network
/// namespaces.
///
/// Reads one small file for each process of the host. Fails if a namespace cannot be opened.
pub(crate) fn find(host: &Host, wanted: &str) -> Result<FoundContainers, SysError> {
    for _ in 0..TRIES_MAX {
        if let Some(found) = look(host, wanted)? {
            return Ok(found);
        }
    }
    Ok(FoundContainers::default())
}

/// Searches once; `None` if a process ended during the search.
fn look(host: &Host, wanted: &str) -> Result<Option<FoundContainers>, SysError> {
    let mut search = ContainerSearch::new(host, wanted.as_bytes());
    let mut oldest: BTreeMap<Box<[u8]>, (u64, u32)> = BTreeMap::new();
    let (mut names, mut file) = (Vec::new(), Vec::new());
    host.read_names("/proc", &mut names)?;
    let pids = names.split(|&byte| byte == 0).filter_map(|name| std::str::from_utf8(name).ok()?.parse::<u32>().ok());
    for pid in pids {
        let Some(id) = id_of(&mut search, host, pid, &mut file) else { continue };
        let Ok(identity) = Identity::read(host, pid) else { continue };
        let process = (identity.started, pid);
        oldest.entry(id).and_modify(|known| *known = process.min(*known)).or_insert(process);
    }
    let mut found = FoundContainers { namespaces: Vec::new(), missing: search.missing() };
    for (id, (started, pid)) in oldest {
        let netns = match NetNs::open_pid(pid) {
            Err(error) if error.errno.is_missing_object() => return Ok(None),
            opened => opened?,
        };
        // It is still the same process, so it was in this namespace.
        let is_it = Identity::read(host, pid).is_ok_and(|identity| identity.started == started && !identity.has_ended);
        if !is_it || id_of(&mut search, host, pid, &mut file).as_ref() != Some(&id) {
            return Ok(None);
        }
        if found.namespaces.iter().all(|(other, _)| other.inode() != netns.inode()) {
            let id = sys::escape_bytes(id.get(..ID_SHOWN).unwrap_or(&id));
            found.namespaces.push((netns, format!("pid:{pid} ({id})").into()));
        }
    }
    Ok(Some(found))
}

/// The id of the wanted container, if the process runs in it.
fn id_of(search: &mut ContainerSearch<'_>, host: &Host, pid: u32, file: &mut Vec<u8>) -> Option<Box<[u8]>> {
    match host.read_file(&format!("/proc/{pid}/cgroup"), file) {
        Ok(()) => search.id_of(file),
        Err(_) => None,
    }
}

impl FoundContainers {
    /// The namespace if it is the only one, otherwise `ENOENT`.
    pub(crate) fn only(&mut self, wanted: &str) -> Result<NetNs, SysError> {
        match self.namespaces.as_slice() {
            [_] => self.namespaces.pop().map(|(netns, _)| netns),
            _ => None,
        }
        .ok_or_else(|| SysError::new("find the container", wanted, Errno::NOENT))
    }
}
