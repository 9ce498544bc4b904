#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::blocks::Blocks;
use crate::errno::{Errno, SysError};
use crate::fault::{Fault, arm, disarm_all};
use crate::host::{Host, Mode};
use crate::tape::{Integrity, TapeError};

/// Blocks from a list, followed by an optional error.
struct Listed {
    blocks: Vec<Vec<u8>>,
    at: usize,
    error: Option<SysError>,
}

impl Blocks for Listed {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        self.at += 1;
        match (self.blocks.get(self.at - 1), &self.error) {
            (Some(block), _) => Ok(Some(block)),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Ok(None),
        }
    }
}

fn listed<'a>(blocks: &[&[u8]]) -> Result<Box<dyn Blocks + 'a>, SysError> {
    Ok(Box::new(Listed { blocks: blocks.iter().map(|block| block.to_vec()).collect(), at: 0, error: None }))
}

fn never<'a>() -> Result<Box<dyn Blocks + 'a>, SysError> {
    panic!("a replay must not open anything");
}

/// Reads a stream to its end and returns its blocks and its error.
fn drain(stream: Result<Box<dyn Blocks + '_>, SysError>) -> (Vec<Vec<u8>>, Option<SysError>) {
    let mut got = Vec::new();
    let mut stream = match stream {
        Ok(stream) => stream,
        Err(error) => return (got, Some(error)),
    };
    loop {
        match stream.next() {
            Ok(Some(block)) => got.push(block.to_vec()),
            Ok(None) => return (got, None),
            Err(error) => return (got, Some(error)),
        }
    }
}

fn replay(host: &Host, key: &str) -> (Vec<Vec<u8>>, Option<SysError>) {
    drain(host.stream(key, "", never))
}

/// A small recording that contains every kind of frame.
fn sample(path: &Path) {
    let host = Host::live().recording(path).unwrap();
    assert_eq!(host.mode(), Mode::Recording);
    assert!(host.begin_round());
    let mut first = host.stream("tcp", "kernel filter: sport = 443", || listed(&[b"one", b"", b"three"])).unwrap();
    assert_eq!(first.next().unwrap(), Some(&b"one"[..]));
    // Two concurrent streams: their frames are interleaved.
    assert_eq!(drain(host.stream("udp", "", || listed(&[b"u"]))), (vec![b"u".to_vec()], None));
    assert_eq!(drain(Ok(first)).0, [&b""[..], b"three"]);
    let broken = SysError::new("recvmsg", "netlink socket (sock_diag)", Errno::NOBUFS);
    let failing = Listed { blocks: vec![b"x".to_vec()], at: 0, error: Some(broken) };
    assert!(drain(host.stream("breaks", "", || Ok(Box::new(failing)))).1.is_some());
    let refused = host.stream("refused", "", || Err(SysError::new("socket", "netlink socket", Errno::PERM)));
    assert_eq!(refused.err().unwrap().errno, Errno::PERM);
    assert!(host.begin_round());
    assert_eq!(drain(host.stream("tcp", "", || listed(&[b"second"]))).0, [b"second"]);
    let mut stopped = host.stream("stopped", "", || listed(&[b"seen", b"never seen"])).unwrap();
    assert!(stopped.next().unwrap().is_some());
    drop(stopped);
    host.finish().unwrap();
    host.finish().unwrap();
}

fn sample_bytes() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("tape");
    sample(&path);
    let bytes = std::fs::read(&path).unwrap();
    (tmp, path, bytes)
}

#[test]
fn everything_comes_back() {
    let (_tmp, path, _) = sample_bytes();
    let host = Host::open_replay(&path).unwrap();
    assert_eq!((host.mode(), host.integrity()), (Mode::Replaying, Integrity::Whole));
    assert_eq!(replay(&host, "tcp"), (vec![b"one".to_vec(), vec![], b"three".to_vec()], None));
    assert_eq!(replay(&host, "udp"), (vec![b"u".to_vec()], None));
    let (got, error) = replay(&host, "breaks");
    assert_eq!(got, [b"x"]);
    assert_eq!(error, Some(SysError::new("recvmsg", "netlink socket (sock_diag)", Errno::NOBUFS)));
    let (_, error) = replay(&host, "refused");
    assert_eq!(error, Some(SysError::new("socket", "netlink socket", Errno::PERM)));
    // The n-th stream of a key, then the last one again.
    assert_eq!(replay(&host, "tcp").0, [b"second"]);
    assert_eq!(replay(&host, "tcp").0, [b"second"]);
    assert_eq!(host.notes(), [("tcp".into(), "kernel filter: sport = 443".into())]);
    assert_eq!(host.kernel(), crate::Kernel::read_running());
    host.finish().unwrap();
}

