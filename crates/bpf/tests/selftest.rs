//! The committed self-test object on the running kernel.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bpf::{BpfError, LoadSpec, LoadedObject, load};
use sys::Host;

static OBJECT: &[u8] = include_bytes!("../objects/selftest.o");

fn loaded(programs: &[&str], constants: &[(&str, &[u8])]) -> Result<LoadedObject, BpfError> {
    load(&Host::live(), &LoadSpec { object: OBJECT, programs, constants, entries: &[] })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The mount point of cgroup v2.
fn cgroup2() -> Option<std::path::PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    line.split(' ').nth(4).map(Into::into)
}

/// The constant that makes the programs report pids of our namespace.
fn pidns() -> [u8; 4] {
    sys::pidns::below_the_first().unwrap().unwrap_or(0).to_ne_bytes()
}

/// `struct facts` of the object.
const FACTS: usize = 80;

#[test]
fn root_a_program_sees_its_caller() {
    testkit::require_root!();
    let constants: &[(&str, &[u8])] = &[("step", &5u64.to_ne_bytes()), ("pidns", &pidns())];
    let loaded = loaded(&["look"], constants).unwrap();
    let look = loaded.program("look").unwrap();
    let mut facts = [0u8; FACTS];
    for round in 0..3u64 {
        assert_eq!(look.run(&mut facts).unwrap(), 0);
        assert_eq!(u64_at(&facts, 24), round * 5, "runs, by the constant we set");
        assert_eq!(u64_at(&facts, 32), 42 + round, "begin is 41 in .data");
    }
    assert_eq!(u32_at(&facts, 0), std::process::id());
    assert!(u32_at(&facts, 4) > 16, "the offset of tgid is the kernel's: {}", u32_at(&facts, 4));
    assert_eq!(u32_at(&facts, 8), 16, "size of comm");
    assert_eq!((u32_at(&facts, 12), u32_at(&facts, 16), u32_at(&facts, 20)), (0, 0, 1), "what exists");
    assert!(u32_at(&facts, 40) > 0 && u32_at(&facts, 44) > 300, "id and size of struct sock");
    assert_eq!(u32_at(&facts, 52), 0, "a constant that no kernel has");
    let comm = std::fs::read("/proc/thread-self/comm").unwrap();
    assert!(facts[56..].starts_with(comm.trim_ascii_end()));
    let locks = sys::Kernel::read_running().version() >= (6, 2);
    assert_eq!((u32_at(&facts, 72), u32_at(&facts, 76)), (u32::from(locks), 0), "functions of the kernel");
    assert_eq!(loaded.counter("runs").unwrap(), 15);
    assert_eq!(loaded.counter("begin").unwrap(), 44);
    assert!(matches!(loaded.counter("lost"), Ok(0)));
    assert!(matches!(loaded.counter("none"), Err(BpfError::NoSuch { kind: "variable", .. })));
    let seen = loaded.map("seen").unwrap();
    let mut rows = Vec::new();
    seen.for_each(|key, value| rows.push((u32_at(key, 0), u64_at(value, 0)))).unwrap();
    assert_eq!(rows, [(std::process::id(), 1)]);
    assert_eq!(u64_at(loaded.map("out").unwrap().map_memory().unwrap().bytes(), 32 + 24), 10);
    assert!(loaded.map("events").is_err(), "only the maps that a loaded program uses are made");
    assert!(look.attach().is_err());
}

