//! Checks that `log` needs nothing that docs/netwren-log.service forbids. Capabilities, address families and system
//! calls are read from the file, and `log` runs with only those.

use crate::going::Going;
use crate::log::{counted, logging, send, to_five};
use crate::run::{Ran, clean, command_for_anyone};
use std::collections::BTreeSet;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

const NOBODY: u32 = 65_534;

fn unit() -> String {
    std::fs::read_to_string(testkit::program::workspace().join("docs/netwren-log.service")).unwrap()
}

/// The words of a setting, from all its lines.
fn words(key: &str) -> Vec<String> {
    let unit = unit();
    let values = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    values.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

/// `netwren log ARGS` as the unit starts it: as a user with the unit's capabilities, which cannot gain more.
fn as_the_unit(lab: &Lab, trace: Option<&Path>, args: &[&str]) -> Command {
    let caps = |key: &str| {
        let named = words(key).into_iter().map(|cap| format!(",+{}", cap.trim_start_matches("CAP_").to_lowercase()));
        format!("-all{}", named.collect::<String>())
    };
    let (ambient, bounding) = (caps("AmbientCapabilities"), caps("CapabilityBoundingSet"));
    assert_eq!((words("NoNewPrivileges"), ambient.as_str()), (vec!["yes".to_owned()], "-all,+net_admin"));
    let mut line = match trace {
        Some(trace) => vec!["strace".to_owned(), "-fqq".into(), "-s0".into(), "-o".into(), trace.display().to_string()],
        None => Vec::new(),
    };
    let user = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
    line.extend(["setpriv".to_owned()].into_iter().chain(user));
    line.extend(["--clear-groups".to_owned(), "--no-new-privs".into(), format!("--bounding-set={bounding}")]);
    line.extend([format!("--inh-caps={ambient}"), format!("--ambient-caps={ambient}")]);
    line.push(command_for_anyone(&[]).get_program().to_str().unwrap().to_owned());
    let mut command = Command::new(&line[0]);
    clean(&mut command).args(&line[1..]).arg("log").args(args);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    command
}

/// A folder of that user, and the documented configuration with the service's folders replaced by it.
fn prepared(lab: &Lab, more: &str) -> (std::path::PathBuf, String) {
    let dir = lab.dir().join("service");
    std::fs::create_dir_all(&dir).unwrap();
    chown(&dir, Some(NOBODY), Some(NOBODY)).unwrap();
    std::fs::set_permissions(lab.dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let config = lab.dir().join("log.toml");
    let text = crate::service::documented(&dir).replace("json:/", &format!("{more}json:/"));
    std::fs::write(&config, text).unwrap();
    (dir, config.display().to_string())
}

/// Runs `log`, makes it log, reload and answer a status query, and ends it; returns its messages.
fn logs_and_ships(lab: &Lab, trace: Option<&Path>) -> Ran {
    let listener = lab.run_inside(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    let to_tcp = format!("syslog+tcp://{}\",\n    \"", listener.local_addr().unwrap());
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        text.matches(" netwren ").count()
    });
    let (dir, config) = prepared(lab, &to_tcp);
    let mut going: Going<String> =
        Going::spawn(as_the_unit(lab, trace, &["--config", &config, "--stats"]), |line| line);
    let control = dir.join("log.sock");
    testkit::wait_until("it answers", || control.exists() || going.child.try_wait().unwrap().is_some());
    if !control.exists() {
        panic!("{}", finished(going).stderr);
    }
    send(lab, to_five(), 500);
    let rows = dir.join("log.json");
    let lines = || std::fs::read_to_string(&rows).unwrap_or_default().lines().count();
    testkit::wait_until("half of the records", || lines() == 500);
    let old = dir.join("log.json.old");
    std::fs::rename(&rows, &old).unwrap();
    let pid = program_of(going.child.id(), trace.is_some());
    let _ends = EndsWithTest(pid.clone());
    let signal = |name: &str| assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    signal("-HUP");
    send(lab, to_five(), 500);
    testkit::wait_until("the other half in a new file", || lines() == 500);
    let mut status = Command::new(testkit::program::netwren());
    let status = clean(&mut status).args(["log", "status", "--control"]).arg(&control).output().unwrap();
    assert!(Ran::of(status).ok().contains("json:"));
    signal("-TERM");
    let ran = finished(going);
    assert_eq!(counted(lab, "7009"), 1000);
    assert_eq!(reader.join().unwrap(), 1000, "by TCP: {}", ran.stderr);
    ran
}

/// Kills a process if the test fails, because a killed strace leaves the traced process running.
struct EndsWithTest(String);

impl Drop for EndsWithTest {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = Command::new("kill").args(["-KILL", &self.0]).status();
        }
    }
}

/// The pid of the program, which is a child of strace if it is traced.
fn program_of(pid: u32, is_traced: bool) -> String {
    if !is_traced {
        return pid.to_string();
    }
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.trim().to_owned()
}

fn finished(mut going: Going<String>) -> Ran {
    let mut stderr = String::new();
    going.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let code = going.child.wait().unwrap().code().unwrap_or(-1);
    let stdout = going.lines.iter().collect::<Vec<_>>().join("\n");
    Ran { stdout, stderr, code }
}

