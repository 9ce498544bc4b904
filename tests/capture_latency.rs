//! `capture latency`: what real packet sockets are set up for, and whose they are.

use crate::capture::{command, rings};
use crate::going::Going;
use crate::run::{Ran, command_for_anyone};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use sys::sandbox::{Limit, confine};
use testkit::netns::Lab;

/// tcpdump, once it captures.
fn tcpdump(lab: &Lab, args: &[&str]) -> Child {
    let mut tcpdump = lab.command("tcpdump");
    tcpdump.args(["-n", "-i", "lo", "-Z", "root"]).args(args).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut tcpdump = tcpdump.spawn().unwrap();
    let mut said = BufReader::new(tcpdump.stderr.take().unwrap());
    let listens = said.by_ref().lines().map_while(Result::ok).any(|line| line.contains("listening on"));
    assert!(listens, "tcpdump captures");
    tcpdump
}

#[test]
fn root_capture_latency_says_who_is_late_and_why() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump");
    let lab = Lab::new("caplate");
    let mut own: Going<String> = Going::spawn(command(&lab, &["-i", "lo", "dport = 7123"]), |line| line);
    testkit::wait_until("the ring is there", || rings(&lab) == 1);
    let mut late = tcpdump(&lab, &[]);
    let mut prompt = tcpdump(&lab, &["--immediate-mode"]);
    let columns = "pid,process,iface,packet_version,rx_retire_ms,late_ms,late_why";
    let shown = command(&lab, &["latency", "-o", "csv", "-c", columns, "late_ms != null"]).output().unwrap();
    let json = command(&lab, &["latency", "-o", "json", "late_ms > 1ms"]).output().unwrap();
    let text = command(&lab, &["latency"]).output().unwrap();
    let mut blind = command_for_anyone(&["capture", "latency"]);
    confine(&mut blind, &[Limit::Network(lab.path()), Limit::User { uid: 65_534, gid: 65_534 }]).unwrap();
    let blind = Ran::of(blind.output().unwrap());
    let pids = [late.id(), prompt.id(), own.child.id()];
    for child in [&mut late, &mut prompt, &mut own.child] {
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        let _ = child.wait();
    }
    let out = String::from_utf8(shown.stdout).unwrap();
    let line = |pid: u32| out.lines().find(|line| line.starts_with(&format!("{pid},"))).unwrap_or_default().to_owned();
    let [late, prompt, own] = pids.map(line);
    assert!(late.contains(",tcpdump,lo,3,") && late.contains("late: TPACKET_V3"), "{out}");
    assert!(late.contains("--immediate-mode"), "{out}");
    assert!(prompt.contains(",tcpdump,lo,2,0,0,") && prompt.contains("at once"), "{out}");
    assert!(own.contains(",netwren,lo,2,0,0,") && own.contains("at once"), "{out}");
    let json = String::from_utf8(json.stdout).unwrap();
    assert!(json.lines().count() == 1 && json.contains("\"late_ms\":"), "{json}");
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.lines().nth(1).is_some_and(|first| first.contains("late: ")), "the latest first: {text}");
    assert!(blind.stdout.contains("late: "), "{}", blind.stdout);
    blind.says(3, &["processes"]);
}
