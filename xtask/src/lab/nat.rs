//! The collapse of a NAT box, and two ways to avoid it.
//!
//! A client requests pages from a web server that is connected through the box, one connection per request. The modes
//! are: routed without NAT; DNAT with a table that is large enough; DNAT with a table of 1,000 entries, which is full
//! after 1,000 connections, because an entry outlives its connection by two minutes; and stateless NAT. The report
//! shows the requests per second and the output of `netwren nat` and `netwren doctor` during the run. The doctor must
//! report the full table first, and only in the mode that has it, within [`DIAGNOSIS_MAX`].

use super::Options;
use crate::bench::{binary, machine, report};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use testkit::knob::HostKnob;
use testkit::netns::Lab;
use testkit::routed::Routed;

/// A maximum of entries that is too small.
const SMALL_TABLE: &str = "1000";
const LIMIT: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
/// ab(1) gives up when it has received nothing for this many seconds.
const PATIENCE_S: &str = "3";
/// A round of one mode is ended after this time.
const BOUND: Duration = Duration::from_secs(60);
/// The longest acceptable time for a diagnosis.
const DIAGNOSIS_MAX: Duration = Duration::from_secs(5);
/// The finding that names the collapse.
const FULL: &str = "ct-full";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Routed,
    Dnat,
    DnatFull,
    Stateless,
}

impl Mode {
    const ALL: [Mode; 4] = [Mode::Routed, Mode::Dnat, Mode::DnatFull, Mode::Stateless];

    fn title(self) -> &'static str {
        match self {
            Mode::Routed => "routed, no NAT",
            Mode::Dnat => "DNAT, table large enough",
            Mode::DnatFull => "DNAT, nf_conntrack_max = 1000",
            Mode::Stateless => "stateless (`netwren nat stateless`)",
        }
    }

    fn url(self) -> &'static str {
        match self {
            Mode::Routed => "http://172.17.0.2:80/",
            _ => "http://192.0.2.1:8080/",
        }
    }
}

/// One mode in one round.
struct Seen {
    mode: Mode,
    requests_per_s: f64,
    completed: u64,
    failed: u64,
    /// The output of `nat stats` at the end.
    stats: Value,
    /// The output of `nat advise` during the run.
    advice: Value,
    diagnosis: Diagnosis,
}

/// The output of `doctor` during the run.
struct Diagnosis {
    /// The findings, the most harmful first.
    findings: Vec<String>,
    took: Duration,
}

pub(super) fn run(options: &Options) -> Result<()> {
    for tool in ["nginx", "ab", "nft"] {
        ensure!(testkit::tool::is_installed(tool), "the lab needs {tool}: `./netwren.sh lab nat` installs it");
    }
    let netwren = binary()?;
    let mut seen = Vec::new();
    for round in 1..=options.rounds {
        for mode in Mode::ALL {
            println!("lab nat: round {round}, {}", mode.title());
            seen.push(one(mode, options, &netwren).with_context(|| mode.title().to_owned())?);
        }
    }
    let about = machine::describe(&netwren)?;
    let rows: Vec<Value> = seen.iter().map(Seen::json).collect();
    report::save(
        "lab-nat",
        &json!({"name": "lab-nat", "about": about, "rounds": rows}),
        &markdown(options, &seen),
        true,
    )
}

fn one(mode: Mode, options: &Options, netwren: &Path) -> Result<Seen> {
    // First wait until no other run has changed the limit of the machine's table.
    let small = (mode == Mode::DnatFull).then(|| HostKnob::set(LIMIT, SMALL_TABLE));
    let hosts = Routed::new("lab");
    use_bridge(&hosts);
    serve(&hosts.server)?;
    prepare(mode, &hosts, netwren)?;
    let begun = Instant::now();
    let mut ab = hosts.client.command("timeout");
    ab.args([&BOUND.as_secs().to_string(), "ab", "-q", "-r", "-s", PATIENCE_S]);
    ab.args(["-n", &options.requests.to_string(), "-c", &options.at_once.to_string(), mode.url()]);
    let ab = ab.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (advice, diagnosis) = std::thread::scope(|scope| {
        let diagnosis = scope.spawn(|| diagnose(&hosts.router, netwren));
        let advice = ask(&hosts.router, netwren, &["nat", "advise", "--netns", "/proc/self/ns/net", "-o", "json"])?;
        let diagnosis = diagnosis.join().map_err(|_| anyhow::anyhow!("the thread that runs doctor panicked"))??;
        Ok::<_, anyhow::Error>((advice, diagnosis))
    })?;
    let output = ab.wait_with_output()?;
    let elapsed = begun.elapsed();
    let stats = ask(&hosts.router, netwren, &["nat", "stats", "-o", "json"])?;
    drop(small);
    let is_first = diagnosis.findings.first().is_some_and(|first| first == FULL);
    ensure!(is_first == (mode == Mode::DnatFull), "doctor found {:?}", diagnosis.findings);
    ensure!(diagnosis.took < DIAGNOSIS_MAX, "doctor took {:.1} s", diagnosis.took.as_secs_f64());
    let (requests_per_s, completed, failed) = ab_figures(&output, elapsed)?;
    Ok(Seen { mode, requests_per_s, completed, failed, stats, advice, diagnosis })
}

/// Runs `netwren doctor` without options on the box.
fn diagnose(router: &Lab, netwren: &Path) -> Result<Diagnosis> {
    let begun = Instant::now();
    let output = router.command(netwren).args(["doctor", "-o", "json"]).output()?;
    let took = begun.elapsed();
    let mut findings = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let row: Value = serde_json::from_str(line)?;
        findings.extend(row["id"].as_str().map(str::to_owned));
    }
    Ok(Diagnosis { findings, took })
}

