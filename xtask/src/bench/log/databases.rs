//! Measures storing records in SQLite and PostgreSQL, with netwren and with ulogd2. The server's CPU is shown
//! separately.

use super::contestants::{self, Chain, ulogd};
use super::place::Place;
use super::{Folder, Receiver, Spread, cpu_ns, ended, packets, send_burst};
use crate::bench::live::on_cpu_ns;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use testkit::postgres::Server;

/// Packets of a burst; ulogd2 needs 4 s of CPU for them.
const BURST: u32 = 100_000;
/// A round is over when no row has arrived for this long.
const SILENCE: Duration = Duration::from_secs(2);
/// The table that ulogd2 fills: netwren's default columns, as far as ulogd2 knows them.
const COLUMNS: [(&str, &str); 12] = [
    ("oob_time_sec", "bigint"),
    ("oob_time_usec", "bigint"),
    ("oob_prefix", "text"),
    ("oob_in", "text"),
    ("oob_out", "text"),
    ("ip_saddr_str", "text"),
    ("ip_daddr_str", "text"),
    ("ip_protocol", "integer"),
    ("ip_totlen", "integer"),
    ("tcp_sport", "integer"),
    ("tcp_dport", "integer"),
    ("udp_dport", "integer"),
];

/// The plugins before the output plugin.
const STACK: &str = "ifi1:IFINDEX,ip2str1:IP2STR,db1:";

/// One database, and the goal for the peer's CPU divided by ours.
struct Task<'s> {
    label: &'static str,
    server: Option<&'s Server>,
    at_least: f64,
}

/// The result of one program storing one burst.
struct Stored {
    cpu_ns: u64,
    server_ns: u64,
    /// Number of distinct packets.
    packets: u64,
}

/// Runs the measurements; returns lines of the table and the values.
pub(super) fn run(binary: &Path, runs: u32) -> Result<(String, Vec<Value>)> {
    let server = Server::start("bench");
    let mut tasks = vec![Task { label: "SQLite", server: None, at_least: 15.0 }];
    tasks.extend(server.as_ref().map(|server| Task { label: "PostgreSQL", server: Some(server), at_least: 8.0 }));
    let (mut lines, mut values) = (String::new(), Vec::new());
    for task in &tasks {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 1..=runs {
            println!("bench: {}, round {round}", task.label);
            let Some(peer) = one(task, None)? else { break };
            theirs.push(peer);
            ours.extend(one(task, Some(binary))?);
        }
        if theirs.is_empty() || ours.is_empty() {
            println!("bench: ulogd2 or python3 is not installed: {} is not measured", task.label);
            continue;
        }
        let (line, value) = server_cost(task, &ours, &theirs);
        lines.push_str(&line);
        values.push(value);
    }
    Ok((lines, values))
}

