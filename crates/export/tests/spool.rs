//! Spools: stored messages are recovered completely and once, even after a kill or a power failure; lost ones are
//! counted.
#![allow(clippy::unwrap_used, clippy::panic)]

use export::{
    Batch, Drops, Ledger, Output, OutputOptions, PushOutcome, RecoveredCounts, Spool, SpoolError, SpoolOptions,
};
use export::{Store, SyncWhen, Target, TransportOptions, WhenFull, open_transport};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::fault::{Fault, arm, disarm_all};

const TARGET: &str = "json+tcp://192.0.2.1:5140";

fn options(bytes_max: u64) -> SpoolOptions {
    SpoolOptions { sync: SyncWhen::Never, ..SpoolOptions::new(bytes_max) }
}

/// Retries while the lock is held: a child process of another test inherits it until its exec.
fn open(dir: &Path, options: SpoolOptions) -> (Spool, RecoveredCounts) {
    let begin = Instant::now();
    loop {
        match Spool::open(dir, TARGET, options) {
            Err(SpoolError::InUse { .. }) if begin.elapsed() < Duration::from_secs(60) => std::thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
}

fn batch<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> Batch {
    let mut batch = Batch::new();
    for text in texts {
        batch.bytes_mut().extend_from_slice(text.as_ref().as_bytes());
        batch.end_message();
    }
    batch
}

/// The directory of the only spool below `dir`.
fn place(dir: &Path) -> PathBuf {
    let mut found = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    found.next().unwrap()
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(place(dir)).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = found.filter(|path| path.extension().is_some_and(|end| end == "segment")).collect();
    found.sort();
    found
}

/// A batch of messages with these classes.
fn batch_of(messages: impl IntoIterator<Item = (u16, String)>) -> Batch {
    let mut batch = Batch::new();
    for (class, text) in messages {
        batch.set_class(class);
        batch.bytes_mut().extend_from_slice(text.as_bytes());
        batch.end_message();
    }
    batch
}

/// Reads every message from number `from` on.
fn read_all(spool: &mut Spool, from: u64) -> BTreeMap<u64, String> {
    let (mut all, mut next) = (BTreeMap::new(), from);
    while let Some(batch) = spool.get(next).unwrap() {
        assert!(batch.end() > next, "reading goes on");
        for index in 0..batch.message_ends().len() {
            let number = batch.first_number() + index as u64;
            let text = String::from_utf8(batch.message(index).unwrap().to_vec()).unwrap();
            if number >= next {
                assert_eq!(all.insert(number, text), None);
            }
        }
        next = batch.end();
    }
    all
}

/// A spool with the counts that an output would keep.
struct User {
    spool: Spool,
    ledger: Ledger,
    /// All stored texts in order, each of them unique, including those that were dropped to make room.
    stored: Vec<String>,
    /// Messages pushed in total.
    pushed: u64,
    delivered_to: u64,
}

impl User {
    fn settle(&mut self) {
        self.ledger.dropped.add(&self.spool.take_drops());
        self.spool.checkpoint(&self.ledger).unwrap();
    }

    fn push(&mut self, messages: u64, length: usize, classes: u16, when_full: WhenFull) {
        let texts = (self.pushed..self.pushed + messages).map(|n| format!("{n:08}-{}", "x".repeat(length)));
        let texts: Vec<String> = texts.collect();
        self.pushed += messages;
        self.ledger.seen += messages;
        let classes = (0..).map(|at: u16| at % classes.max(1) * 7);
        match self.spool.push(batch_of(classes.zip(texts.iter().cloned())), when_full, self.delivered_to) {
            PushOutcome::Kept { dropped } => {
                self.ledger.dropped.full += dropped;
                self.stored.extend(texts);
            }
            PushOutcome::Full { dropped, .. } => self.ledger.dropped.full += dropped + messages,
        }
        self.settle();
    }

    fn deliver(&mut self) {
        if let Some(batch) = self.spool.get(self.delivered_to).unwrap() {
            let from = batch.first_number().max(self.delivered_to);
            for number in from..batch.end() {
                let index = (number - batch.first_number()) as usize;
                let text = String::from_utf8(batch.message(index).unwrap().to_vec()).unwrap();
                assert!(self.stored.binary_search(&text).is_ok(), "{number} is as it was stored");
            }
            self.ledger.delivered += batch.end() - from;
            self.delivered_to = batch.end();
            self.spool.release(self.delivered_to).unwrap();
        }
        self.settle();
    }

    /// Checks that all waiting messages are unchanged and in order, and that the counts add up.
    fn check(&mut self) {
        let waiting: Vec<String> = read_all(&mut self.spool, self.delivered_to).into_values().collect();
        self.settle();
        assert!(waiting.windows(2).all(|pair| pair[0] < pair[1]), "order, and each once");
        assert!(waiting.iter().all(|text| self.stored.binary_search(text).is_ok()));
        assert_eq!(waiting.len() as u64, self.ledger.waiting_records(), "{:?}", self.ledger);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Push {
        messages: u64,
        length: usize,
        /// Number of classes that take turns.
        classes: u16,
        when_full: WhenFull,
    },
    Deliver,
    /// The waiting messages were handed over, and none is confirmed.
    LetGo,
    /// The run ends in order, and the spool is reopened.
    Reopen,
    /// The program is killed.
    Kill,
    /// The power fails: a part of the newest file is missing or was never written.
    Cut {
        part: f64,
        zeros: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let when_full =
        prop_oneof![2 => Just(WhenFull::DropOldest), 1 => Just(WhenFull::DropNewest), 1 => Just(WhenFull::Block)];
    let push = (1..50u64, 0..6000usize, 0..5u16, when_full);
    let push =
        push.prop_map(|(messages, length, classes, when_full)| Step::Push { messages, length, classes, when_full });
    let cut = (0.0..1.0, any::<bool>()).prop_map(|(part, zeros)| Step::Cut { part, zeros });
    let step = prop_oneof![14 => push, 3 => Just(Step::Deliver), 2 => Just(Step::LetGo), 1 => Just(Step::Reopen),
            1 => Just(Step::Kill), 1 => cut];
    proptest::collection::vec(step, 1..70)
}

fn cut(path: &Path, part: f64, zeros: bool) {
    let len = fs::metadata(path).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len((len as f64 * part) as u64).unwrap();
    if zeros {
        file.set_len(len).unwrap();
    }
}

fn play(steps: Vec<Step>) {
    let dir = tempfile::tempdir().unwrap();
    let options = options(1 << 20);
    let (spool, _) = open(dir.path(), options);
    let (ledger, stored) = (Ledger::default(), Vec::new());
    let mut user = User { spool, ledger, stored, pushed: 0, delivered_to: 0 };
    for step in steps {
        match &step {
            Step::Push { messages, length, classes, when_full } => user.push(*messages, *length, *classes, *when_full),
            Step::Deliver => user.deliver(),
            Step::LetGo => user.spool.note_sent(user.spool.end()),
            Step::Reopen | Step::Kill | Step::Cut { .. } => {
                if matches!(step, Step::Reopen) {
                    user.spool.sync(&user.ledger).unwrap();
                }
                let before = user.ledger;
                let User { spool, stored, pushed, .. } = user;
                drop(spool);
                if let (Step::Cut { part, zeros }, Some(newest)) = (&step, segments(dir.path()).last()) {
                    cut(newest, *part, *zeros);
                }
                let (spool, recovered) = open(dir.path(), options);
                let (ledger, delivered_to) = (spool.ledger(), spool.begin());
                if matches!(step, Step::Reopen) {
                    assert_eq!((ledger, recovered.was_killed), (before, false));
                }
                assert_eq!(recovered.waiting, ledger.waiting_records(), "{recovered:?} {ledger:?}");
                user = User { spool, ledger, stored, pushed, delivered_to };
                if !matches!(step, Step::Cut { .. }) {
                    assert_eq!((ledger.seen, recovered.lost), (before.seen, 0), "{before:?} {ledger:?}");
                    assert_eq!(ledger.dropped.total(), before.dropped.total());
                }
            }
        }
        user.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn whatever_happens_messages_are_whole_and_the_counts_add_up(steps in steps()) {
        play(steps);
    }
}

/// A refused message leaves only its count in the spool.
#[test]
fn what_a_full_spool_refused_is_counted_after_a_kill() {
    let steps = |refused| {
        let full = (0..8).map(|_| Step::Push { messages: 49, length: 2900, classes: 1, when_full: WhenFull::Block });
        let more =
            (0..refused).map(|_| Step::Push { messages: 40, length: 2900, classes: 1, when_full: WhenFull::Block });
        full.chain(more).chain([Step::Kill]).collect()
    };
    play(steps(1));
    play(steps(5));
}

/// A record in memory that stood for others is lost if the program is killed; the records it stands for keep their
/// count.
#[test]
fn issue_12_records_that_stand_for_others_are_counted_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let target = format!("json:{}", dir.path().join("rows").display()).parse().unwrap();
    let start = |spool| {
        let transport = open_transport(&target, TransportOptions::default()).unwrap();
        let drain = Duration::ZERO;
        let options = OutputOptions { when_full: WhenFull::Block, drain };
        Output::start("test", Box::new(spool), transport, options).unwrap()
    };
    let (spool, _) = open(dir.path(), options(1 << 20));
    // The output is never ended, so the position on disk is the same as after a kill.
    let output = start(spool);
    output.note_unsent(500, 20, 7);
    output.note_unsent(100, 0, 6);
    let position = fs::read(place(dir.path()).join("position")).unwrap();
    drop(output);
    fs::write(place(dir.path()).join("position"), position).unwrap();
    let (spool, recovered) = open(dir.path(), options(1 << 20));
    let ledger = spool.ledger();
    assert_eq!((ledger.seen, ledger.folded, ledger.limited, ledger.dropped.lost, ledger.held), (626, 600, 20, 6, 0));
    assert_eq!((recovered.lost, recovered.was_killed), (6, true));
    drop(spool);
    let (spool, recovered) = open(dir.path(), options(1 << 20));
    assert_eq!((spool.ledger().dropped.lost, recovered.lost), (6, 0), "once");
}

/// One batch with the texts `from..to`.
fn numbered(from: u64, to: u64) -> Batch {
    batch((from..to).map(|number| format!("{number:08}\n")))
}

#[test]
fn a_cut_at_any_byte_leaves_the_whole_batches() {
    let dir = tempfile::tempdir().unwrap();
    let (mut spool, _) = open(dir.path(), options(1 << 20));
    for from in [0, 3, 6] {
        spool.push(numbered(from, from + 3), WhenFull::Block, 0);
    }
    drop(spool);
    let path = segments(dir.path()).remove(0);
    let bytes = fs::read(&path).unwrap();
    for length in 0..bytes.len() {
        let _ = fs::remove_file(place(dir.path()).join("position"));
        for old in segments(dir.path()) {
            fs::remove_file(old).unwrap();
        }
        fs::write(&path, &bytes[..length]).unwrap();
        let (mut spool, recovered) = open(dir.path(), options(1 << 20));
        let found = read_all(&mut spool, 0);
        let size = (bytes.len() - 32) / 3;
        let whole = length.saturating_sub(32) / size * 3;
        assert_eq!(found.len(), whole, "cut at {length}");
        assert!(found.iter().all(|(number, text)| *text == format!("{number:08}\n")));
        let is_torn = length > 0 && (length < 32 || (length - 32) % size != 0);
        assert_eq!(recovered.torn_files, u64::from(is_torn), "cut at {length}");
    }
}

#[test]
fn damaged_messages_are_stepped_over_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (mut spool, _) = open(dir.path(), options(1 << 20));
    for from in [0, 10, 20] {
        spool.push(numbered(from, from + 10), WhenFull::Block, 0);
    }
    spool.sync(&Ledger { seen: 30, ..Ledger::default() }).unwrap();
    drop(spool);
    let path = segments(dir.path()).remove(0);
    let mut bytes = fs::read(&path).unwrap();
    let place = 32 + (bytes.len() - 32) / 3 + 60;
    bytes[place] ^= 1;
    fs::write(&path, bytes).unwrap();
    let (mut spool, _) = open(dir.path(), options(1 << 20));
    let found: Vec<u64> = read_all(&mut spool, 0).into_keys().collect();
    assert_eq!(found, (0..10).chain(20..30).collect::<Vec<u64>>());
    assert_eq!(spool.take_drops(), Drops { lost: 10, ..Drops::default() });
}

#[test]
fn two_programs_do_not_use_one_spool() {
    let dir = tempfile::tempdir().unwrap();
    let (_spool, _) = open(dir.path(), options(1 << 20));
    let error = Spool::open(dir.path(), TARGET, options(1 << 20)).unwrap_err();
    let pid = std::process::id();
    assert!(matches!(&error, SpoolError::InUse { pid: Some(found), .. } if *found == pid), "{error}");
    assert!(error.to_string().contains(&format!("in use by process {pid}: end it first")), "{error}");
    Spool::open(dir.path(), "json:/another", options(1 << 20)).unwrap();
}

/// Opens a spool after `change` and returns the error.
fn refused(change: impl FnOnce(&Path)) -> String {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("spool");
    let (mut spool, _) = open(&root, options(1 << 20));
    spool.push(numbered(0, 3), WhenFull::Block, 0);
    drop(spool);
    change(&root);
    Spool::open(&root, TARGET, options(1 << 20)).unwrap_err().to_string()
}

#[test]
fn what_others_may_have_made_is_refused() {
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let newest = |root: &Path| segments(root).remove(0);
    let said = refused(|root| mode(root, 0o777));
    assert!(said.contains("other users may write to") && said.contains("chmod go-w"), "{said}");
    assert!(refused(|root| mode(&place(root), 0o770)).contains("mode 0770"));
    assert!(refused(|root| mode(&newest(root), 0o666)).contains("mode 0666"));
    let said = refused(|root| {
        fs::rename(root, root.with_extension("moved")).unwrap();
        std::os::unix::fs::symlink(root.with_extension("moved"), root).unwrap();
    });
    assert!(said.contains("is a link, which netwren does not follow"), "{said}");
    let said = refused(|root| {
        let (path, moved) = (newest(root), root.join("moved"));
        fs::rename(&path, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &path).unwrap();
    });
    assert!(said.contains("is a link"), "{said}");
    let said = refused(|root| fs::hard_link(newest(root), root.join("second name")).unwrap());
    assert!(said.contains("is not part of a spool"), "{said}");
    assert!(refused(|root| fs::write(place(root).join("notes.txt"), "x").unwrap()).contains("notes.txt is not part"));
    let said = refused(|root| fs::write(newest(root), "a file of something else, long enough").unwrap());
    assert!(said.contains("is not part of a spool: move it away"), "{said}");
}

#[test]
fn another_version_is_refused_with_what_to_do() {
    let newer = |path: PathBuf, at: usize| {
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] = 9;
        fs::write(path, bytes).unwrap();
    };
    let said = refused(|root| newer(segments(root).remove(0), 8));
    assert!(said.contains("(format 9, unknown to this one): let that version deliver the queued rows"), "{said}");
    let said = refused(|root| [12, 4096 + 12].into_iter().for_each(|at| newer(place(root).join("position"), at)));
    assert!(said.contains("(format 9, unknown to this one)"), "{said}");
}

#[test]
fn root_what_belongs_to_another_user_is_refused() {
    if !testkit::root::root_or_skip("giving files to another user") {
        return;
    }
    let give = |path: &Path| std::os::unix::fs::chown(path, Some(65_534), None).unwrap();
    assert!(refused(give).contains("belongs to user 65534: a spool must belong to the user that runs netwren"));
    assert!(refused(|root| give(&place(root))).contains("belongs to user 65534"));
    assert!(refused(|root| give(&segments(root).remove(0))).contains("belongs to user 65534"));
}

#[test]
fn a_million_tiny_batches_come_back_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let count = if cfg!(debug_assertions) { 200_000 } else { 1_000_000 };
    let (mut spool, _) = open(dir.path(), options(1 << 30));
    for number in 0..count {
        let mut one = Batch::of_parts(0, format!("{number:08}\n").into_bytes(), vec![9]).unwrap();
        one.number_from(0);
        assert!(matches!(spool.push(one, WhenFull::Block, 0), PushOutcome::Kept { dropped: 0 }));
    }
    drop(spool);
    let (mut spool, recovered) = open(dir.path(), options(1 << 30));
    assert_eq!((recovered.waiting, recovered.lost), (count, 0));
    let (mut next, mut reads) = (0, 0);
    while let Some(batch) = spool.get(next).unwrap() {
        assert_eq!(batch.message(0).unwrap(), format!("{next:08}\n").as_bytes());
        next = batch.end();
        reads += 1;
    }
    assert!(next == count && reads < count / 1000, "tiny batches are read together: {reads} reads");
}

#[test]
fn the_oldest_messages_make_room_and_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (mut spool, _) = open(dir.path(), options(1 << 20));
    let (mut dropped, mut pushed) = (0, 0);
    for from in (0..1_000_000).step_by(1000) {
        match spool.push(numbered(from, from + 1000), WhenFull::DropOldest, 500) {
            PushOutcome::Kept { dropped: more } => dropped += more,
            other => panic!("{other:?}"),
        }
        pushed += 1000;
        assert!(spool.bytes() <= 1 << 20);
    }
    let left = read_all(&mut spool, 0);
    assert_eq!(left.len() as u64, pushed - dropped);
    assert!(left.contains_key(&0), "what is being delivered stays");
    assert!(left.iter().all(|(number, text)| *text == format!("{number:08}\n")));
    assert!(left.contains_key(&(pushed - 1)));
    assert!(matches!(
        spool.push(batch(["x".repeat(500_000)]), WhenFull::Block, 500),
        PushOutcome::Full { dropped: 0, .. }
    ));
}

