//! Compares `netwren ss` with the installed ss, on the same live table in a separate namespace.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::{Command, Output, Stdio};
use testkit::netns::Lab;
use testkit::screen::Screen;
use testkit::{mask, program, require_root, require_tool, tool, until_equal, wait_until};

/// The layout of the installed tool.
fn layout() -> &'static str {
    if tool::version("ss").expect("ss tells its version") >= tool::Version(6, 15, 0) { "6.15" } else { "6.1" }
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').filter(|w| !w.is_empty()).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn theirs(lab: &Lab, line: &str) -> Output {
    lab.command("ss").args(words(line)).output().expect("ip(8) starts")
}

/// The face with `before` directly after its name.
fn ours(lab: &Lab, before: &[&str], line: &str) -> Output {
    let mut command = lab.command(program::netwren());
    command.arg("ss").args(before).args(words(line)).env("NETWREN_SS_LAYOUT", layout());
    command.output().expect("ip(8) starts")
}

fn comparable(output: &Output) -> String {
    mask::sorted_lines(&mask::ss(&text(&output.stdout)))
}

/// Asserts the same lines and the same exit code. `before` may be `--bug-compatible`.
///
/// Repeats both runs if they differ, because a retransmission in between changes a row.
#[track_caller]
fn same(lab: &Lab, before: &[&str], line: &str) {
    let both = || (theirs(lab, line), ours(lab, before, line));
    let (theirs, ours) = until_equal(both, |(theirs, ours)| comparable(theirs) == comparable(ours));
    assert_eq!(comparable(&theirs), comparable(&ours), "ss {line}: {}", text(&ours.stderr));
    assert_eq!(theirs.status.code(), ours.status.code(), "ss {line}");
}

const OLD: &[&str] = &["--bug-compatible"];

/// All kinds of sockets: both families, mapped, link-local, every state that persists, UDP, unix.
fn populate(lab: &Lab) {
    lab.connect_v4(3);
    lab.connect_v6(2);
    lab.connect_mapped(2);
    lab.connect_link_local(1);
    lab.time_wait(2);
    lab.half_closed(1);
    lab.make_unaccepted(2);
    lab.syn_sent();
    lab.listen_tcp(2);
    lab.listen((Ipv4Addr::LOCALHOST, 80).into());
    lab.udp((Ipv4Addr::UNSPECIFIED, 5300).into());
    lab.udp((Ipv6Addr::UNSPECIFIED, 53).into());
    lab.udp_pair();
    lab.unix_stream("stream", 1);
    lab.unix_abstract("abstract", 1);
    lab.unix_datagram("datagram");
    lab.unix_pair();
}

#[test]
fn root_tables() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("sstables");
    populate(&lab);
    for line in [
        "-tan",
        "-Htan",
        "-tuan",
        "-ltn",
        "-lun",
        "-tuln",
        "-xan",
        "-xl",
        "-x",
        "-t",
        "-u",
        "-tu",
        "-tux -a",
        "-tau",
        "-4tan",
        "-6tan",
        "-4 -6 -ta",
        "-6 -4 -ta",
        "-x -4 -ta",
        "-f unix -a",
        "-f inet6 -ta",
        "-A tcp",
        "-A udp,tcp -a",
        "-A u_str,u_dgr -a",
        "-A tcp,udp,!udp -a",
        "-A all,!tcp,!raw,!packet,!netlink,!xdp,!vsock",
        "--tcp --all --numeric",
        "-ta -r",
        "-tanO",
        "-tuanp",
        "-ltnp",
        "-xanp",
        "-tanpH",
        "-tanm",
        "-tai",
        "-tanmi",
        "-tanOmi",
        "-uanm",
        "-xanm",
        "-tan --tos",
        "-tan --inet-sockopt",
        "-tan --inet-sockopt -O",
    ] {
        same(&lab, &[], line);
        same(&lab, OLD, line);
    }
}

/// `-e` on a machine without a cgroup v2 mount, and `-o` on 6.1, have known defects: the compatible output is
/// compared.
#[test]
fn root_extras() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("ssextras");
    populate(&lab);
    for line in [
        "-tan -o",
        "-tane",
        "-tanoe",
        "-tanoemi",
        "-tanpoemi",
        "-tuanpoemiO",
        "-uanoem",
        "-uanpe",
        "-xane",
        "-xanpem",
        "-Htane",
        "-tanie",
        "-tan --cgroup",
        "-tan --tos --cgroup --inet-sockopt -e",
    ] {
        same(&lab, OLD, line);
    }
}

