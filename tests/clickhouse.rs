//! `--to clickhouse://…`, a feature of `./netwren.sh build`, with ClickHouse's engine started by the test.

use crate::going::Going;
use crate::packet_files::{logging, send, shipping};
use crate::run::netwren;
use std::process::Command;
use testkit::clickhouse::ClickHouseServer;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

fn server(lab: &Lab, purpose: &str, cut: u32) -> Option<ClickHouseServer> {
    let said = netwren(&["sockets", "--to", "clickhouse://127.0.0.1:1/d"]).stderr;
    if said.contains("cargo feature `http`") {
        testkit::print_loud("skipped: tests/clickhouse.rs needs a netwren with --features http");
        return None;
    }
    ClickHouseServer::start(purpose, Some(&lab.path()), cut)
}

/// The program is killed while records are under way and each third answer is lost: each record is stored once.
#[test]
fn root_log_records_are_stored_once_although_the_program_is_killed() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("chlog");
    let Some(mut server) = server(&lab, "log", 3) else { return };
    let spool = lab.dir().join("spool");
    let to = format!("clickhouse://{}/default?table=fw", server.place());
    let words = ["--to", &to, "--columns", "time,dport,len,prefix,src", "--spool", spool.to_str().unwrap(), "--stats"];
    for round in 0..4 {
        let mut going = shipping(&lab, &words, 1);
        send(&lab);
        if round == 2 {
            server.kill();
            send(&lab);
            server.begin();
        }
        let has_spool = || std::fs::read_dir(&spool).is_ok_and(|mut entries| entries.next().is_some());
        testkit::wait_until("the spool is there", has_spool);
        // SIGKILL, at a moment that is different in each round.
        going.child.kill().unwrap();
        going.child.wait().unwrap();
    }
    // A run that ends without an answer leaves its records to the next one.
    let last_run = || {
        let going = shipping(&lab, &words, 1);
        send(&lab);
        let (lines, ran) = going.end();
        let ledger: serde_json::Value = serde_json::from_str(lines.last().unwrap()).unwrap();
        (ledger, ran)
    };
    let ended = (0..10).map(|_| last_run()).find(|(ledger, _)| ledger["outputs"][0]["in_spool"] == 0);
    let (ledger, ran) = ended.unwrap();
    let output = &ledger["outputs"][0];
    let delivered = output["delivered"].as_u64().unwrap();
    assert_eq!((&output["seen"], output["resent"].as_u64()), (&delivered.into(), Some(0)), "{ledger} {}", ran.stderr);
    let host = String::from_utf8(sys::fs::host_name()).unwrap();
    let found = server.query(
        "SELECT count(), countIf(dport = 7009), any(host), countIf(src IN ('::1', '::ffff:127.0.0.1')) FROM fw \
         FORMAT TSV",
    );
    let fields: Vec<&str> = found.split('\t').collect();
    assert_eq!((fields[0], fields[2], fields[3]), (&*delivered.to_string(), &*host, fields[0]), "{ledger}");
    assert!(fields[1].parse::<u64>().unwrap() > 0, "{found}");
}

/// Each row of a table is a row of ClickHouse's, with the time of its round.
#[test]
fn root_rounds_of_a_table_are_rows() {
    testkit::require_root!();
    let lab = Lab::new("chrounds");
    let Some(server) = server(&lab, "rounds", 0) else { return };
    let to = format!("clickhouse://{}/default?table=listeners", server.place());
    let mut command = Command::new(testkit::program::netwren());
    command.args([
        "listeners",
        "-c",
        "proto,local_port,process",
        "--watch=0.1",
        "--for",
        "0.5",
        "--to",
        &to,
        "--stats",
    ]);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    let out = command.output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let port = server.place().rsplit_once(':').unwrap().1.to_owned();
    let found = server.query(&format!(
        "SELECT uniqExact(time), any(process), any(proto) FROM listeners WHERE local_port = {port} FORMAT TSV"
    ));
    let (rounds, row) = found.split_once('\t').unwrap();
    assert!(rounds.parse::<u32>().unwrap() > 1 && row == "python3\ttcp", "{found} {out:?}");
}

/// A capture has no rights when it connects and sends: the calls for that are left to it.
#[test]
fn root_a_capture_without_rights_fills_a_table() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("chcapture");
    let Some(server) = server(&lab, "capture", 0) else { return };
    let to = format!("clickhouse://{}/default?table=packets", server.place());
    let words = ["-i", "lo", "--stats", "--to", &to, "-c", "time,src,dst,dport", "udp port 7009"];
    let going: Going<String> = Going::spawn(crate::capture::command(&lab, &words), |line| line);
    testkit::wait_until("packets are there", || {
        send(&lab);
        // Until the first insert, there is no table.
        server
            .query("SELECT count() FROM merge('default', '^packets$') FORMAT TSV")
            .parse()
            .is_ok_and(|rows: u64| rows > 0)
    });
    let (lines, ran) = going.end();
    assert!(lines.last().is_some_and(|line| line.contains("\"resent\":0,\"failures\":0")), "{lines:?} {}", ran.stderr);
    ran.ok();
}
