#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::literal::{Unit, parse_quantity};
use super::*;
use crate::explain::expr_text;
use proptest::prelude::*;
use record::rows::{Flows, Sockets};
use record::{Expr, Operand, Schema};

/// Returns the bound filter in words, or the displayed error.
fn bound<T: record::Table>(text: &str) -> String {
    match parse(text).and_then(|ast| bind(Schema::from_table::<T>(), &ast)) {
        Ok(expr) => expr_text(Schema::from_table::<T>(), &expr),
        Err(error) => error.to_string(),
    }
}

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(bound::<Sockets>(text), *expected, "{text}");
    }
}

#[test]
fn every_operator() {
    check(&[
        ("", "true"),
        ("  ", "true"),
        ("local_port = 443", "local_port = 443"),
        ("local_port==443", "local_port = 443"),
        ("local_port != 443", "local_port != 443"),
        ("local_port<443", "local_port < 443"),
        ("local_port <= 443", "local_port <= 443"),
        ("local_port>443", "local_port > 443"),
        ("local_port >=443", "local_port >= 443"),
        ("process ~ nginx", "process ~ \"nginx\""),
        ("process!~\"^ng\"", "process !~ \"^ng\""),
        ("local_port in (443, 8000-8999)", "local_port in (443, 8000-8999)"),
        ("local_port in(443,8000-8999)", "local_port in (443, 8000-8999)"),
        ("local_port not in (1, 2)", "local_port not in (1, 2)"),
        ("local_port in 443", "local_port in (443)"),
        ("local_port = 8000-8999", "local_port in (8000-8999)"),
        ("local_port != 8000-8999", "local_port not in (8000-8999)"),
    ]);
}

#[test]
fn issue_15_words_for_ends() {
    check(&[
        ("port = 443", "local_port = 443 or peer_port = 443"),
        ("port != 443", "local_port != 443 and peer_port != 443"),
        ("port in (80, 443)", "local_port in (80, 443) or peer_port in (80, 443)"),
        ("addr = 10.0.0.1", "local_addr = 10.0.0.1 or peer_addr = 10.0.0.1"),
        ("ip in 10.0.0.0/8", "local_addr in (10.0.0.0/8) or peer_addr in (10.0.0.0/8)"),
        ("source = 10.0.0.1:80", "local_addr = 10.0.0.1 and local_port = 80"),
        ("dst = :443", "peer_port = 443"),
        ("sport = 22", "local_port = 22"),
        ("program = sshd", "process = sshd"),
        ("addr > 10.0.0.1", "local_addr > 10.0.0.1 or peer_addr > 10.0.0.1"),
        ("port = 99999", "filter, column 8: ports end at 65535\n  port = 99999\n         ^^^^^"),
    ]);
    let nat = |text| bound::<record::rows::Nat>(text);
    assert_eq!(nat("dport = 53"), "orig_dport = 53");
    assert_eq!(nat("port = 53"), "orig_sport = 53 or orig_dport = 53 or reply_sport = 53 or reply_dport = 53");
    assert_eq!(bound::<record::rows::CapturedPackets>("host = 10.0.0.1"), "src = 10.0.0.1 or dst = 10.0.0.1");
}

#[test]
fn issue_15_two_fields_are_compared() {
    check(&[
        ("accept_q > accept_q_max", "accept_q > accept_q_max"),
        ("local_port = peer_port", "local_port = peer_port"),
        ("local_addr != peer_addr", "local_addr != peer_addr"),
        ("rtt_us > min_rtt", "rtt_us > min_rtt_us"),
        ("process = user", "process = user"),
    ]);
    let other_kind = bound::<Sockets>("rtt_us > pid");
    assert!(
        other_kind.contains("column 10: `rtt_us` has the type microseconds, this field has the type number"),
        "{other_kind}"
    );
    let Expr::Test(test) = bind(Schema::from_table::<Sockets>(), &parse("accept_q > accept_q_max").unwrap()).unwrap()
    else {
        panic!()
    };
    assert!(matches!(test.operand, Operand::Field(_)));
    let Expr::Test(test) = bind(Schema::from_table::<Sockets>(), &parse("process = user").unwrap()).unwrap() else {
        panic!()
    };
    assert!(matches!(test.operand, Operand::Words(_)), "a word of a text is a text");
}