#[test]
fn messages_that_are_too_old_are_dropped_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (mut spool, _) = open(dir.path(), options(1 << 20));
    spool.push(numbered(0, 10), WhenFull::Block, 0);
    assert_eq!(read_all(&mut spool, 0).len(), 10);
    drop(spool);
    let age_max = Some(Duration::from_millis(20));
    let (mut spool, recovered) = open(dir.path(), SpoolOptions { age_max, ..options(1 << 20) });
    assert_eq!(recovered.waiting, 10);
    let end = Instant::now() + Duration::from_secs(30);
    while spool.get(0).unwrap().is_some() {
        assert!(Instant::now() < end, "they never become too old");
        std::thread::yield_now();
    }
    assert_eq!(spool.take_drops(), Drops { age: 10, ..Drops::default() });
}

#[test]
fn spools_that_no_output_uses_are_named() {
    let dir = tempfile::tempdir().unwrap();
    for (target, messages) in [("json:/a/b", 7), ("json:/a-b", 3), ("json:/empty", 0)] {
        let (mut spool, _) = Spool::open(dir.path(), target, options(1 << 20)).unwrap();
        if messages > 0 {
            spool.push(numbered(0, messages), WhenFull::Block, 0);
        }
        spool.sync(&Ledger { seen: messages, ..Ledger::default() }).unwrap();
    }
    let others = Spool::find_other_spools(dir.path(), &["json:/a/b".to_owned()]).unwrap();
    let others: Vec<(String, u64)> = others.into_iter().map(|other| (other.target, other.waiting)).collect();
    assert_eq!(others, [("json:/a-b".to_owned(), 3)]);
}

