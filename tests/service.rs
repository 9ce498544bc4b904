//! `netwren log` as a service: its configuration file, its messages to systemd, and the state it passes to its
//! successor.

use crate::going::Going;
use crate::log::{OWN_COLUMNS, counted, logging, send, to_five};
use crate::run::{Ran, clean, netwren};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// A folder with a configuration file that has this text and mode.
fn config(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.toml");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    (dir, path)
}

/// The documentation's example with its paths moved to `dir`.
pub(crate) fn documented(dir: &std::path::Path) -> String {
    let text = std::fs::read_to_string(testkit::program::workspace().join("docs/log.toml")).unwrap();
    let text = text.replace("/var/log/netwren", &dir.display().to_string());
    text.replace("/var/lib/netwren", &dir.display().to_string()).replace("/run/netwren", &dir.display().to_string())
}

#[test]
fn what_is_wrong_in_a_configuration_has_its_place() {
    for (text, code, says) in [
        ("group = 70000\n", 2, "log.toml:1:9: --group takes numbers from 0 to 65535"),
        ("group = 1\nlatncy = '50ms'\n", 2, "log.toml:2:1: unknown key `latncy`; did you mean `latency`?"),
        ("group = 1\n tls_ca = 'x'\n", 2, "log.toml:2:2: unknown key `tls_ca`; did you mean `tls-ca`?"),
        ("group = 1\nlatency = \"5ms\"\n", 2, "log.toml:2:11: --latency takes 10ms to 10s"),
        ("group = 1\nto = ['json:/x',\n  'yaml:/y']\n", 2, "log.toml:3:3: --to: `yaml` is not a message format"),
        ("group = 1\nto = 'json:/x'\nwhen-full = 'x'\n", 2, "log.toml:3:13: invalid value 'x' for '--when-full"),
        ("group = 1\nfilter = 'dport = = 3'\n", 2, "log.toml:2:10: filter, column 9"),
        ("group = 1\ncolumns = ['+tll']\n", 2, "log.toml:2:12: unknown column `tll`"),
        ("group = 1\nspool-max = '3GiB'\nto = 'json:/x'\n", 2, "log.toml:2:13: --spool-max needs --spool"),
        ("group = 1\ncolor = [\n", 2, "log.toml:2:"),
        ("group = 1\ngroup = 2\n", 2, "log.toml:2:1: duplicate key"),
        ("group = 1\nstats = 3\n", 2, "log.toml:2:9: `stats` takes true or false, not a number"),
        ("group = 1\n[tls]\nca = 'x'\n", 2, "log.toml:2:2: unknown key `tls`"),
        ("record = 'x'\n", 2, "log.toml:1:1: `record` belongs on the command line"),
        ("latency = '1s'\n", 2, "log.toml: log needs --group N"),
        ("group = 1\nto = 'json:/does/not/exist'\n", 4, "cannot write to its directory: no such file"),
        ("group = 1\nto = 'json:/dev/null'\nspool = '/does/not/exist'\n", 4, "spool: cannot open /does/not"),
    ] {
        let (_dir, path) = config(text, 0o600);
        netwren(&["log", "check", &path.display().to_string()]).says(code, &[says]);
        if code == 2 {
            netwren(&["log", "--config", &path.display().to_string()]).says(2, &[says]);
        }
    }
    // A wrong flag is reported as a flag, not as a part of the file.
    let (_dir, path) = config("group = 1\n", 0o600);
    let ran = netwren(&["log", "--config", &path.display().to_string(), "--latency", "5ms"]);
    assert!(ran.stderr.starts_with("netwren: --latency takes"), "{}", ran.stderr);
}

