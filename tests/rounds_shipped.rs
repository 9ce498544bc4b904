//! `--to` with tables: the rows of each round are shipped as the command shows them, with the time of the round.

use crate::doctor::DEAF;
use crate::run::{Ran, netwren, netwren_in};
use crate::sqlite::{have_sqlite, query};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use testkit::netns::Lab;

/// Runs a command in the lab; its rows go to a file in which they are JSON.
fn shipped(lab: &Lab, words: &[&str]) -> (Vec<Value>, Ran) {
    let file = lab.dir().join("rows");
    let _ = std::fs::remove_file(&file);
    let to = format!("json:{}", file.display());
    let ran = netwren_in(lab, &[words, &["--to", &to]].concat());
    (lines(&file), ran)
}

/// Checks that the rows went to the file and that nothing is missing; without BPF some processes cannot be read.
#[track_caller]
fn shows_nothing(ran: &Ran) {
    let is_whole = ran.code == 0 || ran.code == 3 && ran.stderr.contains("netwren: owners of ");
    assert!(is_whole && ran.stdout.is_empty(), "{} {} {}", ran.code, ran.stdout, ran.stderr);
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rows of each round, by its time.
fn by_time(rows: Vec<Value>) -> BTreeMap<String, Vec<Value>> {
    let mut rounds = BTreeMap::<String, Vec<Value>>::new();
    for mut row in rows {
        let time = row.as_object_mut().unwrap().remove("time").unwrap();
        rounds.entry(time.as_str().unwrap().to_owned()).or_default().push(row);
    }
    rounds
}

/// A single reading is one round; the rows are those that the command shows.
#[test]
fn root_a_reading_is_shipped_once() {
    testkit::require_root!();
    let lab = Lab::new("shiponce");
    lab.connect_v4(3);
    for words in [
        &["sockets", "-c", "state,local_port,peer_port", "--sort", "local_port,peer_port"][..],
        &["sockets", "proto = tcp", "--by", "state", "--sum", "send_q"],
        // The owners of this process's sockets include, for a moment, each child that another test is starting.
        &["flows", "--no-owner"],
        &["counters", "source = snmp and name ~ ^Tcp", "--sort", "name"],
        &["routes", "-c", "type,destination,iface"],
    ] {
        let (rows, ran) = shipped(&lab, words);
        shows_nothing(&ran);
        assert!(ran.stderr.contains(&format!("shipping rows of `{}` to json:", words[0])), "{}", ran.stderr);
        assert!(ran.stderr.contains(", once"), "{}", ran.stderr);
        let shown = netwren_in(&lab, &[words, &["-o", "json"]].concat());
        let shown = shown.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let shown: Vec<Value> = shown.filter(|row| row.get("accounting").is_none()).collect();
        let rounds = by_time(rows);
        assert_eq!(rounds.len(), 1, "{words:?}");
        let rows = rounds.into_values().next().unwrap();
        let keys = |rows: &[Value]| -> Vec<String> { rows[0].as_object().unwrap().keys().cloned().collect() };
        assert_eq!((rows.len(), keys(&rows)), (shown.len(), keys(&shown)), "{words:?}");
        if words[0] != "counters" {
            assert_eq!(rows, shown, "{words:?}");
        }
    }
}

/// Rounds arrive with their times, also in a database, until `--for` ends the run.
#[test]
fn root_rounds_are_shipped_with_their_times() {
    testkit::require_root!();
    let lab = Lab::new("shiprounds");
    lab.connect_v4(2);
    let words = ["sockets", "state = established", "-c", "local_port", "--watch=0.1", "--for", "0.5"];
    let (rows, ran) = shipped(&lab, &words);
    shows_nothing(&ran);
    let rounds = by_time(rows);
    assert!((2..=6).contains(&rounds.len()) && rounds.values().all(|rows| rows.len() == 4), "{rounds:?}");
    if have_sqlite() {
        let file = lab.dir().join("rounds.db");
        let to = format!("sqlite:{}", file.display());
        let words = ["sockets", "proto = tcp", "--by", "state", "--watch=0.1", "--for", "0.3", "--to", &to];
        shows_nothing(&netwren_in(&lab, &words));
        let sql = "SELECT state, count, typeof(time) FROM sockets WHERE time = (SELECT max(time) FROM sockets) \
                   AND state = 'established'";
        let found = query(&file, sql);
        assert_eq!(found.first().map(String::as_str), Some("('established', 4, 'integer')"), "{found:?}");
    }
}

/// A command that adds to its rows ships what it adds, and a diagnosis ships its findings.
#[test]
fn root_shares_and_findings_are_shipped() {
    testkit::require_root!();
    let lab = Lab::new("shipfindings");
    let (rows, ran) = shipped(&lab, &["doctor", "--for", "0.2", "listen-overflow"]);
    shows_nothing(&ran);
    assert_eq!(rows.len(), 0, "{rows:?}");
    lab.spawn("python3", &["-c", DEAF]);
    let mut found = Vec::new();
    testkit::wait_until("the queue overflows", || {
        let (rows, ran) = shipped(&lab, &["doctor", "--for", "0.3", "listen-overflow"]);
        shows_nothing(&ran);
        found = rows;
        !found.is_empty()
    });
    assert_eq!((&found[0]["id"], found[0]["time"].is_string()), (&"listen-overflow".into(), true), "{found:?}");
    lab.use_conntrack();
    lab.connect_v4(2);
    let (rows, ran) = shipped(&lab, &["nat", "top", "state"]);
    shows_nothing(&ran);
    assert!(
        !rows.is_empty() && rows.iter().all(|row| row["share_percent"].is_number() && row["time"].is_string()),
        "{rows:?}"
    );
}

/// Undelivered rows are counted. A target that cannot take the rows is refused before anything is read.
#[test]
fn root_what_was_not_shipped_is_said() {
    testkit::require_root!();
    let lab = Lab::new("shipaway");
    lab.connect_v4(1);
    let closed = lab.run_inside(|| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let to = format!("json+tcp://{closed}");
    let ran = netwren_in(&lab, &["sockets", "state = established", "--to", &to, "--stats"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("2 of 2 rows not delivered"), "{}", ran.stderr);
    let lacking = format!("json:{}/none/rows", lab.dir().display());
    let ran = netwren_in(&lab, &["sockets", "--to", &lacking]);
    assert!(ran.code == 3 && ran.stderr.contains("cannot open") && ran.stderr.contains("/none/rows"), "{}", ran.stderr);
    netwren(&["routes", "--to", "pcap:/tmp/x"]).says(2, &["pcap does not support the table routes"]);
    netwren(&["drops", "-w", "/tmp/x.pcapng", "--to", "json:/tmp/x"]).says(2, &["-w cannot be used with --to"]);
    netwren(&["drops", "--events", "--by", "src", "--to", "json:/tmp/x"]).says(2, &["leave out --by"]);
    netwren(&["sockets", "--resolve", "--to", "json:/tmp/x"]).says(2, &["--resolve cannot be used with --to"]);
}