/// After a broken connection, messages that were handed over before are sent again: they are on the disk.
#[test]
fn issue_12_what_was_handed_over_takes_no_memory_and_is_there_again() {
    let dir = tempfile::tempdir().unwrap();
    let (mut spool, _) = open(dir.path(), options(1 << 30));
    let text = "x".repeat(250);
    let texts = |from: u32| (from..from + 1100).map(|number| format!("{number:08} {text}")).collect::<Vec<_>>();
    for from in [0, 1100, 2200] {
        spool.push(batch(texts(from)), WhenFull::DropOldest, from.into());
        spool.note_sent((from + 1100).into());
        assert!(spool.take_spare().is_some(), "memory of what is on disk is free");
    }
    spool.push(batch(texts(3300)), WhenFull::DropOldest, 3300);
    assert_eq!(spool.take_spare(), None, "what was not handed over stays in memory");
    spool.release(1500).unwrap();
    let all: Vec<String> = read_all(&mut spool, 1500).into_values().collect();
    let expected: Vec<String> = [0, 1100, 2200, 3300].into_iter().flat_map(texts).skip(1500).collect();
    assert_eq!(all, expected);
}

#[test]
fn while_the_disk_is_full_messages_wait_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (mut spool, _) = open(dir.path(), options(1 << 30));
    spool.push(numbered(0, 1000), WhenFull::DropOldest, 0);
    arm("pwritev", 0, 1, Fault::Short(100));
    arm("pwritev", 1, u32::MAX, Fault::Fails(sys::Errno::NOSPC));
    for from in (1000..10_000).step_by(1000) {
        assert!(matches!(
            spool.push(numbered(from, from + 1000), WhenFull::DropOldest, 0),
            PushOutcome::Kept { dropped: 0 }
        ));
    }
    let said = spool.fault_text().unwrap();
    assert!(said.contains("messages are queued in memory") && said.contains("No space left"), "{said}");
    spool.note_sent(10_000);
    assert_eq!(read_all(&mut spool, 0).len(), 10_000);
    disarm_all();
    spool.sync(&Ledger { seen: 10_000, ..Ledger::default() }).unwrap();
    assert_eq!((spool.fault_text(), spool.take_drops()), (None, Drops::default()));
    drop(spool);
    let (mut spool, recovered) = open(dir.path(), options(1 << 30));
    assert_eq!((recovered.waiting, recovered.torn_files, read_all(&mut spool, 0).len()), (10_000, 0, 10_000));
}

