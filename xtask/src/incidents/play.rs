//! Plays one twin: sets up hosts, fault and traffic, and runs `doctor`.

use super::remedies::{Found, Patient, Proposed, Tried, try_all};
use super::scenes::{At, Incident};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use testkit::knob::HostKnob;
use testkit::netns::Lab;
use testkit::routed::Routed;

/// The Python functions that generate traffic.
const TRAFFIC: &str =
    concat!(include_str!("traffic.py"), "\n", include_str!("loads.py"), "\n", include_str!("policies.py"));

/// How `doctor` is run.
pub(super) struct Watch<'w> {
    pub(super) binary: &'w Path,
    /// The length of its window.
    pub(super) seconds: &'w str,
    /// The recording that it writes.
    pub(super) tape: Option<&'w Path>,
}

/// The answer of `doctor`.
pub(super) struct Answer {
    /// The findings in their order; those about the whole machine are included only if the incident changes the
    /// machine.
    pub(super) found: Vec<Found>,
    /// What the commands of the first finding did.
    pub(super) tried: Tried,
}

impl Answer {
    /// The answer if there was none: neither an expected finding nor silence.
    pub(super) fn not_played() -> Answer {
        let text = || "not played".to_owned();
        let found = Found { id: text(), severity: text(), title: text(), ..Found::default() };
        Answer { found: vec![found], tried: Tried::default() }
    }

    /// The IDs of the findings in their order.
    pub(super) fn ids(&self) -> Vec<&str> {
        self.found.iter().map(|one| one.id.as_str()).collect()
    }
}

/// Plays the incident, or its healthy twin.
pub(super) fn play(incident: &Incident, is_ill: bool, watch: &Watch<'_>) -> Result<Answer> {
    // First wait until no other run has changed the machine's settings.
    let mut knobs = incident.knobs.iter().filter(|_| is_ill);
    let _knob = knobs
        .next()
        .map(|(path, value)| knobs.fold(HostKnob::set(*path, value), |knob, (path, value)| knob.and(*path, value)));
    let hosts = Routed::new("inc");
    [&hosts.client, &hosts.router, &hosts.server].into_iter().for_each(Lab::shares_conntrack);
    let of = |at: At| match at {
        At::Client => &hosts.client,
        At::Router => &hosts.router,
        At::Server | At::Machine => &hosts.server,
    };
    for (at, line) in incident.set_up {
        shell(of(*at), line, &hosts)?;
    }
    let twin = if is_ill { "ill" } else { "healthy" };
    let mut waiting = Vec::new();
    // The fault is set up after the servers have started and before the clients start.
    let (servers, clients): (Vec<_>, Vec<_>) = incident.traffic.iter().copied().partition(|(at, _)| *at == At::Server);
    for (place, (at, script)) in servers.into_iter().chain(clients).enumerate() {
        let lab = of(at);
        let ready = lab.dir().join(format!("ready-{place}"));
        let path = ready.display().to_string();
        lab.spawn("python3", &["-c", &format!("{TRAFFIC}\n{script}\nwhile going(): time.sleep(0.2)"), twin, &path]);
        waiting.push(ready);
        if place == 0 {
            testkit::wait_until("the first host is ready", || waiting.iter().all(|file| file.exists()));
            for (at, line) in incident.fault.iter().filter(|_| is_ill) {
                shell(of(*at), line, &hosts)?;
            }
        }
    }
    testkit::wait_until("the traffic runs", || waiting.iter().all(|file| file.exists()));
    let lab = of(incident.at);
    let found = diagnose(incident, lab, watch)?;
    let tried = match found.first().filter(|_| is_ill && watch.tape.is_none()) {
        Some(first) => try_all(first, &Host { incident, lab, watch })?,
        None => Tried::default(),
    };
    Ok(Answer { found, tried })
}

/// The host of a finding.
struct Host<'h> {
    incident: &'h Incident,
    lab: &'h Lab,
    watch: &'h Watch<'h>,
}

impl Patient for Host<'_> {
    fn run(&self, line: &str, is_elsewhere: bool) -> Result<i32> {
        let mut command = if is_elsewhere || self.is_machine() { Command::new("sh") } else { self.lab.command("sh") };
        // The commands of findings call `netwren`.
        let folder = self.watch.binary.parent().map_or(String::new(), |folder| folder.display().to_string());
        let path = std::env::var("PATH").unwrap_or_default();
        let out = command.args(["-c", line]).env("PATH", format!("{folder}:{path}:/usr/sbin:/sbin")).output()?;
        if tells() {
            println!("{line}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr).trim_end());
        }
        Ok(out.status.code().unwrap_or(-1))
    }

    fn restores(&self, path: &str) -> bool {
        self.incident.knobs.iter().any(|(knob, _)| *knob == path)
    }

    fn is_machine(&self) -> bool {
        self.incident.at == At::Machine
    }

    fn findings(&self) -> Result<Vec<Found>> {
        diagnose(self.incident, self.lab, self.watch)
    }
}

/// True if every answer is to be printed.
fn tells() -> bool {
    std::env::var_os("INCIDENTS_TELL").is_some()
}

/// Runs a line of shell in one of the hosts.
fn shell(lab: &Lab, line: &str, hosts: &Routed) -> Result<()> {
    let mut command = lab.command("sh");
    let out = command.args(["-ec", line]).env("SERVER_NETNS", hosts.server.name()).output()?;
    ensure!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr).trim_end());
    Ok(())
}

fn diagnose(incident: &Incident, lab: &Lab, watch: &Watch<'_>) -> Result<Vec<Found>> {
    let Watch { binary, seconds, tape } = *watch;
    let mut command = match (incident.at, tape) {
        (At::Machine, _) => Command::new(binary),
        (_, None) => lab.command(binary),
        // Use a separate pid namespace, so that the recording contains no other process of the machine.
        (_, Some(_)) => {
            let mut command = lab.command("unshare");
            command.args(["--pid", "--fork", "--mount-proc"]).arg(binary);
            command
        }
    };
    let with_machine = !incident.knobs.is_empty();
    command.args(["doctor", "--for", seconds, "-o", "json"]);
    if let Some(tape) = tape {
        command.arg("--record").arg(tape);
    }
    let out = command.output()?;
    let says = String::from_utf8_lossy(&out.stderr);
    ensure!(matches!(out.status.code(), Some(0 | 3)), "doctor: {}: {says}", out.status);
    let mut found = Vec::new();
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        let row: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        let is_of_machine = row["netns_id"].is_null() && row["netns"].is_null();
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        if with_machine || !is_of_machine {
            found.push(Found {
                id: text("id"),
                severity: text("severity"),
                title: text("title"),
                object: text("object"),
                lost: row["lost"].as_u64().unwrap_or(0),
                remedies: proposed(&row["remedy"]),
            });
        }
    }
    if tells() {
        println!("{}{says}", String::from_utf8_lossy(&out.stdout));
    }
    Ok(found)
}

fn proposed(remedies: &Value) -> Vec<Proposed> {
    let text = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let all = remedies.as_array().into_iter().flatten();
    all.map(|one| Proposed { command: text(one, "command"), place: text(one, "place") }).collect()
}
