//! `--to otlp+http://…`, a feature of `./netwren.sh build`, with a receiver that has OpenTelemetry's own definitions.

use crate::packet_files::{logging, send, shipping};
use crate::run::netwren;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Command, Output};
use testkit::netns::Lab;
use testkit::otlp::OtlpReceiver;
use testkit::sandbox::{Limit, confine};

fn receiver(lab: &Lab, purpose: &str) -> Option<OtlpReceiver> {
    let said = netwren(&["sockets", "--to", "otlp+http://127.0.0.1:1"]).stderr;
    if said.contains("cargo feature `http`") {
        testkit::print_loud("skipped: tests/otlp.rs needs a netwren with --features http");
        return None;
    }
    OtlpReceiver::start(purpose, &lab.path(), lab.dir())
}

/// The log records of requests: their attributes, and the other fields of each.
fn records(requests: &[String]) -> Vec<(BTreeMap<String, Value>, Value)> {
    let requests = requests.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    requests
        .flat_map(|request| {
            let scope = &request["content"]["resourceLogs"][0]["scopeLogs"][0];
            assert_eq!(scope["scope"]["name"], "netwren");
            scope["logRecords"].as_array().unwrap().clone()
        })
        .map(|record| (attributes(&record["attributes"]), record))
        .collect()
}

fn attributes(list: &Value) -> BTreeMap<String, Value> {
    let value = |one: &Value| one["value"].as_object().unwrap().values().next().unwrap().clone();
    list.as_array().unwrap().iter().map(|one| (one["key"].as_str().unwrap().to_owned(), value(one))).collect()
}

/// Ships the listeners of the lab; `wish` tells the receiver how to answer.
fn ship(lab: &Lab, receiver: &OtlpReceiver, wish: &str) -> Output {
    let mut command = Command::new(testkit::program::netwren());
    command.args(["listeners", "-c", "proto,local_addr,local_port,process,pid,state", "--stats"]);
    command.args(["--to", &format!("otlp+http://{}/v1/logs", receiver.place())]);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", format!("X-Answer={wish},X-Scope-OrgID=a%20b"));
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    command.output().unwrap()
}

/// The counts of the output.
fn ledger(out: &Output) -> Value {
    let text = String::from_utf8_lossy(&out.stdout);
    let all: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    all["outputs"][0].clone()
}

// long: one receiver answers in every way.
#[test]
fn root_rows_are_log_records_whatever_the_receiver_answers() {
    testkit::require_root!();
    let lab = Lab::new("otlprows");
    let Some(receiver) = receiver(&lab, "rows") else { return };
    let held: Vec<_> = lab.run_inside(|| {
        let bind = |host: &str| std::net::TcpListener::bind((host, 0)).unwrap();
        vec![bind("127.0.0.1"), bind("127.0.0.1"), bind("::1")]
    });
    let ports: Vec<u16> = held.iter().map(|one| one.local_addr().unwrap().port()).collect();
    let out = ship(&lab, &receiver, "");
    assert!(out.status.success(), "{out:?}");
    let requests = receiver.take_requests();
    let request: Value = serde_json::from_str(&requests[0]).unwrap();
    assert_eq!((&request["path"], &request["headers"]["X-Scope-OrgID"]), (&"/v1/logs".into(), &"a b".into()));
    let resource = attributes(&request["content"]["resourceLogs"][0]["resource"]["attributes"]);
    let host = String::from_utf8(sys::fs::host_name()).unwrap();
    assert_eq!((&resource["host.name"], &resource["service.name"]), (&host.into(), &"netwren".into()));
    let all = records(&requests);
    let rows = all.len();
    assert!(rows >= 4, "{all:?}");
    for (attributes, record) in &all {
        assert_eq!(
            (&record["eventName"], &record["body"]["stringValue"]),
            (&"netwren.sockets".into(), &"netwren.sockets".into())
        );
        assert!(
            record["timeUnixNano"].as_str().unwrap().len() == 19 && record["severityNumber"] == "SEVERITY_NUMBER_INFO"
        );
        assert_eq!(attributes["network.transport"], "tcp");
        assert_eq!(attributes["netwren.state"], "listen");
    }
    let port = |attributes: &BTreeMap<String, Value>| {
        attributes["network.local.port"].as_str().unwrap().parse::<u16>().unwrap()
    };
    for wanted in &ports {
        let (attributes, _) = all.iter().find(|(attributes, _)| port(attributes) == *wanted).unwrap();
        assert_eq!(attributes["process.pid"], std::process::id().to_string());
    }

    // The answer is lost: the rows are sent again and counted, and a store can tell that they are the same.
    let out = ship(&lab, &receiver, "cut");
    let counts = ledger(&out);
    assert_eq!((&counts["delivered"], &counts["resent"]), (&rows.into(), &rows.into()), "{out:?}");
    let twice = records(&receiver.take_requests());
    let uid = |one: &(BTreeMap<String, Value>, Value)| one.0["log.record.uid"].clone();
    let mut uids: Vec<String> = twice.iter().map(|one| uid(one).as_str().unwrap().to_owned()).collect();
    uids.sort();
    uids.dedup();
    assert_eq!((twice.len(), uids.len()), (2 * rows, rows));

    // A part is rejected; the receiver is full for a second; a gateway fails; a request is too large, and then too bad.
    let rejected = format!("2 of {rows} rows refused: {} rejected 2 rows: too old", receiver.place());
    for (wish, delivered, refused, code, says) in [
        ("reject 2", rows - 2, 2, 3, &*rejected),
        ("503 full", rows, 0, 0, ""),
        ("502 gateway", rows, 0, 0, ""),
        ("413 large", rows, 0, 0, ""),
        ("400 no protobuf", 0, rows, 3, "refused"),
    ] {
        let out = ship(&lab, &receiver, wish);
        let (counts, said) = (ledger(&out), String::from_utf8_lossy(&out.stderr));
        assert_eq!(
            (&counts["delivered"], &counts["dropped"]["refused"]),
            (&delivered.into(), &refused.into()),
            "{wish}: {counts}"
        );
        assert_eq!(out.status.code(), Some(code), "{wish}: {said}");
        assert!(said.contains(says), "{wish}: {said}");
        // It is unknown whether the receiver took the request before the gateway failed.
        assert_eq!(counts["resent"], if wish == "502 gateway" { rows } else { 0 }, "{wish}");
    }
    drop(held);
}

/// Records of the log arrive while the program runs, each with its packet's ends.
#[test]
fn root_log_records_have_the_names_of_opentelemetry() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("otlplog");
    let Some(receiver) = receiver(&lab, "log") else { return };
    let to = format!("otlp+http://{}", receiver.place());
    let going = shipping(&lab, &["--to", &to, "--columns", "time,src,dst,dport,prefix,len", "--stats"], 1);
    send(&lab);
    let mut requests = Vec::new();
    testkit::wait_until("records are there", || {
        requests.extend(receiver.take_requests());
        !requests.is_empty()
    });
    let (lines, ran) = going.end();
    requests.extend(receiver.take_requests());
    let all = records(&requests);
    let counts: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!(counts["outputs"][0]["delivered"], all.len(), "{} {}", lines.last().unwrap(), ran.stderr);
    let known = all.iter().filter(|(attributes, _)| {
        attributes.get("destination.port").is_some_and(|port| *port == "7009")
            && attributes["netwren.prefix"].as_str().unwrap().ends_with(": ")
            && matches!(attributes["source.address"].as_str(), Some("127.0.0.1" | "::1"))
    });
    assert!(known.count() >= 10, "{all:?}");
}
