//! Process groups, which lstf shows instead of process ids.

use std::cell::RefCell;
use std::collections::HashMap;
use sys::Host;

/// Process groups by pid, read at the first lookup and cached: a round shows few processes.
pub(super) struct Groups<'h> {
    host: &'h Host,
    known: RefCell<HashMap<u32, u32>>,
}

impl<'h> Groups<'h> {
    /// Makes an empty cache for this host's processes.
    pub(super) fn new(host: &'h Host) -> Groups<'h> {
        Groups { host, known: RefCell::default() }
    }

    /// The group of `pid`; 0 if the process has exited or cannot be read.
    pub(super) fn of(&self, pid: u32) -> u32 {
        if let Some(&group) = self.known.borrow().get(&pid) {
            return group;
        }
        let mut stat = Vec::new();
        let read = self.host.read_file(&format!("/proc/{pid}/stat"), &mut stat);
        let group = if read.is_ok() { group_in(&stat).unwrap_or(0) } else { 0 };
        self.known.borrow_mut().insert(pid, group);
        group
    }
}

/// The fifth field of /proc/PID/stat. The second field is the process name in parentheses and may contain any
/// character, so the remaining fields are counted from the last `)`.
fn group_in(stat: &[u8]) -> Option<u32> {
    let end_of_name = stat.iter().rposition(|&b| b == b')')?;
    let rest = std::str::from_utf8(stat.get(end_of_name + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_fields() {
        for (stat, group) in [
            (&b"12 (sh) S 1 12 12 0 -1"[..], Some(12)),
            (b"12 (a) S 1 7 7) S 1 13 12 0 -1", Some(13)),
            (b"12 (a b\n) R 1 14\n", Some(14)),
            (b"12 (sh) S 1", None),
            (b"12 (sh) S 1 -1", None),
            (b"12 sh", None),
            (b"", None),
        ] {
            assert_eq!(group_in(stat), group, "{stat:?}");
        }
    }

    #[test]
    fn our_own_group_and_one_that_is_gone() {
        let host = Host::live();
        let groups = Groups::new(&host);
        // If the group's leader is in another pid namespace, its id reads as 0.
        let ours = std::fs::read("/proc/self/stat").ok().and_then(|stat| group_in(&stat));
        assert_eq!(Some(groups.of(std::process::id())), ours);
        // Above the kernel's largest pid.
        assert_eq!(groups.of(u32::MAX), 0);
    }
}