#[test]
fn root_a_ring_counts_what_it_loses() {
    testkit::require_root!();
    let loaded = loaded(&["fill"], &[]).unwrap();
    let fill = |count: u32, discard: u32| {
        let mut context = [count.to_ne_bytes(), discard.to_ne_bytes()].concat();
        loaded.program("fill").unwrap().run(&mut context).unwrap();
    };
    let mut ring = loaded.map("events").unwrap().ring().unwrap();
    assert!(!ring.wait(0).unwrap());
    let mut seen = Vec::new();
    fill(10, 0);
    assert!(ring.wait(1000).unwrap());
    assert_eq!(ring.consume(&mut |record| seen.push((record.len(), u64_at(record, 0)))).unwrap(), 10);
    assert_eq!(seen, (0..10).map(|n| (64, n)).collect::<Vec<_>>());
    // 4096 bytes hold 56 records of 72; goes around the end of the ring many times.
    let mut got = 0;
    for _ in 0..20 {
        fill(100, 0);
        let mut next = 0;
        got += ring
            .consume(&mut |record| {
                assert_eq!(u64_at(record, 0), next);
                next += 1;
            })
            .unwrap();
    }
    assert_eq!(got + loaded.counter("lost").unwrap(), 2_000);
    assert!(loaded.counter("lost").unwrap() >= 20 * 43);
    let mut even = Vec::new();
    fill(20, 1);
    assert_eq!(ring.consume(&mut |record| even.push(u64_at(record, 0))).unwrap(), 10);
    assert_eq!(even, (0..10).map(|n| n * 2).collect::<Vec<_>>(), "the odd ones were discarded");
    assert_eq!(ring.waiting_bytes(), 0);
}

#[test]
fn root_an_iterator_gives_rows_in_every_pass() {
    testkit::require_root!();
    let own = std::process::id();
    let constants: &[(&str, &[u8])] = &[("only_tgid", &own.to_ne_bytes()), ("pidns", &pidns())];
    let loaded = loaded(&["tasks"], constants).unwrap();
    let link = loaded.program("tasks").unwrap().attach().unwrap();
    for _ in 0..2 {
        let mut rows = link.iterate().unwrap();
        let mut buffer = vec![0; 64 << 10];
        let mut pids = Vec::new();
        loop {
            let got = rows.read(&mut buffer).unwrap();
            if got == 0 {
                break;
            }
            assert_eq!(got % 8, 0);
            pids.extend(buffer[..got].chunks_exact(8).map(|row| (u32_at(row, 0), u32_at(row, 4))));
        }
        assert!(pids.contains(&(own, own)), "{pids:?}");
        assert!(pids.iter().all(|(_, tgid)| *tgid == own));
    }
}

#[test]
fn root_a_socket_carries_its_maker() {
    testkit::require_root!();
    let Some(cgroup) = cgroup2() else {
        println!("skipped: cgroup 2 is not mounted");
        return;
    };
    // In the kernel's own pid numbers, which differ from ours if the tests run in a container.
    let own = if pidns() == [0; 4] { std::process::id() } else { 0 };
    let loaded = loaded(&["created", "changed"], &[("only_tgid", &own.to_ne_bytes())]).unwrap();
    let cgroup = sys::fs::open_dir(&cgroup).unwrap();
    let _created = loaded.program("created").unwrap().attach_cgroup(&cgroup).unwrap();
    let _changed = loaded.program("changed").unwrap().attach().unwrap();
    let mut ring = loaded.map("events").unwrap().ring().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = u64::from(listener.local_addr().unwrap().port());
    let mut listening = false;
    testkit::wait_until("the listener's event", || {
        ring.wait(10).unwrap();
        ring.consume(&mut |event| listening |= u32_at(event, 4) == 10 && u64_at(event, 8) == port).unwrap();
        listening
    });
}

#[test]
fn root_what_is_missing_is_named() {
    testkit::require_root!();
    let error = loaded(&["broken"], &[]).unwrap_err();
    assert_eq!(error.to_string(), "this kernel has no field task_struct.no_such_member");
    assert!(error.is_unavailable());
    assert_eq!(loaded(&["nobody"], &[]).unwrap_err().to_string(), "the BPF object has no program nobody");
    let wrong = loaded(&["look"], &[("step", &[1])]).unwrap_err();
    assert_eq!(wrong.to_string(), "the BPF object has no constant of that size step");
}

#[test]
fn without_types_nothing_is_loaded() {
    let empty = tempfile::tempdir().unwrap();
    let host = Host::with_roots("/proc".into(), empty.path().into(), "/etc".into());
    let spec = LoadSpec { object: OBJECT, programs: &["look"], constants: &[], entries: &[] };
    let error = load(&host, &spec).unwrap_err();
    assert!(error.to_string().ends_with("this kernel was built without CONFIG_DEBUG_INFO_BTF"), "{error}");
    assert!(error.is_unavailable());
}