#[test]
fn what_a_full_disk_does_not_take_in_the_end_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (mut spool, _) = open(dir.path(), options(1 << 30));
    arm("pwritev", 0, u32::MAX, Fault::Fails(sys::Errno::NOSPC));
    let mut pushed = 0;
    let full = loop {
        let big = batch((0..100).map(|_| "x".repeat(10_000)));
        match spool.push(big, WhenFull::Block, 0) {
            PushOutcome::Kept { .. } => pushed += 100,
            PushOutcome::Full { batch, .. } => break batch.len(),
        }
    };
    assert!((6000..7000).contains(&pushed), "64 MiB: {pushed}");
    assert!(matches!(
        spool.push(batch(["new".repeat(100_000)]), WhenFull::DropOldest, 0),
        PushOutcome::Kept { dropped: 100 }
    ));
    let ledger = Ledger {
        seen: pushed + full + 1,
        dropped: Drops { full: full + 100, ..Drops::default() },
        ..Ledger::default()
    };
    let error = spool.sync(&ledger).unwrap_err();
    assert!(error.to_string().contains("No space left"), "{error}");
    assert_eq!(spool.take_drops(), Drops { end: pushed - 100 + 1, ..Drops::default() });
    disarm_all();
    drop(spool);
    let (spool, recovered) = open(dir.path(), options(1 << 30));
    assert_eq!((recovered.waiting, spool.ledger().waiting_records()), (0, 0));
}