#[test]
fn what_was_not_recorded_is_an_error() {
    let (_tmp, path, _) = sample_bytes();
    let host = Host::open_replay(&path).unwrap();
    let (got, error) = replay(&host, "no such key");
    assert_eq!((got.len(), error.unwrap().errno), (0, Errno::NOT_RECORDED));
    assert!(!host.contains("no such key") && host.contains("tcp"));
    let (got, error) = replay(&host, "stopped");
    assert_eq!(got, [b"seen"]);
    assert_eq!(error.unwrap().to_string(), "cannot replay stopped: not in the recording");
}

#[test]
fn rounds_end() {
    let (_tmp, path, _) = sample_bytes();
    let host = Host::open_replay(&path).unwrap();
    let start = host.now();
    assert_eq!([host.begin_round(), host.begin_round(), host.begin_round()], [true, true, false]);
    assert!(host.now() >= start);
    let (live, before) = (Host::live(), crate::clock::wall());
    assert!(live.begin_round() && live.now() >= before);
}

#[test]
fn a_cut_at_every_byte_is_never_whole() {
    let (_tmp, path, bytes) = sample_bytes();
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        match Host::open_replay(&path) {
            Err(TapeError::NotATape { .. }) => assert_eq!(length, 0),
            Err(TapeError::NoHeader { .. }) => assert!(length < 100, "{length}"),
            Err(error) => panic!("cut at {length}: {error}"),
            Ok(host) => {
                let Integrity::CutAt { byte, .. } = host.integrity() else {
                    panic!("{length}: {:?}", host.integrity())
                };
                assert!(byte <= length as u64);
                assert!(matches!(host.finish(), Err(TapeError::Broken { .. })));
                // The available part is a prefix of the original, and its end is reported.
                let (got, error) = replay(&host, "tcp");
                let whole = [&b"one"[..], b"", b"three"];
                assert_eq!(got, whole[..got.len()]);
                assert!(error.is_some() || got.len() == 3);
                for key in ["udp", "breaks", "refused", "stopped"] {
                    replay(&host, key);
                }
            }
        }
    }
}

#[test]
fn a_changed_byte_is_never_whole() {
    let (_tmp, path, bytes) = sample_bytes();
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut garbled = bytes.clone();
            garbled[at] ^= flip;
            std::fs::write(&path, &garbled).unwrap();
            let Ok(host) = Host::open_replay(&path) else { continue };
            assert_ne!(host.integrity(), Integrity::Whole, "byte {at} ^ {flip}");
            assert!(host.finish().is_err());
            for key in ["tcp", "udp", "breaks", "refused", "stopped"] {
                replay(&host, key);
            }
        }
    }
}

#[test]
fn a_huge_length_allocates_nothing() {
    let (_tmp, path, bytes) = sample_bytes();
    // After the header frame: an OPEN frame whose length is 4 GiB.
    let header = u32::from_le_bytes(bytes[19..23].try_into().unwrap()) as usize;
    let next = 14 + 9 + header + 4;
    let mut garbled = bytes.clone();
    garbled[next + 5..next + 9].copy_from_slice(&[0xff; 4]);
    std::fs::write(&path, &garbled).unwrap();
    let host = Host::open_replay(&path).unwrap();
    assert!(matches!(host.integrity(), Integrity::Garbled { frames: 1, .. }), "{:?}", host.integrity());
}

#[test]
fn other_files_are_no_recordings() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("f");
    std::fs::write(&path, b"NETWREN? no").unwrap();
    assert!(matches!(Host::open_replay(&path), Err(TapeError::NotATape { .. })));
    std::fs::write(&path, b"NETWREN-TAPE\x63\x00 and more").unwrap();
    assert!(matches!(Host::open_replay(&path), Err(TapeError::Version { version: 99, .. })));
    assert!(matches!(Host::open_replay(&tmp.path().join("absent")), Err(TapeError::Io(_))));
    for odd in [tmp.path(), Path::new("/dev/zero")] {
        assert!(matches!(Host::open_replay(odd), Err(TapeError::NotAFile { .. })));
    }
    let (_tmp, path, mut bytes) = sample_bytes();
    bytes.push(0);
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(Host::open_replay(&path).unwrap().integrity(), Integrity::Garbled { .. }));
}

