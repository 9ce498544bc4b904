//! Reuse of files whose messages were delivered: none of the old messages comes back.
#![allow(clippy::unwrap_used, clippy::panic)]

use export::{Batch, Ledger, PushOutcome, RecoveredCounts, Spool, SpoolOptions, Store, SyncWhen, WhenFull};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const TARGET: &str = "json+tcp://192.0.2.1:5140";
/// Bytes of a segment's header.
const HEADER: usize = 32;
/// Bytes of a batch's head and of the length of a short message.
const HEAD: usize = 40 + 1;

fn open(dir: &Path) -> (Spool, RecoveredCounts) {
    let options = SpoolOptions { sync: SyncWhen::EverySecond, ..SpoolOptions::new(1 << 20) };
    Spool::open(dir, TARGET, options).unwrap()
}

fn push(spool: &mut Spool, message: &[u8]) {
    let mut batch = Batch::new();
    batch.bytes_mut().extend_from_slice(message);
    batch.end_message();
    assert!(matches!(spool.push(batch, WhenFull::Block, 0), PushOutcome::Kept { dropped: 0 }));
}

/// Delivers everything, and updates `ledger`.
fn deliver(spool: &mut Spool, ledger: &mut Ledger) {
    while let Some(batch) = spool.get(ledger.delivered).unwrap() {
        ledger.delivered = batch.end();
    }
    ledger.seen = ledger.delivered;
    spool.release(ledger.delivered).unwrap();
    spool.checkpoint(ledger).unwrap();
}

fn waiting(spool: &mut Spool) -> Vec<Vec<u8>> {
    let (mut next, mut all) = (spool.begin(), Vec::new());
    while let Some(batch) = spool.get(next).unwrap() {
        let from = usize::try_from(next - batch.first_number()).unwrap();
        all.extend((from..batch.len() as usize).map(|at| batch.message(at).unwrap().to_vec()));
        next = batch.end();
    }
    all
}

/// Files of the spool whose names end with `end`.
fn files(dir: &Path, end: &str) -> Vec<PathBuf> {
    let mut dirs = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let place = dirs.find(|path| path.is_dir()).unwrap();
    let mut found: Vec<PathBuf> = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|found| found == end));
    found.sort();
    found
}

fn len(path: &Path) -> usize {
    usize::try_from(fs::metadata(path).unwrap().len()).unwrap()
}

/// A spool whose file had one message, `old`, which was delivered.
fn delivered(dir: &Path, old: &[u8]) -> (Spool, Ledger) {
    let (mut spool, _) = open(dir);
    push(&mut spool, old);
    let mut ledger = Ledger::default();
    deliver(&mut spool, &mut ledger);
    assert_eq!((files(dir, "segment").len(), files(dir, "new").len()), (0, 1), "it is kept");
    (spool, ledger)
}

#[test]
fn issue_12_a_delivered_file_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let old = [b'o'; 100_000];
    let (mut spool, mut ledger) = delivered(dir.path(), &old);
    for _ in 0..50 {
        push(&mut spool, &old);
        assert_eq!(files(dir.path(), "new").len(), 0, "it is used");
        deliver(&mut spool, &mut ledger);
    }
    push(&mut spool, b"first");
    push(&mut spool, b"second");
    let found = files(dir.path(), "segment");
    assert_eq!(found.len(), 1);
    assert!(len(&found[0]) > old.len(), "what was there is there");
    // Dropping without `sync` is like a kill.
    drop(spool);
    let (mut spool, recovered) = open(dir.path());
    assert_eq!((recovered.waiting, recovered.lost, recovered.torn_files, recovered.was_killed), (2, 0, 0, true));
    assert_eq!(waiting(&mut spool), [b"first".to_vec(), b"second".to_vec()]);
    assert_eq!(len(&found[0]), HEADER + 2 * HEAD + 11, "the rest is cut off");
    ledger = spool.ledger();
    assert_eq!((ledger.seen, ledger.delivered), (53, 51));
    // After an end in order, waiting messages are kept, and no delivered file is.
    push(&mut spool, &old);
    spool.release(spool.end() - 1).unwrap();
    (ledger.seen, ledger.delivered) = (54, 53);
    spool.sync(&ledger).unwrap();
    drop(spool);
    assert_eq!((files(dir.path(), "segment").len(), files(dir.path(), "new").len()), (1, 0));
    assert_eq!(open(dir.path()).1, RecoveredCounts { waiting: 1, ..RecoveredCounts::default() });
}