/// With only the unit's capability it binds, enlarges its buffer, logs, ships and counts. Ambient capabilities are not
/// file capabilities, so netwren starts.
#[test]
fn root_log_runs_with_the_capabilities_of_its_unit() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("setpriv");
    let lab = logging("unitcaps");
    let ran = logs_and_ships(&lab, None);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ledger: serde_json::Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    for output in ledger["outputs"].as_array().unwrap() {
        assert_eq!((&output["seen"], &output["delivered"]), (&1000.into(), &1000.into()), "{output}");
        assert_eq!(output["lost_in_kernel"], 0);
    }
    // If the capability is missing, the message names it.
    let with = as_the_unit(&lab, None, &["--group", "3"]);
    let mut bare = Command::new(with.get_program());
    clean(&mut bare).args(with.get_args().map(|arg| arg.to_str().unwrap().replace(",+net_admin", "")));
    confine(&mut bare, &[Limit::Network(lab.path())]).unwrap();
    Ran::of(bare.output().unwrap()).says(4, &["operation not permitted"]);
}

/// Adds the names in one of systemd's system call sets, including nested sets.
fn calls_of(set: &str, into: &mut BTreeSet<String>) {
    if !set.starts_with('@') {
        into.insert(set.to_owned());
        return;
    }
    let listed = Command::new("systemd-analyze").args(["--no-pager", "syscall-filter", set]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(!listed.is_empty(), "{set}");
    let names = listed.lines().skip(1).map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    names.for_each(|name| calls_of(name, into));
}

/// The calls in a trace that were made by netwren itself, from its exec on, without pids.
fn calls(trace: &str) -> Vec<&str> {
    let begin = trace.rfind("execve(").unwrap();
    let lines = trace[begin..].lines().skip(1).map(|line| line.split_once(char::is_whitespace).map_or("", |(_, l)| l));
    lines.map(str::trim_start).filter(|line| line.contains('(') && !line.starts_with("<...")).collect()
}

/// netwren makes no system call that the unit's filter refuses, opens no socket of another family, and maps no memory
/// as writable and executable.
#[test]
fn root_log_makes_no_call_that_its_unit_refuses() {
    testkit::require_root!();
    for tool in ["nft", "setpriv", "strace", "systemd-analyze"] {
        if !testkit::tool::require(tool) {
            return;
        }
    }
    let lab = logging("unitcalls");
    let trace = lab.dir().join("trace");
    // strace's own system calls would be forbidden by these limits, so strace runs outside them.
    std::fs::write(&trace, "").unwrap();
    let ran = logs_and_ships(&lab, Some(&trace));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let (mut allowed, mut refused) = (BTreeSet::new(), BTreeSet::new());
    let mut is_refused = false;
    for word in words("SystemCallFilter") {
        is_refused = word.starts_with('~') || is_refused;
        let set = if is_refused { &mut refused } else { &mut allowed };
        calls_of(word.trim_start_matches('~'), set);
    }
    assert!(allowed.len() > 100 && refused.len() > 20);
    let families = words("RestrictAddressFamilies");
    let text = std::fs::read_to_string(&trace).unwrap();
    let calls = calls(&text);
    assert!(calls.len() > 200 && calls.iter().any(|call| call.contains("SO_RCVBUFFORCE") && call.ends_with("= 0")));
    // Calls of newer kernels or libcs: older versions of systemd do not list them, and the libc works without them.
    let newer = ["rseq", "clone3", "exit"];
    for call in calls {
        let (name, rest) = call.split_once('(').unwrap();
        let is_allowed = allowed.contains(name) && !refused.contains(name) || newer.contains(&name);
        assert!(is_allowed || name.starts_with("+++") || name.starts_with("---"), "{call}");
        if name == "socket" {
            let family = rest.split(',').next().unwrap();
            assert!(families.iter().any(|allowed| allowed == family), "{call}");
        }
        let runs = rest.contains("PROT_EXEC");
        assert!(!(runs && (name == "mprotect" || rest.contains("PROT_WRITE"))), "{call}");
    }
}

/// systemd accepts the units without messages and rates them as well protected.
#[test]
fn systemd_takes_the_units() {
    if !testkit::tool::require("systemd-analyze") {
        return;
    }
    for name in ["netwren-log.service", "netwren-agent.service"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        let text = std::fs::read_to_string(testkit::program::workspace().join("docs").join(name)).unwrap();
        let program = testkit::program::netwren().display().to_string();
        std::fs::write(&path, text.replace("/usr/bin/netwren", &program)).unwrap();
        let run = |args: &[&str]| Ran::of(Command::new("systemd-analyze").args(args).arg(&path).output().unwrap());
        let verified = run(&["--no-pager", "--man=no", "verify"]);
        let about_it = verified.stderr.lines().filter(|line| line.contains("netwren")).collect::<Vec<_>>();
        assert!(about_it.is_empty(), "{about_it:?}");
        run(&["--no-pager", "--offline=true", "--threshold=20", "security"]).ok();
    }
}
