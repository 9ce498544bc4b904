//! Compares the ss face with ss itself: filter files, raw dumps, threads, tables that the kernel lacks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Output;
use testkit::netns::Lab;
use testkit::{mask, program, require_root, require_tool, until_equal};

fn sockets(purpose: &str) -> Lab {
    let lab = Lab::new(purpose);
    lab.connect_v4(3);
    lab.connect_v6(2);
    lab.time_wait(2);
    lab.listen_tcp(2);
    lab.udp("127.0.0.1:5300".parse().unwrap());
    lab
}

/// The installed tool's layout.
fn layout() -> String {
    let version = std::process::Command::new("ss").arg("-V").output().unwrap();
    let old = String::from_utf8_lossy(&version.stdout).contains("iproute2-6.1.");
    if old { "6.1".into() } else { "6.15".into() }
}

fn run(lab: &Lab, ours: bool, words: &[&str], file: Option<&Path>) -> Output {
    let mut command = if ours { lab.command(program::netwren()) } else { lab.command("ss") };
    if ours {
        command.arg("ss").env("NETWREN_SS_LAYOUT", layout());
    }
    if let Some(file) = file {
        command.env("TCPDIAG_FILE", file);
    }
    command.args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Asserts the same lines and the same exit code. The order is the kernel's and depends on the kind of request.
#[track_caller]
fn same(lab: &Lab, words: &str, file: Option<&Path>) -> String {
    let words: Vec<&str> = words.split(' ').collect();
    let lines = |output: &Output| mask::sorted_lines(&text(&output.stdout));
    let both = || [false, true].map(|ours| run(lab, ours, &words, file));
    let [theirs, ours] = until_equal(both, |[theirs, ours]| lines(theirs) == lines(ours));
    assert_eq!(lines(&theirs), lines(&ours), "{words:?}: {}", text(&ours.stderr));
    assert_eq!(theirs.status.code(), ours.status.code(), "{words:?}");
    text(&ours.stdout)
}

#[test]
fn root_tables_that_the_kernel_lacks_are_empty() {
    require_root!();
    require_tool!("ss");
    let lab = sockets("sslack");
    for words in [
        "-S",
        "-Sa",
        "-d",
        "-da",
        "--vsock",
        "--vsock -a",
        "--tipc",
        "--tipc -a",
        "--xdp",
        "--xdp -a",
        "-f tipc",
        "-f vsock",
        "-f xdp",
        "-A sctp",
        "-A dccp,sctp",
        "-tSan",
        "-tdan",
        "-A tcp,sctp -n",
        "--tipcinfo -tan",
        "-HS",
    ] {
        let ours = same(&lab, words, None);
        assert!(!ours.contains("is not supported"), "{words}");
    }
}

#[test]
fn root_filters_from_files() {
    require_root!();
    require_tool!("ss");
    let lab = sockets("ssfilt");
    let file = lab.dir().join("filter");
    let file = file.to_str().unwrap();
    for content in [
        "# a comment\nsport > :1024\n0 is nothing\nand dport != :9\n",
        "dst 127.0.0.1",
        "",
        "( sport = :22\nor src [::1]\n)\n",
        "sport ~ 5",
    ] {
        std::fs::write(file, content).unwrap();
        for words in ["-tan -F", "-ta4n state established --filter"] {
            same(&lab, &format!("{words} {file}"), None);
        }
        same(&lab, &format!("-tan -F {file} not dst 127.0.0.2"), None);
    }
    same(&lab, "-tan -F /nonexistent", None);
    same(&lab, &format!("-tan -F {file} -F {file}"), None);
}

/// A file's messages without the port, which differs between sockets.
fn messages(file: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(file).unwrap();
    let all = netlink::Messages::new(&bytes).map(Result::unwrap);
    let text =
        |m: netlink::Message<'_>| [format!("{} {} {} ", m.kind, m.flags, m.seq).into_bytes(), m.payload.to_vec()];
    let mut all: Vec<Vec<u8>> = all.map(|m| text(m).concat()).collect();
    all.sort();
    all
}

#[test]
fn root_raw_dumps_are_those_of_ss_and_read_by_both() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("ssdiag");
    // A socket in TIME_WAIT would have a running timer.
    lab.connect_v4(3);
    lab.connect_v6(2);
    lab.listen_tcp(2);
    let [theirs, ours] = ["theirs", "ours"].map(|name| lab.dir().join(name));
    for words in ["-ta", "-t", "-ta4m", "-ta6 --tos", "-tl", "-t state established"] {
        for (is_ours, file) in [(false, &theirs), (true, &ours)] {
            let mut all = vec!["-D", file.to_str().unwrap()];
            all.extend(words.split(' '));
            let output = run(&lab, is_ours, &all, None);
            assert!(output.status.success() && output.stdout.is_empty(), "{words}: {}", text(&output.stderr));
        }
        assert_eq!(messages(&theirs), messages(&ours), "{words}");
        for file in [&theirs, &ours] {
            for shown in ["-tan", "-tan sport > :1024", "-tano", "-ta6n", "-tn state closed"] {
                same(&lab, shown, Some(file));
            }
        }
    }
    let shown = same(&lab, "-tan", Some(&ours));
    assert!(shown.lines().count() > 1);
    same(&lab, "-D /nonexistent/x -u", None);
    std::fs::write(&ours, &std::fs::read(&theirs).unwrap()[..30]).unwrap();
    let cut = run(&lab, true, &["-tan"], Some(&ours));
    assert!(text(&cut.stderr).contains("Unexpected EOF reading $TCPDIAG_FILE"), "{}", text(&cut.stderr));
}

