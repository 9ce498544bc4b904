//! Tests of the receiving thread on the running kernel.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::cell::Cell;
use std::collections::BTreeSet;

use record::rows::NatEventKind;
use record::{Accounting, Next, StreamState};
use sys::{BufferLimits, FoundNetns, Host, NetNs, NetnsOwner, netns};
use testkit::conntrack::mixed_entries;
use testkit::netns::Lab;

use super::{BUFFER_BYTES, NetlinkEvents, OtherNetnsOptions, SubscribeOptions, groups};
use netlink::datagrams::ChunkSizes;

use crate::events::netlink::reader::{CHUNKS, open_reader};

fn flush(lab: &Lab) {
    lab.output("conntrack", &["-F"]);
}

/// Collects all events until `enough` returns true; then the run ends.
fn until<'h>(
    events: &mut NetlinkEvents<'h>,
    stop: &Cell<bool>,
    mut enough: impl FnMut(&[(NatEventKind, u64, String)]) -> bool,
) -> (Vec<(NatEventKind, u64, String)>, Accounting) {
    let mut all = Vec::new();
    loop {
        let tide = events.next_entries(&mut |told, row| {
            all.push((told.kind, row.netns_id, format!("{:?} {:?}", row.orig, row.reply)));
            Next::More
        });
        stop.set(stop.get() || enough(&all));
        if tide.unwrap() == StreamState::Ended {
            return (all, events.close());
        }
    }
}

fn of(all: &[(NatEventKind, u64, String)], kind: NatEventKind) -> BTreeSet<&str> {
    all.iter().filter(|(what, ..)| *what == kind).map(|(.., text)| text.as_str()).collect()
}

#[test]
fn root_every_entry_comes_and_goes() {
    testkit::require_root!();
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("ctcomes");
    let _inside = lab.enter();
    let host = Host::live();
    let stop = Cell::new(false);
    let netns_id = netns::current_inode().unwrap();
    let ends = || stop.get();
    let options =
        SubscribeOptions { groups: groups::ALL, buffer_bytes: BUFFER_BYTES, netns_id, find: None, stop: &ends };
    let mut events = NetlinkEvents::open(&host, options).unwrap();
    lab.track(mixed_entries(900));
    flush(&lab);
    let gone = |all: &[(NatEventKind, u64, String)]| of(all, NatEventKind::Destroy).len() == 900;
    let (all, stats) = until(&mut events, &stop, gone);
    let (new, destroyed) = (of(&all, NatEventKind::New), of(&all, NatEventKind::Destroy));
    assert_eq!((new.len(), &new), (900, &destroyed));
    assert!(all.iter().all(|(_, inode, _)| *inode == netns_id));
    assert_eq!((stats.seen, stats.lost, stats.failed, stats.is_partial()), (all.len() as u64, 0, 0, false));
}

#[test]
fn root_what_is_lost_is_counted_to_the_message() {
    testkit::require_root!();
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("ctlost");
    let _inside = lab.enter();
    let stop = Cell::new(false);
    let ends = || stop.get();
    let netns_id = netns::current_inode().unwrap();
    // With one chunk that is not taken, the thread is stuck after the first message.
    let options = SubscribeOptions { groups: groups::NEW, buffer_bytes: 4_096, netns_id, find: None, stop: &ends };
    let mut events =
        NetlinkEvents::from_blocks(Box::new(open_reader(options, ChunkSizes { chunks_max: 1, ..CHUNKS }).unwrap()));
    lab.track(mixed_entries(900));
    // Counts the drops a second way: from the kernel's own table of netlink sockets.
    let listed = std::fs::read_to_string("/proc/thread-self/net/netlink").unwrap();
    let dropped: u64 =
        listed.lines().skip(1).filter_map(|line| line.split_whitespace().nth(8)?.parse::<u64>().ok()).sum();
    assert!(dropped > 500, "{listed}");
    let (all, stats) = until(&mut events, &stop, |_| true);
    assert!(!all.is_empty() && stats.lost >= dropped);
    assert_eq!(all.len() as u64 + stats.lost, 900);
    assert!(stats.is_partial() && stats.why.iter().any(|why| why.text.contains("--buffer")), "{stats:?}");
}

#[test]
fn root_every_namespace_is_heard_with_and_without_a_number() {
    testkit::require_root!();
    let _shared = testkit::tables::SharedUse::share();
    let (near, numbered, plain) = (Lab::new("ctnear"), Lab::new("ctnumber"), Lab::new("ctplain"));
    near.ip(&["netns", "set", numbered.name(), "auto"]);
    let before = near.output("ip", &["netns", "list-id"]);
    let _inside = near.enter();
    let inode = |lab: &Lab| netns::inode_of(&lab.path()).unwrap();
    let labs: Vec<_> = [&near, &numbered, &plain].iter().map(|lab| (inode(lab), lab.path())).collect();
    let find = Box::new(move || {
        let one = |(inode, path): &(u64, std::path::PathBuf)| {
            let path = path.clone();
            let open: Box<dyn Fn() -> Option<NetNs> + Send> = Box::new(move || NetNs::open_path(&path).ok());
            FoundNetns { netns_id: *inode, owner: NetnsOwner::Host, open: Some(open) }
        };
        labs.iter().map(one).collect()
    });
    let find = OtherNetnsOptions { find, buffers: BufferLimits { bytes: 1 << 30, sockets: 100 } };
    let host = Host::live();
    let stop = Cell::new(false);
    let ends = || stop.get();
    let options = SubscribeOptions {
        groups: groups::NEW,
        buffer_bytes: BUFFER_BYTES,
        netns_id: inode(&near),
        find: Some(find),
        stop: &ends,
    };
    let mut events = NetlinkEvents::open(&host, options).unwrap();
    for lab in [&near, &numbered, &plain] {
        lab.track(mixed_entries(100));
    }
    // From now on two sockets receive its events, and each event must be shown once.
    near.ip(&["netns", "set", plain.name(), "auto"]);
    plain.track(mixed_entries(200).skip(100));
    let (all, stats) = until(&mut events, &stop, |all| all.len() >= 400);
    let count = |lab| all.iter().filter(|(_, netns_id, _)| *netns_id == inode(lab)).count();
    assert_eq!([count(&near), count(&numbered), count(&plain)], [100, 100, 200], "{stats:?}");
    assert_eq!((all.len(), stats.is_partial()), (400, false), "{stats:?}");
    let after = near.output("ip", &["netns", "list-id"]);
    assert_eq!(before.lines().count() + 1, after.lines().count(), "listening has given no number: {after}");
}

#[test]
fn root_without_rights_it_says_so() {
    testkit::require_root!();
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("ctnorights");
    let said = lab.run_inside(|| {
        testkit::sandbox::drop_caps(&[sys::caps::Cap::NetAdmin]).unwrap();
        let host = Host::live();
        let options = SubscribeOptions {
            groups: groups::ALL,
            buffer_bytes: BUFFER_BYTES,
            netns_id: 0,
            find: None,
            stop: &|| true,
        };
        NetlinkEvents::open(&host, options).err().map(|error| error.to_string())
    });
    let said = said.expect("nobody may listen without CAP_NET_ADMIN");
    assert!(said.contains("netlink socket (netfilter)") && said.contains("not permitted"), "{said}");
}
