//! The lstf face from outside: the output of each switch, its stream, and the exit codes.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn lstf(args: &[&str]) -> Output {
    let mut command = Command::new(testkit::program::netwren());
    command.arg("lstf").args(args).env_remove("NETWREN_BUG_COMPATIBLE").output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn help_is_no_error() {
    for switch in ["--help", "-h"] {
        let out = lstf(&[switch]);
        assert_eq!(out.status.code(), Some(0));
        assert!(text(&out.stdout).starts_with("Usage: lstf [options]\n"), "{out:?}");
        assert!(out.stderr.is_empty());
    }
}

/// lstf prints its version on stderr; the words before the build are the same.
#[test]
fn version() {
    for switch in ["--version", "-v"] {
        let out = lstf(&[switch]);
        assert_eq!(out.status.code(), Some(0));
        assert!(text(&out.stderr).starts_with("lstf version 0.7.2, build "), "{out:?}");
        assert!(text(&out.stderr).ends_with(", date  \n"));
        assert!(out.stdout.is_empty());
    }
}

#[test]
fn credits() {
    let out = lstf(&["--credits"]);
    assert_eq!(out.status.code(), Some(0));
    assert!(!out.stdout.is_empty());
}

#[test]
fn mistakes_end_with_lstfs_exit_code_and_name_the_native_way() {
    for args in [&["-x"][..], &["--nonsense"], &["-f", "some"], &["-f"], &["-w=x"]] {
        let out = lstf(args);
        assert_eq!(out.status.code(), Some(11), "{args:?}");
        assert!(text(&out.stderr).starts_with("netwren: lstf: "), "{out:?}");
        assert!(out.stdout.is_empty());
    }
    assert!(text(&lstf(&["-x"]).stderr).contains("`netwren flows --help`"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let netwren = testkit::program::netwren().display();
    let script = format!("{netwren} lstf -n --json | true; exit \"${{PIPESTATUS[0]}}\"");
    let out = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{out:?}");
}
