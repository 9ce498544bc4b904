//! Checks that all output fits the terminal: help, texts and tables of the whole program, in pseudo-terminals of given
//! sizes.

use crate::run::{clean, command, netwren};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};
use testkit::screen::{self, Screen};

/// A terminal's size: columns, rows.
type Size = (usize, usize);

const SIZES: [Size; 3] = [(80, 24), (120, 40), (200, 50)];

/// The lines that netwren writes to a terminal of this size, without colour; `None` if there are no terminals.
fn on_terminal(size: Size, args: &[&str], prepare: impl FnOnce(&mut Command)) -> Option<Vec<String>> {
    let mut command = command(args);
    prepare(&mut command);
    written(size, command)
}

/// The lines that a command writes to a terminal of this size.
fn written(size: Size, mut command: Command) -> Option<Vec<String>> {
    if !screen::are_available() {
        testkit::print_loud("skipped: there are no terminals here (/dev/pts)");
        return None;
    }
    clean(&mut command).env("NO_COLOR", "1").env("TERM", "xterm");
    let mut screen = Screen::start(command, size.1, size.0);
    screen.wait_end();
    let text = String::from_utf8(screen.grid().received_bytes().to_vec()).expect("what a terminal gets is UTF-8");
    // netwren erases the progress line before the rows, so the screen shows only the text after the erasure.
    let shown = |line: &str| line.rsplit("\r\x1b[K").next().unwrap_or_default().to_owned();
    Some(text.split_terminator("\r\n").map(shown).collect())
}

/// Lines that are wider than the terminal or contain control characters.
fn unfit(lines: &[String], size: Size) -> Vec<&String> {
    let is_unfit = |line: &&String| sinks::width_of(line) > size.0 || line.contains(char::is_control);
    lines.iter().filter(is_unfit).collect()
}

/// Every command that has a help text.
fn commands_with_help() -> Vec<String> {
    let mut found = vec![String::new()];
    let mut next = 0;
    while let Some(above) = found.get(next).cloned() {
        next += 1;
        let mut args: Vec<&str> = above.split_whitespace().collect();
        args.push("--help");
        let help = netwren(&args).stdout;
        let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        // A name is indented by two blanks; continued sentences are indented further.
        let names = listed.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
        let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
        found.extend(names.map(|name| format!("{above} {name}").trim().to_owned()));
    }
    found
}

#[test]
fn issue_15_every_help_fits_80_columns() {
    let commands = commands_with_help();
    assert!(commands.len() > 30 && commands.iter().any(|name| name == "nat stateless plan"), "{commands:?}");
    let mut wide = Vec::new();
    for command in &commands {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let Some(lines) = on_terminal((80, 24), &args, |_| ()) else { return };
        assert!(lines.len() > 3, "{command}: {lines:?}");
        wide.extend(unfit(&lines, (80, 24)).into_iter().map(|line| format!("{command} on a terminal: {line}")));
        let piped = netwren(&args).ok();
        wide.extend(piped.lines().filter(|line| sinks::width_of(line) > 80).map(|line| format!("{command}: {line}")));
    }
    assert!(wide.is_empty(), "{} lines:\n{}", wide.len(), wide.join("\n"));
}

/// Texts that are not tables, and messages.
#[test]
fn issue_15_texts_and_messages_fit_80_columns() {
    for args in [
        &["support"][..],
        &["help", "filters"],
        &["help", "columns"],
        &["help", "columns", "sockets"],
        &["help", "columns", "drops"],
        &["sockets", "--columns", "help"],
        &["sockets", "--explain", "state = listen and process ~ \"^nginx$\" or peer in 10.0.0.0/8"],
        &["doctor", "--explain"],
        &["nat", "advise", "--for", "0"],
        &["sockets", "stat = listen"],
        &["sockets", "--nonsense"],
        &["sockets", "--dry-run", "--list"],
        &["nat", "--replay", "/nonexistent/recording"],
        &["capture", "stats"],
    ] {
        for width in [80, 60] {
            let Some(lines) = on_terminal((width, 24), args, |_| ()) else { return };
            assert!(!lines.is_empty(), "{args:?}");
            // On a terminal narrower than 80 columns, a command to copy is not wrapped.
            let is_command = |line: &&String| width < 80 && line.trim_start().starts_with("netwren ");
            let wide: Vec<&String> = unfit(&lines, (width, 24)).into_iter().filter(|line| !is_command(line)).collect();
            assert!(wide.is_empty(), "{args:?} at {width}: {wide:#?}");
        }
    }
}

