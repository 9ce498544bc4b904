//! `--to kafka://…`, a feature of `./netwren.sh build`, with a broker started by the test.

use crate::going::Going;
use crate::packet_files::{logging, send, shipping};
use crate::run::netwren;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use testkit::authority::Authority;
use testkit::kafka::{Broker, Listener, PASSWORD, USER};
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// False if the program was built without the feature; prints a message then.
fn have_kafka() -> bool {
    let have = !netwren(&["sockets", "--to", "kafka://127.0.0.1:1/t"]).stderr.contains("cargo feature `kafka`");
    if !have {
        testkit::print_loud("skipped: tests/kafka.rs needs a netwren with --features kafka");
    }
    have
}

fn broker(lab: &Lab, purpose: &str) -> Option<Broker> {
    if !have_kafka() || !testkit::tool::require("openssl") {
        return None;
    }
    Broker::start(purpose, Some(&lab.path()), &Authority::new())
}

/// The program is killed while records are under way, and started again: each record is in the topic once.
#[test]
fn root_log_records_are_there_once_although_the_program_is_killed() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("kafka");
    let Some(mut broker) = broker(&lab, "log") else { return };
    let spool = lab.dir().join("spool");
    let to = format!("kafka://{}/fw.log", broker.place(Listener::Open));
    let words = ["--to", &to, "--columns", "dport,len,prefix", "--spool", spool.to_str().unwrap(), "--stats"];
    let held = |spool: &Path| std::fs::read_dir(spool).is_ok_and(|mut entries| entries.next().is_some());
    for round in 0..4 {
        let mut going = shipping(&lab, &words, 1);
        send(&lab);
        testkit::wait_until("the spool is there", || held(&spool));
        if round == 2 {
            broker.kill();
            send(&lab);
            broker.begin();
        }
        // SIGKILL, at a moment that is different in each round.
        going.child.kill().unwrap();
        going.child.wait().unwrap();
    }
    let going = shipping(&lab, &words, 1);
    send(&lab);
    let (lines, ran) = going.end();
    let ledger: serde_json::Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    let output = &ledger["outputs"][0];
    let delivered = output["delivered"].as_u64().unwrap();
    assert_eq!((&output["seen"], output["resent"].as_u64()), (&delivered.into(), Some(0)), "{ledger} {}", ran.stderr);
    let messages = broker.messages("fw.log");
    assert_eq!(messages.len() as u64, delivered, "{ledger}");
    for (_, _, value) in &messages {
        let row: serde_json::Value = serde_json::from_str(value).unwrap();
        assert!(row["len"].is_u64(), "{value}");
    }
}

/// Each row of a table is a message.
#[test]
fn root_rounds_of_a_table_are_messages_of_a_topic() {
    testkit::require_root!();
    let lab = Lab::new("kafkarounds");
    let Some(broker) = broker(&lab, "rounds") else { return };
    let to = format!("kafka://{}/listeners", broker.place(Listener::Open));
    let mut command = Command::new(testkit::program::netwren());
    command.args(["listeners", "-c", "proto,local_port,process", "--to", &to, "--stats"]);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    let out = command.output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let port = broker.place(Listener::Open).rsplit_once(':').unwrap().1.parse::<u64>().unwrap();
    let rows: Vec<serde_json::Value> =
        broker.messages("listeners").iter().map(|(.., value)| serde_json::from_str(value).unwrap()).collect();
    assert!(rows.iter().any(|row| row["local_port"] == port && row["process"] == "java"), "{rows:?}");
}

/// A capture has no rights when it logs in and sends: the calls for that are left to it.
#[test]
fn root_a_capture_without_rights_fills_a_topic() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("kafkacapture");
    let Some(broker) = broker(&lab, "capture") else { return };
    let password = lab.dir().join("password");
    std::fs::write(&password, PASSWORD).unwrap();
    std::fs::set_permissions(&password, std::fs::Permissions::from_mode(0o600)).unwrap();
    let to = format!("kafka://{USER}@{}/packets?passfile={}", broker.place(Listener::Scram), password.display());
    let words = ["-i", "lo", "--stats", "--to", &to, "-c", "src,dst,dport", "udp port 7009"];
    let going: Going<String> = Going::spawn(crate::capture::command(&lab, &words), |line| line);
    testkit::wait_until("messages are there", || {
        send(&lab);
        !broker.messages("packets").is_empty()
    });
    let (lines, ran) = going.end();
    assert!(lines.last().is_some_and(|line| line.contains("\"resent\":0,\"failures\":0")), "{lines:?} {}", ran.stderr);
    ran.ok();
}