#[test]
fn root_states() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("ssstates");
    populate(&lab);
    for state in [
        "established",
        "syn-sent",
        "syn-recv",
        "syn-rcv",
        "fin-wait-1",
        "fin-wait-2",
        "time-wait",
        "unconnected",
        "close",
        "closed",
        "close-wait",
        "last-ack",
        "listening",
        "closing",
        "all",
        "connected",
        "synchronized",
        "bucket",
        "big",
    ] {
        for line in [format!("-tuxn state {state}"), format!("-tn exclude {state}")] {
            same(&lab, &[], &line);
        }
    }
    for line in [
        "-tn state fin-wait-2 state close-wait",
        "-tn excl listening excl time-wait",
        "-tan state established",
        "state listening -tn",
        "-tn state LISTENING",
        "-tn state unknown",
        "-tn exclude all",
    ] {
        same(&lab, &[], line);
    }
}

/// Every production of the grammar, for TCP and UDP.
const EXPRESSIONS: &[&str] = &[
    "sport = :7001",
    "sport = 7001",
    "sport :7001",
    "sport == 7001",
    "sport eq 0x1b59",
    "dport = 0",
    "dport != 0",
    "dport ne 7001",
    "dport neq 7001",
    "sport >= 7001",
    "sport ge 7001",
    "sport geq 7001",
    "sport > 7001",
    "sport gt 7001",
    "sport <= 7001",
    "sport le 7001",
    "sport leq 7001",
    "sport < 7001",
    "sport lt 7001",
    "dport < 7001",
    "dport le 0",
    "sport = :http",
    "sport = http",
    "sport = :*",
    "src 127.0.0.1",
    "src = 127.0.0.0/8",
    "src 127/255.0.0.0",
    "src 0.0.0.0",
    "dst 0.0.0.0",
    "dst 0.0.0.0/0",
    "not dst 127.0.0.0/8",
    "src any",
    "dst *",
    "src [::1]",
    "src ::/0",
    "dst ::/0",
    "dst [::]",
    "dst [::ffff:127.0.0.1]",
    "dst ::ffff:0:0/96",
    "src fe80::/10",
    "src *:7001",
    "dst 127.0.0.1:7001",
    "dst 127.0.0.0/8:7001",
    "dst [::1]:7001",
    "src 127.0.0.1:*",
    "src inet:127.0.0.1",
    "src inet6:[::1]",
    "src localhost",
    "dev lo",
    "dev = nwl0",
    "dev != lo",
    "dev 0",
    "not dev 0",
    "fwmark = 0",
    "fwmark != 0",
    "fwmark = 7",
    "fwmark = 0/0x8",
    "fwmark 0x1/0x1",
    "not sport = 7001",
    "! sport = 7001",
    "! ! sport = 7001",
    "( sport = 7001 )",
    "sport = 7001 dport != 0",
    "sport = 7001 and dport != 0",
    "sport = 7001 & dport != 0",
    "sport = 7001 && dport != 0",
    "sport = 7001 or dport = 7001",
    "sport = 7001 | dport = 7001",
    "sport = 7001 || dport = 7001",
    "sport = 7001 or dport = 7001 and dport = 0",
    "sport = 7001 or ( dport = 7001 and dport = 0 )",
    "not ( sport = 7001 or dport = 7001 )",
];

#[test]
fn root_expressions() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("ssexpr");
    populate(&lab);
    let listener = lab.listen((Ipv6Addr::UNSPECIFIED, 7001).into());
    lab.connect(&listener, Ipv4Addr::LOCALHOST.into(), 2);
    lab.connect(&listener, Ipv6Addr::LOCALHOST.into(), 2);
    for expression in EXPRESSIONS {
        same(&lab, &[], &format!("-tan {expression}"));
        same(&lab, &[], &format!("-uan {expression}"));
    }
    let path = lab.dir().display();
    for line in [
        "-tan state listening sport = 7001".to_owned(),
        "-4tan src any".to_owned(),
        "-6tan src any".to_owned(),
        "-uan autobound".to_owned(),
        format!("-xan src unix:{path}/*"),
        format!("-xan src {path}/STREAM"),
        format!("-xan not src {path}/*"),
        "-xan src @abs*".to_owned(),
        "-xan src @[a-c]bstract".to_owned(),
        "-xan src *".to_owned(),
        "-xan dst *".to_owned(),
        "-xan dst unix:x".to_owned(),
        "-xan autobound".to_owned(),
        "-tuxan sport ge 7001".to_owned(),
        "-tuxan dport = 0".to_owned(),
        "-tuxan dev 0".to_owned(),
        format!("-tuxan src unix:{path}/stream"),
        "-tuxan src inet6:*:7001".to_owned(),
        "-tan src unix:*".to_owned(),
    ] {
        same(&lab, &[], &line);
    }
}

