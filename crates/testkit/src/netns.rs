//! Network namespaces that live as long as a test.

use crate::lock::MachineLock;
use crate::tables::SharedUse;
use crate::wait::wait_or_panic;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use sys::netns::NetNs;

pub use sys::netns::NetnsGuard;

/// The folder of ip(8)'s named namespaces.
const RUN_NETNS: &str = "/run/netns";

/// Prefix of everything that a lab creates: `nw-NAME-PID-N`.
const PREFIX: &str = "nw-";

/// A separate network namespace that only contains `lo`, which is up.
///
/// Sockets and processes opened through it (listeners, connections, children) stay open until drop, which also happens
/// while a panic unwinds. The next `Lab::new` on the machine removes labs of killed processes.
#[derive(Debug)]
pub struct Lab {
    name: String,
    dir: PathBuf,
    pub(crate) held: Mutex<HeldResources>,
}

/// Resources that a lab keeps open.
#[derive(Debug, Default)]
pub(crate) struct HeldResources {
    pub(crate) sockets: Vec<OwnedFd>,
    pub(crate) children: Vec<Child>,
    /// Held while conntrack entries are created here.
    pub(crate) tracking: Option<SharedUse>,
}

/// Log groups from this number on are for tests that bind them in every namespace of the machine, so that other tests
/// do not mistake them for their own ([`Lab::log_groups`]).
pub const LOG_GROUPS_OF_ALL: u16 = 30_000;

impl Lab {
    /// Makes a namespace with `purpose` in its name (letters, digits, `_`).
    ///
    /// # Panics
    /// Without CAP_SYS_ADMIN (see [`crate::root::require`]) or without ip(8).
    pub fn new(purpose: &str) -> Lab {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{purpose}-{}-{n}", std::process::id());
        let dir = std::env::temp_dir().join(&name);
        {
            // Two concurrent first calls of `ip netns add` would mount /run/netns on top of itself.
            let _lock = MachineLock::take("netns");
            remove_leftovers();
            run("ip", &["netns", "add", &name]);
        }
        let lab = Lab { name, dir, held: Mutex::default() };
        std::fs::create_dir_all(&lab.dir).unwrap_or_else(|e| panic!("cannot make {}: {e}", lab.dir.display()));
        lab.ip(&["link", "set", "lo", "up"]);
        lab
    }

    /// The namespace's name for `ip netns` and `--netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace's file.
    pub fn path(&self) -> PathBuf {
        Path::new(RUN_NETNS).join(&self.name)
    }