#[test]
fn a_configuration_that_others_can_change_is_refused() {
    let (_dir, path) = config("group = 1\n", 0o622);
    let file = path.display().to_string();
    netwren(&["log", "check", &file]).says(4, &["other users may write to it", "mode 0622"]);
    let (_dir, path) = config("group = 1\nto = 'json:/dev/null'\ntls-key = '/x'\n", 0o644);
    let file = path.display().to_string();
    netwren(&["log", "check", &file])
        .says(2, &["every user of this host can read this file, which names a private key"]);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let ran = netwren(&["log", "check", &file]);
    assert!(!ran.stderr.contains("can read this file"), "{}", ran.stderr);
    if testkit::root::is_privileged() {
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        netwren(&["log", "check", &file]).says(4, &["belongs to user 65534"]);
    }
}

#[test]
fn the_documented_configuration_is_right() {
    let dir = tempfile::tempdir().unwrap();
    // Also check the keys that are commented out.
    for text in [
        documented(dir.path()),
        documented(dir.path())
            .replace("\n#rotate", "\nrotate")
            .replace("\n#filter", "\nfilter")
            .replace("\n#spool-age", "\nspool-age")
            .replace("\n#columns", "\ncolumns")
            .replace("\n#   \"syslog+tcp", "\n    \"syslog+tcp"),
    ] {
        let (_dir, path) = config(&text, 0o644);
        let ran = netwren(&["log", "check", &path.display().to_string()]);
        let said = ran.ok();
        assert!(said.contains("listens to group 1, 5: 128 bytes"), "{said}");
        assert!(said.contains("ships to json:") && said.contains("when full drop-oldest"), "{said}");
    }
}

/// A service manager for a unit with Type=notify and FileDescriptorStoreMax=: it receives messages and stores
/// descriptors.
pub(crate) struct Manager {
    dir: tempfile::TempDir,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    messages: Vec<String>,
    kept: Vec<(String, Arc<OwnedFd>)>,
}

impl Manager {
    pub(crate) fn new() -> Manager {
        let dir = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(dir.path().join("notify")).unwrap();
        let heard = Arc::<Mutex<Heard>>::default();
        let hears = Arc::clone(&heard);
        std::thread::spawn(move || {
            let (mut text, mut files) = ([0; 4096], Vec::new());
            // The thread ends with the test program; the socket's path is removed earlier.
            while let Ok(bytes) = sys::descriptors::receive_files(&socket, &mut text, &mut files) {
                hears.lock().unwrap().hear(&text[..bytes], std::mem::take(&mut files));
            }
        });
        Manager { dir, heard }
    }

    /// Starts `netwren log` as a unit, with the stored descriptors.
    fn starts(&self, lab: &Lab, args: &[&str], watchdog: Duration) -> Going<String> {
        let kept = self.heard.lock().unwrap().kept.clone();
        self.starts_with(lab, args, watchdog, &kept)
    }

    fn starts_with(
        &self,
        lab: &Lab,
        args: &[&str],
        watchdog: Duration,
        kept: &[(String, Arc<OwnedFd>)],
    ) -> Going<String> {
        self.starts_after("", lab, args, watchdog, kept)
    }

    /// Starts `netwren log` as a unit after `first`, a piece of shell script.
    fn starts_after(
        &self,
        first: &str,
        lab: &Lab,
        args: &[&str],
        watchdog: Duration,
        kept: &[(String, Arc<OwnedFd>)],
    ) -> Going<String> {
        self.heard.lock().unwrap().messages.clear();
        let mut command = Command::new("sh");
        clean(&mut command).args(["-c", &format!("{first}LISTEN_PID=$$ WATCHDOG_PID=$$ exec \"$@\""), "sh"]);
        command.arg(testkit::program::netwren()).arg("log").args(args);
        let names: Vec<&str> = kept.iter().map(|(name, _)| name.as_str()).collect();
        command.env("NOTIFY_SOCKET", self.socket()).env("INVOCATION_ID", "0");
        command.env("WATCHDOG_USEC", watchdog.as_micros().to_string());
        command.env("LISTEN_FDS", kept.len().to_string()).env("LISTEN_FDNAMES", names.join(":"));
        let files = kept.iter().map(|(_, file)| Arc::clone(file)).collect();
        confine(&mut command, &[Limit::Network(lab.path()), Limit::Files(files)]).unwrap();
        let going = Going::spawn(command, |line| line);
        self.wait_for("READY=1");
        going
    }