/// An expression in three arguments, and a backslash before a word of the grammar.
#[test]
fn root_expression_in_one_argument() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("ssarg");
    lab.listen((Ipv4Addr::LOCALHOST, 7001).into());
    let run = |program: &std::path::Path, face: &[&str]| {
        let mut command = lab.command(program);
        command
            .args(face)
            .args(["-tan", r"( sport  =", "7001 ", r"or sport \= 7002)"])
            .env("NETWREN_SS_LAYOUT", layout());
        command.output().unwrap()
    };
    let (theirs, ours) = (run(std::path::Path::new("ss"), &[]), run(program::netwren(), &["ss"]));
    assert_eq!(theirs.status.code(), ours.status.code());
    assert_eq!(comparable(&theirs), comparable(&ours));
}

#[test]
fn root_summary_as_ss_mixes_it_and_of_this_namespace() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("sssum");
    populate(&lab);
    // Host-wide counters change while other tests run.
    wait_until("both summaries at the same numbers", || {
        let (theirs, ours) = (theirs(&lab, "-s"), ours(&lab, OLD, "-s"));
        theirs.stdout == ours.stdout && ours.status.success()
    });
    let right = text(&ours(&lab, &[], "-s").stdout);
    let total = format!("TCP:   {} (estab ", lab.ss_count() - request_sockets(&lab));
    assert!(right.contains(&total), "{right} has not {total}");
    let rest = |text: &str| text.lines().skip(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rest(&right), rest(&text(&theirs(&lab, "-s").stdout)));
    same(&lab, OLD, "-H -t -n");
}

fn request_sockets(lab: &Lab) -> usize {
    lab.output("ss", &["-Htan", "state", "syn-recv"]).lines().count()
}