#[test]
fn what_binds_first() {
    check(&[
        ("pid = 1 or pid = 2 and uid = 3", "pid = 1 or (pid = 2 and uid = 3)"),
        ("(pid = 1 or pid = 2) and uid = 3", "(pid = 1 or pid = 2) and uid = 3"),
        ("not pid = 1 and uid = 3", "not pid = 1 and uid = 3"),
        ("not (pid = 1 and uid = 3)", "not (pid = 1 and uid = 3)"),
        ("!pid=1&&uid=3||!(fd=4)", "(not pid = 1 and uid = 3) or not fd = 4"),
        ("! ! pid = 1", "not not pid = 1"),
        ("NOT pid = 1 AND uid = 2 Or uid IN (3)", "(not pid = 1 and uid = 2) or uid in (3)"),
        ("pid=1 and (uid=2 and (fd=3))", "pid = 1 and uid = 2 and fd = 3"),
        ("((((pid=1))))", "pid = 1"),
    ]);
}

#[test]
fn values_by_kind() {
    check(&[
        // Words of fields; case and dashes do not matter.
        ("state = established", "state = established"),
        ("state = ESTABLISHED", "state = established"),
        ("state in (time-wait, fin_wait1)", "state in (time_wait, fin_wait1)"),
        ("state = \"listen\"", "state = listen"),
        // Text.
        ("process = nginx", "process = nginx"),
        ("process = \"a b\\n\\x00\\u{e4}\"", "process = \"a b\\n\\x00\\xc3\\xa4\""),
        ("process = 'say \"hi\"'", "process = \"say \\\"hi\\\"\""),
        ("process in (true, 'and', 1.5s)", "process in (true, and, 1.5s)"),
        ("process = \"null\"", "process = \"null\"".replace('"', "").as_str()),
        ("path = @/tmp/.X11-unix/X0", "path in (@/tmp/.X11-unix/X0, \"\\x00/tmp/.X11-unix/X0\")"),
        // A regular expression keeps its backslashes, with and without quotes.
        ("process ~ \"a\\.b\\\"\"", "process ~ \"a\\\\.b\\\"\""),
        ("process ~ [a-z]+\\d|x", "process ~ \"[a-z]+\\\\d|x\""),
        // Null.
        ("pid = null", "pid = null"),
        ("pid != null", "pid != null"),
        ("pid in (1, null)", "pid = null or pid in (1)"),
        ("pid not in (1, null)", "pid != null and pid not in (1)"),
        ("owners = null", "owners = null"),
        // True and false.
        ("v6only = true", "v6only = true"),
        ("v6only != no", "v6only != false"),
        // Numbers in different bases, and masks.
        ("mark = 0x10", "mark = 16"),
        ("mark = 0x10/0xf0", "mark = 0x10/0xf0"),
        ("mark != 16/240", "mark != 0x10/0xf0"),
        ("mark in (1, 0x10/0xf0)", "mark = 0x10/0xf0 or mark in (1)"),
        ("cookie = 18446744073709551615", "cookie = 18446744073709551615"),
        // Units.
        ("recv_q > 1MiB", "recv_q > 1048576"),
        ("recv_q > 1MB", "recv_q > 1000000"),
        ("recv_q > 1.5k", "recv_q > 1500"),
        ("recv_q in (1k-1KiB, 7B)", "recv_q in (1000-1024, 7)"),
        ("timer_retransmits >= 10k", "timer_retransmits >= 10000"),
        ("rtt_us > 20ms", "rtt_us > 20000"),
        ("rtt_us > 1.5s", "rtt_us > 1500000"),
        ("rtt_us > 3", "rtt_us > 3"),
        ("rtt_us > 3µs", "rtt_us > 3"),
        ("timer_ms in (1s-2min, 1h)", "timer_ms in (1000-120000, 3600000)"),
        ("pacing_bps > 10Mbps", "pacing_bps > 10000000"),
        ("pacing_bps > 20.1Mbit/s", "pacing_bps > 20100000"),
        ("pacing_bps > \"1.5 MB/s\"", "pacing_bps > 12000000"),
        ("bytes_in_per_s > 1.9MB/s", "bytes_in_per_s > 1900000"),
        ("pacing_bps > 1MBps", "pacing_bps > 8000000"),
    ]);
}