/// Like the test above, on a real file system that is full.
#[test]
fn root_a_full_file_system_loses_nothing() {
    if !testkit::root::root_or_skip("mounting a file system of 2 MiB") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    // After this, mounts affect only this thread.
    std::thread::spawn(move || {
        testkit::sandbox::make_mount_namespace().unwrap();
        testkit::sandbox::small_tmpfs(&path, 2 << 20).unwrap();
        let (mut spool, _) = open(&path, options(1 << 30));
        fs::write(path.join("other"), vec![0; 1 << 20]).unwrap();
        for from in (0..200_000).step_by(1000) {
            assert!(matches!(
                spool.push(numbered(from, from + 1000), WhenFull::DropOldest, 0),
                PushOutcome::Kept { dropped: 0 }
            ));
        }
        let said = spool.fault_text().unwrap();
        assert!(said.contains("No space left"), "{said}");
        let messages = read_all(&mut spool, 0);
        assert!(messages.len() == 200_000 && messages.iter().all(|(number, text)| *text == format!("{number:08}\n")));
        spool.release(150_000).unwrap();
        fs::remove_file(path.join("other")).unwrap();
        let ledger = Ledger { seen: 200_000, delivered: 150_000, ..Ledger::default() };
        spool.sync(&ledger).unwrap();
        drop(spool);
        let (mut spool, recovered) = open(&path, options(1 << 30));
        assert_eq!((recovered.waiting, recovered.torn_files, spool.ledger()), (50_000, 0, ledger));
        assert_eq!(read_all(&mut spool, 150_000).len(), 50_000);
    })
    .join()
    .unwrap();
}

