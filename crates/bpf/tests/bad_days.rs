//! Missing rights, refused calls, killed processes.
//!
//! A test that needs a process of its own starts this binary again for one of the `child_…` functions below.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bpf::{Ability, LoadSpec, load, try_abilities};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use sys::{Errno, Host, caps::Cap};
use testkit::sandbox::{Limit, confine};

static OBJECT: &[u8] = include_bytes!("../objects/selftest.o");
const AS_CHILD: &str = "NETWREN_TEST_AS_CHILD";

fn child(function: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", function, "--nocapture", "--test-threads=1"]).env(AS_CHILD, "1");
    command
}

fn is_child() -> bool {
    std::env::var_os(AS_CHILD).is_some()
}

/// The text that a child under these limits prints after `said: `.
fn said(function: &str, limits: &[Limit]) -> String {
    let mut command = child(function);
    confine(&mut command, limits).unwrap();
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("said: ")).map(|(_, said)| said.to_owned());
    line.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn child_loads() {
    if is_child() {
        let spec = LoadSpec { object: OBJECT, programs: &["tasks"], constants: &[], entries: &[] };
        match load(&Host::live(), &spec) {
            Ok(_) => println!("said: loaded"),
            Err(error) => println!("said: {} {error}", error.is_unavailable()),
        }
    }
}

#[test]
fn child_probes() {
    if is_child() {
        let all = try_abilities(&Host::live());
        let there: Vec<_> = all.iter().filter(|one| one.error.is_none()).map(|one| one.ability.name()).collect();
        println!("said: {} of {}: {}", there.len(), all.len(), there.join(", "));
    }
}

#[test]
fn child_holds_programs() {
    if is_child() {
        let spec = LoadSpec { object: OBJECT, programs: &["tasks", "changed", "fill"], constants: &[], entries: &[] };
        let loaded = load(&Host::live(), &spec).unwrap();
        let _links = ["tasks", "changed"].map(|name| loaded.program(name).unwrap().attach().unwrap());
        println!("said: ready");
        loop {
            std::thread::park();
        }
    }
}

#[test]
fn root_without_rights_it_says_which() {
    testkit::require_root!();
    let without = |caps: &[Cap]| said("child_loads", &[Limit::WithoutCaps(caps.to_vec())]);
    assert_eq!(without(&[]), "loaded");
    let none = without(&[Cap::Bpf, Cap::Perfmon, Cap::SysAdmin]);
    assert!(none.starts_with("true cannot load BPF"), "{none}");
    assert!(none.ends_with("(needs CAP_BPF and CAP_PERFMON; see `netwren support`)"), "{none}");
    assert!(without(&[Cap::Perfmon, Cap::SysAdmin]).ends_with(&none[none.len() - 40..]), "CAP_BPF alone is not enough");
    let probed = said("child_probes", &[Limit::WithoutCaps(vec![Cap::Bpf, Cap::Perfmon, Cap::SysAdmin])]);
    assert_eq!(probed, "1 of 8: kernel types");
}

#[test]
fn root_where_bpf_is_refused_nothing_breaks() {
    testkit::require_root!();
    let refused = said("child_loads", &[Limit::NoBpf(Errno::NOSYS)]);
    assert!(refused.starts_with("true cannot create BPF map .rodata"), "{refused}");
    assert_eq!(said("child_probes", &[Limit::NoBpf(Errno::NOSYS)]), "1 of 8: kernel types");
    assert!(said("child_loads", &[Limit::NoBpf(Errno::PERM)]).starts_with("true cannot"));
}

#[test]
fn root_this_kernel_has_all_or_says_since_when() {
    testkit::require_root!();
    let all = try_abilities(&Host::live());
    assert_eq!(all.iter().map(|one| one.ability).collect::<Vec<_>>(), Ability::ALL);
    for one in all.iter().filter(|one| one.error.is_some()) {
        let error = one.error.as_ref().unwrap();
        assert!(sys::Kernel::read_running().version() < (6, 9), "{}: {error}", one.ability.name());
    }
}

#[test]
fn root_nothing_outlives_a_killed_process() {
    testkit::require_root!();
    let mut process = child("child_holds_programs").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let ready = lines.any(|line| line.unwrap().ends_with("said: ready"));
    let held = programs_of(process.id());
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(ready && held.len() >= 3, "{held:?}");
    testkit::wait_until("the programs to go", || {
        let loaded = sys::bpf::loaded_programs().unwrap();
        !loaded.iter().any(|program| held.contains(&program.id))
    });
}

/// Ids of the programs that a process holds, including those held through links.
fn programs_of(pid: u32) -> BTreeSet<u32> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap();
    let mut found = BTreeSet::new();
    for file in folder {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap_or_default();
        let ids = text.lines().filter_map(|line| line.strip_prefix("prog_id:"));
        found.extend(ids.filter_map(|id| id.trim().parse::<u32>().ok()));
    }
    found
}

/// Attaches an XDP program to `lo` of its network namespace, prints the lines of fdinfo about the link, and waits.
const HOLDS_XDP: &str = r#"
import ctypes, os, socket, struct, sys
libc = ctypes.CDLL(None)
def bpf(command, attr):
    attr = ctypes.create_string_buffer(attr, 128)
    return libc.syscall({"x86_64": 321, "aarch64": 280}[os.uname().machine], command, attr, len(attr))
code = ctypes.create_string_buffer(struct.pack("=BBhiBBhi", 0xB7, 0, 0, 2, 0x95, 0, 0, 0), 16)
license = ctypes.create_string_buffer(b"GPL")
program = bpf(5, struct.pack("=IIQQ", 6, 2, ctypes.addressof(code), ctypes.addressof(license)))
link = bpf(28, struct.pack("=IIII", program, socket.if_nametoindex("lo"), 37, 2))
print(open("/proc/self/fdinfo/%d" % link).read() + "ready", flush=True)
sys.stdin.read()
"#;

#[test]
fn root_the_link_that_holds_an_xdp_program_is_listed() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let mut holder = Command::new("unshare");
    holder.args(["--net", "python3", "-c", HOLDS_XDP]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut holder = holder.spawn().unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let told: Vec<String> = lines.map(Result::unwrap).take_while(|line| line != "ready").collect();
    let number = |name: &str| {
        let text = told.iter().find_map(|line| line.strip_prefix(name));
        text.unwrap_or_else(|| panic!("{told:?}")).trim().parse::<u32>().unwrap()
    };
    let wanted = (number("prog_id:"), number("link_id:"));
    let found = sys::bpf::xdp_links().unwrap();
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert!(found.contains(&wanted), "{wanted:?} {found:?}");
}