#[test]
fn issue_10_service_names_stand_for_ports() {
    let mut asked = Vec::new();
    let mut ports_of = |name: &str| {
        asked.push(name.to_owned());
        match name {
            "https" => vec![443],
            "http-alt" => vec![8080],
            "shell" => vec![514, 515],
            _ => Vec::new(),
        }
    };
    for (filter, same) in [
        ("local_port = https", "local_port = 443"),
        ("peer_port != http-alt", "peer_port != 8080"),
        ("local_port in (https, 80-90, 22)", "local_port in (443, 80-90, 22)"),
        ("local_port = shell", "local_port in (514, 515)"),
        ("local_port != \"shell\"", "local_port not in (514, 515)"),
        ("local_port >= https", "local_port >= 443"),
        ("peer = :https or not local = 10.1.2.3:shell", "peer = :443 or not local in (10.1.2.3:514, 10.1.2.3:515)"),
        (
            "peer in ([2001:db8::1]:https, 2001:db8::beef, :80-90)",
            "peer in ([2001:db8::1]:443, 2001:db8::beef, :80-90)",
        ),
        ("local_port = null and process = https", "local_port = null and process = https"),
    ] {
        let numbered = name_ports(Schema::from_table::<Sockets>(), &parse(filter).unwrap(), &mut ports_of);
        assert_eq!(
            bind(Schema::from_table::<Sockets>(), &numbered).unwrap(),
            bind(Schema::from_table::<Sockets>(), &parse(same).unwrap()).unwrap(),
            "{filter}"
        );
    }
    for (filter, error) in [
        ("local_port = htps", "a port is a number from 0 to 65535, or a name from /etc/services"),
        ("local_port < shell", "a port is a number from 0 to 65535, or a name from /etc/services"),
        ("local = 10.1.2.3:htps", "neither an address nor a port"),
    ] {
        let numbered = name_ports(Schema::from_table::<Sockets>(), &parse(filter).unwrap(), &mut ports_of);
        assert!(bind(Schema::from_table::<Sockets>(), &numbered).unwrap_err().to_string().contains(error), "{filter}");
    }
    // Numbers, ranges, null, addresses and other fields are not looked up as names.
    assert!(asked.iter().all(|name| ["https", "http-alt", "shell", "htps"].contains(&name.as_str())), "{asked:?}");
}

#[test]
fn bits_per_second() {
    for (text, n) in [("7", 7), ("64kbps", 64_000), ("10M", 10_000_000), ("1Gbit", 1_000_000_000), ("1MBps", 8_000_000)]
    {
        assert_eq!(parse_quantity(Unit::Rate, text), Ok(n), "{text}");
    }
}

#[test]
fn addresses_and_ends() {
    check(&[
        ("peer_addr = 10.1.2.3", "peer_addr = 10.1.2.3"),
        ("peer_addr = 10.0.0.0/8", "peer_addr in (10.0.0.0/8)"),
        ("peer_addr != 10.0.0.0/8", "peer_addr not in (10.0.0.0/8)"),
        ("peer_addr in (10.0.0.0/8, 2001:db8::/32, ::1)", "peer_addr in (10.0.0.0/8, 2001:db8::/32, ::1)"),
        ("peer_addr >= 10.0.0.0", "peer_addr >= 10.0.0.0"),
        ("peer_addr = [2001:db8::1]", "peer_addr = 2001:db8::1"),
        ("peer_addr = ::ffff:10.1.2.3", "peer_addr = 10.1.2.3"),
        ("peer_addr = ::ffff:10.0.0.0/104", "peer_addr in (10.0.0.0/8)"),
        ("peer = 10.1.2.3", "peer_addr = 10.1.2.3"),
        ("peer = 10.1.2.3:443", "peer_addr = 10.1.2.3 and peer_port = 443"),
        ("peer = [2001:db8::1]:443", "peer_addr = 2001:db8::1 and peer_port = 443"),
        ("peer = 2001:db8::1:443", "peer_addr = 2001:db8::1:443"),
        ("peer = 10.0.0.0/8:443", "peer_addr in (10.0.0.0/8) and peer_port = 443"),
        ("local = :443", "local_port = 443"),
        ("local = *:8000-8999", "local_port in (8000-8999)"),
        ("peer != 10.1.2.3:443", "peer_addr != 10.1.2.3 or peer_port != 443"),
        ("peer in 10.0.0.0/8", "peer_addr in (10.0.0.0/8)"),
        ("peer in (10.0.0.0/8, ::1)", "peer_addr in (10.0.0.0/8, ::1)"),
        (
            "peer in (10.0.0.0/8, [::1]:80, :22)",
            "(peer_addr = ::1 and peer_port = 80) or peer_port = 22 or peer_addr in (10.0.0.0/8)",
        ),
        (
            "peer not in (10.0.0.0/8, [::1]:80)",
            "(peer_addr != ::1 or peer_port != 80) and peer_addr not in (10.0.0.0/8)",
        ),
        ("peer = null", "peer_addr = null"),
        ("peer not in (null, 10.0.0.1)", "peer_addr != null and peer_addr not in (10.0.0.1)"),
    ]);
}

