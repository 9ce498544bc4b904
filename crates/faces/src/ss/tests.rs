//! One line per switch and per production of the grammar: the resulting questions to the source.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::environment::TestEnvironment;
use super::flags;
use super::request::{Request, make};
use super::stop::{Stop, Usage};
use crate::ss::output::{Layout, Options, show};
use engine::expr_text;
use record::rows::Sockets;
use record::{Expr, Op, Operand, Schema};

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').filter(|w| !w.is_empty()).map(|w| w.as_bytes().to_vec()).collect()
}

fn parse(line: &str, layout: Layout) -> Result<Request, Stop> {
    make(&flags::parse(words(line), layout, false)?, &TestEnvironment)
}

/// The filters of all questions, one per line.
fn asked(line: &str, layout: Layout) -> String {
    let request = parse(line, layout).unwrap_or_else(|stop| panic!("{line}: {}", stop.err));
    let lines =
        request.questions.iter().map(|q| expr_text(Schema::from_table::<Sockets>(), &Expr::And(q.filter.clone())));
    lines.collect::<Vec<_>>().join("\n")
}

/// The filter that the expression alone produces: the filter with it, minus the filter without it.
fn expression(switches: &str, line: &str) -> String {
    let filter = |line: &str| {
        let request = parse(line, Layout::V6_15).unwrap_or_else(|stop| panic!("{line}: {}", stop.err));
        request.questions[0].filter.clone()
    };
    let mut parts = filter(&format!("{switches} {line}")).split_off(filter(switches).len());
    expr_text(Schema::from_table::<Sockets>(), &if parts.len() == 1 { parts.remove(0) } else { Expr::And(parts) })
}

#[test]
fn tables_states_and_families() {
    const CONN: &str = "state in (established, syn_sent, fin_wait1, fin_wait2, close_wait, last_ack, closing)";
    for (line, expected) in [
        ("-t", format!("proto = tcp and {CONN}")),
        (
            "-ta",
            "proto = tcp and state in (established, syn_sent, syn_recv, fin_wait1, fin_wait2, time_wait, close, \
            close_wait, last_ack, listen, closing)"
                .into(),
        ),
        ("-tl", "proto = tcp and state in (close, listen)".into()),
        ("-u", "proto = udp and state = established".into()),
        ("-ul", "proto = udp and state in (unconn, listen)".into()),
        ("-xl", "proto = unix and state in (unconn, listen)".into()),
        ("-tul", "proto = udp and state in (unconn, listen)\nproto = tcp and state in (close, listen)".into()),
        ("-4tl", "proto = tcp and state in (close, listen) and family = inet".into()),
        ("-t6l", "proto = tcp and state in (close, listen) and family = inet6".into()),
        ("-46tl", "proto = tcp and state in (close, listen) and family = inet6".into()),
        ("-64tl", "proto = tcp and state in (close, listen) and family = inet".into()),
        ("-t -x state closed", "proto = unix and state = unconn\nproto = tcp and state = close".into()),
        ("--tcp --listening", "proto = tcp and state in (close, listen)".into()),
        ("-f inet -t state closing", "proto = tcp and state = closing and family = inet".into()),
        ("--family=unix state closing", "proto = unix and state = closing".into()),
        ("-A tcp state listening", "proto = tcp and state = listen".into()),
        ("-A udp,tcp,!udp state listening", "proto = tcp and state = listen".into()),
        ("-A u_dgr state closed", "proto = unix and state = unconn and unix_type = dgram".into()),
        ("-A u_str,u_seq state closed", "proto = unix and state = unconn and unix_type in (stream, seqpacket)".into()),
        ("-u -A tcp state closing", "proto = tcp and state = closing".into()),
        ("-t state established state listening", "proto = tcp and state in (established, listen)".into()),
        ("-t state listening exclude listening state closing", "proto = tcp and state = closing".into()),
        ("-t exclude big excl time-wait", "proto = tcp and state = syn_recv".into()),
        ("state bucket -t", "proto = tcp and state in (syn_recv, time_wait)".into()),
        (
            "state closing",
            "proto = unix and state = closing\nproto = raw and state = closing\nproto = udp and state = closing\n\
             proto = tcp and state = closing\nproto = mptcp and state = closing\nproto = dccp\nproto = sctp\nproto = \
             vsock"
                .into(),
        ),
    ] {
        assert_eq!(asked(line, Layout::V6_1), expected, "{line}");
    }
    assert_eq!(asked("-ua", Layout::V6_15), "proto = udp");
    assert!(asked("-ta", Layout::V6_15).contains("closing, bound_inactive"));
    assert_eq!(asked("-B -t", Layout::V6_15), "proto = tcp and state = bound_inactive");
    let new = asked("-t", Layout::V6_15);
    assert!(new.contains("syn_recv") && new.contains("bound_inactive"), "{new}");
}

