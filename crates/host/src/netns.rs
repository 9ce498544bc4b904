//! Network namespaces: their names, and the namespace that a user selects.
//!
//! A namespace is identified by its inode. Names come from /run/netns (ip-netns) and /run/docker/netns; the namespace
//! of process 1 is called `init`; any other is shown by its number.
use std::path::Path;

use record::text::put_u64;
use record::{Key, Lookup, Value};
use sys::{Errno, Host, NetNs, SysError, fs, netns};

use crate::HostError;
use crate::namespaces::{DOCKER, INIT, INIT_INODE, Namespaces, PID_PREFIX};
use crate::netns_containers::{self, FoundContainers};
use crate::own_netns::parse_inode;
use crate::texts::Texts;

pub use crate::own_netns::current;

/// Maximum number of names kept. On a host with more namespaces, the others are shown by number.
///
/// Bound: names of namespaces. Beyond: further namespaces are shown by number. By: root.
const NAMES_MAX: usize = 1 << 16;

/// Inode → name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NetnsNames {
    names: Texts<u64>,
    /// Numbers as texts, in ascending order.
    numbers: Vec<(u64, Box<[u8]>)>,
}

impl NetnsNames {
    /// Reads the existing names, and prepares the numbers of the namespaces in `used` without a name.
    ///
    /// A few system calls per named namespace. If directories are missing or unreadable, only their names are missing.
    pub fn read(host: &Host, used: &[u64]) -> Result<NetnsNames, HostError> {
        let mut bytes = Vec::new();
        host.bytes("netns-names", "", &mut bytes, |into| {
            find().iter().for_each(|(inode, name)| put_name(into, *inode, name));
            Ok(())
        })?;
        let mut names = NetnsNames { names: parse_names(bytes)?, numbers: Vec::new() };
        names.prepare(used);
        Ok(names)
    }

    /// The names of these namespaces; `of_process` names a namespace by a process in it (see [`Namespaces::names`]).
    pub fn of(namespaces: &Namespaces, of_process: &dyn Fn(u32) -> Option<Box<[u8]>>) -> Result<NetnsNames, HostError> {
        let mut bytes = Vec::new();
        namespaces.names(of_process).for_each(|(inode, name)| put_name(&mut bytes, inode, &name));
        Ok(NetnsNames { names: parse_names(bytes)?, numbers: Vec::new() })
    }

    /// Makes sure that each of these has a text: its number if it has no name.
    pub fn prepare(&mut self, used: &[u64]) {
        for &inode in used {
            if let Err(at) = self.numbers.binary_search_by_key(&inode, |number| number.0) {
                let mut text = Vec::new();
                put_u64(&mut text, inode);
                self.numbers.insert(at, (inode, text.into()));
            }
        }
    }

    /// Name or number of a namespace; `None` if it has no name and was not prepared.
    pub fn name(&self, inode: u64) -> Option<&[u8]> {
        let number = || {
            let at = self.numbers.binary_search_by_key(&inode, |number| number.0).ok()?;
            self.numbers.get(at).map(|(_, text)| &**text)
        };
        self.names.get(inode).or_else(number)
    }
}

impl Lookup for NetnsNames {
    fn value(&self, key: Key) -> Value<'_> {
        match key {
            Key::Id(inode) => Value::text(self.name(inode)),
            _ => Value::Null,
        }
    }
}

// Names by inode, best first.
fn find() -> Vec<(u64, Box<[u8]>)> {
    let mut found = Vec::new();
    // Anything but a namespace (a left-over file in /run/netns) is on another file system.
    let Ok(own) = fs::stat(Path::new("/proc/thread-self/ns/net")) else { return found };
    let mut add = |path: &Path, name: &[u8]| {
        if let Some(stat) = fs::stat(path).ok().filter(|stat| stat.device == own.device) {
            found.push((stat.inode, name.into()));
        }
    };
    for (name, path) in netns::list_named() {
        add(&path, &name);
    }
    add(Path::new("/proc/1/ns/net"), INIT);
    for (name, path) in docker() {
        add(&path, &name);
    }
    found.push((INIT_INODE, INIT.into()));
    found.truncate(NAMES_MAX);
    found
}

fn docker() -> Vec<(Box<[u8]>, std::path::PathBuf)> {
    use std::os::unix::ffi::OsStrExt;
    let mut found = Vec::new();
    let Ok(dir) = fs::open_dir(Path::new(DOCKER)) else { return found };
    let mut entries = fs::Entries::new();
    while let Ok(Some(entry)) = entries.next(&dir) {
        let path = Path::new(DOCKER).join(std::ffi::OsStr::from_bytes(entry.bytes()));
        found.push((entry.bytes().into(), path));
    }
    found.sort();
    found
}