    /// The socket for `NOTIFY_SOCKET`.
    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("notify")
    }

    /// How many messages have these words.
    pub(crate) fn count(&self, words: &str) -> usize {
        let heard = self.heard.lock().unwrap();
        heard.messages.iter().filter(|message| message.contains(words)).count()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, words: &str) {
        testkit::wait_until(words, || self.count(words) > 0);
    }
}

impl Heard {
    fn hear(&mut self, text: &[u8], files: Vec<OwnedFd>) {
        let text = String::from_utf8(text.to_vec()).unwrap();
        let name = text.lines().find_map(|line| line.strip_prefix("FDNAME=")).unwrap_or_default().to_owned();
        if text.contains("FDSTOREREMOVE=1") {
            self.kept.retain(|(kept, _)| *kept != name);
        } else if text.contains("FDSTORE=1") {
            self.kept.extend(files.into_iter().map(|file| (name.clone(), Arc::new(file))));
        }
        self.messages.push(text);
    }
}

/// Sends at most 10,000 packets per second until it is dropped, a rate that even a slow build on a busy machine can
/// read.
struct Stream<'l> {
    /// Dropping this ends the thread.
    lasts: Sender<()>,
    thread: std::thread::ScopedJoinHandle<'l, ()>,
}

impl<'l> Stream<'l> {
    fn start<'s: 'l>(scope: &'l std::thread::Scope<'l, 's>, lab: &'s Lab) -> Stream<'l> {
        let (lasts, end) = channel();
        let thread = scope.spawn(move || {
            let mut begun = Instant::now();
            // This clock only sets the rate of the load; the test does not wait for it.
            let rest = |begun: Instant| Duration::from_millis(10).saturating_sub(begun.elapsed());
            while end.recv_timeout(rest(begun)) == Err(RecvTimeoutError::Timeout) {
                begun = Instant::now();
                send(lab, to_five(), 100);
            }
        });
        Stream { lasts, thread }
    }

    fn end(self) {
        drop(self.lasts);
        self.thread.join().unwrap();
    }
}

/// Waits until `file` contains every record that the rule has counted, each once and in order.
#[track_caller]
fn all_arrived(lab: &Lab, file: &Path) -> usize {
    let sent = counted(lab, "7009");
    let lines = || std::fs::read_to_string(file).unwrap().lines().count();
    testkit::wait_until("every record", || lines() >= sent);
    let text = std::fs::read_to_string(file).unwrap();
    for (number, line) in text.lines().enumerate() {
        assert_eq!(line, format!("{{\"seq\":{number}}}"), "of {sent}");
    }
    assert_eq!(text.lines().count(), sent);
    sent
}

const CALM: Duration = Duration::from_secs(60);

#[test]
fn root_a_restart_loses_nothing_where_sockets_are_kept() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let (lab, manager) = (logging("svcrestart"), Manager::new());
    let file = lab.dir().join("rows");
    let target = format!("json:{}", file.display());
    let args = ["--group", "5,6", "--columns", "seq", "--to", &target];
    std::thread::scope(|scope| {
        let mut going = manager.starts(&lab, &args, CALM);
        let stream = Stream::start(scope, &lab);
        for restart in 1..=3 {
            testkit::wait_until("records", || counted(&lab, "7009") > restart * 3000);
            going.signal("-TERM");
            let (_, ran) = ended(going);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            testkit::wait_until("it said that it ends", || manager.count("STOPPING=1") == 1);
            let names: Vec<String> = manager.heard.lock().unwrap().kept.iter().map(|(name, _)| name.clone()).collect();
            assert_eq!(names.len(), 3, "two groups and the numbers, once each: {names:?}");
            // For a while, no process reads.
            let before = counted(&lab, "7009");
            testkit::wait_until("records for nobody", || counted(&lab, "7009") > before + 1000);
            going = manager.starts(&lab, &args, CALM);
        }
        stream.end();
        assert!(all_arrived(&lab, &file) > 10_000);
        going.signal("-TERM");
        let (_, ran) = ended(going);
        ran.says(0, &["continues with groups 5, 6 where the earlier run stopped"]);
    });
}

