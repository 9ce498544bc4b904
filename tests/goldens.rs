//! Output for command lines, compared byte for byte. `SNAPSHOTS=overwrite cargo test golden_` stores the new text.

use crate::run::{command, netwren};
use snapbox::{Data, assert_data_eq};
use std::path::Path;

pub(crate) fn golden(name: &str) -> Data {
    Data::read_from(&Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name), None).raw()
}

fn check(name: &str, args: &[&str]) {
    let ran = netwren(args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_data_eq!(ran.stdout, golden(name));
}

#[test]
fn golden_help() {
    check("help.txt", &["--help"]);
    check("sockets-help.txt", &["sockets", "--help"]);
    check("flows-help.txt", &["flows", "--help"]);
    check("record-help.txt", &["record", "--help"]);
    check("support-help.txt", &["support", "--help"]);
}

#[test]
fn golden_columns() {
    check("sockets-columns.txt", &["sockets", "--columns", "help"]);
    check("flows-columns.txt", &["flows", "--columns", "help"]);
}

#[test]
fn golden_errors() {
    let mut said = String::new();
    for args in [
        &["sockets", "stat = listen"][..],
        &["sockets", "state = lisning"],
        &["sockets", "state = "],
        &["sockets", "peer_addr = 10.0.0.0/33"],
        &["sockets", "rtt > 20 parsecs"],
        &["sockets", "process ~ '('"],
        &["sockets", "(state = listen"],
        &["sockets", "--columns", "stat"],
        &["sockets", "--sort", "peer_a"],
        &["sockets", "dst 10.1.2.3 lisen"],
        &["sockets", "--state", "listen"],
        &["nat", "delete", "--dry-run", "dport = 53"],
        &["sockets", "--by", "owners"],
        &["sockets", "--sum", "recv_q"],
        &["sockets", "--limit", "many"],
        &["sockets", "-o", "yaml"],
        &["sockets", "--netns", "no-such-namespace"],
        &["sockets", "--replay", "/nowhere/at/all"],
        &["sockets", "--record", "a", "--replay", "b"],
        &["flows", "connections > 1 or state = listen"],
        &["socket"],
    ] {
        let ran = netwren(args);
        assert_eq!(ran.stdout, "", "{args:?}");
        said += &format!("$ netwren {}\n{}exit {}\n\n", args.join(" "), ran.stderr, ran.code);
    }
    // The list of existing namespaces changes with other tests.
    let said = said.lines().map(|line| line.split(": have ").next().unwrap_or(line)).collect::<Vec<_>>().join("\n");
    assert_data_eq!(said + "\n", golden("errors.txt"));
}

#[test]
fn every_error_of_the_command_line_exits_with_2() {
    for args in [&["sockets", "nonsense = 1"][..], &["sockets", "--nonsense"], &["nonsense"], &["flows", "--limit"]] {
        assert_eq!(netwren(args).code, 2, "{args:?}");
    }
}

#[test]
fn version_is_printed() {
    let text = netwren(&["--version"]).ok();
    assert!(text.starts_with("netwren ") && text.lines().count() == 1, "{text}");
    assert_eq!(netwren(&["-V"]).ok(), text);
    let detailed = netwren(&["--version", "-v"]).ok();
    assert!(detailed.starts_with(&text) && detailed.contains("\nfeatures: "), "{detailed}");
}

/// A link named like a tool runs the face of that tool.
#[test]
fn a_link_is_a_face() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["ss", "netstat", "lstf", "ulogd", "dropwatch"] {
        let link = dir.path().join(name);
        std::os::unix::fs::symlink(testkit::program::netwren(), &link).unwrap();
        let called = std::process::Command::new(&link).arg("--help").output().unwrap();
        let direct = command(&[name, "--help"]).output().unwrap();
        assert_eq!(called, direct, "{name}");
        assert!(!called.stdout.is_empty() || !called.stderr.is_empty(), "{name}");
    }
}