#[test]
fn a_frame_of_a_later_version_is_skipped() {
    let (_tmp, path, bytes) = sample_bytes();
    let header = u32::from_le_bytes(bytes[19..23].try_into().unwrap()) as usize;
    let next = 14 + 9 + header + 4;
    let mut longer = bytes[..next].to_vec();
    let head = [77, 1, 0, 0, 0, 3, 0, 0, 0];
    longer.extend_from_slice(&head);
    longer.extend_from_slice(b"new");
    longer.extend_from_slice(&super::frame::sum(&head, b"new"));
    // The trailer counts it.
    let trailer = bytes.len() - (9 + 8 + 4);
    longer.extend_from_slice(&bytes[next..trailer]);
    let count = u64::from_le_bytes(bytes[trailer + 9..trailer + 17].try_into().unwrap()) + 1;
    let head: [u8; 9] = bytes[trailer..trailer + 9].try_into().unwrap();
    longer.extend_from_slice(&head);
    longer.extend_from_slice(&count.to_le_bytes());
    longer.extend_from_slice(&super::frame::sum(&head, &count.to_le_bytes()));
    std::fs::write(&path, &longer).unwrap();
    let host = Host::open_replay(&path).unwrap();
    assert_eq!(host.integrity(), Integrity::Whole);
    assert_eq!(replay(&host, "tcp").0.len(), 3);
}

#[test]
fn a_missing_frame_is_noticed() {
    let (_tmp, path, bytes) = sample_bytes();
    let header = u32::from_le_bytes(bytes[19..23].try_into().unwrap()) as usize;
    let first = 14 + 9 + header + 4;
    let length = u32::from_le_bytes(bytes[first + 5..first + 9].try_into().unwrap()) as usize;
    let mut shorter = bytes[..first].to_vec();
    shorter.extend_from_slice(&bytes[first + 9 + length + 4..]);
    std::fs::write(&path, &shorter).unwrap();
    let integrity = Host::open_replay(&path).unwrap().integrity();
    assert!(matches!(integrity, Integrity::Garbled { what: "frames are missing", .. }), "{integrity:?}");
}

#[test]
fn a_full_disk_is_reported_at_the_end_and_the_run_continues() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("tape");
    let host = Host::live().recording(&path).unwrap();
    let block = vec![7; 40_000];
    arm("write", 0, 1000, Fault::Fails(Errno::NOSPC));
    for _ in 0..5 {
        assert_eq!(drain(host.stream("big", "", || listed(&[&block]))).0.len(), 1);
    }
    assert!(host.recording_has_stopped());
    let error = host.finish().unwrap_err().to_string();
    disarm_all();
    let says = format!("cannot record to {}: no space left on device (the recording is incomplete)", path.display());
    assert_eq!(error, says);
}

#[test]
fn a_disk_that_fills_up_leaves_a_cut_file() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("tape");
    let host = Host::live().recording(&path).unwrap();
    let block = vec![7; 60_000];
    arm("write", 2, 1, Fault::Fails(Errno::NOSPC));
    for _ in 0..10 {
        drain(host.stream("big", "", || listed(&[&block])));
    }
    disarm_all();
    assert!(matches!(host.finish(), Err(TapeError::Write(SysError { errno: Errno::NOSPC, .. }))));
    drop(host);
    assert!(matches!(Host::open_replay(&path).unwrap().integrity(), Integrity::CutAt { .. }));
}

#[test]
fn a_recording_without_its_end_is_cut_but_usable() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("tape");
    let host = Host::live().recording(&path).unwrap();
    drain(host.stream("k", "", || listed(&[b"b"])));
    drop(host);
    let host = Host::open_replay(&path).unwrap();
    assert!(matches!(host.integrity(), Integrity::CutAt { .. }));
    assert_eq!(replay(&host, "k").0, [b"b"]);
}

