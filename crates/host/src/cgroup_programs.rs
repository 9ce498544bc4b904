//! BPF programs attached to cgroups that decide on packets.

use sys::fs::{self, CPath};
use sys::{Host, SysError, bpf};

use crate::cgroups::{Cgroups, find_mount, walk};
use crate::{HostError, mounts};

/// `BPF_CGROUP_INET_INGRESS` and `BPF_CGROUP_INET_EGRESS`, include/uapi/linux/bpf.h.
const INGRESS: u32 = 0;
const EGRESS: u32 = 1;

/// Bound: cgroups whose programs `doctor` reads. Beyond: further cgroups are not checked, counted (exit code 3). By: a
/// user who may make cgroups.
pub const CGROUPS_MAX: usize = 16_384;

/// The recorded form: id u64, programs at ingress u32, at egress u32, length of the path u16; little endian, then the
/// path.
const HEAD: usize = 18;

/// A cgroup with programs that decide on packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupPrograms {
    /// The cgroup's id.
    pub id: u64,
    /// Its path below the mount point; `/` for the root.
    pub path: Vec<u8>,
    /// Number of programs for received packets.
    pub ingress: u32,
    /// Number of programs for packets to send.
    pub egress: u32,
}

/// Reads the programs of all cgroups. Needs CAP_NET_ADMIN or CAP_SYS_ADMIN. Walks the directories of the cgroup file
/// system: 40 µs per cgroup, and 5 µs for its programs. Returns the cgroups that have programs, and the number of
/// cgroups beyond the maximum.
pub fn read(host: &Host) -> Result<(Vec<CgroupPrograms>, u64), HostError> {
    let mut bytes = Vec::new();
    host.bytes("cgroup programs", "", &mut bytes, |into| read_live(host, into))?;
    let (over, mut rest) =
        bytes.split_first_chunk().map_or((0, &[][..]), |(over, rest)| (u64::from_le_bytes(*over), rest));
    let mut found = Vec::new();
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let (one, after) = parse(rest).ok_or(HostError::Garbled { what: "programs of cgroups", at })?;
        found.push(one);
        rest = after;
    }
    Ok((found, over))
}

fn read_live(host: &Host, into: &mut Vec<u8>) -> Result<(), SysError> {
    into.extend_from_slice(&[0; 8]);
    let Some(place) = mounts::lists(host).iter().find_map(find_mount) else { return Ok(()) };
    let (root, mut walked, mut path) = (fs::open_dir(&place)?, Vec::new(), CPath::new());
    walk(Some(place), &mut walked)?;
    let Ok(groups) = Cgroups::parse(walked) else { return Ok(()) };
    for (id, name) in groups.each().take(CGROUPS_MAX) {
        // A cgroup may be gone by now.
        let Ok(dir) = fs::open_dir_at(&root, path.set(&[b".", name])) else { continue };
        let count = |attach| bpf::count_cgroup_programs(&dir, attach);
        let (ingress, egress) = match (count(INGRESS), count(EGRESS)) {
            (Ok(ingress), Ok(egress)) => (ingress, egress),
            (Err(errno), _) | (_, Err(errno)) => return Err(SysError::new("bpf_prog_query", "a cgroup", errno)),
        };
        if ingress + egress > 0 {
            put(into, &CgroupPrograms { id, path: name.to_vec(), ingress, egress });
        }
    }
    let over = groups.each().count().saturating_sub(CGROUPS_MAX) as u64;
    if let Some(head) = into.first_chunk_mut() {
        *head = over.to_le_bytes();
    }
    Ok(())
}

fn put(into: &mut Vec<u8>, one: &CgroupPrograms) {
    // Paths are shorter than PATH_MAX, because they were opened.
    let Ok(length) = u16::try_from(one.path.len()) else { return };
    into.extend_from_slice(&one.id.to_le_bytes());
    into.extend_from_slice(&one.ingress.to_le_bytes());
    into.extend_from_slice(&one.egress.to_le_bytes());
    into.extend_from_slice(&length.to_le_bytes());
    into.extend_from_slice(&one.path);
}

fn parse(bytes: &[u8]) -> Option<(CgroupPrograms, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    let (id, counts) = head.split_first_chunk()?;
    let (ingress, counts) = counts.split_first_chunk()?;
    let (egress, length) = counts.split_first_chunk()?;
    let (path, rest) = rest.split_at_checked(u16::from_le_bytes(length.try_into().ok()?).into())?;
    let (ingress, egress) = (u32::from_le_bytes(*ingress), u32::from_le_bytes(*egress));
    Some((CgroupPrograms { id: u64::from_le_bytes(*id), path: path.to_vec(), ingress, egress }, rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn programs_travel_on_tape() {
        let one = CgroupPrograms { id: 7, path: b"/a\nb".to_vec(), ingress: 1, egress: 2 };
        let mut bytes = Vec::new();
        put(&mut bytes, &one);
        put(&mut bytes, &one);
        let (first, rest) = parse(&bytes).unwrap();
        assert_eq!((&first, parse(rest).unwrap().0), (&one, one.clone()));
        assert_eq!(parse(&bytes[..HEAD + 3]), None);
    }

    #[test]
    fn root_programs_of_this_host() {
        testkit::require_root!();
        let (found, over) = read(&Host::live()).unwrap();
        assert_eq!(over, 0);
        assert!(found.iter().all(|one| one.ingress + one.egress > 0 && one.path.starts_with(b"/")));
    }
}