#[test]
fn root_threads_hold_what_their_process_holds() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("ssthr");
    lab.listen_tcp(1);
    lab.connect_v4(1);
    for words in ["-tlnT", "-tanT", "-tanpT", "-tanTo", "-uanT"] {
        // 6.15 shows no threads without -p; ours does, unless it must behave like 6.15.
        let ours = match layout() == "6.15" && !words.contains('p') {
            true => text(&run(&lab, true, &[words], None).stdout),
            false => same(&lab, words, None),
        };
        assert!(words == "-uanT" || ours.contains(",tid="), "{ours}");
    }
}

/// Several families: via netlink ss shows the one named last, from /proc all of them. And `-b` shows timers.
#[test]
fn root_issue_10_families_together_and_filters_with_timers() {
    require_root!();
    require_tool!("ss");
    require_tool!("python3");
    let lab = sockets("ssboth");
    let script = "import socket,time\n\
                  a=socket.socket(socket.AF_INET,socket.SOCK_RAW,1)\n\
                  b=socket.socket(socket.AF_INET6,socket.SOCK_RAW,58)\n\
                  t=socket.socket(); t.bind(('127.0.0.1',4244)); t.listen()\n\
                  c=socket.create_connection(('127.0.0.1',4244))\n\
                  c.setsockopt(socket.SOL_SOCKET,socket.SO_KEEPALIVE,1)\n\
                  u=socket.socket(); u.bind(('127.0.0.1',4245)); u.listen()\n\
                  time.sleep(600)";
    lab.spawn("python3", &["-c", script]);
    lab.wait_until("it has all sockets", || lab.output("ss", &["-Hltn"]).contains(":4245"));
    for words in ["-46wan", "-64wan", "-4wan", "-6wan", "-46tan", "-64tan", "-46uan", "-64uan", "-f inet -6 -wan"] {
        same(&lab, words, None);
    }
    for words in ["-btn", "-bHtn", "-b0an"] {
        // The remaining time changes between two runs.
        let timers = |ours| text(&run(&lab, ours, &[words], None).stdout).matches("timer:(keepalive,").count();
        let counts = until_equal(|| [timers(false), timers(true)], |[theirs, ours]| theirs == ours);
        assert_eq!(counts, [usize::from(words != "-b0an"); 2], "{words}");
    }
}

/// A thread with its own descriptor table owns only the sockets open there.
#[test]
fn root_issue_10_threads_with_descriptors_of_their_own() {
    require_root!();
    require_tool!("ss");
    require_tool!("python3");
    let lab = Lab::new("ssthr2");
    // CLONE_FILES is 0x400. The first thread closes its copy of the socket, the second gives it another number.
    let script = "import socket,threading,ctypes,os,time\n\
                  libc=ctypes.CDLL(None)\n\
                  s=socket.socket(); s.bind(('127.0.0.1',4242)); s.listen()\n\
                  def closes():\n libc.unshare(0x400); os.close(s.fileno()); ready.release(); time.sleep(600)\n\
                  def moves():\n libc.unshare(0x400); os.dup2(s.fileno(),99); os.close(s.fileno()); ready.release(); \
                  time.sleep(600)\n\
                  def shares():\n ready.release(); time.sleep(600)\n\
                  ready=threading.Semaphore(0)\n\
                  for f in (closes,moves,shares):\n threading.Thread(target=f,daemon=True).start(); ready.acquire()\n\
                  t=socket.socket(); t.bind(('127.0.0.1',4243)); t.listen()\n\
                  time.sleep(600)";
    lab.spawn("python3", &["-c", script]);
    lab.wait_until("all threads are ready", || lab.output("ss", &["-Hltn"]).contains(":4243"));
    let ours = same(&lab, "-tlnpT", None);
    let first = ours.lines().find(|line| line.contains(":4242")).unwrap();
    assert_eq!(first.matches(",tid=").count(), 3, "{first}");
    assert!(first.contains("fd=99"), "{first}");
}

/// ss prints an error and exits if no policy is loaded.
#[test]
fn root_contexts_need_selinux() {
    require_root!();
    require_tool!("ss");
    let lab = Lab::new("ssctx");
    let [theirs, ours] = [false, true].map(|ours| run(&lab, ours, &["-tanZ"], None));
    assert_eq!(theirs.status.code(), ours.status.code());
    assert_eq!(text(&theirs.stderr), text(&ours.stderr));
    let theirs = run(&lab, false, &["-tanz"], None);
    assert_eq!(text(&theirs.stderr), text(&run(&lab, true, &["-tanz"], None).stderr));
}
