//! Behaviour when the kernel refuses a request.
use record::rows::need;
use record::{Next, Proto, Source, SourceFault};
use sockets::{Options, SocketSource, Via};
use sys::fault::{Fault, arm, disarm_all};
use sys::{Errno, Host};
use testkit::netns::Lab;

use crate::rows::{demand, here, is, read};

/// AF_NETLINK (include/linux/socket.h).
const AF_NETLINK: i32 = 16;

#[test]
fn without_netlink_proc_is_read_and_that_is_reported() {
    let _listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    arm("socket", 0, 100, Fault::Fails(Errno::PROTONOSUPPORT));
    let options = Options { order: vec![Proto::Tcp], ..here() };
    let (rows, stats) = read(&Host::live(), options, &demand(0, Vec::new()));
    disarm_all();
    assert!(!rows.is_empty());
    assert_eq!((&stats.via[..], stats.incomplete), (&["proc"][..], false));
    let why = stats.why.iter().find(|why| why.text.contains("/proc/net")).unwrap();
    assert!(why.text.contains("protocol not supported"), "{}", why.text);
}

/// Seccomp refuses netlink sockets.
#[test]
fn a_sandbox_without_netlink() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let sandboxed = std::thread::spawn(move || {
        testkit::sandbox::refuse_socket(AF_NETLINK, Errno::PERM).unwrap();
        let (rows, stats) = read(&Host::live(), here(), &demand(0, vec![is("state", "listen")]));
        assert!(rows.iter().any(|row| row.local.1 == port));
        // The kernel did not filter, so the backend must, as the offer has promised.
        assert!(rows.iter().all(|row| row.state == record::State::LISTEN));
        assert_eq!(stats.via, ["proc"]);
        assert!(stats.why.iter().any(|why| why.text.contains("operation not permitted")), "{stats:?}");
        let forced = Options { via: Some(Via::Netlink), ..here() };
        let error = SocketSource::new(&Host::live(), forced).run(&demand(0, Vec::new()), &mut |_| Next::More);
        let error = error.unwrap_err();
        assert_eq!(error.fault, SourceFault::Denied);
        assert!(error.to_string().starts_with("cannot read TCP sockets"), "{error}");
        let host = Host::live();
        let backends = sockets::try_backends(&host, &sys::Modules::new(&host));
        // MPTCP has no file.
        let open = |backend: &sockets::BackendTrial| backend.via == Via::Proc && backend.proto != Proto::Mptcp;
        assert!(backends.iter().all(|backend| backend.tried.is_working() == open(backend)), "{backends:?}");
    });
    sandboxed.join().unwrap();
}

#[test]
fn without_any_backend_it_is_an_error() {
    let host = Host::with_roots("/nonexistent/proc".into(), "/sys".into(), "/etc".into());
    arm("socket", 0, 100, Fault::Fails(Errno::ACCES));
    let error = SocketSource::new(&host, here()).run(&demand(0, Vec::new()), &mut |_| Next::More).unwrap_err();
    disarm_all();
    assert_eq!(error.fault, SourceFault::Unsupported);
    let text = error.to_string();
    assert!(text.contains("permission denied") && text.contains("/nonexistent/proc/thread-self/net/tcp"), "{text}");
}

/// The first request (both families) is refused, so each family is requested separately.
#[test]
fn a_dump_per_family_where_one_for_both_fails() {
    let _listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    arm("sendto", 0, 1, Fault::Fails(Errno::OPNOTSUPP));
    let options = Options { order: vec![Proto::Tcp], ..here() };
    let (rows, stats) = read(&Host::live(), options, &demand(need::COOKIE, Vec::new()));
    disarm_all();
    assert!(!rows.is_empty());
    assert_eq!((&stats.via[..], stats.why.len()), (&["netlink"][..], 0));
}

/// The module of one family is missing: only that family comes from /proc.
#[test]
fn one_table_from_proc_the_other_from_netlink() {
    let _listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    arm("sendto", 0, 2, Fault::Fails(Errno::OPNOTSUPP));
    let options = Options { order: vec![Proto::Tcp], ..here() };
    let (_, stats) = read(&Host::live(), options, &demand(0, Vec::new()));
    disarm_all();
    assert_eq!(stats.via, ["proc", "netlink"]);
    assert_eq!(stats.why.len(), 1);
    assert!(stats.why[0].text.starts_with("TCP sockets (IPv4) were read from /proc/net"), "{stats:?}");
}

#[test]
fn an_aborted_dump_is_reported() {
    let _listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // The first block is received, the second is not.
    arm("recvmsg", 1, 1, Fault::Fails(Errno::NOMEM));
    let options = Options { order: vec![Proto::Tcp], ..here() };
    let (rows, stats) = read(&Host::live(), options, &demand(0, Vec::new()));
    disarm_all();
    assert!(!rows.is_empty());
    assert!(stats.is_partial());
    assert!(stats.why[0].text.contains("cannot allocate memory"), "{stats:?}");
}

/// Without CAP_NET_ADMIN marks are neither seen nor requested; everything else is the same.
#[test]
fn root_without_rights() {
    testkit::require_root!();
    let lab = Lab::new("norights");
    let _ = lab.connect_v4(3);
    lab.run_inside(|| {
        testkit::sandbox::drop_caps(&[sys::caps::Cap::NetAdmin]).unwrap();
        let seven = record::Operand::Number(7);
        let by_mark = demand(0, vec![crate::rows::test("mark", record::Op::Eq, seven)]);
        let options = Options { order: vec![Proto::Tcp], ..here() };
        let host = Host::live();
        let offer = SocketSource::new(&host, options.clone()).prepare(&by_mark).offer();
        assert_eq!(offer.pushdown, [record::FilterPushdown::Unsupported]);
        let (rows, stats) = read(&host, options, &by_mark);
        assert_eq!((rows.len(), stats.is_partial()), (7, false));
        assert!(rows.iter().all(|row| row.mark.is_none()));
    });
}