/// A table of each command that reads one, on a host with hostile names.
#[test]
fn root_issue_15_every_table_fits_its_terminal() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let lab = Lab::new("fitting");
    let _kept = hostile_sockets(&lab);
    for args in [
        &["sockets"][..],
        &["sockets", "-o", "wide"],
        &["sockets", "-o", "plain"],
        &["sockets", "--columns", "all"],
        &["sockets", "proto = unix"],
        &["sockets", "--by", "process,state,path", "--sum", "recv_q,send_q"],
        &["listeners"],
        &["flows"],
        &["routes"],
        &["nat"],
        &["nat", "stats"],
        &["nat", "stats", "-o", "wide"],
        &["nat", "top"],
        &["nat", "advise", "-o", "wide", "--for", "0"],
        &["counters"],
        &["counters", "-o", "plain"],
        &["doctor", "-o", "wide"],
        &["drops", "--for", "0.1", "--all"],
        &["capture", "latency", "--for", "0"],
        &["support", "-o", "plain"],
        &["support", "-o", "wide"],
    ] {
        let sizes = if args == ["sockets"] { &SIZES[..] } else { &SIZES[..1] };
        for &size in sizes {
            let inside = |command: &mut Command| confine(command, &[Limit::Network(lab.path())]).unwrap();
            let Some(lines) = on_terminal(size, args, inside) else { return };
            let wide = unfit(&lines, size);
            assert!(wide.is_empty(), "{args:?} at {size:?}: {wide:#?}");
        }
    }
}

/// A listener whose process name the kernel truncates after 15 bytes.
const HOSTILE_PROCESS: &str = "\
import signal, socket
open('/proc/self/comm', 'wb').write(b'\\x1b[2J\\xe6\\x97\\xa5\\xe6\\x9c\\xac,[x')
listener = socket.create_server(('::1', 0), family=socket.AF_INET6)
signal.pause()
";

/// Sockets of a process and paths with hostile, wide and long names.
fn hostile_sockets(lab: &Lab) -> Vec<UnixListener> {
    lab.spawn("python3", &["-c", HOSTILE_PROCESS]);
    lab.wait_until("it listens", || lab.ss_count() > 0);
    let dir = lab.dir().display().to_string();
    // The kernel accepts paths of up to 107 bytes.
    let names = ["\u{1b}[2J\u{1b}[31mred\u{202e}".to_owned(), "データベース".to_owned(), "p".repeat(106 - dir.len())];
    lab.run_inside(|| names.iter().map(|name| UnixListener::bind(Path::new(&dir).join(name)).unwrap()).collect())
}

/// Tables of recordings, compared byte for byte; this runs on any machine.
#[test]
fn replay_issue_15_tables_at_three_sizes() {
    let tape = |name: &str| testkit::program::workspace().join("fixtures/tape/6.18").join(name).display().to_string();
    for size in SIZES {
        let mut text = String::new();
        for (table, args) in [
            ("sockets", &[][..]),
            ("sockets", &["-o", "wide", "--limit", "4"]),
            ("sockets", &["-o", "plain", "--limit", "3"]),
            ("sockets", &["proto = unix"]),
            ("sockets", &["--by", "proto,state", "--sum", "recv_q", "--sort", "proto,state"]),
            ("flows", &[]),
        ] {
            let file = tape(&format!("{table}.tape"));
            let args: Vec<&str> = [&[table][..], args, &["--replay", &file]].concat();
            // Messages depend on the privileges of the user who runs the tests.
            let mut without_messages = Command::new("sh");
            without_messages
                .args(["-c", "exec \"$0\" \"$@\" 2>/dev/null"])
                .arg(testkit::program::netwren())
                .args(&args);
            let Some(lines) = written(size, without_messages) else { return };
            assert!(unfit(&lines, size).is_empty(), "{args:?}");
            text.push_str(&format!("$ netwren {}\n{}\n", args[..args.len() - 2].join(" "), lines.join("\n")));
        }
        snapbox::assert_data_eq!(text, crate::goldens::golden(&format!("terminal-{}.txt", size.0)));
    }
}

/// In a pipe values are not truncated, have no units and no local times; `-o plain` is aligned there, within COLUMNS
/// if set.
#[test]
fn replay_issue_15_a_pipe_has_exact_values() {
    let file = testkit::program::workspace().join("fixtures/tape/6.18/sockets.tape").display().to_string();
    let args = ["sockets", "--no-owner", "--columns", "state,peer_addr,rtt_us,path", "--replay", &file];
    let piped = netwren(&args).ok_but_owners();
    assert_eq!(piped.lines().next(), Some("state\tpeer_addr\trtt_us\tpath"));
    let plain = netwren(&[&args[..], &["-o", "plain"]].concat()).ok_but_owners();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&plain), words(&piped), "cell by cell the same");
    let mut narrow = command(&[&args[..], &["-o", "plain"]].concat());
    let narrow = crate::run::Ran::of(narrow.env("COLUMNS", "40").output().unwrap()).ok_but_owners();
    assert!(narrow.lines().all(|line| sinks::width_of(line) <= 40), "{narrow}");
}