/// A burst of events arrives as one block of many megabytes.
#[test]
fn issue_10_a_block_larger_than_a_frame_comes_back_whole() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("tape");
    for length in [0, 1, 2].map(|more| 2 * super::frame::PAYLOAD_MAX - 1 + more) {
        let host = Host::live().recording(&path).unwrap();
        let block: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
        assert_eq!(drain(host.stream("big", "", || listed(&[b"before", &block, b"after"]))).0.len(), 3);
        host.finish().unwrap();
        let host = Host::open_replay(&path).unwrap();
        assert_eq!(host.integrity(), Integrity::Whole);
        let (got, error) = replay(&host, "big");
        assert!(error.is_none() && got == [&b"before"[..], &block, b"after"]);
    }
    // Truncated inside the second part: the first part alone is not a block.
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - super::frame::PAYLOAD_MAX / 2]).unwrap();
    let (got, error) = replay(&Host::open_replay(&path).unwrap(), "big");
    assert_eq!((got, error.unwrap().errno), (vec![b"before".to_vec()], Errno::RECORDING_BROKEN));
}

#[test]
fn issue_10_a_block_too_large_ends_the_recording_and_keeps_what_came_before() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("tape");
    let host = Host::live().recording(&path).unwrap();
    let block = vec![0; super::frame::BLOCK_MAX + 1];
    assert_eq!(drain(host.stream("big", "", || listed(&[b"before", &block]))).0.len(), 2);
    assert!(matches!(host.finish(), Err(TapeError::Write(SysError { errno: Errno::MSGSIZE, .. }))));
    let host = Host::open_replay(&path).unwrap();
    let (got, error) = replay(&host, "big");
    assert_eq!((got, error.unwrap().errno), (vec![b"before".to_vec()], Errno::RECORDING_BROKEN));
}

/// A run that waits for events may be killed at any time.
#[test]
fn issue_10_what_was_read_is_in_the_file_while_the_run_waits() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("tape");
    let host = Host::live().recording(&path).unwrap();
    let mut stream = host.stream("events", "", || listed(&[b"one"])).unwrap();
    assert_eq!(stream.next().unwrap(), Some(&b"one"[..]));
    let begun = std::time::Instant::now();
    let seen = loop {
        let seen = Host::open_replay(&path).map(|host| replay(&host, "events").0).unwrap_or_default();
        if !seen.is_empty() || begun.elapsed().as_secs() > 20 {
            break seen;
        }
        std::thread::yield_now();
    };
    assert_eq!(seen, [b"one"]);
}

#[test]
fn issue_10_a_recording_has_a_largest_size() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("tape");
    let host = Host::live().record_everything(&path, 10_000).unwrap();
    for _ in 0..20 {
        drain(host.stream("k", "", || listed(&[&[7; 1000]])));
    }
    assert!(host.recording_has_stopped());
    assert!(matches!(host.finish(), Err(TapeError::Full { limit: 10_000, .. })));
    assert!(std::fs::metadata(&path).unwrap().len() <= 10_000);
    let host = Host::open_replay(&path).unwrap();
    assert!(matches!(host.integrity(), Integrity::CutAt { .. }));
    assert_eq!(replay(&host, "k").0, [[7; 1000]]);
}

/// The work of a replay is linear in the file's size, not quadratic: counted, not timed.
#[test]
fn issue_10_frames_are_looked_at_once() {
    const STREAMS: u64 = 2_000;
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("tape");
    let host = Host::live().recording(&path).unwrap();
    // One stream stays open during all others: its frames lie between theirs.
    let blocks = vec![b"event".to_vec(); STREAMS as usize];
    let long = Listed { blocks, at: 0, error: None };
    let mut long = host.stream("long", "", || Ok(Box::new(long))).unwrap();
    for n in 0..STREAMS {
        assert!(long.next().unwrap().is_some());
        drain(host.stream(&format!("{n}"), "", || listed(&[b"b"])));
    }
    assert!(long.next().unwrap().is_none());
    drop(long);
    host.finish().unwrap();
    let reader = super::TapeReader::open(&path).unwrap();
    let play = |key: &str| {
        let mut stream = reader.stream(key).unwrap();
        let mut count = 0;
        while stream.next().unwrap().is_some() {
            count += 1;
        }
        count
    };
    assert_eq!(play("long"), STREAMS);
    assert!((0..STREAMS).all(|n| play(&n.to_string()) == 1));
    // Each stream: its first frame twice (to check for a refusal), then every frame once.
    let frames = (STREAMS + 1) + STREAMS * 2;
    assert!(reader.looked_at.get() <= frames + STREAMS + 1, "{}", reader.looked_at.get());
}

