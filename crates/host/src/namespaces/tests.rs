#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use testkit::netns::Lab;

fn namespace(inode: u64, pid: Option<u32>, path: &str, name: &str) -> Namespace {
    let is_given = path.is_empty() || path.starts_with("/run/netns");
    Namespace { inode, pid, path: path.as_bytes().into(), name: name.as_bytes().into(), is_given }
}

#[test]
fn our_own_comes_first() {
    let host = Host::live();
    let own = crate::netns::current(&host).unwrap();
    let found = Namespaces::read(&host).unwrap();
    assert_eq!(found.list()[0].inode, own);
    assert!(found.list()[0].open(&host, own).unwrap().is_none());
    let mut inodes: Vec<u64> = found.list().iter().map(|namespace| namespace.inode).collect();
    inodes.sort_unstable();
    inodes.dedup();
    assert_eq!(inodes.len(), found.list().len(), "each of them once");
}

#[test]
fn names_in_the_order_of_their_worth() {
    let mut found = Namespaces {
        list: vec![
            namespace(1, Some(1), "", "init"),
            Namespace { is_given: false, ..namespace(2, Some(77), "", "") },
            namespace(5, Some(77), "/run/docker/netns/0af", "0af"),
            namespace(6, Some(76), "/run/docker/netns/0b0", "0b0"),
            namespace(3, Some(78), "/run/netns/a", "a"),
            namespace(4, Some(79), "", ""),
        ],
        ..Namespaces::default()
    };
    found.also(&[9, 3, 9, 8]);
    let of_process = |pid| (pid == 77).then(|| Box::from(&b"web"[..]));
    let names: Vec<(u64, String)> =
        found.names(&of_process).map(|(inode, name)| (inode, String::from_utf8(name.into()).unwrap())).collect();
    let expected = [(1, "init"), (2, "web"), (5, "web"), (6, "0b0"), (3, "a"), (4, "pid:79"), (8, "8"), (9, "9")];
    assert_eq!(names, expected.map(|(inode, name)| (inode, name.to_owned())));
    let lookup = crate::NetnsNames::of(&found, &of_process).unwrap();
    assert_eq!((lookup.name(2), lookup.name(9)), (Some(&b"web"[..]), Some(&b"9"[..])));
}

#[test]
fn on_a_tape_and_back() {
    let found = Namespaces {
        list: vec![namespace(u64::MAX, None, "", "init"), namespace(2, Some(77), "/run/netns/\u{1b}", "\u{1b}")],
        hidden: 3,
        unsearched: 4,
    };
    let mut bytes = Vec::new();
    tape::put(&mut bytes, &found);
    assert_eq!(tape::parse(&bytes).unwrap(), found);
    for cut in 0..bytes.len() {
        match tape::parse(&bytes[..cut]) {
            // The cut is between two entries.
            Ok(short) => assert!(short.list.len() < 2, "{cut}"),
            Err(error) => assert!(error.to_string().contains("are malformed at byte "), "{error}"),
        }
    }
}

#[test]
fn root_mounts_links_processes() {
    testkit::require_root!();
    let (mounted, emptied) = (Lab::new("mounted"), Lab::new("emptied"));
    // A namespace with a process and no file.
    let pid = emptied.spawn("sleep", &["60"]);
    let inode = NetNs::open_pid(pid).unwrap().inode();
    let umounted = std::process::Command::new("umount").arg(emptied.path()).status().unwrap();
    assert!(umounted.success());
    // A name that is a link to a process.
    let link = Path::new("/run/netns").join(format!("{}-l", emptied.name()));
    let found = Namespaces::read(&Host::live()).unwrap();
    let of = |inode| found.list().iter().find(|namespace| namespace.inode == inode).cloned();
    let first = of(NetNs::open_path(&mounted.path()).unwrap().inode()).unwrap();
    assert_eq!((first.name(), first.path()), (Some(mounted.name().as_bytes()), Some(&*mounted.path())));
    let second = of(inode).unwrap();
    assert_eq!((second.name(), second.path(), second.pid), (None, None, Some(pid)));
    assert_eq!(second.open(&Host::live(), 0).unwrap().unwrap().inode(), inode);

    std::os::unix::fs::symlink(format!("/proc/{pid}/ns/net"), &link).unwrap();
    let linked = Namespaces::read(&Host::live()).unwrap();
    std::fs::remove_file(&link).unwrap();
    let third = linked.list().iter().find(|namespace| namespace.inode == inode).unwrap();
    assert_eq!((third.path(), third.pid), (Some(&*link), Some(pid)));
    // Process 1 may be unreadable even for root, but its namespace is ours.
    assert_eq!(linked.hidden(), 0);
}

#[test]
fn root_the_same_from_a_recording() {
    testkit::require_root!();
    let lab = Lab::new("nslist");
    let tmp = tempfile::tempdir().unwrap();
    let tape = tmp.path().join("tape");
    let host = Host::live().recording(&tape).unwrap();
    let live = Namespaces::read(&host).unwrap();
    host.finish().unwrap();
    let inode = NetNs::open_path(&lab.path()).unwrap().inode();
    drop(lab);
    let host = Host::open_replay(&tape).unwrap();
    let replayed = Namespaces::read(&host).unwrap();
    assert_eq!(replayed, live);
    let one = replayed.list().iter().find(|namespace| namespace.inode == inode).unwrap();
    assert!(one.open(&host, 0).unwrap().is_none(), "a replay enters nothing");
}