/// Collects the remaining output without sending a signal.
fn ended(mut going: Going<String>) -> (Vec<String>, Ran) {
    use std::io::Read;
    let mut stderr = String::new();
    going.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let code = going.child.wait().unwrap().code().unwrap_or(-1);
    going.read.extend(going.lines.iter());
    (std::mem::take(&mut going.read), Ran { stdout: String::new(), stderr, code })
}

/// Records that were received but not stored when the run was killed are counted by the next run.
#[test]
fn root_what_a_kill_loses_is_counted_by_the_successor() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let (lab, manager) = (logging("svckill"), Manager::new());
    let (_reader, first) = never_read(&lab);
    let args = ["--group", "5", "-o", "json", "--columns", "seq"];
    let going = manager.starts_after(&first, &lab, &args, CALM, &[]);
    send(&lab, to_five(), 30_000);
    testkit::wait_until("the socket is empty, and the kernel gathers nothing for it", || {
        let groups = lab.output("cat", &["/proc/net/netfilter/nfnetlink_log"]);
        let gathered = |line: &str| line.split_whitespace().nth(2).is_some_and(|records| records != "0");
        if groups.lines().any(gathered) {
            return false;
        }
        let list = lab.output("cat", &["/proc/net/netlink"]);
        let waiting = |line: &str| line.split_whitespace().nth(4).and_then(|bytes| bytes.parse::<u64>().ok());
        list.lines().skip(1).filter_map(waiting).sum::<u64>() == 0
    });
    going.signal("-KILL");
    ended(going);
    let mut next = manager.starts(&lab, &args, CALM);
    send(&lab, to_five(), 1);
    next.read_until("the next record", |lines| !lines.is_empty());
    let (lines, ran) = next.end();
    assert_eq!(lines[0], "{\"seq\":30000}", "{}", ran.stderr);
    assert!(ran.stderr.contains("records lost between the earlier run and this one"), "{}", ran.stderr);
    let lost: usize = ran
        .stderr
        .lines()
        .find_map(|line| line.split_once(": ")?.1.split_once(" lost"))
        .map_or(0, |(before, _)| before.rsplit(' ').next().unwrap().parse().unwrap());
    // Some records are in the pipe.
    assert!((15_000..=30_000).contains(&lost), "{lost} lost: {}", ran.stderr);
}

/// A pipe for standard output that is never read, and the shell script that redirects the output to it.
fn never_read(lab: &Lab) -> (std::fs::File, String) {
    let fifo = lab.dir().join("fifo").display().to_string();
    lab.output("mkfifo", &[&fifo]);
    let reader = std::fs::OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
    (reader, format!("exec > {fifo}; "))
}

#[test]
fn root_the_service_manager_hears_how_it_goes() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let (lab, manager) = (logging("svcnotify"), Manager::new());
    let target = format!("json:{}", lab.dir().join("rows").display());
    let args = ["--group", "5", "--latency", "10ms", "--to", &target];
    let going = manager.starts(&lab, &args, Duration::from_millis(600));
    send(&lab, to_five(), 7);
    manager.wait_for("STATUS=seen 7, delivered 7, waiting 0, dropped 0\n");
    testkit::wait_until("signs of life", || manager.count("WATCHDOG=1") > 3);
    going.signal("-HUP");
    manager.wait_for("RELOADING=1\nMONOTONIC_USEC=");
    testkit::wait_until("it is ready again", || manager.count("READY=1") == 2);
    going.signal("-TERM");
    manager.wait_for("STOPPING=1");
    ended(going).1.ok();
}