#[test]
fn an_address_may_have_its_interface() {
    check(&[
        ("peer_addr = fe80::2%eth0", "peer_addr = fe80::2 and iface = eth0"),
        ("peer = fe80::2%eth0", "peer_addr = fe80::2 and iface = eth0"),
        ("peer = \"fe80::2%a b\"", "peer_addr = fe80::2 and iface = \"a b\""),
        ("peer = fe80::2%7", "peer_addr = fe80::2 and ifindex = 7"),
        ("local = [fe80::2%eth0]:22", "(local_addr = fe80::2 and local_port = 22) and iface = eth0"),
        ("local = [fe80::2]%eth0:22", "(local_addr = fe80::2 and local_port = 22) and iface = eth0"),
        ("local = [fe80::2]%eth0", "local_addr = fe80::2 and iface = eth0"),
        ("addr = fe80::2%eth0", "(local_addr = fe80::2 or peer_addr = fe80::2) and iface = eth0"),
        ("local_addr = 10.1.2.3%red", "local_addr = 10.1.2.3 and iface = red"),
        ("peer in fe80::/10%eth0", "peer_addr in (fe80::/10) and iface = eth0"),
        (
            "peer_addr in (fe80::2%eth0, 10.0.0.0/8)",
            "peer_addr in (10.0.0.0/8) or (peer_addr = fe80::2 and iface = eth0)",
        ),
        ("peer != fe80::2%eth0", "peer_addr != fe80::2 or (peer_addr = fe80::2 and not iface = eth0)"),
        (
            "peer_addr not in (fe80::2%eth0, ::1)",
            "peer_addr not in (::1) and (peer_addr != fe80::2 or (peer_addr = fe80::2 and not iface = eth0))",
        ),
        ("path = \"a%b\"", "path = \"a%b\""),
    ]);
    let bound = |text: &str| bind(Schema::from_table::<record::rows::LogRecords>(), &parse(text).unwrap()).unwrap();
    assert_eq!(bound("src = fe80::2%eth0"), bound("src = fe80::2 and (iif = eth0 or oif = eth0)"));
    let nat = bind(Schema::from_table::<record::rows::Nat>(), &parse("orig_src = fe80::2%eth0").unwrap());
    assert!(nat.unwrap_err().to_string().contains("addresses of nat have no interface: leave it out"));
    assert!(message("peer_addr = fe80::x%eth0").contains("neither an address nor a prefix"));
}

#[test]
fn a_name_may_leave_out_its_unit() {
    check(&[
        ("rtt > 20ms", "rtt_us > 20000"),
        ("rtt in (1ms-2ms, 5s)", "rtt_us in (1000-2000, 5000000)"),
        ("rtt = null", "rtt_us = null"),
        ("timer > 1s", "timer_ms > 1000"),
        ("timer = keepalive", "timer = keepalive"),
        ("timer = null", "timer = null"),
        (
            "timer in (1s, keepalive)",
            "filter, column 11: `timer` has no value `1s`; its values are off retransmit keepalive timewait probe \
             unknown\n  timer in (1s, keepalive)\n            ^^",
        ),
        ("pacing > 10Mbps", "pacing_bps > 10000000"),
        ("backlog > 1MiB", "backlog_bytes > 1048576"),
        ("rtt > 20", "filter, column 1: `rtt` needs a value with a unit; did you mean `rtt_us`?\n  rtt > 20\n  ^^^"),
        (
            "rtt > \"20ms\"",
            "filter, column 1: `rtt` needs a value with a unit; did you mean `rtt_us`?\n  rtt > \"20ms\"\n  ^^^",
        ),
    ]);
    assert_eq!(bound::<Flows>("established > 5"), "established > 5");
    for (name, known) in [("rtt", true), ("peer", true), ("pid", true), ("timer", true), ("nope", false), ("", false)] {
        assert_eq!(is_known_name(Schema::from_table::<Sockets>(), name), known, "{name}");
    }
    assert!(!is_known_name(Schema::from_table::<Flows>(), "rtt"));
}