#[test]
fn rounds_keep_their_streams() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("tape");
    let host = Host::live().recording(&path).unwrap();
    drain(host.stream("early", "", || listed(&[b"e"])));
    for round in [b"1", b"2"] {
        assert!(host.begin_round());
        for part in [b"a", b"b"] {
            drain(host.stream("k", "", || listed(&[round, part])));
        }
    }
    drain(host.stream("late", "", || listed(&[b"l"])));
    host.finish().unwrap();
    let host = Host::open_replay(&path).unwrap();
    let first = |key: &str| String::from_utf8(replay(&host, key).0.concat()).unwrap();
    assert!(host.begin_round());
    // This round reads the key only once; the next round still begins with its own stream.
    assert_eq!([first("early"), first("k")], ["e", "1a"]);
    assert!(host.begin_round());
    assert_eq!([first("k"), first("k"), first("k"), first("early"), first("late")], ["2a", "2b", "2b", "e", "l"]);
}

#[test]
fn a_recording_says_what_was_asked() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("tape");
    let host = Host::live().recording(&path).unwrap();
    host.note_requested("sockets", &mut ["state", "rtt_us"].into_iter());
    host.note_requested("sockets", &mut ["state", "rtt_us"].into_iter());
    host.note_requested("sockets", &mut ["mark"].into_iter());
    assert_eq!(host.was_requested("sockets", "state"), None);
    host.finish().unwrap();
    let host = Host::open_replay(&path).unwrap();
    let asked = |field| host.was_requested("sockets", field);
    assert_eq!([asked("state"), asked("rtt_us"), asked("mark"), asked("cwnd")], [true, true, true, false].map(Some));
    assert_eq!(host.was_requested("nat", "state"), None);
    // A repeated request is written only once.
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.windows(6).filter(|window| window == b"rtt_us").count(), 1);
}

/// Files of the previous version can still be read.
#[test]
fn the_version_before_is_read() {
    let (_tmp, path, mut bytes) = sample_bytes();
    bytes[12] = 1;
    std::fs::write(&path, &bytes).unwrap();
    let host = Host::open_replay(&path).unwrap();
    assert_eq!(host.integrity(), Integrity::Whole);
    assert_eq!(replay(&host, "tcp").0.len(), 3);
}

