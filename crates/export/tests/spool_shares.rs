//! A full spool: a class that floods it loses only its own messages, even if the program is killed in between.
#![allow(clippy::unwrap_used, clippy::panic)]

use export::{Batch, Drops, Ledger, PushOutcome, RecoveredCounts, Spool, SpoolOptions, Store, SyncWhen, WhenFull};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::fault::{Fault, arm, disarm_all};

const FLOOD: u16 = 1;
const TRICKLE: u16 = 2;
const BYTES_MAX: u64 = 2 << 20;

fn open(dir: &Path) -> (Spool, RecoveredCounts) {
    open_with(dir, BYTES_MAX, SyncWhen::Never)
}

fn open_with(dir: &Path, bytes_max: u64, sync: SyncWhen) -> (Spool, RecoveredCounts) {
    let options = SpoolOptions { sync, ..SpoolOptions::new(bytes_max) };
    Spool::open(dir, "json+tcp://192.0.2.1:5140", options).unwrap()
}

/// Messages of these classes with `length` bytes each, numbered within their class.
fn batch(classes: impl IntoIterator<Item = u16>, length: usize, numbers: &mut [u64; 256]) -> Batch {
    let mut batch = Batch::new();
    for class in classes {
        batch.set_class(class);
        let number = &mut numbers[usize::from(class)];
        batch.bytes_mut().extend_from_slice(format!("{class:03} {number:08} ").as_bytes());
        let end = batch.bytes().len() + length - 13;
        batch.bytes_mut().resize(end, b'x');
        batch.end_message();
        *number += 1;
    }
    batch
}

/// One message in 50 belongs to the trickle.
fn mixed(messages: usize, at: &mut usize) -> Vec<u16> {
    *at += messages;
    (*at - messages..*at).map(|at| if at % 50 == 7 { TRICKLE } else { FLOOD }).collect()
}

fn push(spool: &mut Spool, batch: Batch, when_full: WhenFull) -> u64 {
    match spool.push(batch, when_full, 0) {
        PushOutcome::Kept { dropped } => dropped,
        PushOutcome::Full { batch, dropped } => dropped + batch.len(),
    }
}

/// Class and number of each waiting message, in order.
fn waiting(spool: &mut Spool) -> Vec<(u16, u64)> {
    let (mut all, mut next) = (Vec::new(), 0);
    while let Some(batch) = spool.get(next).unwrap() {
        assert!(batch.end() > next, "reading goes on");
        for index in 0..batch.message_ends().len() {
            let text = std::str::from_utf8(batch.message(index).unwrap()).unwrap();
            assert!(text[13..].bytes().all(|byte| byte == b'x'), "{text}");
            if batch.first_number() + index as u64 >= next {
                all.push((text[..3].parse().unwrap(), text[4..12].parse().unwrap()));
            }
        }
        next = batch.end();
    }
    all
}

fn of(class: u16, all: &[(u16, u64)]) -> Vec<u64> {
    all.iter().filter(|(other, _)| *other == class).map(|(_, number)| *number).collect()
}

fn place(dir: &Path) -> PathBuf {
    let mut found = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    found.next().unwrap()
}

/// The files of the spool with their contents, except for the position and the lock.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let found = fs::read_dir(place(dir)).unwrap().map(|entry| entry.unwrap().path());
    let found = found.filter(|path| path.extension().is_some());
    let mut found: Vec<_> = found.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    found.sort();
    found
}

#[test]
fn a_flood_of_one_class_pushes_none_of_others_out_of_a_spool() {
    for (when_full, sync) in [(WhenFull::DropOldest, SyncWhen::EverySecond), (WhenFull::DropNewest, SyncWhen::Never)] {
        let dir = tempfile::tempdir().unwrap();
        let (mut spool, _) = open_with(dir.path(), BYTES_MAX, sync);
        let (mut ledger, mut numbers, mut at) = (Ledger::default(), [0; 256], 0);
        for _ in 0..500 {
            let batch = batch(mixed(200, &mut at), 200, &mut numbers);
            ledger.seen += batch.len();
            ledger.dropped.full += push(&mut spool, batch, when_full);
            spool.checkpoint(&ledger).unwrap();
            assert!(spool.bytes() <= BYTES_MAX);
        }
        let before = waiting(&mut spool);
        drop(spool);
        let (mut spool, recovered) = open(dir.path());
        let after = waiting(&mut spool);
        assert_eq!(before, after, "a kill changes nothing");
        assert_eq!(of(TRICKLE, &after), (0..2000).collect::<Vec<_>>());
        let flood = of(FLOOD, &after);
        assert!(flood.windows(2).all(|pair| pair[0] < pair[1]), "order");
        assert_eq!(
            (ledger.waiting_records(), recovered.waiting, recovered.lost),
            (after.len() as u64, after.len() as u64, 0)
        );
        assert_eq!(spool.ledger(), ledger);
        assert!((4000..8500).contains(&flood.len()), "the flood has the rest: {}", flood.len());
        match when_full {
            WhenFull::DropOldest => assert!(flood.last() == Some(&97_999) && flood[0] > 80_000, "{}", flood[0]),
            _ => assert!(flood[3000] == 3000, "what came first: {}", flood[3000]),
        }
        let count = files(dir.path()).len();
        assert!(count <= 40, "rests are put together: {count} files");
    }
}