/// Returns the message of an error without the marked text.
fn message(text: &str) -> String {
    bound::<Sockets>(text).lines().next().unwrap().replace("filter, column ", "")
}

#[test]
fn mistakes_are_shown_at_their_place() {
    check(&[
        (
            "proto = tcp and stat = listen",
            "filter, column 17: unknown field `stat`; did you mean `state`?\n  proto = tcp and stat = \
             listen\n                  ^^^^",
        ),
        (
            "state = estblished",
            "filter, column 9: `state` has no value `estblished`; did you mean `established`?\n  state = \
             estblished\n          ^^^^^^^^^^",
        ),
        (
            "process = \"ä\" an pid = 1",
            "filter, column 15: expected `and` or `or` before `an`; a value with spaces or signs needs quotes\n  \
             process = \"ä\" an pid = 1\n                ^^",
        ),
    ]);
}

#[test]
fn mistakes_in_words() {
    for (text, expected) in [
        ("qqqq = 1", "1: unknown field `qqqq`; `netwren sockets --columns help` lists them"),
        ("pid", "1: an operator is missing after `pid`; the operators are = != < <= > >= ~ !~ in, not in"),
        ("pid ? 1", "5: an operator is missing after `pid`; the operators are = != < <= > >= ~ !~ in, not in"),
        ("pid =", "6: a value is missing after `=`; put text with special characters and keywords in quotes"),
        (
            "pid = AND uid = 1",
            "7: a value is missing after `=`; put text with special characters and keywords in quotes",
        ),
        ("= 1", "1: a field name is missing here"),
        ("pid = 1 and", "12: a field name is missing here"),
        ("and", "1: a field name is missing here"),
        ("1 = pid", "1: a field name is missing here"),
        ("(pid = 1", "1: this bracket is not closed"),
        ("pid = 1)", "8: this bracket has no opening bracket"),
        ("(pid = 1 uid = 2)", "10: expected `and` or `or` before `uid`; a value with spaces or signs needs quotes"),
        ("pid in (1", "8: this list is not closed"),
        ("pid in (1 2)", "11: expected `,` or `)` in the list"),
        ("pid in ()", "9: a value is missing after `in`; put text with special characters and keywords in quotes"),
        ("pid = (1, 2)", "5: a list can be used only with `in` and `not in`, not with `=`; did you mean `in`?"),
        ("pid != (1, 2)", "5: a list can be used only with `in` and `not in`, not with `!=`; did you mean `not in`?"),
        ("process ~ (?i)x", "11: put a regular expression with brackets, spaces or signs in quotes"),
        ("process = \"abc", "11: this \" is not closed"),
        ("process = \"a\\q\"", "13: unknown escape; valid ones are \\\\ \\\" \\' \\n \\t \\r \\0 \\xNN \\u{N}"),
        ("process = \"\\xg0\"", "12: unknown escape; valid ones are \\\\ \\\" \\' \\n \\t \\r \\0 \\xNN \\u{N}"),
        ("process = \"\\u{d800}\"", "12: unknown escape; valid ones are \\\\ \\\" \\' \\n \\t \\r \\0 \\xNN \\u{N}"),
        ("pid > null", "7: null can be compared only with `=` and `!=`, not with `>`"),
        ("process < x", "9: `<` cannot be used: `process` is text, which has no order; its operators are = != in ~ !~"),
        ("v6only > true", "8: `>` cannot be used: `v6only` is true or false; its operators are = and !="),
        ("v6only = maybe", "10: expected true or false"),
        ("pid ~ 1", "5: `~` cannot be used: `pid` is not text"),
        ("peer_addr ~ 10", "11: `~` cannot be used: `peer_addr` is an address; use `in` with a prefix"),
        (
            "owners = 1",
            "8: `=` cannot be used: `owners` is a list of owners; compare `process`, `pid` or `fd`, or use `= null`",
        ),
        ("process ~ \"(\"", "11: bad regular expression: unclosed group"),
        ("process ~ \"(a{1000}){1000}\"", "11: bad regular expression: it compiles to more than 1048576 bytes"),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
}

#[test]
fn mistakes_in_numbers_and_addresses() {
    for (text, expected) in [
        ("local_port = 70000", "14: ports end at 65535"),
        ("local_port = https", "14: a port is a number from 0 to 65535, or a name from /etc/services"),
        ("local_port in (1, 9-3)", "19: this range ends before it starts"),
        ("pid = -1", "7: expected a number (1000, 0x1f)"),
        ("pid = 99999999999999999999", "7: this number is too large"),
        ("recv_q > 99999999999T", "10: this number is too large"),
        ("recv_q > 5parsecs", "10: expected a number (512, 10k, 1MiB, 1.5GB)"),
        ("timer_ms > 5us", "12: `timer_ms` takes whole milliseconds"),
        ("recv_q > 0.5", "10: `recv_q` takes whole bytes"),
        ("mark = 0x11/0x10", "8: the value has bits outside its mask"),
        ("mark = 0x11/x", "8: expected a value and a mask (0x10/0xf0)"),
        (
            "peer_addr = 10.1.2.3:443",
            "13: an address with a port can be compared only with an endpoint; did you mean `peer`?",
        ),
        ("peer_addr = 10.0.0.0/33", "13: neither an address nor a prefix (10.1.2.3, 10.0.0.0/8, 2001:db8::/32)"),
        ("peer_addr < 10.0.0.0/8", "13: not an address"),
        (
            "peer = 443",
            "8: neither an address nor a port (10.1.2.3, 10.0.0.0/8, 10.1.2.3:443, [2001:db8::1]:443, :443); did you \
             mean `:443`?",
        ),
        (
            "peer = :70000",
            "8: neither an address nor a port (10.1.2.3, 10.0.0.0/8, 10.1.2.3:443, [2001:db8::1]:443, :443)",
        ),
        (
            "peer < 10.0.0.1",
            "6: `<` cannot be used: `peer` is an address and a port; its operators are = != in, not in",
        ),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
}

#[test]
fn faults_have_classes_and_bounds() {
    let fault = |text: &str| conjuncts(Schema::from_table::<Sockets>(), text).unwrap_err();
    assert_eq!(fault("x = 1").fault, Fault::UnknownField);
    assert_eq!(fault("state = x").fault, Fault::UnknownWord);
    assert_eq!(fault("pid = x").fault, Fault::BadValue);
    assert_eq!(fault("pid ~ x").fault, Fault::BadOperator);
    let deep = |n: usize| format!("{}pid = 1{}", "(".repeat(n), ")".repeat(n));
    assert!(conjuncts(Schema::from_table::<Sockets>(), &deep(FilterError::DEPTH_MAX)).is_ok());
    assert_eq!(fault(&deep(FilterError::DEPTH_MAX + 1)).fault, Fault::TooDeep);
    assert_eq!(fault(&"not ".repeat(16_000)).fault, Fault::TooDeep);
    assert_eq!(fault(&" ".repeat(FilterError::TEXT_MAX + 1)).fault, Fault::TooLong);
    let wide = vec!["pid=1"; 6_000].join(" or ");
    assert_eq!(conjuncts(Schema::from_table::<Sockets>(), &wide).unwrap().len(), 1);
}

#[test]
fn a_long_filter_is_shown_around_its_mistake() {
    let text = format!("{} and nope = 1 and {}", vec!["pid = 1"; 50].join(" and "), vec!["pid = 1"; 50].join(" and "));
    let shown = conjuncts(Schema::from_table::<Sockets>(), &text).unwrap_err().to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[1].starts_with("  …") && lines[1].ends_with('…') && lines[1].chars().count() < 140, "{shown}");
    let caret = lines[2].chars().position(|c| c == '^').unwrap();
    assert_eq!(lines[1].chars().skip(caret).take(4).collect::<String>(), "nope");
}

#[test]
fn hostile_text_is_not_printed_raw() {
    let shown = conjuncts(Schema::from_table::<Sockets>(), "pid = \u{1b}[31m").unwrap_err().to_string();
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn printed_filters_parse_to_the_same() {
    for text in [
        "",
        "a=1",
        "a in (1,2) and not (b ~ \"x\\\\\\\"y\" or c != null)",
        "a = 'it''s'",
        "a = \"\\x00\\xff\\\\\"",
        "a ~ '\"\\d'",
        "not not a = 1 or b not in ([::1]:443, 10.0.0.0/8:1-2)",
    ] {
        let Ok(ast) = parse(text) else { continue };
        let printed = ast.to_string();
        assert_eq!(parse(&printed).unwrap().root, ast.root, "{text} printed as {printed}");
        assert_eq!(parse(&printed).unwrap().to_string(), printed);
    }
}

#[test]
fn printing_nests_no_deeper_than_what_was_read() {
    let deep = FilterError::DEPTH_MAX;
    let text = format!("{}a = 1{}", "b = 2 and (".repeat(deep), ") or c = 3".repeat(deep));
    fuzz_filter(text.as_bytes());
    assert_eq!(
        parse("a=1 and b=2 or not (c=3 or d=4)").unwrap().to_string(),
        "a = 1 and b = 2 or not (c = 3 or d = 4)"
    );
}

#[test]
fn names_and_conjuncts() {
    let ast = parse("a = 1 and (b = 2 or a = 3) and c = 4").unwrap();
    assert_eq!(ast.names(), ["a", "b", "a", "c"]);
    let parts: Vec<String> = ast.conjuncts().iter().map(Ast::to_string).collect();
    assert_eq!(parts, ["a = 1", "b = 2 or a = 3", "c = 4"]);
    assert!(parse("").unwrap().is_empty() && parse("").unwrap().conjuncts().is_empty());
    assert!(!ast.is_empty());
}

#[test]
fn a_filter_splits_between_two_tables() {
    let ast = parse("pid = 1 and connections > 5 and (uid = 1 or fd = 2) and not direction = in").unwrap();
    let (sockets, flows) = split(&ast, |name| is_known_name(Schema::from_table::<Sockets>(), name)).unwrap();
    assert_eq!(sockets.to_string(), "pid = 1 and (uid = 1 or fd = 2)");
    assert_eq!(flows.to_string(), "connections > 5 and not direction = in");
    assert!(
        bind(Schema::from_table::<Sockets>(), &sockets).is_ok() && bind(Schema::from_table::<Flows>(), &flows).is_ok()
    );
    let (all, none) =
        split(&parse("pid = 1").unwrap(), |name| is_known_name(Schema::from_table::<Sockets>(), name)).unwrap();
    assert!(none.is_empty() && all.to_string() == "pid = 1");

    let mixed = split(&parse("uid = 1 and (pid = 1 or connections > 5)").unwrap(), |name| {
        is_known_name(Schema::from_table::<Sockets>(), name)
    })
    .unwrap_err();
    assert_eq!((mixed.fault, mixed.column, mixed.len), (Fault::Mixed, 25, 11));
    assert!(mixed.message.starts_with("`pid` is tested before rows are folded and `connections` afterwards"));
}

#[test]
fn errors_of_a_split_filter_point_into_the_whole_text() {
    let (_, flows) = split(&parse("pid = 1 and connectons > 5").unwrap(), |name| {
        is_known_name(Schema::from_table::<Sockets>(), name)
    })
    .unwrap();
    let error = bind(Schema::from_table::<Flows>(), &flows).unwrap_err();
    assert_eq!((error.column, error.hint.as_deref()), (13, Some("connections")));
}

fn any_filter() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("pid".to_owned()),
        Just("state".to_owned()),
        Just("peer".to_owned()),
        Just("rtt".to_owned()),
        Just("process".to_owned()),
        Just("=".to_owned()),
        Just("!=".to_owned()),
        Just("~".to_owned()),
        Just("in".to_owned()),
        Just("not".to_owned()),
        Just("and".to_owned()),
        Just("or".to_owned()),
        Just("(".to_owned()),
        Just(")".to_owned()),
        Just(",".to_owned()),
        Just("!".to_owned()),
        Just("10.0.0.0/8:443".to_owned()),
        Just("[::1]:1-2".to_owned()),
        Just("20ms".to_owned()),
        Just("0x10/0xf0".to_owned()),
        Just("null".to_owned()),
        Just("\"a\\\"\\x00b\"".to_owned()),
        "[ -~]{0,6}",
        "\\PC{0,4}",
    ];
    proptest::collection::vec(word, 0..14).prop_map(|words| words.join(" "))
}