/// A run that hangs sends no watchdog messages: the thread that turns records into rows waits for a pipe.
#[test]
fn root_a_run_that_hangs_gives_no_sign_of_life() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let (lab, manager) = (logging("svchang"), Manager::new());
    let (reader, first) = never_read(&lab);
    let args = ["--group", "5", "--latency", "10ms"];
    let going = manager.starts_after(&first, &lab, &args, Duration::from_millis(400), &[]);
    testkit::wait_until("signs of life", || manager.count("WATCHDOG=1") > 1);
    send(&lab, to_five(), 20_000);
    let mut since = (manager.count("WATCHDOG=1"), Instant::now());
    testkit::wait_until("none for two seconds", || {
        let now = manager.count("WATCHDOG=1");
        if now != since.0 {
            since = (now, Instant::now());
        }
        since.1.elapsed() > Duration::from_secs(2)
    });
    drop((going, reader));
}

/// A run that waits for a receiver that does not read (`--when-full block`) still sends watchdog messages, and ends at
/// the first SIGTERM.
#[test]
fn root_a_run_that_waits_for_a_receiver_is_alive_and_ends() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let (lab, manager) = (logging("svcblock"), Manager::new());
    let listener = lab.run_inside(|| std::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let target = format!("json+tcp://{}", listener.local_addr().unwrap());
    let words =
        ["--group", "5", "--when-full", "block", "--queue-max", "4MiB", "--columns", OWN_COLUMNS, "--to", &target];
    let mut going = manager.starts(&lab, &words, Duration::from_millis(800));
    testkit::wait_until("more is sent than anybody takes", || {
        send(&lab, to_five(), 2_000);
        counted(&lab, "7009") >= 40_000
    });
    let before = manager.count("WATCHDOG=1");
    testkit::wait_until("signs of life", || manager.count("WATCHDOG=1") > before + 3);
    going.signal("-TERM");
    testkit::wait_until("its end", || going.child.try_wait().unwrap().is_some());
    drop(listener);
}

/// Descriptors that do not match their names are not used and no longer stored.
#[test]
fn root_a_wrong_descriptor_is_refused_with_a_sentence() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    const NETFILTER: i32 = 12;
    let (lab, manager) = (logging("svcwrong"), Manager::new());
    let inode = std::fs::metadata(lab.path()).unwrap().ino();
    let netlink = |protocol| {
        let socket = lab.run_inside(|| sys::NetlinkSocket::open(protocol)).unwrap();
        Arc::new(socket.as_fd().try_clone_to_owned().unwrap())
    };
    let elsewhere = Lab::new("svcwrong2");
    let other = elsewhere.run_inside(|| sys::NetlinkSocket::open(NETFILTER)).unwrap();
    let null = Arc::new(OwnedFd::from(std::fs::File::open("/dev/null").unwrap()));
    let kept = [
        (format!("netwren-log-1-{inode}"), Arc::clone(&null)),
        (format!("netwren-log-2-{inode}"), netlink(0)),
        (format!("netwren-log-3-{inode}"), Arc::new(other.as_fd().try_clone_to_owned().unwrap())),
        (format!("netwren-log-4-{inode}"), netlink(NETFILTER)),
        (format!("netwren-log-9-{inode}"), netlink(NETFILTER)),
        (format!("netwren-log-77-{inode}"), netlink(NETFILTER)),
        ("netwren-log-5-1".to_owned(), netlink(NETFILTER)),
        ("netwren-log-numbers".to_owned(), Arc::clone(&null)),
        ("connection".to_owned(), null),
    ];
    let target = format!("json:{}", lab.dir().join("rows").display());
    let groups = ["--group", "1,2,3,4,5", "--columns", "seq", "--to", &target];
    let going = manager.starts_with(&lab, &groups, CALM, &kept);
    for (name, _) in &kept {
        testkit::wait_until(name, || manager.count(&format!("FDSTOREREMOVE=1\nFDNAME={name}\n")) == 1);
    }
    send(&lab, to_five(), 10);
    all_arrived(&lab, &lab.dir().join("rows"));
    going.signal("-TERM");
    ended(going).1.says(
        0,
        &[
            "the socket of group 1 is not taken over: it is not a netlink socket (netfilter)",
            "the socket of group 2 is not taken over: it is not a netlink socket (netfilter)",
            "the socket of group 3 is not taken over: it belongs to another network namespace",
            "the socket of group 4 is not taken over: it has not bound group 4",
            "the socket of group 9 is not taken over: no longer requested",
            "the socket of group 77 is not taken over: no longer requested",
            "a descriptor `netwren-log-5-1` that belongs to another network namespace: closed",
            "a descriptor `connection` that is not one of netwren's: closed",
            "stored `netwren-log-numbers`, but it is not a file of sequence numbers",
        ],
    );
}