// In a recording: inode u64, length u16, name, little endian.
fn put_name(into: &mut Vec<u8>, inode: u64, name: &[u8]) {
    // File names have at most 255 bytes.
    let Ok(length) = u16::try_from(name.len()) else { return };
    into.extend_from_slice(&inode.to_le_bytes());
    into.extend_from_slice(&length.to_le_bytes());
    into.extend_from_slice(name);
}

fn parse_names(bytes: Vec<u8>) -> Result<Texts<u64>, HostError> {
    let mut places = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let garbled = HostError::Garbled { what: "names of network namespaces", at };
        let (inode, start, end) = name_at(&bytes, at).ok_or(garbled)?;
        // A value in a recording is at most 64 MiB long.
        places.push((inode, start as u32, end as u32));
        at = end;
    }
    Ok(Texts::new(bytes, places))
}

// Inode, and start and end of its name.
fn name_at(bytes: &[u8], at: usize) -> Option<(u64, usize, usize)> {
    let (inode, rest) = bytes.get(at..)?.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::from(u16::from_le_bytes(*length));
    let start = at + 10;
    (length <= rest.len()).then_some((u64::from_le_bytes(*inode), start, start + length))
}

/// A network namespace that a user has chosen.
#[derive(Debug)]
pub struct NetnsRef {
    /// The open namespace to enter; `None` in a replay, which enters no namespace.
    pub handle: Option<NetNs>,
    /// Its inode.
    pub inode: u64,
}

/// Finds the namespace that `written` refers to: a path if it has a slash, otherwise a name, otherwise a process id,
/// otherwise the name of a container, which must be unique.
///
/// Names are the same as in [`NetnsNames`]; `init` is the namespace of process 1 unless another namespace has that
/// name. A replay returns the recorded answer.
pub fn resolve_selector(host: &Host, written: &str) -> Result<NetnsRef, HostError> {
    let mut handle = None;
    let mut text = Vec::new();
    let result = host.bytes(&format!("netns@{written}"), "", &mut text, |into| {
        let opened = open(written)?;
        put_u64(into, opened.inode());
        handle = Some(opened);
        Ok(())
    });
    match result {
        Ok(()) => Ok(NetnsRef { handle, inode: parse_inode(&text)? }),
        Err(error) if error.errno.is_missing_object() && !written.contains('/') => of_container(host, written),
        Err(error) => Err(error.into()),
    }
}

/// The namespace of the container with this name; in a replay the recorded one.
fn of_container(host: &Host, written: &str) -> Result<NetnsRef, HostError> {
    let (mut found, mut handle, mut text) = (FoundContainers::default(), None, Vec::new());
    let result = host.bytes(&format!("netns-container@{written}"), "", &mut text, |into| {
        // Bypasses the recording, which must contain the answer, not every process that was checked.
        found = netns_containers::find(&Host::live(), written)?;
        let opened = found.only(written)?;
        put_u64(into, opened.inode());
        handle = Some(opened);
        Ok(())
    });
    let wanted = || sys::escape_bytes(written.as_bytes());
    match result {
        Ok(()) => Ok(NetnsRef { handle, inode: parse_inode(&text)? }),
        Err(_) if found.namespaces.len() > 1 => {
            let have = found.namespaces.into_iter().map(|(_, process)| process).collect();
            Err(HostError::ManyContainers { wanted: wanted(), have })
        }
        Err(error) if error.errno.is_missing_object() || error.errno == Errno::NOT_RECORDED => {
            Err(HostError::NoNetns { wanted: wanted(), have: candidates(host), missing: found.missing })
        }
        Err(error) => Err(error.into()),
    }
}

fn open(written: &str) -> Result<NetNs, SysError> {
    // Used as names, these would open the directory of names.
    if matches!(written, "" | "." | "..") {
        return Err(SysError::new("openat", written, Errno::NOENT));
    }
    // The name of a namespace that only has a process.
    if let Some(Ok(pid)) = written.strip_prefix(PID_PREFIX).map(str::parse) {
        return NetNs::open_pid(pid);
    }
    match NetNs::open(written) {
        Err(error) if error.errno == Errno::NOENT && !written.contains('/') => {
            // Every displayed name must also be accepted.
            let docker = NetNs::open_path(&Path::new(DOCKER).join(written));
            if docker.is_err() && written.as_bytes() == INIT { open_init() } else { docker.map_err(|_| error) }
        }
        opened => opened,
    }
}

// Process 1 may be unreadable, but a process in the same namespace can use its own link.
fn open_init() -> Result<NetNs, SysError> {
    let own = NetNs::current()?;
    if own.inode() == INIT_INODE { Ok(own) } else { NetNs::open_pid(1) }
}

