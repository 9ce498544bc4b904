//! Files that other users create at paths that root writes or reads: links, FIFOs, existing files.

use crate::capture_read::{pcap_of, udp};
use crate::run::{Ran, clean, command, netwren};
use crate::sqlite::have_sqlite;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const NOBODY: u32 = 65_534;
const PRECIOUS: &str = "precious";

/// A world-writable directory like /tmp that contains a packet file and a ulogd configuration.
struct Shared(tempfile::TempDir);

impl Shared {
    fn new() -> Shared {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o1777)).unwrap();
        let shared = Shared(dir);
        shared.write("precious", PRECIOUS);
        std::fs::write(shared.at("packets"), pcap_of(&[&udp(1000, b"ab")])).unwrap();
        let text = "[global]\nstack=a:NFLOG,b:BASE,c:IFINDEX,d:IP2STR,e:PRINTPKT,f:LOGEMU\n[a]\ngroup=32007\n[f]\n\
                    file=\"/dev/null\"\n";
        shared.write("ulogd.conf", text);
        shared
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.at(name), text).unwrap();
    }

    /// Creates a link, owned by another user, to root's precious file.
    fn link(&self, name: &str) {
        symlink(self.at("precious"), self.at(name)).unwrap();
        lchown(self.at(name), Some(NOBODY), None).unwrap();
    }

    fn fifo(&self, name: &str) {
        assert!(Command::new("mkfifo").arg(self.at(name)).status().unwrap().success());
    }

    fn command(&self, line: &str) -> Command {
        let mut command = command(&line.split(' ').collect::<Vec<_>>());
        command.current_dir(self.0.path());
        command
    }

    fn run(&self, line: &str) -> Ran {
        Ran::of(self.command(line).stdin(Stdio::null()).output().unwrap())
    }

    #[track_caller]
    fn is_unharmed(&self) {
        assert_eq!(std::fs::read_to_string(self.at("precious")).unwrap(), PRECIOUS);
    }
}

/// Commands for each way to open a path for writing; `OUT` stands for the path.
const WRITERS: &[&str] = &[
    "sockets --follow --to json:OUT",
    "sockets --follow --to sqlite:OUT",
    "log --group 32007 --to pcap:OUT",
    "capture -r packets -w OUT",
    "capture merge packets -w OUT",
    "capture cut packets -w OUT",
    "tcpdump -r packets -w OUT",
    "drops -w OUT",
    "ss -t -D OUT",
    "ulogd -c ulogd.conf -p OUT",
    "support --bundle OUT",
    "sockets --no-owner --record OUT",
    "record OUT --for 0.1",
];

