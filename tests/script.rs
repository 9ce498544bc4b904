//! `netwren.sh` on incomplete machines: its messages, and that it installs nothing unless asked.
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Programs that every Debian has, without a compiler and without `apt-get`.
const BARE: &[&str] = &["bash", "env", "awk", "sed", "sort", "head", "dirname", "cat", "cc"];

/// A `PATH` with only these programs; its folder is also the home directory.
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

    /// Adds a program with this script.
    fn with(self, name: &str, script: &str) -> Machine {
        let script = format!("#!{}\n{script}\n", found("bash").display());
        testkit::program::install_script(&self.dir.path().join(name), &script);
        self
    }

    fn script(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("bash starts")
    }

    fn command(&self, args: &[&str]) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../netwren.sh");
        let mut command = Command::new(found("bash"));
        command.arg(script).args(args).env_clear().env("PATH", self.dir.path()).env("HOME", self.dir.path());
        command.stdin(Stdio::null());
        command
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

/// On Debian 12 the default cargo is too old, but the alternative package is recent enough.
#[test]
fn issue_10_the_first_compiler_that_is_new_enough_is_installed() {
    let policy = r#"case $2 in
        cargo) echo '  Candidate: 0.66.0+ds1-1' ;;
        cargo-web) echo '  Candidate: 1.85.0+dfsg3-1~deb12u3' ;;
    esac"#;
    // apt-get only writes its arguments to a file, so the script must report that the compiler does not run.
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

/// Every tool that `kernels` needs is installed with one call of apt-get.
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

/// apt-get does not wait for the lock on the package lists, so the script waits until the other apt ends. Both use the
/// test's own directories.
#[test]
fn root_the_script_waits_for_another_apt() {
    testkit::require_root!();
    for tool in ["apt-get", "apt-cache", "python3"] {
        testkit::require_tool!(tool);
    }
    let machine = Machine::new(&[BARE, &["apt-get", "apt-cache", "sleep"]].concat());
    let home = machine.dir.path();
    for folder in ["state/lists/partial", "cache/archives/partial"] {
        std::fs::create_dir_all(home.join(folder)).expect("folders can be made");
    }
    let home = home.display();
    let config = format!(
        "Dir::State \"{home}/state\"; Dir::State::lists \"{home}/state/lists\"; Dir::Cache \"{home}/cache\";
         Dir::Etc::sourcelist \"/dev/null\"; Dir::Etc::sourceparts \"/dev/null\"; APT::Update::Post-Invoke \"\";"
    );
    std::fs::write(machine.dir.path().join("apt.conf"), config).expect("a file can be written");
    // apt uses fcntl(2) locks, not flock(2).
    let hold = format!(
        "import fcntl, sys; f = open('{home}/state/lists/lock', 'w'); fcntl.lockf(f, fcntl.LOCK_EX);
print('held', flush=True); sys.stdin.read()"
    );
    let mut other = Command::new("python3");
    let mut other = other.args(["-c", &hold]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut held = String::new();
    BufReader::new(other.stdout.take().expect("piped")).read_line(&mut held).expect("it says that it holds the lock");
    let mut command = machine.command(&["build"]);
    command.env("APT_CONFIG", machine.dir.path().join("apt.conf")).stderr(Stdio::piped());
    let mut script = command.spawn().expect("bash starts");
    let mut said = BufReader::new(script.stderr.take().expect("piped"));
    let mut waits = String::new();
    said.read_line(&mut waits).expect("it says that it waits");
    assert!(waits.starts_with("netwren.sh: waiting for another apt to end: E: Could not get lock"), "{waits}");
    drop(other.stdin.take());
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("it goes on");
    assert!(rest.contains("netwren needs Rust >= 1.85; found: none") && !rest.contains("lock"), "{rest}");
    assert_eq!(script.wait().expect("it ends").code(), Some(1));
    other.wait().expect("it ends");
}

/// The script retries an installation only while a lock is held; any other error ends the script.
#[test]
fn the_script_tries_again_only_while_a_lock_is_held() {
    let policy = "echo '  Candidate: 1.85.0'";
    let apt_get = r#"echo "$*" >>"$HOME/calls"
        [[ $* == *install* ]] || exit 0
        [[ -e $HOME/tried ]] && { echo 'E: Unable to locate package' >&2; exit 100; }
        : >"$HOME/tried"
        echo 'E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1 (apt)' >&2
        exit 100"#;
    let programs = [BARE, &["sleep"]].concat();
    let machine = Machine::new(&programs).with("apt-cache", policy).with("apt-get", apt_get).with("sudo", r#""$@""#);
    let output = machine.script(&["build"]);
    let said = stderr(&output);
    for line in
        ["waiting for another apt to end: E: Could not get lock", "E: Unable to locate package", "could not install"]
    {
        assert!(said.contains(line), "{line}: {said}");
    }
    let calls = std::fs::read_to_string(machine.dir.path().join("calls")).expect("apt-get was called");
    assert_eq!(calls.lines().filter(|line| line.contains(" install ")).count(), 2, "{calls}");
}