#[test]
fn root_a_successor_takes_over_without_a_loss() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("svctake");
    let (file, control, spool) = (lab.dir().join("rows"), lab.dir().join("sock"), lab.dir().join("spool"));
    let (target, control, spool) =
        (format!("json:{}", file.display()), control.display().to_string(), spool.display().to_string());
    let args = ["--group", "5,6", "--columns", "seq", "--to", &target, "--control", &control, "--spool", &spool];
    let start =
        || Going::<String>::spawn(crate::log::command(&lab, &[&args[..], &["--take-over"]].concat()), |line| line);
    std::thread::scope(|scope| {
        let mut going = start();
        testkit::wait_until("it answers", || Path::new(&control).exists());
        let stream = Stream::start(scope, &lab);
        for turn in 1..=3 {
            testkit::wait_until("records", || counted(&lab, "7009") > turn * 4000);
            let successor = start();
            ended(going).1.says(0, &["handed over groups 5, 6: another run continues"]);
            going = successor;
            testkit::wait_until("it answers", || Path::new(&control).exists());
        }
        stream.end();
        assert!(all_arrived(&lab, &file) > 12_000);
        // Access to the socket is not sufficient for taking over.
        std::fs::set_permissions(&control, std::fs::Permissions::from_mode(0o666)).unwrap();
        for place in [lab.dir(), Path::new(&control)] {
            let mode = if place.is_dir() { 0o755 } else { 0o666 };
            std::fs::set_permissions(place, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let args = ["log", "--group", "5", "--to", "json:/dev/null", "--control", &control, "--take-over"];
        let mut stranger = crate::run::command_for_anyone(&args);
        confine(&mut stranger, &[Limit::Network(lab.path()), Limit::User { uid: 65_534, gid: 65_534 }]).unwrap();
        Ran::of(stranger.output().unwrap()).says(4, &["only root and the user of this run may take over"]);
        let (_, ran) = going.end();
        ran.says(0, &["continues with groups 5, 6 where the earlier run stopped"]);
    });
}

/// SIGHUP with a new configuration: new outputs start, removed outputs deliver their pending records and end,
/// unchanged outputs continue; an invalid configuration changes nothing.
#[test]
fn root_a_reload_begins_and_ends_outputs() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let (lab, manager) = (logging("svcreload"), Manager::new());
    let listener = lab.run_inside(|| std::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let tcp = format!("json+tcp://{}", listener.local_addr().unwrap());
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut listener.accept().unwrap().0, &mut text).unwrap();
        text.lines().count()
    });
    let (config, control) = (lab.dir().join("log.toml"), lab.dir().join("sock"));
    let (stays, comes) = (lab.dir().join("stays"), lab.dir().join("comes"));
    let write = |more: &str, targets: &[&str]| {
        let to: Vec<String> = targets.iter().map(|target| format!("'{target}'")).collect();
        let text = format!("columns = ['seq']\ncontrol = '{}'\nto = [{}]\n{more}\n", control.display(), to.join(", "));
        std::fs::write(&config, text).unwrap();
    };
    let (json_stays, json_comes) = (format!("json:{}", stays.display()), format!("json:{}", comes.display()));
    write("group = 5", &[&json_stays, &tcp]);
    let going = manager.starts(&lab, &["--config", &config.display().to_string(), "--stats"], CALM);
    let hangup = |readies: usize| {
        going.signal("-HUP");
        testkit::wait_until("it is ready again", || manager.count("READY=1") == readies);
    };
    send(&lab, to_five(), 100);
    all_arrived(&lab, &stays);
    write("group = [5, 6]", &[&json_stays, &json_comes]);
    hangup(2);
    assert_eq!(reader.join().unwrap(), 100, "it got everything, and the end of the connection");
    testkit::wait_until("the new file", || comes.exists());
    send(&lab, to_five(), 100);
    all_arrived(&lab, &stays);
    testkit::wait_until("rows in the new file", || std::fs::read_to_string(&comes).unwrap().lines().count() == 100);
    write("group = 5\nwhen-fll = 'block'", &[]);
    hangup(3);
    let status = netwren(&["log", "status", "-o", "json", "--control", &control.display().to_string()]).ok();
    assert!(status.contains(&json_comes) && status.contains(&json_stays) && !status.contains(&tcp), "{status}");
    send(&lab, to_five(), 50);
    all_arrived(&lab, &stays);
    going.signal("-TERM");
    let (lines, ran) = ended(going);
    let ledgers: serde_json::Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    for (target, seen) in [(&tcp, 100), (&json_stays, 250), (&json_comes, 150)] {
        let of = |output: &&serde_json::Value| output["output"] == **target;
        let ledger = ledgers["outputs"].as_array().unwrap().iter().find(of).unwrap();
        assert_eq!((&ledger["seen"], &ledger["delivered"]), (&seen.into(), &seen.into()), "{ledger}");
    }
    ran.says(
        0,
        &[
            &format!("configuration reloaded: ended: {tcp}"),
            &format!("configuration reloaded: begun: {json_comes}"),
            "`group`: a change takes effect at the next start",
            "the previous one stays in effect: ",
            "log.toml:5:1: unknown key `when-fll`; did you mean `when-full`?",
        ],
    );
}