#[test]
fn root_no_link_leads_what_root_writes_elsewhere() {
    // A program without its features lacks BPF, TLS and SQLite.
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    let shared = Shared::new();
    shared.link("out");
    std::fs::create_dir(shared.at("theirs")).unwrap();
    symlink(shared.0.path(), shared.at("theirs/dir")).unwrap();
    lchown(shared.at("theirs/dir"), Some(NOBODY), None).unwrap();
    crate::run::side_by_side(WRITERS, |line| {
        let ran = shared.run(&line.replace("OUT", "out"));
        assert_ne!(ran.code, 0, "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains("link") || ran.stderr.contains("exists"), "{line}: {}", ran.stderr);
        shared.is_unharmed();
        let ran = shared.run(&line.replace("OUT", "theirs/dir/new"));
        assert_ne!(ran.code, 0, "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains("theirs/dir is a link of user 65534"), "{line}: {}", ran.stderr);
        assert!(!shared.at("new").exists(), "{line}");
    });
}

#[test]
fn root_no_file_of_another_user_or_with_other_names_is_written() {
    // A program without its features lacks BPF, TLS and SQLite.
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    let shared = Shared::new();
    for name in ["theirs", "named"] {
        shared.write(name, PRECIOUS);
    }
    chown(shared.at("theirs"), Some(NOBODY), None).unwrap();
    std::fs::hard_link(shared.at("named"), shared.at("again")).unwrap();
    let overwriting = WRITERS.iter().filter(|line| !line.starts_with("support"));
    crate::run::side_by_side(overwriting, |line| {
        for (name, says) in [("theirs", "it belongs to user 65534"), ("named", "it has 2 names (hard links)")] {
            let ran = shared.run(&line.replace("OUT", name));
            assert_ne!(ran.code, 0, "{line}: {}", ran.stderr);
            assert!(ran.stderr.contains(says), "{line}: {}", ran.stderr);
            assert_eq!(std::fs::read_to_string(shared.at(name)).unwrap(), PRECIOUS, "{line}");
        }
    });
}

/// Another user repeatedly replaces the file with a link while root writes.
#[test]
fn root_a_name_that_is_swapped_for_a_link_empties_no_file_of_roots() {
    testkit::require_root!();
    let shared = Shared::new();
    std::fs::create_dir(shared.at("theirs")).unwrap();
    chown(shared.at("theirs"), Some(NOBODY), None).unwrap();
    let script = "while :; do ln -sf ../precious new; mv -f new out; echo > new; mv -f new out; rm -f out; done";
    let mut swapper = Command::new("setpriv");
    swapper.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", script]);
    let mut swapper = swapper.current_dir(shared.at("theirs")).stderr(Stdio::null()).spawn().unwrap();
    for _ in 0..15 {
        let ran = shared.run("capture -r packets -w theirs/out");
        assert!(ran.code == 0 || ran.stderr.contains("theirs/out: it "), "{}", ran.stderr);
        shared.is_unharmed();
    }
    swapper.kill().unwrap();
    swapper.wait().unwrap();
}

/// Regardless of the umask, other users cannot read files that root writes, even files that they could read before.
#[test]
fn root_no_file_has_more_than_mode_0640() {
    testkit::require_root!();
    let shared = Shared::new();
    let made = |line: &str, name: &str| {
        let script = "umask 0; exec \"$0\" \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(testkit::program::netwren()).args(line.split(' '));
        let ran = Ran::of(clean(&mut command).current_dir(shared.0.path()).output().unwrap());
        let facts = std::fs::metadata(shared.at(name));
        let mode = facts.unwrap_or_else(|error| panic!("{line}: {error}: {}", ran.stderr)).mode();
        assert_eq!(mode & 0o7777 & !0o640, 0, "{line}: {mode:o}");
    };
    for line in ["capture -r packets -w FILE", "tcpdump -r packets -w FILE", "ss -t -D FILE", "sockets --record FILE"] {
        made(&line.replace("FILE", "new"), "new");
        std::fs::set_permissions(shared.at("new"), PermissionsExt::from_mode(0o666)).unwrap();
        made(&line.replace("FILE", "new"), "new");
        std::fs::remove_file(shared.at("new")).unwrap();
    }
}

/// True once the program catches SIGTERM; from then on, it must end by itself.
fn catches_sigterm(child: &Child) -> bool {
    const SIGTERM_BIT: u64 = 1 << 14;
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.is_some_and(|set| u64::from_str_radix(set.trim(), 16).is_ok_and(|set| set & SIGTERM_BIT != 0))
}

/// One SIGTERM ends a run that waits for the other end of a FIFO.
#[test]
fn root_a_fifo_holds_no_run_up_after_sigterm() {
    testkit::require_root!();
    let shared = Shared::new();
    // Each command has its own FIFO, because the command that writes would end the waits of the commands that read.
    ["fifo1", "fifo2", "fifo3", "fifo4"].into_iter().for_each(|name| shared.fifo(name));
    let lines = ["capture -r fifo1", "capture -r packets -w fifo2", "conntrack -R fifo3", "tcpdump -i lo -F fifo4"];
    crate::run::side_by_side(lines, |line| {
        let mut child = shared.command(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        testkit::wait_until("it catches SIGTERM", || catches_sigterm(&child));
        assert!(child.try_wait().unwrap().is_none(), "{line}: it waits");
        assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
        testkit::wait_until(line, || child.try_wait().unwrap().is_some());
    });
}

/// netwren immediately refuses a FIFO where it needs a regular file.
#[test]
fn root_a_fifo_is_no_file() {
    // A program without its features lacks BPF, TLS and SQLite.
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    let shared = Shared::new();
    shared.fifo("fifo");
    let lines = [
        "ulogd -c fifo",
        "ulogd -c ulogd.conf -p fifo",
        "log --config fifo",
        "log --group 32007 --to sqlite:fifo",
        "log --group 32007 --to json+tls://localhost:1 --tls-ca fifo",
        "sockets --replay fifo",
        "sockets --record fifo",
        "doctor --baseline fifo",
    ];
    crate::run::side_by_side(lines, |line| {
        let ran = shared.run(line);
        assert_ne!(ran.code, 0, "{line}");
        assert!(ran.stderr.contains("is not a regular file"), "{line}: {}", ran.stderr);
    });
}

#[test]
fn root_a_fifo_of_ones_own_gets_packets_and_gives_them() {
    testkit::require_root!();
    let shared = Shared::new();
    shared.fifo("fifo");
    let mut writer = shared.command("capture -r packets -w fifo").stderr(Stdio::null()).spawn().unwrap();
    let shown = shared.run("capture -r fifo -H --columns proto -o csv").ok();
    assert_eq!(shown.lines().count(), 1, "{shown}");
    assert!(writer.wait().unwrap().success());
    chown(shared.at("fifo"), Some(NOBODY), None).unwrap();
    shared.run("capture -r packets -w fifo").says(4, &["fifo: it belongs to user 65534"]);
    for line in
        ["capture -r packets -w /dev/stdout", "capture -r packets -w /dev/fd/1", "capture -r packets -w /dev/null"]
    {
        assert_eq!(shared.command(line).output().unwrap().status.code(), Some(0), "{line}");
    }
    let out = shared.command("capture -r packets -w /dev/stdout").output().unwrap().stdout;
    assert!(out.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) && out.len() > 100, "a section of pcapng");
}

/// netwren reads at most a limited amount from a file that a flag names.
#[test]
fn root_no_file_is_read_beyond_its_bound() {
    // A program without its features lacks BPF, TLS and SQLite.
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    let shared = Shared::new();
    std::fs::File::create(shared.at("sparse")).unwrap().set_len(1 << 40).unwrap();
    let lines = [
        "ulogd -c FILE",
        "log --config FILE",
        "conntrack -R FILE",
        "tcpdump -i lo -F FILE",
        "tcpdump -V FILE",
        "ss -F FILE",
        "log --group 32007 --to json+tls://localhost:1 --tls-ca FILE",
        "log --group 32007 --to json+tls://localhost:1 --tls-cert FILE",
    ];
    crate::run::side_by_side(lines, |line| {
        for file in ["/dev/zero", "sparse"] {
            let line = line.replace("FILE", file);
            let (mut command, bounded) = (Command::new("prlimit"), "--as=2000000000");
            command.arg(bounded).arg(testkit::program::netwren()).args(line.split(' '));
            let out = clean(&mut command).current_dir(shared.0.path()).output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(out.status.code().is_some_and(|code| code != 0), "{line}: {said}");
            let says = ["not a regular file", "more than", "too large", "Too long", "longer than", "for reading"];
            assert!(says.iter().any(|words| said.contains(words)), "{line}: {said}");
        }
    });
}

/// A configuration determines which files root writes, so any user who can change it can act as root.
#[test]
fn root_a_configuration_of_another_user_is_refused() {
    // A program without its features lacks BPF, TLS and SQLite.
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    let shared = Shared::new();
    let refused = |says: &str| {
        shared.run("ulogd -c ulogd.conf").says(1, &["cannot read ulogd.conf: ", says]);
        shared.run("log --config ulogd.conf").says(4, &["cannot read ulogd.conf: ", says]);
        let tls = "log --group 32007 --to json+tls://localhost:1 --tls-ca ulogd.conf";
        shared.run(tls).says(2, &["cannot read ulogd.conf: ", says]);
    };
    for mode in [0o666, 0o664, 0o602] {
        std::fs::set_permissions(shared.at("ulogd.conf"), PermissionsExt::from_mode(mode)).unwrap();
        refused("other users may write to it");
    }
    std::fs::set_permissions(shared.at("ulogd.conf"), PermissionsExt::from_mode(0o600)).unwrap();
    chown(shared.at("ulogd.conf"), Some(NOBODY), None).unwrap();
    refused("it belongs to user 65534: it must belong to root or to the user that runs netwren");
}

#[test]
fn replay_an_open_quotation_mark_of_ulogd_conf_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ulogd.conf");
    std::fs::write(&file, "[global]\nstack=a:NFLOG,f:LOGEMU\n[f]\nfile=\"/var/log/x\n").unwrap();
    let file = file.display().to_string();
    netwren(&["ulogd", "-c", &file]).says(1, &[&format!("{file}:4: the quotation mark of file is not closed")]);
}

fn python(dir: &Path, script: &str) -> String {
    let out = Command::new("python3").args(["-c", script]).current_dir(dir).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Another user's database would run its triggers as root, and SQLite would replay a journal next to a database.
#[test]
fn root_a_database_of_another_user_is_not_opened() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    if !have_sqlite() {
        return;
    }
    let shared = Shared::new();
    let ship = |path: &str| shared.run(&format!("log --group 32007 --to sqlite:{path}"));
    let script = "import sqlite3\ndb = sqlite3.connect('theirs')\ndb.execute('CREATE TABLE log (x)')\n\
                  db.execute('CREATE TRIGGER t AFTER INSERT ON log BEGIN DELETE FROM log; END')\ndb.commit()";
    python(shared.0.path(), script);
    chown(shared.at("theirs"), Some(NOBODY), None).unwrap();
    let before = std::fs::read(shared.at("theirs")).unwrap();
    ship("theirs").says(2, &["cannot open theirs: it belongs to user 65534"]);
    for suffix in ["-wal", "-shm", "-journal"] {
        let name = format!("new{suffix}");
        shared.write(&name, PRECIOUS);
        chown(shared.at(&name), Some(NOBODY), None).unwrap();
        ship("new").says(2, &[&format!("beside it, {name}: it belongs to user 65534")]);
        std::fs::remove_file(shared.at(&name)).unwrap();
        shared.link(&name);
        ship("new").says(2, &[&format!("beside it, {name}: it is a symbolic link")]);
        std::fs::remove_file(shared.at(&name)).unwrap();
    }
    std::fs::create_dir(shared.at("dir")).unwrap();
    chown(shared.at("dir"), Some(NOBODY), None).unwrap();
    ship("dir/new").says(2, &["other users can replace files in ./dir"]);
    assert_eq!(std::fs::read(shared.at("theirs")).unwrap(), before);
    assert!(!shared.at("new").exists() && !shared.at("dir/new").exists());
    shared.is_unharmed();
}

/// In a shared directory, netwren creates the files of a database before SQLite looks for them, and
/// only root can write to them. If a program never releases a lock, netwren counts the lost rows and does not hang.
#[test]
fn root_files_of_a_database_are_roots_alone_and_a_lock_on_them_ends_with_the_run() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    if !have_sqlite() {
        return;
    }
    let lab = crate::packet_files::logging("sqlitelock");
    let shared = Shared::new();
    let to = format!("sqlite:{}", shared.at("log.db").display());
    let going = crate::packet_files::shipping(&lab, &["--to", &to], 1);
    let files = ["log.db", "log.db-wal", "log.db-shm"];
    testkit::wait_until("the database is open", || files.iter().all(|name| shared.at(name).exists()));
    for name in files {
        let facts = std::fs::metadata(shared.at(name)).unwrap();
        assert_eq!((facts.uid(), facts.mode() & 0o7777 & !0o640), (0, 0), "{name}");
    }
    let script = "import fcntl, sys, time\nfile = open('log.db-shm', 'rb')\nfcntl.lockf(file, fcntl.LOCK_SH)\n\
                  open('locked', 'w')\ntime.sleep(300)";
    let mut holder = Command::new("python3");
    let mut holder = holder.args(["-c", script]).current_dir(shared.0.path()).spawn().unwrap();
    testkit::wait_until("the lock is held", || shared.at("locked").exists());
    crate::packet_files::send(&lab);
    let (_, ran) = going.end();
    holder.kill().unwrap();
    holder.wait().unwrap();
    ran.says(3, &["not delivered when the run ended"]);
}