/// The child process of `issue_12_kill_9…`; not a test by itself.
#[test]
fn child_writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os("NETWREN_TEST_SPOOL") else { return };
    let (mut spool, _) = open(Path::new(&dir), options(1 << 30));
    let mut ledger = spool.ledger();
    for from in (spool.end()..).step_by(100) {
        ledger.seen += 100;
        spool.push(numbered(from, from + 100), WhenFull::Block, 0);
        spool.checkpoint(&ledger).unwrap();
        // Record how many messages were handed over.
        fs::write(Path::new(&dir).join("pushed"), format!("{:020}", from + 100)).unwrap();
    }
}

#[test]
fn issue_12_kill_9_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for round in 1..4 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let child = child.args(["--exact", "child_writes_until_it_is_killed"]).env("NETWREN_TEST_SPOOL", dir.path());
        let mut child = child.stdout(std::process::Stdio::null()).spawn().unwrap();
        let pushed = || fs::read_to_string(dir.path().join("pushed")).ok().and_then(|text| text.parse::<u64>().ok());
        let end = std::time::Instant::now() + Duration::from_secs(20);
        while pushed().unwrap_or(0) < round * 20_000 {
            assert!(std::time::Instant::now() < end, "the child writes nothing");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let (mut spool, recovered) = open(dir.path(), options(1 << 30));
        let found = read_all(&mut spool, 0);
        let count = found.len() as u64;
        assert!(count >= pushed().unwrap_or(0) && recovered.was_killed, "{recovered:?}");
        assert!(found.iter().zip(0..).all(|((number, text), n)| *number == n && *text == format!("{n:08}\n")));
        assert_eq!((spool.ledger().seen, recovered.waiting, recovered.lost), (count, count, 0));
    }
}