/// The arguments after `-ta`, and the resulting filter; empty for an error.
const PRODUCTIONS: &[(&str, &str)] = &[
    ("sport = :22", "local_port = 22"),
    ("sport = 22", "local_port = 22"),
    ("sport :22", "local_port = 22"),
    ("sport == ssh", "local_port = 22"),
    ("sport eq 0x16", "local_port = 22"),
    ("sport = 026", "local_port = 22"),
    ("dport = 0", "peer_port = null"),
    ("dport != 22", "not peer_port = 22"),
    ("dport ne 22", "not peer_port = 22"),
    ("dport neq 22", "not peer_port = 22"),
    ("dport >= 22", "peer_port >= 22"),
    ("dport ge 22", "peer_port >= 22"),
    ("dport geq 22", "peer_port >= 22"),
    ("dport > 22", "peer_port >= 23"),
    ("dport gt 22", "peer_port >= 23"),
    ("dport <= 22", "not peer_port >= 23"),
    ("dport le 22", "not peer_port >= 23"),
    ("dport leq 22", "not peer_port >= 23"),
    ("dport < 22", "not peer_port >= 22"),
    ("dport lt 22", "not peer_port >= 22"),
    ("sport >= 0", "true"),
    ("sport = :*", "true"),
    ("sport = 70000", "false"),
    ("src 192.0.2.1", "local_addr in (192.0.2.1)"),
    ("src = 192.0.2.0/24", "local_addr in (192.0.2.0/24)"),
    ("src 192.0.2/255.255.255.0", "local_addr in (192.0.2.0/24)"),
    ("src 10", "local_addr in (10.0.0.0)"),
    ("src localhost", "local_addr in (127.0.0.1)"),
    ("dst 192.0.2.1:443", "peer_addr in (192.0.2.1) and peer_port = 443"),
    ("dst 10.0.0.0/8:80", "peer_addr in (10.0.0.0/8) and peer_port = 80"),
    ("dst :443", "peer_port = 443"),
    ("dst *:443", "peer_port = 443"),
    ("dst *", "true"),
    ("dst any", "true"),
    ("dst 192.0.2.1:*", "peer_addr in (192.0.2.1)"),
    ("dst [2001:db8::1]:443", "peer_addr in (2001:db8::1) and peer_port = 443"),
    ("dst [2001:db8::1]", "peer_addr in (2001:db8::1)"),
    ("dst 2001:db8::/32", "peer_addr in (2001:db8::/32)"),
    ("dst 0.0.0.0", "peer_addr in (0.0.0.0) or (family = inet and peer_addr = null)"),
    ("dst [::]", "peer_addr in (::) or (family = inet6 and peer_addr = null)"),
    (
        "dst ::/0",
        "peer_addr in (::/0) or (family = inet6 and peer_addr = null) or (family = inet6 and peer_addr in (0.0.0.0/0))",
    ),
    ("src [::ffff:10.0.0.1]", "local_addr in (::ffff:10.0.0.1) or (family = inet6 and local_addr in (10.0.0.1))"),
    ("dev eth0", "iface = eth0"),
    ("dev = 2", "iface = eth0"),
    ("dev != eth0", "not iface = eth0"),
    ("dev 0", "iface = null"),
    ("dev 9", "false"),
    ("fwmark = 7", "mark = 0x7/0xffffffff"),
    ("fwmark 0x10/0xf0", "mark = 0x10/0xf0"),
    ("fwmark != 7", "not mark = 0x7/0xffffffff"),
    ("fwmark = 0", "mark = 0x0/0xffffffff or mark = null"),
    ("cgroup = /a", "cgroup_id = 77"),
    ("cgroup != /a", "not cgroup_id = 77"),
    ("autobound", "autobound = true"),
    ("not sport = 22", "not local_port = 22"),
    ("! sport = 22", "not local_port = 22"),
    ("! ! sport = 22", "not not local_port = 22"),
    ("( sport = 22 )", "local_port = 22"),
    ("sport = 22 dport = 80", "local_port = 22 and peer_port = 80"),
    ("sport = 22 and dport = 80", "local_port = 22 and peer_port = 80"),
    ("sport = 22 & dport = 80", "local_port = 22 and peer_port = 80"),
    ("sport = 22 && dport = 80", "local_port = 22 and peer_port = 80"),
    ("sport = 22 or dport = 80", "local_port = 22 or peer_port = 80"),
    ("sport = 22 | dport = 80", "local_port = 22 or peer_port = 80"),
    ("sport = 22 || dport = 80", "local_port = 22 or peer_port = 80"),
    // Conditions are joined from left to right: `and` does not bind tighter.
    ("sport = 1 or sport = 2 and dport = 3", "(local_port = 1 or local_port = 2) and peer_port = 3"),
    ("sport = 1 or ( sport = 2 and dport = 3 )", "local_port = 1 or (local_port = 2 and peer_port = 3)"),
    ("not sport = 1 or sport = 2", "not local_port = 1 or local_port = 2"),
    ("inet:192.0.2.1", ""),
];