// Names that would have been accepted, for the error message.
fn candidates(host: &Host) -> Vec<Box<str>> {
    const SHOWN: usize = 10;
    if host.is_replay() {
        return Vec::new();
    }
    let mut names: Vec<Box<str>> = find().iter().map(|(_, name)| sys::escape_bytes(name)).collect();
    // `init` may be found twice, also in Docker's folder.
    names.sort();
    names.dedup();
    if names.len() > SHOWN {
        let more = names.len() - SHOWN;
        names.truncate(SHOWN);
        names.push(format!("{more} more").into());
    }
    names
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use testkit::netns::Lab;

    #[test]
    fn the_namespace_we_are_in() {
        let inode = current(&Host::live()).unwrap();
        let link = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        assert_eq!(link.to_str().unwrap(), format!("net:[{inode}]"));
        let own = resolve_selector(&Host::live(), "/proc/self/ns/net").unwrap();
        assert_eq!((own.inode, own.handle.unwrap().inode()), (inode, inode));
        let by_pid = resolve_selector(&Host::live(), &std::process::id().to_string()).unwrap();
        assert_eq!(by_pid.inode, inode);
    }

    #[test]
    fn numbers_where_there_is_no_name() {
        let names = NetnsNames::read(&Host::live(), &[12, 7, 12]).unwrap();
        assert_eq!(names.name(7), Some(&b"7"[..]));
        assert_eq!(names.name(12), Some(&b"12"[..]));
        assert_eq!(names.name(13), None);
        assert_eq!(names.value(Key::Id(12)), Value::Bytes(b"12"));
        assert_eq!(names.value(Key::None), Value::Null);
        assert_eq!(names.name(INIT_INODE), Some(INIT));
    }

    #[test]
    fn unknown_names_and_what_else_is_no_namespace() {
        let error = resolve_selector(&Host::live(), "no\x1bsuch").unwrap_err().to_string();
        assert!(error.starts_with("no network namespace `no\\u{1b}such`: "), "{error}");
        assert!(error.contains("; a container's name, a PID or a path like /proc/1/ns/net works too"), "{error}");
        let error = resolve_selector(&Host::live(), "/no/such").unwrap_err().to_string();
        assert_eq!(error, "cannot open /no/such: no such file or directory");
        // The number is above the kernel's limit for pids.
        for wrong in ["4194999", "", ".", ".."] {
            assert!(matches!(resolve_selector(&Host::live(), wrong), Err(HostError::NoNetns { .. })), "{wrong}");
        }
        let error = HostError::NoNetns { wanted: "foo".into(), have: vec!["a".into(), "b".into()], missing: None };
        assert_eq!(
            error.to_string(),
            "no network namespace `foo`: have a, b; a container's name, a PID or a path like /proc/1/ns/net works too"
        );
    }

    #[test]
    fn root_named_ones_and_their_replay() {
        testkit::require_root!();
        let lab = Lab::new("names");
        let tmp = tempfile::tempdir().unwrap();
        let tape = tmp.path().join("tape");
        let host = Host::live().recording(&tape).unwrap();
        let chosen = resolve_selector(&host, lab.name()).unwrap();
        assert_ne!(chosen.inode, current(&host).unwrap());
        let names = NetnsNames::read(&host, &[]).unwrap();
        assert_eq!(names.name(chosen.inode), Some(lab.name().as_bytes()));
        let init = resolve_selector(&host, "init").unwrap();
        assert_eq!(names.name(init.inode), Some(INIT));
        let error = resolve_selector(&Host::live(), "nwnone").unwrap_err().to_string();
        // A host with many namespaces shows the first ones.
        assert!(error.contains(": have ") && (error.contains("init") || error.contains(" more")), "{error}");
        host.finish().unwrap();

        let host = Host::open_replay(&tape).unwrap();
        let replayed = resolve_selector(&host, lab.name()).unwrap();
        assert_eq!((replayed.inode, replayed.handle.is_none()), (chosen.inode, true));
        let names = NetnsNames::read(&host, &[]).unwrap();
        assert_eq!(names.name(chosen.inode), Some(lab.name().as_bytes()));
        let error = resolve_selector(&host, "other").unwrap_err().to_string();
        assert_eq!(error, "cannot replay netns@other: not in the recording");
    }

    #[test]
    fn names_on_a_tape_that_was_garbled() {
        let mut bytes = Vec::new();
        put_name(&mut bytes, 7, b"seven");
        put_name(&mut bytes, 8, b"");
        let names = parse_names(bytes.clone()).unwrap();
        assert_eq!((names.get(7), names.get(8)), (Some(&b"seven"[..]), Some(&b""[..])));
        for cut in 1..bytes.len() {
            match parse_names(bytes[..cut].to_vec()) {
                Ok(names) => assert_eq!((names.len(), cut), (1, 15)),
                Err(error) => assert!(error.to_string().contains("are malformed at byte "), "{error}"),
            }
        }
        assert!(parse_inode(b"").is_err() && parse_inode(b"7x").is_err());
    }
}