/// A packet file added by a reload contains whole packets, although the kernel copied only headers before.
#[test]
fn root_a_file_of_packets_that_comes_by_a_reload_has_whole_ones() {
    const PAYLOAD: usize = 700;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let (lab, manager) = (logging("svccopy"), Manager::new());
    let (config, rows, packets) = (lab.dir().join("log.toml"), lab.dir().join("rows"), lab.dir().join("packets"));
    let json = format!("'json:{}'", rows.display());
    let write = |to: &str| std::fs::write(&config, format!("group = 5\ncolumns = ['seq']\nto = [{to}]\n")).unwrap();
    write(&json);
    let going = manager.starts(&lab, &["--config", &config.display().to_string()], CALM);
    let size = || std::fs::metadata(&packets).map_or(0, |facts| facts.len() as usize);
    write(&format!("{json}, 'pcap:{}'", packets.display()));
    going.signal("-HUP");
    testkit::wait_until("the new file", || size() >= 24);
    let mut before = 0;
    // The first packet may arrive before the kernel was asked for whole packets.
    testkit::wait_until("a whole packet", || {
        before = before.max(size());
        lab.run_inside(|| {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let _ = socket.send_to(&[b'x'; PAYLOAD], to_five());
        });
        testkit::wait_until("a packet", || size() > before);
        size() - before > PAYLOAD
    });
    going.signal("-TERM");
    ended(going).1.ok();
}