/// Bytes that this thread has written with system calls.
fn written() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap()
}

#[test]
fn making_room_writes_in_proportion_to_what_comes() {
    // A flood and a trickle; many equal classes; one class with twice as much as many others.
    let flood = |at: usize| if at % 50 == 7 { TRICKLE } else { FLOOD };
    let equal = |at: usize| (at % 100) as u16;
    let twice = |at: usize| (at % 101).min(99) as u16;
    for (name, class) in [("flood", &flood as &dyn Fn(usize) -> u16), ("equal", &equal), ("twice", &twice)] {
        let dir = tempfile::tempdir().unwrap();
        let (mut spool, _) = open_with(dir.path(), 8 << 20, SyncWhen::Never);
        let (mut numbers, mut pushed, mut most, begin) = ([0; 256], 0, 0, written());
        for round in 0..1200 {
            let batch = batch((0..200).map(|at| class(round * 200 + at)), 200, &mut numbers);
            pushed += batch.bytes().len() as u64;
            let before = written();
            push(&mut spool, batch, WhenFull::DropOldest);
            most = most.max(written() - before);
        }
        let all = written() - begin;
        assert!(all < 4 * pushed, "{name}: {all} bytes are written for {pushed}");
        assert!(most <= 1 << 20, "{name}: one push writes {most} bytes, two files at most");
    }
}

/// A kill may come while files are rewritten: before or after the new file replaces the old ones.
#[test]
fn leftovers_of_a_killed_rewrite_are_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let (mut spool, _) = open(dir.path());
    let (mut ledger, mut numbers, mut at) = (Ledger::default(), [0; 256], 0);
    let (mut joined, mut thinned) = (0, 0);
    for _ in 0..1000 {
        if joined >= 3 && thinned >= 3 {
            break;
        }
        let old = files(dir.path());
        let position = fs::read(place(dir.path()).join("position")).unwrap();
        let batch = batch(mixed(200, &mut at), 200, &mut numbers);
        ledger.seen += batch.len();
        ledger.dropped.full += push(&mut spool, batch, WhenFull::DropOldest);
        let new = files(dir.path());
        let gone: Vec<_> = old.iter().filter(|(path, _)| !new.iter().any(|(other, _)| other == path)).collect();
        let changed = new.iter().zip(&old).find(|((path, new), (other, old))| path == other && new.len() < old.len());
        let now = waiting(&mut spool);
        let check = |add: &dyn Fn(&Path)| {
            let copy = tempfile::tempdir().unwrap();
            let target = copy.path().join("s").join(place(dir.path()).file_name().unwrap());
            fs::create_dir_all(&target).unwrap();
            use std::os::unix::fs::PermissionsExt;
            for path in [target.parent().unwrap(), &target] {
                fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
            }
            let put = |path: &Path, bytes: &[u8]| {
                let path = target.join(path.file_name().unwrap());
                fs::write(&path, bytes).unwrap();
                fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
            };
            new.iter().for_each(|(path, bytes)| put(path, bytes));
            put(Path::new("position"), &position);
            add(&target);
            let (mut spool, recovered) = open(&copy.path().join("s"));
            assert_eq!(waiting(&mut spool), now);
            assert_eq!((recovered.waiting, recovered.lost), (now.len() as u64, 0));
            assert_eq!(spool.ledger().waiting_records(), now.len() as u64);
            let left = files(&copy.path().join("s")).len();
            assert_eq!(left, new.len(), "what is left over is removed");
        };
        let is_join = gone.len() == 1 && new.iter().zip(&old).any(|(new, old)| new.0 == old.0 && new.1 != old.1);
        if is_join && joined < 3 {
            // The new file is there, and so is the old one that was merged into it.
            let (path, bytes) = gone[0];
            check(&|target| {
                fs::write(target.join(path.file_name().unwrap()), bytes).unwrap();
            });
            joined += 1;
        } else if let Some(((path, bytes), _)) = changed.filter(|_| thinned < 3) {
            // Half a file that was to replace another.
            let name = path.with_extension("new");
            check(&|target| {
                fs::write(target.join(name.file_name().unwrap()), &bytes[..bytes.len() / 2]).unwrap();
            });
            thinned += 1;
        }
        spool.checkpoint(&ledger).unwrap();
    }
    assert_eq!((joined, thinned), (3, 3));
}

