//! `netwren.sh` on machines that lack something: what it says, and that it installs nothing it was not asked for.
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Programs of every Debian, without a compiler and without `apt-get`.
const BARE: &[&str] = &["bash", "env", "awk", "sed", "sort", "head", "dirname", "cat", "cc"];

/// A `PATH` with these programs alone; its folder is the home, too.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new(programs: &[&str]) -> Machine {
        let dir = tempfile::tempdir().expect("a folder can be made");
        for name in programs {
            symlink(found(name), dir.path().join(name)).expect("a link can be made");
        }
        Machine { dir }
    }

    /// Adds a program that is this script.
    fn with(self, name: &str, script: &str) -> Machine {
        let script = format!("#!{}\n{script}\n", found("bash").display());
        testkit::program::install_script(&self.dir.path().join(name), &script);
        self
    }

    fn script(&self, args: &[&str]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../netwren.sh");
        let mut command = Command::new(found("bash"));
        command.arg(script).args(args).env_clear().env("PATH", self.dir.path()).env("HOME", self.dir.path());
        command.stdin(std::process::Stdio::null()).output().expect("bash starts")
    }
}

fn found(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.exists()).expect(name)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn issue_10_without_any_compiler_the_script_says_what_it_needs() {
    let output = Machine::new(BARE).script(&["run"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("netwren needs Rust >= 1.85; found: none"), "{}", stderr(&output));
}

/// Debian 12: its own cargo is too old, the one beside it is not.
#[test]
fn issue_10_the_first_compiler_that_is_new_enough_is_installed() {
    let policy = r#"case $2 in
        cargo) echo '  Candidate: 0.66.0+ds1-1' ;;
        cargo-web) echo '  Candidate: 1.85.0+dfsg3-1~deb12u3' ;;
    esac"#;
    // What would be installed stands in a file; nothing is, so the script must say that it does not run.
    let machine = Machine::new(BARE)
        .with("apt-cache", policy)
        .with("apt-get", r#"echo "$*" >>"$HOME/calls""#)
        .with("sudo", r#""$@""#);
    let output = machine.script(&["build"]);
    let calls = std::fs::read_to_string(machine.dir.path().join("calls")).expect("apt-get was called");
    assert!(calls.contains("cargo-web rustc-web"), "{calls}");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cargo-web is installed, but does not run"), "{}", stderr(&output));
}

#[test]
fn issue_10_a_lab_without_a_name_installs_nothing() {
    let machine = Machine::new(BARE).with("apt-get", r#"echo "$*" >>"$HOME/calls""#);
    for args in [&["lab"][..], &["lab", "typo"], &["lab", "--help"]] {
        let output = machine.script(args);
        let code = if args.contains(&"--help") { 0 } else { 2 };
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", stderr(&output));
        assert!(!machine.dir.path().join("calls").exists(), "{args:?}");
    }
}

/// All that `kernels` needs is installed by one call.
#[test]
fn issue_10_kernels_installs_its_tools_at_once() {
    let machine = Machine::new(BARE).with("apt-get", r#"echo "$*" >>"$HOME/calls""#).with("sudo", r#""$@""#);
    let _ = machine.script(&["kernels"]);
    let calls = std::fs::read_to_string(machine.dir.path().join("calls")).expect("apt-get was called");
    let installs: Vec<&str> = calls.lines().filter(|line| line.contains(" install ")).collect();
    for package in ["qemu-system-x86", "busybox-static", "cpio"] {
        assert!(installs.first().is_some_and(|line| line.contains(package)), "{package}: {calls}");
    }
}