/// An output that ships to `target` from the spool below `dir`.
fn output(dir: &Path, target: &str) -> Output {
    let (spool, _) = Spool::open(dir, target, options(1 << 30)).unwrap();
    let target: Target = target.parse().unwrap();
    let options = OutputOptions { when_full: WhenFull::DropOldest, drain: Duration::from_secs(20) };
    Output::start("test", Box::new(spool), open_transport(&target, TransportOptions::default()).unwrap(), options)
        .unwrap()
}

#[test]
fn issue_12_what_a_receiver_is_away_for_is_delivered_by_the_next_run() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let target = format!("json+tcp://{address}");
    for from in [0, 50_000] {
        let mut output = output(dir.path(), &target);
        for first in (from..from + 50_000).step_by(1000) {
            output.push(numbered(first, first + 1000), &|| false);
        }
        let status = output.finish(&|| false);
        assert_eq!((status.ledger.waiting_records(), status.ledger.dropped.total()), (from + 50_000, 0), "{status:?}");
    }
    let listener = TcpListener::bind(address).unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        text
    });
    let mut output = output(dir.path(), &target);
    output.push(numbered(100_000, 100_500), &|| false);
    let status = output.finish(&|| false);
    assert_eq!(
        (status.ledger.seen, status.ledger.delivered, status.waiting_bytes),
        (100_500, 100_500, 0),
        "{status:?}"
    );
    let text = reader.join().unwrap();
    assert!(text.lines().zip(0..).all(|(line, number)| line == format!("{number:08}")));
    assert_eq!(text.lines().count(), 100_500);
    assert!(segments(dir.path()).is_empty(), "delivered messages take no room");
}

/// A receiver is killed with many unread messages. The memory no longer has those that must be sent again.
#[test]
fn issue_12_what_a_killed_receiver_had_not_read_comes_from_the_disk() {
    const MESSAGES: u64 = 60_000;
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("json+tcp://{}", listener.local_addr().unwrap());
    let reader = std::thread::spawn(move || {
        let mut first = vec![0; 100_000];
        listener.accept().unwrap().0.read_exact(&mut first).unwrap();
        let mut rest = String::new();
        listener.accept().unwrap().0.read_to_string(&mut rest).unwrap();
        (String::from_utf8(first).unwrap(), rest)
    });
    let mut output = output(dir.path(), &target);
    let text = "x".repeat(250);
    for first in (0..MESSAGES).step_by(1000) {
        output.push(batch((first..first + 1000).map(|number| format!("{number:08} {text}\n"))), &|| false);
    }
    // At its end, a run leaves the messages for an absent receiver to the next run.
    let begin = Instant::now();
    while output.status().ledger.delivered < MESSAGES {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", output.status());
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let status = output.finish(&|| false);
    let (first, rest) = reader.join().unwrap();
    let numbers = |text: &str| -> Vec<u64> { text.lines().filter_map(|line| line.get(..8)?.parse().ok()).collect() };
    let (first, rest) = (numbers(&first), numbers(&rest));
    let begin = rest[0];
    assert_eq!(rest, (begin..MESSAGES).collect::<Vec<_>>(), "in order, each once in a connection");
    assert!(begin <= first.len() as u64, "{begin} follows {first:?}");
    let ledger = status.ledger;
    assert_eq!((ledger.delivered, ledger.dropped.total(), ledger.waiting_records()), (MESSAGES, 0, 0), "{status:?}");
    assert!(ledger.resent > 0, "{status:?}");
}