    /// The lab's folder, for unix sockets and files; removed with the lab.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A command that runs inside, in the C locale.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program).env("LC_ALL", "C");
        command
    }

    /// The stdout of a command that must succeed.
    ///
    /// # Panics
    /// If it does not start, fails, or prints invalid UTF-8; with its stderr.
    #[track_caller]
    pub fn output(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> String {
        let mut command = self.command(program);
        let out = command.args(args).output().expect("ip(8) starts");
        let says = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{command:?}: {}: {says}", out.status);
        String::from_utf8(out.stdout).expect("output is UTF-8")
    }

    /// Runs `ip -n NAME ARGS`, which must succeed.
    ///
    /// # Panics
    /// If it fails.
    #[track_caller]
    pub fn ip(&self, args: &[&str]) {
        run("ip", &[&["-n", &self.name], args].concat());
    }

    /// Moves the calling thread inside until the guard is dropped.
    ///
    /// # Panics
    /// If the kernel refuses.
    pub fn enter(&self) -> NetnsGuard {
        let lab = NetNs::open_path(&self.path()).unwrap_or_else(|e| panic!("the lab is gone: {e}"));
        lab.enter().unwrap_or_else(|e| panic!("cannot enter the lab {}: {e}", self.name))
    }

    /// Runs `work` inside, in a separate thread.
    pub fn run_inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let run = || {
            let _inside = self.enter();
            work()
        };
        let done = std::thread::scope(|scope| scope.spawn(run).join());
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Starts a command inside; it is killed with the lab. Returns its pid.
    ///
    /// # Panics
    /// If it does not start.
    pub fn spawn(&self, program: &str, args: &[&str]) -> u32 {
        let mut command = Command::new(program);
        command.args(args).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::null());
        // Started from inside instead of through `ip netns exec`, so that the pid is the program's from the start.
        let child = self.run_inside(|| command.spawn());
        let child = child.unwrap_or_else(|e| panic!("cannot run {program}: {e}"));
        let pid = child.id();
        self.held.lock().expect("no holder panicked").children.push(child);
        pid
    }

    /// The log groups (nfnetlink_log) bound inside, in ascending order; without those from [`LOG_GROUPS_OF_ALL`] on,
    /// which a test binds temporarily in every namespace of the machine.
    pub fn log_groups(&self) -> Vec<u16> {
        let list = self.output("cat", &["/proc/net/netfilter/nfnetlink_log"]);
        let groups = list.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok());
        let mut groups: Vec<u16> = groups.filter(|group| *group < LOG_GROUPS_OF_ALL).collect();
        groups.sort_unstable();
        groups
    }

    /// Like [`crate::wait_until`]; on failure it shows the log groups, netlink sockets and rules inside.
    #[track_caller]
    pub fn wait_until(&self, what: &str, holds: impl FnMut() -> bool) {
        let told = || {
            let files = self.output("cat", &["/proc/net/netfilter/nfnetlink_log", "/proc/net/netlink"]);
            format!("\n{files}{}", self.output("nft", &["list", "ruleset"]))
        };
        wait_or_panic(what, told, holds);
    }

    /// Number of TCP sockets inside as counted by ss(8), including listeners and minisockets.
    pub fn ss_count(&self) -> usize {
        self.output("ss", &["-Htan"]).lines().count()
    }

    /// Declares that conntrack entries are created here: until the lab is dropped, no test changes the size of the
    /// machine's table.
    pub fn shares_conntrack(&self) {
        let mut held = self.held.lock().expect("no holder panicked");
        held.tracking.get_or_insert_with(SharedUse::share);
    }

    /// Closes every socket and child now; the namespace stays.
    pub fn close_all(&self) {
        if let Ok(mut held) = self.held.lock() {
            held.sockets.clear();
            for mut child in held.children.drain(..) {
                // The child may already have ended.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.close_all();
        remove(&self.name);
    }
}

/// Removes the labs of processes that have ended. The caller holds the lock.
fn remove_leftovers() {
    let temp = std::env::temp_dir();
    for place in [Path::new(RUN_NETNS), temp.as_path()] {
        for found in std::fs::read_dir(place).into_iter().flatten().flatten() {
            let name = found.file_name().to_string_lossy().into_owned();
            if maker_pid(&name).is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
                kill_inside(&name);
                remove(&name);
            }
        }
    }
}

/// Kills the children of a killed test: only processes in a namespace made by a lab.
fn kill_inside(name: &str) {
    let Ok(out) = Command::new("ip").args(["netns", "pids", name]).stderr(Stdio::null()).output() else { return };
    for pid in String::from_utf8_lossy(&out.stdout).split_whitespace() {
        let _ = Command::new("kill").args(["-9", pid]).stderr(Stdio::null()).status();
    }
}

/// The pid in `nw-NAME-PID-N`, or in the name of an additional object of the lab's test: `nw-NAME-PID-N-MORE`.
fn maker_pid(name: &str) -> Option<u32> {
    let parts: Vec<&str> = name.strip_prefix(PREFIX)?.split('-').collect();
    let numbers = |two: &[&str]| Some((two.first()?.parse().ok()?, two.get(1)?.parse::<u32>().ok()?));
    parts.windows(2).rev().find_map(numbers).map(|(pid, _)| pid)
}

/// Removes a lab. Must not panic, because it also runs during unwinding and another process may have removed the lab.
fn remove(name: &str) {
    if Path::new(RUN_NETNS).join(name).exists() {
        let _ = Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
    }
    let dir = std::env::temp_dir().join(name);
    if dir.exists() {
        detach_mounts(&dir);
        let _ = std::fs::remove_dir_all(dir);
    }
}

