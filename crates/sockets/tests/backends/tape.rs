//! Recording and replaying.
use record::rows::need;
use record::{Accounting, FilterPushdown, Next, Op, Operand, Proto, Source};
use sockets::{Families, Options, SocketSource, Via};
use sys::Host;

use crate::rows::{demand, here, is, read, test};

fn recorded(file: &std::path::Path, options: &Options, filter: Vec<record::Expr>) -> Vec<crate::rows::Kept> {
    let host = Host::live().recording(file).unwrap();
    let (rows, stats) = read(&host, options.clone(), &demand(need::UNIX_NAME, filter));
    assert!(!stats.is_partial());
    host.finish().unwrap();
    rows
}

#[test]
fn a_replay_gives_what_was_there() {
    let _here = (std::net::TcpListener::bind("127.0.0.1:0").unwrap(), std::os::unix::net::UnixStream::pair().unwrap());
    let _udp = std::net::UdpSocket::bind("[::]:0").or_else(|_| std::net::UdpSocket::bind("0.0.0.0:0")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for via in [Via::Netlink, Via::Proc] {
        let file = folder.path().join(via.name());
        let options = Options { via: Some(via), ..here() };
        let rows = recorded(&file, &options, Vec::new());
        let host = Host::open_replay(&file).unwrap();
        // A replay uses the recorded backend, even if another is requested.
        for wanted in [None, Some(Via::Netlink), Some(Via::Proc)] {
            let options = Options { via: wanted, ..options.clone() };
            let (again, stats) = read(&host, options, &demand(0, Vec::new()));
            assert_eq!(again, rows);
            assert_eq!((&stats.via[..], stats.why.len()), (&[via.name()][..], 0), "{stats:?}");
        }
    }
}

#[test]
fn nothing_is_pushed_down_in_a_replay() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tape");
    let options = Options { order: vec![Proto::Tcp], ..here() };
    let all = recorded(&file, &options, Vec::new());
    let host = Host::open_replay(&file).unwrap();
    let port = Operand::Number(listener.local_addr().unwrap().port().into());
    let port = test("local_port", Op::Eq, port);
    let offer = SocketSource::new(&host, options.clone()).prepare(&demand(0, vec![port.clone()])).offer();
    assert_eq!(offer.pushdown, [FilterPushdown::Unsupported]);
    assert_eq!(read(&host, options.clone(), &demand(0, vec![port.clone()])).0, all);
    // A table that cannot have matching rows is not searched.
    let udp = read(&host, options.clone(), &demand(0, vec![port, is("proto", "udp")]));
    assert!(udp.0.is_empty() && udp.1.why.is_empty());
    // Families also apply in a replay: rows of other families are left out even of a dump that contains both.
    let only6 = Options { families: Families::Only6, ..options };
    assert!(read(&host, only6, &demand(0, Vec::new())).0.iter().all(|row| row.family == 10));
}

#[test]
fn a_recording_says_what_the_kernel_left_out() {
    let _listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tape");
    let options = Options { order: vec![Proto::Tcp], ..here() };
    recorded(&file, &options, vec![is("state", "listen")]);
    let host = Host::open_replay(&file).unwrap();
    let offer = SocketSource::new(&host, options.clone()).prepare(&demand(0, Vec::new())).offer();
    let says = "recorded with a kernel filter: state in (listen)";
    assert!(offer.explain.iter().any(|line| line == says), "{:?}", offer.explain);
    let stats = read(&host, options, &demand(0, Vec::new())).1;
    let says = "the recording was made with a kernel filter: state in (listen): other sockets are missing";
    assert_eq!((stats.why.len(), &*stats.why[0].text, stats.is_partial()), (1, says, true));
}

#[test]
fn tables_that_were_not_recorded_are_named() {
    let _listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tape");
    recorded(&file, &Options { order: vec![Proto::Tcp], ..here() }, Vec::new());
    let host = Host::open_replay(&file).unwrap();
    let (rows, stats) = read(&host, here(), &demand(0, Vec::new()));
    assert!(!rows.is_empty() && stats.is_partial());
    let says = "the recording holds no unix sockets (`netwren record FILE` records everything)";
    assert!(stats.why.iter().any(|why| why.text == says), "{stats:?}");
    let unix = Options { order: vec![Proto::Unix], ..here() };
    let error = SocketSource::new(&host, unix).run(&demand(0, Vec::new()), &mut |_| Next::More).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot read unix sockets: {says}"));
}

/// A recording may be cut at any byte: every row before is shown, and the result never counts as complete.
#[test]
fn a_recording_cut_anywhere_is_no_success() {
    let _listeners = ["127.0.0.1:0", "[::1]:0"].map(|at| std::net::TcpListener::bind(at).unwrap());
    let folder = tempfile::tempdir().unwrap();
    for via in [Via::Netlink, Via::Proc] {
        let file = folder.path().join(via.name());
        let options = Options { via: Some(via), order: vec![Proto::Tcp], ..here() };
        let rows = recorded(&file, &options, Vec::new());
        let whole = std::fs::read(&file).unwrap();
        let cut_file = folder.path().join("cut");
        let step = (whole.len() / 500).max(1);
        for end in (0..whole.len()).step_by(step) {
            std::fs::write(&cut_file, &whole[..end]).unwrap();
            let Ok(host) = Host::open_replay(&cut_file) else { continue };
            let mut count = 0;
            let run = SocketSource::new(&host, options.clone()).run(&demand(0, Vec::new()), &mut |_| {
                count += 1;
                Next::More
            });
            let absent = |stats: &Accounting| stats.why.iter().any(|why| why.text.contains("the recording holds no"));
            let named = run.as_ref().is_ok_and(absent);
            let told = run.is_err() || run.is_ok_and(|stats| stats.is_partial());
            // If only the trailer is missing, all rows are there and `finish` reports it. It also does so if the second
            // table is missing completely, which is otherwise reported as if the run had not requested it.
            let ended = (count == rows.len() || named) && host.finish().is_err();
            assert!(told || ended, "cut at {end} of {}: {count} rows of {}", whole.len(), rows.len());
        }
    }
}

/// Garbage in the middle of a block costs rows, but the run continues.
#[test]
fn rows_that_make_no_sense_are_counted() {
    let _listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let proc = folder.path().join("proc");
    std::fs::create_dir_all(proc.join("thread-self/net")).unwrap();
    let lines = "heading\n garbage\n 0: 0100007F:0016 00000000:0000 0A 0:0 0:0 0 0 0 5\n 1: 0100007F:0016\n 2: x\n";
    std::fs::write(proc.join("thread-self/net/tcp"), lines).unwrap();
    let host = Host::with_roots(proc, "/sys".into(), "/etc".into());
    let options = Options { via: Some(Via::Proc), order: vec![Proto::Tcp], ..here() };
    let (rows, stats) = read(&host, options, &demand(0, Vec::new()));
    assert_eq!((rows.len(), stats.failed, stats.seen), (1, 3, 4));
    assert!(stats.is_partial());
    assert!(stats.why.iter().all(|why| why.text.ends_with(" is missing or not a number")), "{stats:?}");
}
