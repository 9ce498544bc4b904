#![allow(clippy::unwrap_used)]
use super::*;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};

/// A program whose standard input is a socket; it is killed on drop.
struct Holder(Child);

impl Holder {
    fn start(line: &str, socket: UnixStream) -> Holder {
        Holder(Command::new("sh").args(["-c", line]).stdin(OwnedFd::from(socket)).spawn().unwrap())
    }

    /// Waits until the program has this name.
    fn wait_for(&self, name: &str) {
        let file = format!("/proc/{}/comm", self.0.id());
        testkit::wait_until(name, || std::fs::read_to_string(&file).unwrap().trim() == name);
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn inode(socket: &impl AsRawFd) -> u64 {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
    super::super::walk::socket_inode(link.as_os_str().as_encoded_bytes()).unwrap()
}

/// A new read that passes as a complete one of a large host: some processes are unreadable even for root.
fn read(reader: &OwnersReader) -> Owners {
    passing(reader.read(&Host::live()).unwrap())
}

fn passing(owners: Owners) -> Owners {
    let report = super::super::OwnersReport { fds: WORTH_FDS, ..Default::default() };
    Owners { report, ..owners }
}

fn names(owners: &CheckedOwners<'_>, inode: u64) -> Vec<String> {
    owners.owners(Key::Id(inode)).iter().map(|owner| String::from_utf8_lossy(owner.process.as_bytes()).into()).collect()
}

#[test]
fn root_owners_that_still_are_need_no_reading() {
    testkit::require_root!();
    let (host, reader) = (Host::live(), OwnersReader::default());
    let (here, there) = UnixStream::pair().unwrap();
    let number = inode(&there);
    let holder = Holder::start("read line; exec sleep 60", there);
    holder.wait_for("sh");
    // Children of concurrent tests have copies of all open descriptors until they call exec.
    let mut before = read(&reader);
    testkit::wait_until("one holder", || {
        before = read(&reader);
        before.of(number).len() == 1
    });
    let owners = CheckedOwners::new(&reader, &host, before, true);
    assert_eq!(names(&owners, number), ["sh"]);
    assert_eq!(owners.value(Key::Pair(number << 32 | u64::from(holder.0.id()), 0)), Value::U64(holder.0.id().into()));
    let end = owners.end();
    assert!(!end.is_new && end.failed.is_none() && !end.too_many);
    // The same process runs another program by now: its former name is not shown.
    let owners = CheckedOwners::new(&reader, &host, end.owners, true);
    (&here).write_all(b"go\n").unwrap();
    holder.wait_for("sleep");
    assert_eq!(names(&owners, number), ["sleep"]);
    let end = owners.end();
    assert!(end.is_new);
    // No process holds it any more. Only the row of a closed socket shows its former owners.
    let readings = [read(&reader), read(&reader)];
    drop(holder);
    for (before, are_for_gone) in readings.into_iter().zip([true, false]) {
        let owners = CheckedOwners::new(&reader, &host, before, are_for_gone);
        assert_eq!(names(&owners, number), if are_for_gone { &["sleep"][..] } else { &[] });
        let end = owners.end();
        assert!(end.is_new && end.owners.of(number).is_empty());
    }
}

#[test]
fn root_a_socket_that_was_not_there_is_read() {
    testkit::require_root!();
    let (host, reader) = (Host::live(), OwnersReader::default());
    let owners = CheckedOwners::new(&reader, &host, read(&reader), true);
    let (here, _there) = UnixStream::pair().unwrap();
    assert!(!names(&owners, inode(&here)).is_empty());
    assert!(owners.end().is_new);
}

#[test]
fn root_who_asks_for_many_gets_a_whole_reading() {
    testkit::require_root!();
    let (host, reader) = (Host::live(), OwnersReader::default());
    let sockets: Vec<_> = (0..=LOOKS_MAX / 2).map(|_| UnixStream::pair().unwrap()).collect();
    let owners = CheckedOwners::new(&reader, &host, read(&reader), true);
    for (one, other) in &sockets {
        assert!(!names(&owners, inode(one)).is_empty() && !names(&owners, inode(other)).is_empty());
    }
    let end = owners.end();
    assert!(end.is_new && end.too_many);
}

#[test]
fn what_is_old_small_or_in_part_is_not_built_upon() {
    let owners = |fds, unreadable, seen_ns| {
        let mut owners = Owners { seen_ns, ..Owners::default() };
        (owners.report.fds, owners.report.unreadable) = (fds, unreadable);
        owners
    };
    assert!(is_of_use(&owners(WORTH_FDS, 0, 7), 7 + WHOLE_EVERY_NS - 1));
    assert!(!is_of_use(&owners(WORTH_FDS, 0, 7), 7 + WHOLE_EVERY_NS));
    assert!(!is_of_use(&owners(WORTH_FDS - 1, 0, 7), 8));
    assert!(!is_of_use(&owners(WORTH_FDS, 1, 7), 8));
    let tmp = tempfile::tempdir().unwrap();
    let host = Host::live().recording(&tmp.path().join("tape")).unwrap();
    let now = owners(WORTH_FDS, 0, sys::clock::boottime_ns());
    assert!(CheckedOwners::are_possible(&Host::live(), &now));
    assert!(!CheckedOwners::are_possible(&host, &now), "a recording holds whole readings");
}