/// Generates valid filters.
fn valid_filter() -> impl Strategy<Value = String> {
    let test = prop_oneof![
        Just("pid = 1".to_owned()),
        Just("peer in (10.0.0.0/8, :443)".to_owned()),
        Just("state != listen".to_owned()),
        Just("uid not in (1, null)".to_owned()),
        "process (=|~|!~) \"[a-z\\\\.]{0,5}x\"".prop_map(|t| t.replace("\\", "\\\\")),
        "process = [a-z]{5,8}",
    ];
    test.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 1..4).prop_map(|p| format!("({})", p.join(" and "))),
            proptest::collection::vec(inner.clone(), 1..4).prop_map(|p| format!("({})", p.join(" || "))),
            inner.prop_map(|p| format!("not {p}")),
        ]
    })
}

proptest! {
    #[test]
    fn no_text_panics(text in any_filter()) {
        fuzz_filter(text.as_bytes());
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        fuzz_filter(&bytes);
    }

    #[test]
    fn sentences_parse_bind_and_print(text in valid_filter()) {
        let ast = parse(&text).unwrap();
        prop_assert_eq!(&parse(&ast.to_string()).unwrap().root, &ast.root);
        prop_assert!(bind(Schema::from_table::<Sockets>(), &ast).is_ok());
        fuzz_filter(text.as_bytes());
    }
}

