//! `nat events --columns session-log` shows for every session which client had which public address and port, and
//! when.

use crate::going::Going;
use crate::nat_sizes::{MASQUERADE, send, with_way_out};
use crate::run::clean;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

fn spawn(lab: &Lab, program: &Path, args: &[&str]) -> Going<String> {
    let mut command = Command::new(program);
    clean(&mut command).args(args);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    Going::spawn(command, |line| line)
}

/// Client, external address and destination in a line of `conntrack -E`.
fn theirs(line: &str) -> [String; 3] {
    let all = |key: &str| line.split(' ').filter_map(|word| word.strip_prefix(key)).map(str::to_owned).collect();
    let [src, dst, sport, dport]: [Vec<String>; 4] = ["src=", "dst=", "sport=", "dport="].map(all);
    [format!("{}:{}", src[0], sport[0]), format!("{}:{}", dst[1], dport[1]), format!("{}:{}", dst[0], dport[0])]
}

/// When 20,000 sessions of a masqueraded client end at once, each has its line, with the addresses that conntrack(8)
/// shows.
#[test]
fn root_each_session_has_its_line_with_both_addresses() {
    const FLOWS: u32 = 20_000;
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("conntrack");
    let lab = with_way_out("sessionlog", MASQUERADE);
    let path = lab.dir().join("sessions");
    let to = format!("json:{}", path.display());
    let args = ["nat", "events", "-c", "session-log", "--buffer", "64MiB", "--stats", "--to", &to];
    let ours = spawn(&lab, testkit::program::netwren(), &args);
    let mut shown = spawn(&lab, Path::new("conntrack"), &["-E", "-e", "DESTROY", "-b", "67108864"]);
    let lines = || std::fs::read_to_string(&path).unwrap_or_default();
    // Both are listening once each has shown a session.
    testkit::wait_until("both listen", || {
        send(&lab, 1);
        lab.output("conntrack", &["-F"]);
        shown.take();
        !shown.read.is_empty() && !lines().is_empty()
    });
    send(&lab, FLOWS);
    assert_eq!(lab.conntrack_count(), u64::from(FLOWS));
    lab.output("conntrack", &["-F"]);
    let destination = |row: &Value| row["published"].as_str().unwrap().to_owned();
    testkit::wait_until("all ends", || lines().lines().count() > FLOWS as usize);
    let (printed, ran) = ours.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rows: Vec<Value> = lines().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ledger: Value = serde_json::from_str(printed.last().unwrap()).unwrap();
    let ledger = &ledger["outputs"][0];
    assert_eq!((&ledger["seen"], &ledger["delivered"]), (&rows.len().into(), &rows.len().into()), "{ledger}");
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let own = rows.iter().map(|row| ["client", "external", "published"].map(|key| text(row, key)));
    let own: BTreeSet<[String; 3]> = own.collect();
    let (seen, _) = shown.end();
    let is_end = |line: &&String| line.contains("DESTROY") && !line.contains("dst=11.0.0.0 ");
    let theirs: BTreeSet<[String; 3]> = seen.iter().filter(is_end).map(|l| theirs(l)).collect();
    // The first sessions may have ended before netwren listened. conntrack loses most of such a burst; the sessions
    // that it shows must match.
    assert!(theirs.len() > 100, "{}", theirs.len());
    assert!(theirs.difference(&own).next().is_none(), "{:?}", theirs.difference(&own).next());
    let many: BTreeSet<String> = rows.iter().map(destination).collect();
    assert_eq!(many.len(), FLOWS as usize);
    for row in &rows {
        assert!(
            text(row, "external").starts_with("10.9.0.1:") && text(row, "client").starts_with("10.8.0.1:"),
            "{row}"
        );
        assert_eq!(row["proto"], "udp");
    }
    let last = rows.last().unwrap();
    assert!(last["start"].as_str().is_some() && last["start"].as_str() <= last["time"].as_str(), "{last}");
}