#[test]
fn issue_12_a_kept_file_goes_with_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let (spool, _) = delivered(dir.path(), &[b'o'; 100_000]);
    drop(spool);
    let (mut spool, recovered) = open(dir.path());
    assert_eq!((recovered.waiting, recovered.torn_files), (0, 0));
    assert_eq!((files(dir.path(), "new").len(), waiting(&mut spool).len()), (0, 0));
}

#[test]
fn issue_12_four_files_are_kept_at_most() {
    let dir = tempfile::tempdir().unwrap();
    let (mut spool, mut ledger) = delivered(dir.path(), &[b'o'; 100_000]);
    for _ in 0..5 {
        push(&mut spool, &[b'n'; 100_000]);
    }
    assert_eq!((files(dir.path(), "segment").len(), files(dir.path(), "new").len()), (5, 0));
    let sealed = files(dir.path(), "segment").into_iter().map(|path| len(&path)).collect::<Vec<_>>();
    assert!(sealed.iter().all(|len| *len == sealed[0]), "{sealed:?}");
    deliver(&mut spool, &mut ledger);
    assert_eq!((files(dir.path(), "segment").len(), files(dir.path(), "new").len()), (0, 4));
    // The reused files are filled first.
    for _ in 0..8 {
        push(&mut spool, &[b'n'; 100_000]);
    }
    assert_eq!((files(dir.path(), "new").len(), waiting(&mut spool).len()), (0, 8));
}

/// The bytes of a batch with one message, `message`, at the position after two others in a file.
fn third(message: &[u8]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let (mut spool, _) = open(dir.path());
    for text in [b"0", b"1", message] {
        push(&mut spool, text);
    }
    fs::read(&files(dir.path(), "segment")[0]).unwrap().split_off(HEADER + 2 * (HEAD + 1))
}

/// The sender of a packet chooses bytes in the file: here a forged batch whose number follows the last one.
#[test]
fn issue_12_what_a_message_holds_never_becomes_a_batch() {
    let dir = tempfile::tempdir().unwrap();
    let real = b"real";
    let end = HEADER + HEAD + real.len();
    // The length of the old message takes three bytes.
    let begin = HEADER + HEAD + 2;
    let mut old = vec![0; end - begin];
    old.extend(third(b"forged"));
    old.resize(100_000, b'o');
    let (mut spool, _) = delivered(dir.path(), &old);
    push(&mut spool, real);
    drop(spool);
    let (mut spool, recovered) = open(dir.path());
    assert_eq!((recovered.waiting, recovered.torn_files), (1, 0));
    assert_eq!(waiting(&mut spool), [real.to_vec()]);
}

/// The power fails: the disk has the file's new name, but only a part of the bytes written to it.
#[test]
fn issue_12_what_the_disk_has_of_a_file_that_is_written_again() {
    for torn_at in [0, HEADER, HEADER + HEAD + 1] {
        let dir = tempfile::tempdir().unwrap();
        let old = [b'o'; 100_000];
        let (mut spool, _) = delivered(dir.path(), &old);
        let before = fs::read(&files(dir.path(), "new")[0]).unwrap();
        push(&mut spool, b"first");
        drop(spool);
        let file = files(dir.path(), "segment").remove(0);
        let opened = fs::OpenOptions::new().write(true).open(&file).unwrap();
        opened.write_all_at(&before[torn_at..], torn_at as u64).unwrap();
        let (mut spool, recovered) = open(dir.path());
        assert_eq!(recovered.waiting, 0, "from byte {torn_at} on it is as before");
        // A complete header is followed by the old batch or by the head of the new one.
        assert_eq!(recovered.torn_files, u64::from(torn_at != HEADER), "from byte {torn_at} on");
        assert!(waiting(&mut spool).is_empty() && recovered.was_killed);
        let ledger = spool.ledger();
        assert_eq!(ledger.seen, ledger.delivered + ledger.dropped.total(), "{ledger:?}");
        push(&mut spool, b"next");
        assert_eq!(waiting(&mut spool), [b"next".to_vec()]);
    }
}