/// Files and links that another user has placed there are neither followed nor emptied.
#[test]
fn issue_10_only_a_file_of_our_own_is_written() {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    let tmp = tempfile::tempdir().unwrap();
    let at = |name: &str| tmp.path().join(name);
    std::fs::write(at("precious"), b"precious").unwrap();
    symlink(at("precious"), at("link")).unwrap();
    symlink(at("absent"), at("dangling")).unwrap();
    std::fs::write(at("one"), b"precious").unwrap();
    std::fs::hard_link(at("one"), at("two")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap();
    assert!(fifo.success());
    let mut cases = vec![
        (at("link"), "it is a symbolic link"),
        (at("dangling"), "it is a symbolic link"),
        (at("two"), "it has 2 names (hard links)"),
        (at("fifo"), "it is not a regular file"),
        ("/dev/full".into(), "it is not a regular file"),
    ];
    std::fs::write(at("strangers"), b"precious").unwrap();
    if chown(at("strangers"), Some(65_534), None).is_ok() {
        cases.push((at("strangers"), "it belongs to user 65534"));
    }
    for (path, says) in cases {
        let error = Host::live().recording(&path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot record to {}: {says}", path.display())), "{error}");
    }
    assert!(!at("absent").exists());
    for name in ["precious", "one", "strangers"] {
        assert_eq!(std::fs::read(at(name)).unwrap(), b"precious", "{name}");
    }
    // A file of ours that others could read becomes private before anything is written to it.
    std::fs::write(at("ours"), b"old").unwrap();
    std::fs::set_permissions(at("ours"), PermissionsExt::from_mode(0o666)).unwrap();
    let mut held = std::fs::OpenOptions::new().read(true).write(true).open(at("ours")).unwrap();
    sample(&at("ours"));
    // A process that already has the old file open can neither read nor change the recording.
    held.write_all(b"forged").unwrap();
    assert_eq!(held.metadata().unwrap().len(), 6);
    assert_eq!(std::fs::metadata(at("ours")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(Host::open_replay(&at("ours")).unwrap().integrity(), Integrity::Whole);
}

#[test]
fn files_and_values_go_through_the_tape() {
    let tmp = tempfile::tempdir().unwrap();
    let (path, proc) = (tmp.path().join("tape"), tmp.path().join("proc"));
    std::fs::create_dir(&proc).unwrap();
    let long: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
    std::fs::write(proc.join("long"), &long).unwrap();
    let roots = Host::with_roots(proc.clone(), "/sys".into(), "/etc".into());
    assert_eq!(roots.proc_path("long"), proc.join("long"));
    let host = roots.recording(&path).unwrap();
    let mut into = Vec::new();
    host.read_file("/proc/long", &mut into).unwrap();
    assert_eq!(into, long);
    assert_eq!(host.read_file("/proc/none", &mut into).unwrap_err().errno, Errno::NOENT);
    host.bytes("own netns", "", &mut into, |into| {
        into.extend_from_slice(b"4026531840");
        Ok(())
    })
    .unwrap();
    host.read_names("/proc", &mut into).unwrap();
    assert_eq!(into, b"long\0");
    std::os::unix::fs::symlink("where", proc.join("link")).unwrap();
    host.read_link("/proc/link", &mut into).unwrap();
    assert_eq!(into, b"where");
    host.finish().unwrap();

    let host = Host::open_replay(&path).unwrap();
    host.read_link("/proc/link", &mut into).unwrap();
    assert_eq!(into, b"where");
    host.read_names("/proc", &mut into).unwrap();
    assert_eq!(into, b"long\0");
    host.read_file("/proc/long", &mut into).unwrap();
    assert!(into == long);
    assert_eq!(host.read_file("/proc/none", &mut into).unwrap_err().errno, Errno::NOENT);
    host.bytes("own netns", "", &mut into, |_| panic!("a replay must not read")).unwrap();
    assert_eq!(into, b"4026531840");
    assert_eq!(host.read_file("/proc/other", &mut into).unwrap_err().errno, Errno::NOT_RECORDED);
    assert!(matches!(host.recording(&path), Err(TapeError::Replaying { .. })));
}

#[test]
fn a_live_stream_passes_untouched() {
    let block = vec![1; 1000];
    let host = Host::live();
    let before = crate::cost::syscalls();
    assert_eq!(drain(host.stream("k", "", || listed(&[&block, &block]))).0.len(), 2);
    // Other tests run concurrently, so the count is only checked for plausibility.
    assert!(crate::cost::syscalls() >= before);
    assert_eq!((host.integrity(), host.finish()), (Integrity::Whole, Ok(())));
    assert!(host.notes().is_empty() && host.recording_header().is_none());
}

#[test]
fn short_reads_and_interruptions_while_replaying() {
    let (_tmp, path, _) = sample_bytes();
    arm("read", 0, 1000, Fault::Short(3));
    arm("read", 5, 2, Fault::Fails(Errno::INTR));
    arm("pread64", 0, 1000, Fault::Short(2));
    let host = Host::open_replay(&path);
    let got = host.as_ref().map(|host| replay(host, "tcp").0);
    disarm_all();
    assert_eq!(got.unwrap(), [&b"one"[..], b"", b"three"]);
    assert_eq!(host.unwrap().integrity(), Integrity::Whole);
}

#[test]
fn a_read_error_is_no_cut() {
    let (_tmp, path, _) = sample_bytes();
    arm("read", 0, 1, Fault::Fails(Errno::IO));
    let failed = Host::open_replay(&path);
    disarm_all();
    assert!(matches!(failed, Err(TapeError::Io(SysError { errno: Errno::IO, .. }))));
}

#[test]
fn a_file_that_shrinks_during_the_replay() {
    let (_tmp, path, bytes) = sample_bytes();
    let host = Host::open_replay(&path).unwrap();
    std::fs::write(&path, &bytes[..60]).unwrap();
    assert_eq!(replay(&host, "tcp").1.unwrap().errno, Errno::RECORDING_BROKEN);
}

#[test]
fn only_the_owner_can_read_a_recording() {
    use std::os::unix::fs::PermissionsExt;
    let (_tmp, path, _) = sample_bytes();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}