/// The child process of `issue_12_a_killed_flood…`; not a test by itself.
#[test]
fn child_floods_until_it_is_killed() {
    let Some(dir) = std::env::var_os("NETWREN_TEST_FLOOD") else { return };
    let dir = Path::new(&dir);
    let (mut spool, _) = open(dir);
    let mut ledger = spool.ledger();
    let mut numbers = [0; 256];
    // Continue where the last run was killed: it may have stored more than it had recorded.
    let all = waiting(&mut spool);
    numbers[usize::from(TRICKLE)] = of(TRICKLE, &all).last().map_or(0, |last| last + 1);
    let mut at = 0;
    loop {
        let batch = batch(mixed(50, &mut at), 1000, &mut numbers);
        ledger.seen += batch.len();
        ledger.dropped.full += push(&mut spool, batch, WhenFull::DropOldest);
        ledger.dropped.add(&spool.take_drops());
        spool.checkpoint(&ledger).unwrap();
        // Record how many messages were handed over.
        fs::write(dir.join("pushed"), format!("{:020}", numbers[usize::from(TRICKLE)])).unwrap();
    }
}

#[test]
fn issue_12_a_killed_flood_pushes_nothing_of_others_out() {
    let dir = tempfile::tempdir().unwrap();
    for round in 1..5 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let child = child.args(["--exact", "child_floods_until_it_is_killed"]).env("NETWREN_TEST_FLOOD", dir.path());
        let mut child = child.stdout(std::process::Stdio::null()).spawn().unwrap();
        let pushed = || fs::read_to_string(dir.path().join("pushed")).ok().and_then(|text| text.parse::<u64>().ok());
        let end = Instant::now() + Duration::from_secs(30);
        while pushed().unwrap_or(0) < round * 100 {
            assert!(Instant::now() < end, "the child writes nothing");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let (mut spool, recovered) = open(dir.path());
        let all = waiting(&mut spool);
        let trickle = of(TRICKLE, &all);
        assert!(trickle.len() as u64 >= pushed().unwrap_or(0) && recovered.was_killed, "{recovered:?}");
        assert_eq!(trickle, (0..trickle.len() as u64).collect::<Vec<_>>());
        let ledger = spool.ledger();
        assert_eq!(
            (recovered.waiting, recovered.lost, ledger.waiting_records()),
            (all.len() as u64, 0, all.len() as u64)
        );
        assert_eq!(ledger.seen, ledger.dropped.full + ledger.waiting_records());
        assert!(ledger.dropped.full > 1000, "it was full: {ledger:?}");
    }
}

/// While the disk rejects writes, the classes share the memory.
#[test]
fn while_the_disk_is_full_a_flood_drops_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let (mut spool, _) = open_with(dir.path(), 1 << 30, SyncWhen::Never);
    arm("pwritev", 0, u32::MAX, Fault::Fails(sys::Errno::NOSPC));
    let (mut numbers, mut dropped, mut pushed, mut at) = ([0; 256], 0, 0, 0);
    for _ in 0..120 {
        let batch = batch(mixed(1000, &mut at), 1000, &mut numbers);
        pushed += batch.len();
        dropped += push(&mut spool, batch, WhenFull::DropOldest);
    }
    let all = waiting(&mut spool);
    assert_eq!(of(TRICKLE, &all), (0..2400).collect::<Vec<_>>());
    assert_eq!(all.len() as u64 + dropped, pushed);
    disarm_all();
    let ledger = Ledger { seen: pushed, dropped: Drops { full: dropped, ..Drops::default() }, ..Ledger::default() };
    spool.sync(&ledger).unwrap();
    drop(spool);
    let (mut spool, recovered) = open_with(dir.path(), 1 << 30, SyncWhen::Never);
    assert_eq!((waiting(&mut spool), recovered.waiting, spool.ledger()), (all.clone(), all.len() as u64, ledger));
}

/// If the disk takes messages but no rewritten file, the whole file is dropped.
#[test]
fn a_file_that_cannot_be_rewritten_is_dropped_whole_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (mut spool, _) = open(dir.path());
    let (mut ledger, mut numbers, mut at, mut faults) = (Ledger::default(), [0; 256], 0, 0);
    for _ in 0..200 {
        let batch = batch(mixed(200, &mut at), 200, &mut numbers);
        ledger.seen += batch.len();
        if spool.bytes() + 50_000 > BYTES_MAX {
            arm("pwritev", 0, 1, Fault::Fails(sys::Errno::NOSPC));
            faults += 1;
        }
        ledger.dropped.full += push(&mut spool, batch, WhenFull::DropOldest);
        disarm_all();
        spool.checkpoint(&ledger).unwrap();
    }
    assert!(faults > 5);
    assert_eq!(waiting(&mut spool).len() as u64, ledger.waiting_records());
    assert_eq!(files(dir.path()).iter().filter(|(path, _)| path.extension().unwrap() == "new").count(), 0);
    drop(spool);
    let (spool, recovered) = open(dir.path());
    assert_eq!((spool.ledger(), recovered.waiting), (ledger, ledger.waiting_records()));
}
