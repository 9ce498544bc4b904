//! `--to ipfix+udp://…`, read by nfcapd, the collector of nfdump.

use crate::going::Going;
use crate::nat_events::converse;
use crate::run::clean;
use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};
use testkit::unpacked::UnpackedProgram;

/// A running nfcapd, and the folder of its files.
struct Collector {
    process: Child,
    dir: PathBuf,
}

/// Where it listens, in the lab.
const TARGET: &str = "ipfix+udp://127.0.0.1:9995";

impl Collector {
    /// Starts it in the lab; `None` after a message if it is not there.
    fn start(lab: &Lab) -> Option<Collector> {
        let (Some(nfcapd), true) = (UnpackedProgram::find("nfcapd"), UnpackedProgram::find("nfdump").is_some()) else {
            let is_needed = std::env::var_os("NETWREN_REQUIRE_TOOLS").is_some_and(|value| value == "1");
            assert!(!is_needed, "NETWREN_REQUIRE_TOOLS=1, but nfcapd is neither installed nor in target/tools");
            testkit::print_loud("skipped: a test of IPFIX needs nfcapd");
            return None;
        };
        let dir = lab.dir().join("nfcapd");
        std::fs::create_dir(&dir).unwrap();
        let mut command = nfcapd.command();
        command.arg("-w").arg(&dir).args(["-p", "9995", "-b", "127.0.0.1", "-t", "3600"]);
        confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let listens = || !lab.output("ss", &["-Hlun", "sport = :9995"]).is_empty();
        lab.wait_until("the collector listens", listens);
        Some(Collector { process, dir })
    }

    /// Ends it, and returns its records.
    fn end(mut self) -> Vec<Value> {
        Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status().unwrap();
        self.process.wait().unwrap();
        let mut nfdump = UnpackedProgram::find("nfdump").unwrap().command();
        let out = nfdump.arg("-R").arg(&self.dir).args(["-o", "json"]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let all: Value = serde_json::from_slice(&out.stdout).unwrap();
        all.as_array().unwrap().clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts netwren in the lab.
fn start(lab: &Lab, words: &[&str]) -> Going<String> {
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).args(words).args(["--to", TARGET, "--stats"]);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    Going::spawn(command, |line| line)
}

fn rows(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map_while(|line| serde_json::from_str(line).ok()).collect()
}

/// The delivered messages of the IPFIX output: the second one.
fn delivered(lines: &[String]) -> u64 {
    let ledger: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    let output = ledger["outputs"].as_array().unwrap().last().unwrap();
    assert_eq!(output["seen"], output["delivered"], "{ledger}");
    output["delivered"].as_u64().unwrap()
}

/// Each connection that is closed is two flows, with the numbers of the JSON output.
#[test]
fn root_closed_connections_are_flows() {
    testkit::require_root!();
    let lab = Lab::new("ipfixflows");
    let Some(collector) = Collector::start(&lab) else { return };
    let file = lab.dir().join("events.json");
    let json = format!("json:{}", file.display());
    let columns = "event,family,local_port,peer_port,bytes_in,bytes_out";
    let going = start(&lab, &["sockets", "--follow", "--columns", columns, "proto = tcp", "--to", &json]);
    let closed = || rows(&file).into_iter().filter(|row| row["event"] == "close").collect::<Vec<_>>();
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let before = closed().len();
        // Connections before the run has begun are not reported.
        lab.wait_until("several are reported", || {
            converse(&lab, address);
            closed().len() >= before + 20
        });
    }
    let (lines, ran) = going.end();
    // Without BPF, short connections have no opening and no owner: exit code 3.
    assert!(ran.code == 0 || ran.stderr.contains("without BPF"), "{}", ran.stderr);
    let (closed, flows) = (closed(), collector.end());
    assert_eq!((delivered(&lines), flows.len()), (closed.len() as u64, 2 * closed.len()));
    for row in closed {
        let is_v6 = row["family"] == "inet6";
        let found = |src: &Value, dst: &Value, bytes: &Value| {
            let is_same = |flow: &&Value| {
                let address = if is_v6 { &flow["src6_addr"] } else { &flow["src4_addr"] };
                (&flow["src_port"], &flow["dst_port"], &flow["in_bytes"]) == (src, dst, bytes)
                    && *address == if is_v6 { "::1" } else { "127.0.0.1" }
            };
            flows.iter().filter(is_same).count()
        };
        let (local, peer) = (&row["local_port"], &row["peer_port"]);
        // The same ports may be used twice, and both ends are here.
        assert!(found(local, peer, &row["bytes_out"]) >= 1 && found(peer, local, &row["bytes_in"]) >= 1, "{row}");
    }
    let times = flows.iter().filter(|flow| flow["first"].as_str() <= flow["last"].as_str()).count();
    assert_eq!(times, flows.len());
}

/// Sessions of NAT are named as in RFC 8158, with both ends before and after.
#[test]
fn root_sessions_of_nat_are_events() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("ipfixnat");
    lab.nft("table ip n { chain o { type nat hook output priority -100\n tcp dport 80 redirect to :8080\n }\n }");
    let Some(collector) = Collector::start(&lab) else { return };
    let file = lab.dir().join("events.json");
    let json = format!("json:{}", file.display());
    let columns = "event,orig_sport,orig_dport";
    let going = start(&lab, &["nat", "events", "--columns", columns, "nat = dnat", "--to", &json]);
    lab.wait_until("sessions are reported", || {
        lab.run_inside(|| {
            let listener = TcpListener::bind("127.0.0.1:8080").unwrap();
            let near = TcpStream::connect("127.0.0.1:80").unwrap();
            drop((listener.accept().unwrap(), near));
        });
        rows(&file).iter().filter(|row| row["event"] == "new").count() >= 5
    });
    // Ends them.
    lab.output("conntrack", &["-F"]);
    let count = |event: &str| rows(&file).iter().filter(|row| row["event"] == event).count();
    lab.wait_until("all have ended", || count("destroy") >= count("new"));
    let (_, ran) = going.end();
    ran.ok();
    let sessions = collector.end();
    for row in rows(&file).iter().filter(|row| row["event"] != "update") {
        let event = if row["event"] == "new" { "NAT44 session create" } else { "NAT44 session delete" };
        let is_same = |session: &&Value| {
            session["nat_event"] == event
                && session["src_port"] == row["orig_sport"]
                && (&session["dst_port"], &session["dst_xlt_port"]) == (&80.into(), &"8080".into())
                && (&session["dst4_addr"], &session["dst4_xlt_ip"]) == (&"127.0.0.1".into(), &"127.0.0.1".into())
        };
        assert_eq!(sessions.iter().filter(is_same).count(), 1, "{row} {sessions:?}");
    }
}