/// Connects the server to the box through a bridge, as Docker does.
fn use_bridge(hosts: &Routed) {
    let router = &hosts.router;
    router.ip(&["link", "add", "br0", "type", "bridge"]);
    router.ip(&["addr", "del", "172.17.0.1/24", "dev", "s1"]);
    router.ip(&["link", "set", "s1", "master", "br0"]);
    router.ip(&["addr", "add", "172.17.0.1/24", "dev", "br0"]);
    router.ip(&["link", "set", "br0", "up"]);
}

fn serve(server: &Lab) -> Result<()> {
    let dir = server.dir().display().to_string();
    let config = format!(
        "daemon off; user root; worker_processes 1; pid {dir}/pid; error_log {dir}/errors;\n\
         events {{ worker_connections 20000; }}\n\
         http {{ access_log off; keepalive_timeout 0;\n\
         server {{ listen 80 backlog=8192; location / {{ return 200 \"ok\\n\"; }} }} }}\n"
    );
    let file = server.dir().join("nginx.conf");
    std::fs::write(&file, config)?;
    server.spawn("nginx", &["-p", &dir, "-e", &format!("{dir}/errors"), "-c", &file.display().to_string()]);
    server.wait_until("nginx listens", || !server.output("ss", &["-Hltn", "sport = :80"]).trim().is_empty());
    Ok(())
}

fn prepare(mode: Mode, hosts: &Routed, netwren: &Path) -> Result<()> {
    match mode {
        Mode::Routed => {}
        Mode::Dnat | Mode::DnatFull => {
            for rule in [
                "add table ip nat",
                "add chain ip nat published { type nat hook prerouting priority dstnat; }",
                "add rule ip nat published ip daddr 192.0.2.1 tcp dport 8080 dnat to 172.17.0.2:80",
            ] {
                hosts.router.output("nft", &[rule]);
            }
        }
        Mode::Stateless => {
            let plan = ["nat", "stateless", "plan", "--publish", "192.0.2.1:8080:172.17.0.2:80", "--apply", "--yes"];
            let output = hosts.router.command(netwren).args(plan).output()?;
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
    Ok(())
}

/// The first object that a command prints in the namespace; null if it prints none.
fn ask(lab: &Lab, netwren: &Path, words: &[&str]) -> Result<Value> {
    let output = Command::output(lab.command(netwren).args(words))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().map_or(Ok(Value::Null), serde_json::from_str)?)
}

/// Requests per second, answered requests and failed requests.
fn ab_figures(output: &Output, elapsed: Duration) -> Result<(f64, u64, u64)> {
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    // The words that ab prints when it gives up, and those that it prints otherwise.
    let number = |heads: &[&str]| {
        let line = text.lines().find_map(|line| heads.iter().find_map(|head| Some(line.split_once(head)?.1)));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok())
    };
    let completed = number(&["Complete requests:", "Total of"]).with_context(|| format!("what ab says: {text}"))?;
    let requests_per_s = number(&["Requests per second:"]).unwrap_or(completed / elapsed.as_secs_f64());
    Ok((requests_per_s, completed as u64, number(&["Failed requests:"]).unwrap_or(0.0) as u64))
}

impl Seen {
    fn json(&self) -> Value {
        json!({
            "mode": self.mode.title(), "requests_per_s": self.requests_per_s, "completed": self.completed,
            "failed": self.failed, "stats": self.stats, "advice": self.advice,
            "findings": self.diagnosis.findings, "diagnosis_s": self.diagnosis.took.as_secs_f64(),
        })
    }

    fn said(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        if !self.advice["advised_max"].is_null() {
            words.push(format!("max {}", self.advice["advised_max"]));
        }
        let reasons = self.advice["reasons"].as_array().into_iter().flatten();
        words.extend(reasons.map(|reason| reason.as_str().map_or_else(|| reason.to_string(), str::to_owned)));
        words.join("; ").replace('|', "/")
    }
}

fn markdown(options: &Options, seen: &[Seen]) -> String {
    let mut text = format!(
        "# lab nat\n\n{} requests a round, {} at once, one connection each; {} rounds, the modes in turn. ab gives up \
            after \
         {PATIENCE_S} s without an answer.\n\n\
         | mode | requests/s, median (all rounds) | completed | failed | entries / max | dropped | `netwren nat \
         advise` said | `netwren doctor` found (s) |\n\
         |---|--:|--:|--:|--:|--:|---|---|\n",
        options.requests, options.at_once, options.rounds
    );
    for mode in Mode::ALL {
        let mut rounds: Vec<&Seen> = seen.iter().filter(|seen| seen.mode == mode).collect();
        rounds.sort_by(|a, b| a.requests_per_s.total_cmp(&b.requests_per_s));
        let Some(median) = rounds.get(rounds.len() / 2) else { continue };
        let all: Vec<String> = rounds.iter().map(|seen| format!("{:.0}", seen.requests_per_s)).collect();
        text.push_str(&format!(
            "| {} | {:.0} ({}) | {} | {} | {} / {} | {} | {} | {} ({:.1}) |\n",
            mode.title(),
            median.requests_per_s,
            all.join(", "),
            median.completed,
            median.failed,
            median.stats["entries"],
            median.stats["max"],
            median.stats["drop"],
            median.said(),
            if median.diagnosis.findings.is_empty() { "–".to_owned() } else { median.diagnosis.findings.join(", ") },
            median.diagnosis.took.as_secs_f64(),
        ));
    }
    text
}