/// Detaches what was mounted below a folder, so that removing the folder does not reach into it.
fn detach_mounts(dir: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    for place in places.filter(|place| Path::new(place).starts_with(dir)) {
        let _ = Command::new("umount").args(["--lazy", place]).stderr(Stdio::null()).status();
    }
}

#[track_caller]
fn run(program: &str, args: &[&str]) {
    let out = Command::new(program).args(args).output();
    let out = out.unwrap_or_else(|e| panic!("cannot run {program}: {e}"));
    let says = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{program} {}: {}: {}", args.join(" "), out.status, says.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maker_of_a_name() {
        assert_eq!(maker_pid("nw-listeners-123-0"), Some(123));
        assert_eq!(maker_pid("nw-two-words-123-7"), Some(123));
        assert_eq!(maker_pid("nw-stays-123-7-new"), Some(123));
        assert_eq!(maker_pid("nw-mine"), None);
        assert_eq!(maker_pid("other-123-0"), None);
    }

    #[test]
    fn root_mounts_of_a_lab_go_with_it() {
        crate::require_root!();
        let lab = Lab::new("mounts");
        let dir = lab.dir().to_owned();
        run("mount", &["-t", "tmpfs", "none", dir.to_str().unwrap()]);
        std::fs::write(dir.join("file"), "").unwrap();
        drop(lab);
        assert!(!dir.exists());
        assert!(!std::fs::read_to_string("/proc/self/mounts").unwrap().contains(dir.to_str().unwrap()));
    }

    #[test]
    fn root_lab_is_its_own_world_and_goes_with_its_maker() {
        crate::require_root!();
        let outside = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        let lab = Lab::new("own");
        let path = lab.path();
        let inside = lab.run_inside(|| std::fs::read_link("/proc/thread-self/ns/net").unwrap());
        assert_ne!(inside, outside);
        {
            let _guard = lab.enter();
            assert_eq!(std::fs::read_link("/proc/thread-self/ns/net").unwrap(), inside);
        }
        assert_eq!(std::fs::read_link("/proc/thread-self/ns/net").unwrap(), outside);
        drop(lab);
        assert!(!path.exists());
    }

    #[test]
    fn root_lab_goes_when_the_test_panics() {
        crate::require_root!();
        let path = Mutex::new(PathBuf::new());
        let result = std::panic::catch_unwind(|| {
            let lab = Lab::new("panics");
            *path.lock().unwrap() = lab.path();
            assert!(lab.path().exists());
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(result.is_err());
        assert!(!path.lock().unwrap().exists());
    }

    #[test]
    fn root_leftover_of_a_dead_process_is_removed() {
        crate::require_root!();
        // A pid above the kernel's limit is never in use.
        let name = format!("{PREFIX}left{}-4194999-0", std::process::id());
        let lock = MachineLock::take("netns");
        run("ip", &["netns", "add", &name]);
        let mut orphan = Command::new("ip").args(["netns", "exec", &name, "sleep", "1000"]).spawn().unwrap();
        let pid = orphan.id();
        let inside = || std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "sleep\n");
        crate::wait_until("the orphan sleeps inside", inside);
        drop(lock);
        let _lab = Lab::new("next");
        crate::wait_until("the leftover is gone", || !Path::new(RUN_NETNS).join(&name).exists());
        assert!(!orphan.wait().unwrap().success());
    }

    #[test]
    fn root_children_go_with_the_lab() {
        crate::require_root!();
        let lab = Lab::new("children");
        let pid = lab.spawn("sleep", &["1000"]);
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let theirs = || std::fs::read_link(proc.join("ns/net")).ok();
        let inside = lab.run_inside(|| std::fs::read_link("/proc/thread-self/ns/net").unwrap());
        assert_eq!(theirs(), Some(inside));
        drop(lab);
        assert!(!proc.exists());
    }
}