#[test]
fn values_are_taken_as_other_tools_write_them() {
    check(&[
        ("user = 0", "uid = 0"),
        ("user != 0", "uid != 0"),
        ("user in (root, 0)", "uid = 0 or user = root"),
        ("state = ESTAB", "state = established"),
        ("state = FIN-WAIT-1", "state = fin_wait1"),
        ("state in (estab, closed)", "state in (established, close, unconn)"),
        ("state = listening", "state = listen"),
        ("path = @x", "path in (@x, \"\\x00x\")"),
        ("path ~ ^@x", "path ~ \"^[@\\\\x00]x\""),
        ("mark = 0", "mark = null or mark = 0"),
        ("mark != 0", "mark != null and mark != 0"),
        ("mark = 5", "mark = 5"),
        ("mark < 5", "mark < 5"),
    ]);
    for (word, count) in [("connected", 10), ("synchronized", 9), ("bucket", 3), ("big", 11)] {
        let Expr::Test(test) =
            bind(Schema::from_table::<Sockets>(), &parse(&format!("state = {word}")).unwrap()).unwrap()
        else {
            panic!("one test")
        };
        let Operand::Words(words) = test.operand else { panic!("words") };
        assert_eq!(words.len(), count, "{word}");
        assert!(words.iter().all(|word| record::State::NAMES.iter().any(|name| name.as_bytes() == &**word)));
    }
    let nat = |text: &str| bound::<record::rows::Nat>(text);
    assert_eq!(nat("zone = 0"), "zone = null or zone = 0");
    assert_eq!(nat("state = ESTAB"), "state = established");
    assert!(nat("state = connected").contains("`state` has no value `connected`"), "{}", nat("state = connected"));
}

#[test]
fn whole_texts_are_no_patterns() {
    let message = "filter, column 11: `=` compares the whole text and treats `*` literally; did you mean \
                   `process ~ \"^we\"`?\n  process = we*\n            ^^^";
    check(&[("process = we*", message), ("process = \"we*\"", "process = \"we*\"")]);
    assert!(bound::<Sockets>("process != *we").contains("did you mean `process !~ \"we$\"`?"));
    assert!(bound::<Sockets>("unit in (ssh, ng*)").contains("did you mean `unit ~ \"^ng\"`?"));
}