/// Names of processes as truncated by ss, and complete.
#[test]
fn root_process_names_that_are_no_words() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("ssnames");
    // The shell's own `read` uses the socket, so that no second process inherits it.
    lab.spawn("bash", &["-c", r#"printf 'a"b c)\033' > /proc/$$/comm; exec 3<>/dev/udp/127.0.0.1/5999; read -r -u 3"#]);
    let there = || text(&theirs(&lab, "-Huanp").stdout).contains("a\"b c");
    wait_until("the process has its name and its socket", there);
    same(&lab, OLD, "-uanp");
    let out = ours(&lab, &[], "-uanp");
    let (right, says) = (text(&out.stdout), text(&out.stderr));
    assert!(right.contains(r#"users:(("a\"b c)?",pid="#), "{right:?} {says:?}");
    let old = text(&ours(&lab, OLD, "-uanp").stdout);
    assert!(old.contains(r#"users:(("a"b c",pid="#), "{old:?}");
}

/// The unit of fractional seconds: `ms` in 6.1, `sec` in later versions and here.
#[test]
fn root_unit_of_timers() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("sstimer");
    lab.syn_sent();
    let timer = |output: &Output| {
        let text = text(&output.stdout);
        let at = text.find("timer:(on,")? + "timer:(on,".len();
        let time = text[at..].split(',').next()?.to_owned();
        // At least 1.000 and less than 10.
        (time.as_bytes().get(1) == Some(&b'.'))
            .then(|| time.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned())
    };
    let unit = |ask: &dyn Fn() -> Output| {
        let mut found = None;
        wait_until("a timer between 1 and 10 seconds", || {
            found = timer(&ask());
            found.is_some()
        });
        found.unwrap()
    };
    assert_eq!(unit(&|| ours(&lab, &[], "-Htano")), "sec");
    let old = unit(&|| theirs(&lab, "-Htano"));
    assert_eq!(unit(&|| ours(&lab, OLD, "-Htano")), old);
}

/// A cgroup without a path: one line on stderr and no item; with `--bug-compatible`, an item without a path.
#[test]
fn root_cgroups_out_of_reach() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("sscgroup");
    lab.listen_tcp(3);
    let mut hidden = lab.command("unshare");
    // In these namespaces no cgroup file system is mounted, including those that process 1 sees.
    hidden.args(["-mpf", "--mount-proc", "sh", "-c"]).arg(
        "while read -r _ place kind _; do case $kind in cgroup2) umount -l \"$place\" ;; esac; done < \
         /proc/self/mounts; exec \"$0\" \"$@\"",
    );
    let run = |args: &[&str]| {
        let mut command = Command::new(hidden.get_program());
        command.args(hidden.get_args()).args(args).env("LC_ALL", "C").env("NETWREN_SS_LAYOUT", layout());
        command.output().unwrap()
    };
    let netwren = program::netwren().to_str().unwrap().to_owned();
    let theirs = run(&["ss", "-tane"]);
    assert!(text(&theirs.stdout).contains("cgroup:unreachable:"));
    let old = run(&[&netwren, "ss", "--bug-compatible", "-tane"]);
    assert_eq!(comparable(&theirs), comparable(&old));
    let right = run(&[&netwren, "ss", "-tane"]);
    assert!(!text(&right.stdout).contains("cgroup:"));
    let warnings = text(&right.stderr);
    assert_eq!(warnings.lines().filter(|line| line.contains("cgroup")).count(), 1, "{warnings}");
    assert!(right.status.success());
}

#[test]
fn root_another_namespace() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("ssother");
    lab.connect_v4(2);
    let outside = |args: &[&str]| {
        let mut command = Command::new(program::netwren());
        command.arg("ss").args(args).env("NETWREN_SS_LAYOUT", layout()).output().unwrap()
    };
    // A child of another test has a copy of these sockets until its exec.
    let agree = |args: &[&str], line: &str| comparable(&outside(args)) == comparable(&theirs(&lab, line));
    wait_until("both show the same", || agree(&["-tanN", lab.name()], "-tan"));
    wait_until("both show the same owners", || agree(&["--net", lab.name(), "-tanp"], "-tanp"));
    let missing = outside(&["-N", "no-such-namespace"]);
    let old = Command::new("ss").args(["-N", "no-such-namespace"]).env("LC_ALL", "C").output().unwrap();
    assert_eq!((text(&missing.stderr), missing.status.code()), (text(&old.stderr), old.status.code()));
}

/// The first line on stderr and the exit code for invalid command lines.
#[test]
fn mistakes_are_reported_as_ss_reports_them() {
    require_tool!("ss");
    for line in [
        "-y",
        "--foo",
        "-f",
        "--family",
        "-f foo",
        "--tcp=3",
        "--n",
        "--con",
        "-A foo",
        "-A tcp,foo",
        "state",
        "state foo",
        "exclude",
        "-A !tcp",
        "-t sport = 22 or 80",
        "-t src != 192.0.2.1",
        "-t dev > 2",
        "-t ( sport = 22",
        "-t ( )",
        "-t sport = 22 )",
        "-t sport =",
        "-t and",
        "-t sport = :nosuchname",
        "-t sport = nosuchname",
        "-t fwmark = x",
        "-t fwmark = 1/x",
        "-t dev nosuchdev",
        "-t src [::1",
        "-t sport = 1 sport",
    ] {
        let theirs = Command::new("ss").args(words(line)).env("LC_ALL", "C").output().unwrap();
        let mut command = Command::new(program::netwren());
        let ours = command.arg("ss").args(words(line)).env("NETWREN_SS_LAYOUT", layout()).output().unwrap();
        let first = |bytes: &[u8]| text(bytes).lines().next().unwrap_or_default().to_owned();
        assert_eq!(first(&theirs.stderr), first(&ours.stderr), "ss {line}");
        assert_eq!(theirs.status.code(), ours.status.code(), "ss {line}");
        assert_eq!(text(&theirs.stdout), text(&ours.stdout), "ss {line}");
    }
}

/// A link called ss needs no other word; scripts request the compatible output through the environment.
#[test]
fn root_a_link_called_ss() {
    require_root!();
    let lab = Lab::new("sslink");
    lab.listen((Ipv4Addr::LOCALHOST, 7001).into());
    let link = lab.dir().join("ss");
    std::os::unix::fs::symlink(program::netwren(), &link).unwrap();
    let run = |bug: &str, args: &[&str]| {
        let mut command = lab.command(&link);
        text(
            &command
                .args(args)
                .env("NETWREN_SS_LAYOUT", "6.1")
                .env("NETWREN_BUG_COMPATIBLE", bug)
                .output()
                .unwrap()
                .stdout,
        )
    };
    let expected = "LISTEN 0      128    127.0.0.1:7001 0.0.0.0:*\n";
    assert_eq!(run("0", &["-Hltn"]), expected);
    assert_eq!(run("1", &["-Hltn"]), expected);
    assert_eq!(run("0", &["--bug-compatible", "-Hltn"]), expected);
}

#[test]
fn a_reader_that_goes_away_and_a_full_disk() {
    let mut command = Command::new(program::netwren());
    let mut child = command.args(["ss", "-xan"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let out =
        Command::new(program::netwren()).args(["ss", "-tan"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("no space left on device"), "{}", text(&out.stderr));
}

/// Invalid command lines, the usage and the version: the same bytes on the same streams and the same exit code.
#[test]
fn root_issue_10_wrong_calls_are_sss() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("sswrong");
    // The usage of versions between the two layouts has fewer lines.
    let exact = [tool::Version(6, 1, 0), tool::Version(6, 15, 0)].contains(&tool::version("ss").unwrap());
    for line in [
        "--foo",
        "-Y",
        "-A",
        "-A foo",
        "-tA tcp,foo",
        "-f foo",
        "-f",
        "--net",
        "-N nosuch -t",
        "--tcp=1",
        "--so",
        "--t",
        "state foo",
        "-t state",
        "exclude",
        "-t dport = abc:xyz",
        "-t sport foo",
        "-F /nonexistent",
        "-t ( dport = 80",
        "-t dport = :nosuch",
        "-t dev nope0",
        "-t fwmark abc",
        "-t cgroup /nonexistent",
        "-t autobound foo",
        "-t dport 80 and",
        "-l state",
        "-D",
        "-Z",
        "-t sport < x",
        "-t dst [::",
        "-t foo bar",
        "-t not",
        "-t sport = :80 or",
        "-t src 10.0.0.0/99",
        "-t = 3",
        "-A !all",
        "-t dport eq 80 )",
        "-n --num --nonum",
        "-h",
        "--help",
        "-f help",
        "-V",
        "--version",
        "-v",
        "-th",
    ] {
        let (theirs, old, right) = (theirs(&lab, line), ours(&lab, OLD, line), ours(&lab, &[], line));
        assert_eq!([old.status.code(), right.status.code()], [theirs.status.code(); 2], "{line}");
        if !exact {
            continue;
        }
        assert_eq!(text(&old.stderr), text(&theirs.stderr), "{line}");
        assert_eq!(text(&old.stdout), text(&theirs.stdout), "{line}");
        // The only difference without `--bug-compatible` is additional text.
        assert_eq!(text(&right.stderr), text(&theirs.stderr), "{line}");
        assert!(text(&right.stdout).starts_with(text(&theirs.stdout).trim_end()), "{line}: {}", text(&right.stdout));
    }
}

/// The face uses the installed ss's layout if `NETWREN_SS_LAYOUT` is not set.
#[test]
fn root_issue_10_the_layout_is_the_installed_ones() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("sslayout");
    lab.connect_v4(2);
    let run = |layout: Option<&str>, path: Option<&str>| {
        let mut command = lab.command(program::netwren());
        command.args(["ss", "-tan"]).env_remove("NETWREN_SS_LAYOUT");
        layout.into_iter().for_each(|layout| _ = command.env("NETWREN_SS_LAYOUT", layout));
        path.into_iter().for_each(|path| _ = command.env("PATH", path));
        text(&command.output().unwrap().stdout)
    };
    let installed = if tool::version("ss").unwrap() >= tool::Version(6, 7, 0) { "6.15" } else { "6.1" };
    assert_eq!(run(None, None), run(Some(installed), None));
    assert_ne!(run(Some("6.1"), None), run(Some("6.15"), None));
    // A link to netwren is skipped, as is another program of that name.
    let dir = lab.dir().join("bin");
    std::fs::create_dir(&dir).unwrap();
    std::os::unix::fs::symlink(program::netwren(), dir.join("ss")).unwrap();
    let ip = "/usr/sbin:/sbin:/usr/bin:/bin";
    assert_eq!(run(None, Some(&format!("{}:{ip}", dir.display()))), run(Some(installed), None));
}

/// The output of a command on a terminal with this many columns, without messages about inaccessible owners.
fn on_terminal(lab: &Lab, columns: usize, command: &[&str]) -> String {
    let mut shell = lab.command("sh");
    shell.args(["-c", "exec \"$@\" 2>/dev/null", "sh"]).args(command).env("NETWREN_SS_LAYOUT", layout());
    let mut screen = Screen::start(shell, 24, columns);
    screen.wait_end();
    let grid = screen.grid();
    text(grid.received_bytes()).replace('\r', "")
}

/// On a terminal the columns fill the width, and columns that do not fit are moved to the next line.
#[test]
fn root_issue_10_columns_stretch_on_a_terminal() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("sspty");
    populate(&lab);
    let netwren = program::netwren();
    let netwren = netwren.to_str().unwrap();
    // ss ignores the width of the last cell in the last line, and with both families the last line differs from ours.
    for line in ["-tuan", "-xan", "-Htanp", "-ltn", "-tuanH state established", "-4tanm"] {
        for columns in [30, 80, 211] {
            let args = words(line);
            let both = || {
                let ours = on_terminal(&lab, columns, &[&[netwren, "ss", "--bug-compatible"], &args[..]].concat());
                [on_terminal(&lab, columns, &[&["ss"], &args[..]].concat()), ours].map(|text| mask::sorted_lines(&text))
            };
            let [theirs, ours] = until_equal(both, |[theirs, ours]| theirs == ours);
            assert_eq!(ours, theirs, "ss {line} at {columns} columns");
        }
    }
}

/// Rows are in ss's order within each address family; TCP reads both families at once, so IPv4 and IPv6 are mixed. The
/// order of netlink sockets varies between runs of ss itself.
#[test]
fn root_issue_10_rows_come_in_sss_order() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("ssorder");
    populate(&lab);
    lab.connect_v4(40);
    lab.connect_v6(40);
    lab.listen_tcp(10);
    for line in ["-Htan", "-Huan", "-Hxan", "-Hltn", "-H4tan", "-H6tan", "-Htuan"] {
        let families = |output: Output| {
            let text = mask::ss(&text(&output.stdout));
            let (v6, v4): (Vec<&str>, Vec<&str>) =
                text.lines().partition(|line| line.contains('[') || line.contains("*:"));
            [v4.join("\n"), v6.join("\n")]
        };
        let [theirs, ours] = until_equal(
            || [families(theirs(&lab, line)), families(ours(&lab, OLD, line))],
            |[theirs, ours]| theirs == ours,
        );
        assert_eq!(ours, theirs, "ss {line}");
    }
}

/// Only the kernel knows whether it chose a port: a service or client that requested a port from the range is not
/// autobound; a client's automatic port is, in the face and in native commands.
#[test]
fn root_issue_10_autobound_is_the_kernels_word() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("ssauto");
    populate(&lab);
    let asked: std::net::SocketAddr = (Ipv4Addr::LOCALHOST, 40_000).into();
    lab.listen(asked);
    lab.udp((Ipv4Addr::LOCALHOST, 40_001).into());
    for line in [
        "-tan autobound",
        "-uan autobound",
        "-tan not autobound",
        "-uan not autobound",
        "-tan autobound or sport = :40000",
        "-tan ( not autobound ) and sport > :1",
        "-xan autobound",
        "-xan not autobound",
    ] {
        same(&lab, OLD, line);
    }
    let shown = |filter: &str| {
        let mut command = lab.command(program::netwren());
        command.args(["sockets", "-H", "--no-owner", "--columns", "local_port", filter]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{filter}: {}", text(&output.stderr));
        text(&output.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let theirs: Vec<String> = text(&theirs(&lab, "-Htan autobound").stdout)
        .lines()
        .map(|line| line.split_whitespace().nth(3).unwrap().rsplit_once(':').unwrap().1.to_owned())
        .collect();
    let sorted = |mut ports: Vec<String>| {
        ports.sort();
        ports
    };
    assert!(!theirs.is_empty());
    assert_eq!(sorted(shown("proto = tcp and autobound = true")), sorted(theirs));
    assert!(!shown("proto in (tcp, udp) and autobound = true").iter().any(|port| port == "40000" || port == "40001"));
    assert!(
        shown("autobound = true and proto = unix").is_empty() || shown("proto = unix and autobound = yes").len() > 1
    );
}