/// Stores a burst with netwren, or with ulogd2 if `binary` is `None`; returns `None` if that program is not installed.
fn one(task: &Task<'_>, binary: Option<&Path>) -> Result<Option<Stored>> {
    let lab = packets::logging("benchdb");
    let dir = Folder::in_memory()?;
    let receiver = Receiver::start(&lab)?;
    let place = Place { lab: &lab, dir: &dir.0, addr: receiver.addr };
    let started = match binary {
        Some(binary) => contestants::ours(binary, &target(task), "50ms", &place).map(Some)?,
        None => peer(task, &place)?,
    };
    let Some(chain) = started else { return Ok(None) };
    let rows = |of: &str| counted(task, &place, binary.is_some(), of);
    let server_ns = || task.server.map_or(Ok(0), |server| children_ns(server.pid()));
    let before = (cpu_ns(&chain)?, server_ns()?);
    send_burst(&lab, &chain, BURST)?;
    let mut last = (rows("count(*)"), Instant::now());
    while last.1.elapsed() < SILENCE {
        std::thread::sleep(Duration::from_millis(250));
        let now = rows("count(*)");
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
    let (cpu_ns, server_ns) = (cpu_ns(&chain)? - before.0, server_ns()?.saturating_sub(before.1));
    drop(ended(chain));
    let source = if binary.is_some() { "count(DISTINCT src)" } else { "count(DISTINCT ip_saddr_str)" };
    let packets = rows(source);
    if let Some(server) = task.server {
        server.query("DROP TABLE IF EXISTS bench_ulogd, log CASCADE");
    }
    ensure!(packets > 0, "{}: nothing was stored", task.label);
    Ok(Some(Stored { cpu_ns, server_ns, packets }))
}

fn target(task: &Task<'_>) -> String {
    task.server.map_or("sqlite:FILE".to_owned(), |server| server.url(""))
}

/// The statement that creates the table for ulogd2.
pub(crate) fn table_of_ulogd() -> String {
    let columns: Vec<String> = COLUMNS.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
    format!("CREATE TABLE bench_ulogd ({})", columns.join(", "))
}

/// The command of ulogd2 that stores into a server's table; `None` if it is not installed.
pub(crate) fn ulogd_into(server: &Server, place: &Place<'_>) -> Result<Option<Command>> {
    let section = format!(
        "[db1]\ndb=\"postgres\"\nhost=\"{}\"\nport={}\nuser=\"postgres\"\ntable=\"bench_ulogd\"\n\
         procedure=\"INSERT\"\n",
        server.directory().display(),
        server.port()
    );
    ulogd(&format!("{STACK}PGSQL"), &section, place)
}

/// Starts ulogd2 with an empty table.
fn peer(task: &Task<'_>, place: &Place<'_>) -> Result<Option<Chain>> {
    let command = if let Some(server) = task.server {
        server.query(&table_of_ulogd());
        ulogd_into(server, place)?
    } else {
        if sqlite(&place.file(), &table_of_ulogd()).is_none() {
            return Ok(None);
        }
        let section = format!("[db1]\ndb=\"{}\"\ntable=\"bench_ulogd\"\n", place.file().display());
        ulogd(&format!("{STACK}SQLITE3"), &section, place)?
    };
    command.map(|command| contestants::started(vec![command], place)).transpose()
}

/// A number computed from the table; 0 while it cannot be read.
fn counted(task: &Task<'_>, place: &Place<'_>, is_ours: bool, what: &str) -> u64 {
    let table = if is_ours { "log" } else { "bench_ulogd" };
    let asked = format!("SELECT {what} FROM {table}");
    let said = match task.server {
        Some(server) => server.try_query(&asked).ok().and_then(|rows| rows.first().cloned()),
        None => sqlite(&place.file(), &asked),
    };
    said.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// Runs a statement with Python's SQLite library; returns the first cell.
fn sqlite(file: &Path, sql: &str) -> Option<String> {
    let script = "import sqlite3, sys\nwith sqlite3.connect(sys.argv[1]) as db:\n  for row in db.execute(sys.argv[2]): \
                  print(row[0])";
    let out = Command::new("python3").args(["-c", script]).arg(file).arg(sql).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
}

/// CPU of a process and of its children; the CPU of ended children is included in the process's own.
fn children_ns(pid: u32) -> Result<u64> {
    let mut all = on_cpu_ns(pid)?;
    let path = format!("/proc/{pid}/task/{pid}/children");
    for child in fs::read_to_string(&path).context(path)?.split_whitespace() {
        all += child.parse().map_or(0, |child| on_cpu_ns(child).unwrap_or(0));
    }
    Ok(all)
}

fn server_cost(task: &Task<'_>, ours: &[Stored], theirs: &[Stored]) -> (String, Value) {
    let of = |all: &[Stored], ns: fn(&Stored) -> u64| {
        Spread::of(all.iter().map(|stored| ns(stored) as f64 / stored.packets.max(1) as f64).collect())
    };
    let each = ours.iter().zip(theirs);
    let per = |stored: &Stored| stored.cpu_ns as f64 / stored.packets.max(1) as f64;
    let ratio = Spread::of(each.map(|(our, their)| per(their) / per(our)).collect());
    let least = |all: &[Stored]| all.iter().map(|stored| stored.packets).min().unwrap_or(0);
    let arrived = |all: &[Stored]| format!("{:.2} %", least(all) as f64 * 100.0 / f64::from(BURST));
    let (own, other) = (of(ours, |stored| stored.cpu_ns), of(theirs, |stored| stored.cpu_ns));
    let server = (of(ours, |stored| stored.server_ns), of(theirs, |stored| stored.server_ns));
    let by_server = match task.server {
        Some(_) => format!(" (server {:.0} and {:.0} ns beside it)", server.0.median, server.1.median),
        None => String::new(),
    };
    let line = format!(
        "| {}, {BURST} packets | ulogd2{by_server} | {:.0} ({:.0}–{:.0}) | {:.0} ({:.0}–{:.0}) | \
         {:.1}x ({:.1}–{:.1}) | {:.0}x: {} | {} | {} |\n",
        task.label,
        own.median,
        own.min,
        own.max,
        other.median,
        other.min,
        other.max,
        ratio.median,
        ratio.min,
        ratio.max,
        task.at_least,
        if ratio.median >= task.at_least { "reached" } else { "**missed**" },
        arrived(ours),
        arrived(theirs),
    );
    let value = json!({
        "task": task.label, "sent": BURST, "ratio": ratio.json(), "at_least": task.at_least,
        "ours": {"ns_per_record": own.json(), "server_ns": server.0.json(), "packets": least(ours)},
        "theirs": {"ns_per_record": other.json(), "server_ns": server.1.json(), "packets": least(theirs)},
    });
    (line, value)
}