/// The filter still applies if the first request fails.
#[test]
fn root_a_filter_survives_the_way_round() {
    testkit::require_root!();
    let lab = Lab::new("refused");
    let ports = lab.listen_tcp(5);
    lab.run_inside(|| {
        let one = |port: u16| (u64::from(port), u64::from(port));
        let several = record::Operand::Ranges(vec![one(ports[0]), one(ports[3])]);
        let two = demand(0, vec![crate::rows::test("local_port", record::Op::Eq, several)]);
        let options = Options { order: vec![Proto::Tcp], ..here() };
        // Refuses no request; the dump for both families; also the first family, which is then read from /proc.
        for refused in 0..3 {
            arm("sendto", 0, refused, Fault::Fails(Errno::OPNOTSUPP));
            let (rows, _) = read(&Host::live(), options.clone(), &two);
            disarm_all();
            let mut found: Vec<u16> = rows.iter().map(|row| row.local.1).collect();
            found.sort_unstable();
            assert_eq!(found, [ports[0], ports[3]]);
        }
    });
}

/// Set for the process that [`a_program_that_the_kernel_refuses_is_replaced`] starts.
const INSIDE: &str = "NETWREN_TEST_USER_NAMESPACE";

/// In a new user namespace a process has every privilege, but none over the network namespace it came from: so it
/// requests marks, and the kernel refuses the program.
#[test]
fn a_program_that_the_kernel_refuses_is_replaced() {
    if std::env::var_os(INSIDE).is_some() {
        return refused_program();
    }
    testkit::require_tool!("unshare");
    let mut child = std::process::Command::new("unshare");
    child.args(["--user", "--map-root-user"]).arg(std::env::current_exe().unwrap());
    child.args(["--exact", "fallback::a_program_that_the_kernel_refuses_is_replaced", "--nocapture"]).env(INSIDE, "1");
    let out = child.output().unwrap();
    let says = String::from_utf8_lossy(&out.stderr).into_owned();
    if says.contains("unshare failed") || says.contains("uid_map") {
        eprintln!("skipped: no user namespaces here: {says}");
        return;
    }
    assert!(out.status.success(), "{says}");
}

fn refused_program() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let seven = crate::rows::test("mark", record::Op::Eq, record::Operand::Number(7));
    let other = crate::rows::test("local_port", record::Op::Eq, record::Operand::Number(port.into()));
    let filter = record::Expr::Or(vec![seven, other]);
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape");
    let host = Host::live().recording(&tape).unwrap();
    let options = Options { order: vec![Proto::Tcp], ..here() };
    let demand = demand(0, vec![filter]);
    assert_eq!(
        SocketSource::new(&host, options.clone()).prepare(&demand).offer().pushdown,
        [record::FilterPushdown::Exact]
    );
    let (rows, stats) = read(&host, options.clone(), &demand);
    assert_eq!(rows.iter().map(|row| row.local.1).collect::<Vec<_>>(), [port]);
    assert_eq!((&stats.via[..], stats.is_partial()), (&["netlink"][..], false));
    host.finish().unwrap();
    // The second request was sent without the program, and a replay shows its reply.
    let replay = Host::open_replay(&tape).unwrap();
    assert!(replay.contains(&format!("sockets/tcp/netlink-unfiltered@{}", options.netns_id)));
    let (again, stats) = read(&replay, options, &demand);
    assert!(again.contains(&rows[0]));
    assert_eq!((&stats.via[..], stats.is_partial()), (&["netlink"][..], false));
}

#[test]
fn a_reader_may_stop() {
    let _pair = std::os::unix::net::UnixStream::pair().unwrap();
    for via in [Via::Netlink, Via::Proc] {
        let options = Options { via: Some(via), order: vec![Proto::Unix, Proto::Tcp], ..here() };
        let mut count = 0;
        let host = Host::live();
        let stats = SocketSource::new(&host, options).run(&demand(0, Vec::new()), &mut |_| {
            count += 1;
            Next::Stop
        });
        let stats = stats.unwrap();
        assert_eq!((count, stats.seen, stats.is_partial()), (1, 1, false));
    }
}

/// A table that this kernel lacks is reported only if it was named and rows or fields are missing.
#[test]
fn a_table_that_was_not_named_is_not_reported() {
    let told = |need: u64, filter: Vec<record::Expr>| {
        arm("sendto", 0, 100, Fault::Fails(Errno::NOENT));
        let options = Options { order: vec![Proto::Raw, Proto::Packet, Proto::Mptcp], if_named: &[], ..here() };
        let stats = SocketSource::new(&Host::live(), options).run(&demand(need, filter), &mut |_| Next::More);
        disarm_all();
        stats.map(|stats| stats.why.iter().map(|why| why.text.clone()).collect::<Vec<_>>().join("\n"))
    };
    assert_eq!(told(need::COOKIE, Vec::new()).unwrap(), "");
    let named = |word| vec![is("proto", word)];
    assert_eq!(told(0, named("packet")).unwrap(), "");
    let text = told(need::PACKET, named("packet")).unwrap();
    assert!(text.starts_with("packet sockets were read from /proc/net, which has fewer fields"), "{text}");
    // MPTCP has no file, so both backends fail.
    let error = told(0, named("mptcp")).unwrap_err();
    assert_eq!(error.fault, SourceFault::Unsupported);
}