#[test]
fn every_production_of_the_grammar() {
    for (line, expected) in PRODUCTIONS {
        if expected.is_empty() {
            assert!(parse(&format!("-ta {line}"), Layout::V6_15).is_err(), "{line}");
            continue;
        }
        assert_eq!(expression("-ta", line), *expected, "{line}");
    }
}

#[test]
fn what_it_means_for_unix_sockets() {
    for (line, expected) in [
        ("src unix:/run/*", r"path ~ (?is)\A\x2frun\x2f.*\z"),
        ("src unix:@a?[!b-d]\\\\*", r"path ~ (?is)\A[@\x00]a.[^\x62-\x64]\x2a\z"),
        ("src unix:*", r"path ~ (?is)\A.*\z or path = null"),
        ("src unix:", r"path ~ (?is)\A\z or path = null"),
        ("dst unix:*", "true"),
        ("dst unix:/x", "false"),
        ("autobound", r"path ~ \A\x00[0-9a-f]{5}\z or path = null"),
        ("dev 0", "true"),
        ("fwmark = 1", "false"),
        ("cgroup /a", "false"),
    ] {
        let text = expression("-xa", line).replace('"', "").replace(r"\\", r"\");
        assert_eq!(text, expected, "{line}");
    }
    // Ports are inodes for unix sockets if all tables are selected.
    let all = asked("-a sport = :22 or dport < 5", Layout::V6_15);
    assert!(all.contains("\nproto = unix and (inode = 22 or not peer_inode >= 5)\n"), "{all}");
    // Ports are protocols for a raw socket and interfaces for a packet socket.
    assert!(all.contains("\nproto = raw and (ip_protocol = 22 or not peer_port >= 5)\n"), "{all}");
    assert!(all.contains("\nproto = packet and (ifindex = 22 or "), "{all}");
    // An address that names a family leaves only that family.
    assert_eq!(asked("-uxa src inet6:*:22", Layout::V6_15), "proto = udp and family = inet6 and local_port = 22");
    assert_eq!(asked("-t src unix:*", Layout::V6_15), "");
}

#[test]
fn switches_that_show() {
    let plain = |line: &str| parse(line, Layout::V6_15).unwrap().options;
    let tcp = Options::plain(Layout::V6_15).without(show::NETID | show::NUMERIC);
    for (line, expected) in [
        ("-t", tcp),
        ("-tn", tcp.with(show::NUMERIC)),
        ("-t --numeric", tcp.with(show::NUMERIC)),
        ("-tr", tcp.with(show::RESOLVE)),
        ("-tH", tcp.without(show::HEADER)),
        ("-tO", tcp.with(show::ONE_LINE)),
        ("-to", tcp.with(show::TIMERS)),
        ("-te", tcp.with(show::TIMERS | show::DETAILS)),
        ("-tm", tcp.with(show::MEMORY)),
        ("-ti", tcp.with(show::INFO)),
        ("-tp", tcp.with(show::PROCESSES)),
        ("-t --tos", tcp.with(show::TOS)),
        ("-t --cgroup", tcp.with(show::CGROUP)),
        ("-t --inet-sockopt", tcp.with(show::SOCKOPT)),
        ("-tQ", tcp.without(show::QUEUES)),
        ("-tu", tcp.with(show::NETID)),
        ("-x", tcp.with(show::NETID)),
        ("-A u_str", tcp),
        ("-u", tcp.without(show::STATE)),
        ("-t state listening", tcp.without(show::STATE)),
        ("-tl", tcp),
        ("-4", tcp.with(show::NETID)),
        ("", tcp.with(show::NETID)),
    ] {
        assert_eq!(plain(line), expected, "{line}");
    }
    let flags = flags::parse(words("-sN blue"), Layout::V6_15, true).unwrap();
    assert!(flags.summary && !flags.table && flags.options.bug_compatible);
    assert_eq!(flags.netns.as_deref(), Some(&b"blue"[..]));
    assert!(flags::parse(words("-st"), Layout::V6_15, true).unwrap().table);
}

#[test]
fn tables_come_in_the_order_of_ss() {
    let names = |line| {
        let request = parse(line, Layout::V6_15).unwrap();
        let names: Vec<&str> = request.questions.iter().map(|q| q.proto.name()).collect();
        (names.join(" "), request.by_default)
    };
    let is = |line, tables: &str, by_default| assert_eq!(names(line), (tables.to_owned(), by_default), "{line}");
    is("", "unix raw udp tcp mptcp dccp sctp vsock", true);
    is("-a", "netlink packet unix raw udp tcp mptcp dccp sctp vsock xdp", true);
    is("-4a", "raw udp tcp mptcp dccp sctp", false);
    is("-tuxa", "unix udp tcp", false);
    is("-wMa", "raw mptcp", false);
    is("-0", "packet", false);
    is("-f netlink", "netlink", false);
    is("-f netlink state established", "", false);
    is("-A p_raw,netlink", "", false);
    is("-A p_raw,netlink -a", "netlink packet", false);
    is("-A all,!raw,!packet,!netlink -a", "unix udp tcp mptcp dccp sctp vsock xdp", false);
    is("-SdMa", "mptcp dccp sctp", false);
    is("--vsock --tipc --xdp -a", "vsock tipc xdp", false);
    is("--xdp state established", "", false);
    is("-ES", "", false);
}

#[test]
fn vsock_sockets_by_type() {
    assert_eq!(asked("--vsock", Layout::V6_1), "proto = vsock");
    // A seqpacket socket is neither a stream nor a datagram socket and is shown with both.
    assert_eq!(asked("-A v_str", Layout::V6_1), "proto = vsock and vsock_type != dgram");
    assert_eq!(
        asked("-A v_dgr sport = :77", Layout::V6_1),
        "proto = vsock and vsock_port = 77 and vsock_type != stream"
    );
}

#[test]
fn packet_sockets_by_type() {
    assert_eq!(asked("-0", Layout::V6_15), "proto = packet");
    assert_eq!(asked("-A p_raw -a", Layout::V6_15), "proto = packet and packet_type = raw");
    assert_eq!(asked("-A p_dgr -l", Layout::V6_15), "proto = packet and packet_type = dgram");
    // ss shows every type that the kernel sends.
    let old = make(&flags::parse(words("-A p_raw -a"), Layout::V6_1, true).unwrap(), &TestEnvironment).unwrap();
    assert_eq!(old.questions[0].filter.len(), 1);
}

#[test]
fn protocols_of_packet_and_netlink_sockets() {
    for (switches, line, filter) in [
        ("-0", "src ip", "ethertype = 2048"),
        ("-0", "src IPV6:eth0", "ethertype = 34525 and ifindex = 2"),
        ("-0", "src *:7", "ifindex = 7"),
        ("-f netlink", "src rtnl:kernel", "netlink_protocol = route and portid = 0"),
        ("-f netlink", "src 16", "netlink_protocol = generic"),
    ] {
        let got = expression(switches, line);
        assert!(got.starts_with(filter), "{line}: {got}");
    }
    for (line, code) in [("-0 src nonsense", 1), ("-f netlink src rtnl:me", 1), ("-f netlink src 300", 1)] {
        assert_eq!(parse(line, Layout::V6_15).unwrap_err().code, code, "{line}");
    }
}

#[test]
fn mistakes_and_their_exit_codes() {
    for (line, code, text) in [
        ("-y", 255, "ss: invalid option -- 'y'\nUsage"),
        ("--foo", 255, "ss: unrecognized option '--foo'\nUsage"),
        ("-f", 255, "ss: option requires an argument -- 'f'\nUsage"),
        ("-f foo", 255, "ss: \"foo\" is invalid family\nUsage"),
        (
            "--n",
            255,
            "ss: option '--n' is ambiguous; possibilities: '--numeric' '--net' '--no-header' '--no-queues'\nUsage",
        ),
        ("-A foo", 255, "ss: \"foo\" is illegal socket table id\nUsage"),
        ("state", 255, "Command line is not complete. Try option \"help\"\n"),
        ("state foo", 255, "ss: wrong state name: foo\n"),
        ("-A !tcp", 0, "ss: no socket tables to show with such filter.\n"),
        ("-t state listening exclude listening sport = 1", 0, ""),
        ("-t sport = 22 or 80", 255, "ss: bison bellows (while parsing filter): \"syntax error!\" Sorry.\nUsage"),
        ("-t src != 192.0.2.1", 255, "ss: bison bellows"),
        ("-t dev > 2", 255, "ss: bison bellows"),
        ("-t ( sport = 22", 255, "ss: bison bellows"),
        ("-t ( )", 255, "ss: bison bellows"),
        ("-t sport = 22 )", 255, "ss: bison bellows"),
        ("-t sport =", 255, "ss: bison bellows"),
        ("-t and", 255, "ss: bison bellows"),
        ("-t sport = :nosuch", 1, "Error: \"nosuch\" does not look like a port.\nCannot parse dst/src address.\n"),
        ("-tu sport = who", 1, "Error: ambiguous port \"who\".\nCannot parse dst/src address.\n"),
        (
            "-t src nosuch",
            1,
            "Error: an inet prefix is expected rather than \"nosuch\".\nCannot parse dst/src address.\n",
        ),
        ("-t src ::1", 1, "Error: an inet prefix is expected rather than \":\".\nCannot parse dst/src address.\n"),
        ("-t src [::1", 1, "Cannot parse dst/src address.\n"),
        ("-t4 src 2001:db8::/32", 1, "Error: an inet prefix is expected"),
        ("-t src 10.0.0.0/33", 1, "Error: an inet prefix is expected rather than \"10.0.0.0/33\"."),
        ("-t src 1.2.3.4.5", 1, "Error: an inet prefix is expected"),
        ("-t and not state listening", 255, ""),
        ("-t sport = 1 and not state listening", 1, "Error: \"state\" does not look like a port."),
        ("-t fwmark = x", 1, "Cannot parse mark x.\n"),
        ("-t fwmark = 1/x", 1, "Cannot parse mark 1/x.\n"),
        ("-t dev nosuch", 1, "Cannot parse device.\n"),
        ("-t cgroup /b", 1, "Failed to get cgroup2 ID: No such file or directory\nCannot parse cgroup /b.\n"),
        ("--bpf-maps", 255, "ss: socket storage is not supported"),
        ("-F /nonexistent", 255, "fopen filter file: No such file or directory\n"),
        ("-t src link:x", 1, "Cannot parse dst/src address.\n"),
        ("-t src \x1b[1m", 1, "Error: an inet prefix is expected rather than \"?[1m\"."),
    ] {
        match parse(line, Layout::V6_15) {
            Ok(_) if text.is_empty() => {}
            Ok(_) => panic!("{line} is right"),
            Err(stop) => {
                assert_eq!(stop.code, code, "{line}: {}", stop.err);
                let usage = if stop.usage == Usage::Err { "Usage" } else { "" };
                assert!(format!("{}{usage}", stop.err).starts_with(text), "{line}: {}", stop.err);
                assert!(stop.out.is_empty(), "{line}");
            }
        }
    }
    let many = format!("-t {}sport = 1", "( ".repeat(5_000));
    assert!(parse(&many, Layout::V6_1).unwrap_err().err.contains("memory exhausted"));
    let long = format!("-t sport = 1{}", " or sport = 1".repeat(50_000));
    assert!(parse(&long, Layout::V6_1).is_ok());
}

#[test]
fn help_and_version() {
    for line in ["-h -y", "--help", "-f help"] {
        let stop = parse(line, Layout::V6_15).unwrap_err();
        assert!(stop.usage == Usage::Out && stop.err.is_empty() && stop.code == 0, "{line}: {stop:?}");
    }
    for (line, start) in [("-V", "ss utility, iproute2-6.15.0, netwren "), ("-v", "ss utility")] {
        let stop = parse(line, Layout::V6_15).unwrap_err();
        assert!(stop.out.starts_with(start) && stop.err.is_empty() && stop.code == 0, "{line}: {stop:?}");
    }
    assert!(parse("-V", Layout::V6_1).unwrap_err().out.starts_with("ss utility, iproute2-6.1.0"));
}

#[test]
fn every_field_that_is_named_exists() {
    for field in [
        "proto",
        "state",
        "family",
        "unix_type",
        "local_addr",
        "peer_addr",
        "local_port",
        "peer_port",
        "inode",
        "peer_inode",
        "iface",
        "mark",
        "cgroup_id",
        "path",
    ] {
        let Expr::Test(test) = super::expr::test(field, Op::Eq, Operand::Null) else { panic!("{field}") };
        assert_ne!(test.field, usize::MAX, "{field}");
    }
}

/// Any words in any order give a result or an error, never a panic.
#[test]
fn any_words() {
    const WORDS: &[&str] = &[
        "-t",
        "-x",
        "-4",
        "-A",
        "tcp,!udp",
        "-f",
        "inet6",
        "state",
        "exclude",
        "all",
        "listening",
        "(",
        ")",
        "!",
        "and",
        "or",
        "src",
        "dst",
        "sport",
        "dport",
        "dev",
        "fwmark",
        "cgroup",
        "autobound",
        "=",
        "!=",
        "<",
        ">=",
        "22",
        "-1",
        ":",
        "::",
        "[",
        "[]",
        "[:",
        "]:1",
        "/",
        "1/",
        "/33:",
        "*",
        "*:",
        "unix:[",
        "unix:[!",
        "unix:\\",
        "inet6:",
        "0x",
        "99999999999999999999",
        "1/-1",
        "10.",
        "::/129",
        "--",
        "-",
        "\u{0}",
    ];
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..30_000 {
        let mut line = Vec::new();
        for _ in 0..8 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            line.push(WORDS[(seed % WORDS.len() as u64) as usize]);
        }
        let layout = if seed & 1 == 0 { Layout::V6_1 } else { Layout::V6_15 };
        let _ = parse(&line.join(" "), layout);
    }
}
