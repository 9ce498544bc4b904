//! `cargo xtask bench` compares netwren with the tools it replaces, on the same live sockets.
//!
//! Every contestant runs as a whole process, in turn with the others, in one namespace whose sockets do not change.
//! Before the timing starts, all of them must have printed the same set. The ratio is computed per round (the peer's
//! CPU / our CPU), because a machine's speed drifts during a run and both drift with it.

mod capture;
mod contestants;
mod cpus;
mod doctor;
mod drops;
mod equal;
pub(crate) mod generator;
pub(crate) mod live;
pub(crate) mod log;
pub(crate) mod machine;
mod nat;
mod nat_events;
mod programs;
pub(crate) mod report;
mod screen;
mod tasks;
pub(crate) mod worker;

use crate::package::Arch;
use crate::root;
use anyhow::{Context, Result, bail, ensure};
use contestants::{Binaries, Contestant};
use generator::{Load, Running};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tasks::Task;
use testkit::netns::Lab;

/// The names of the benches.
pub(crate) const NAMES: [&str; 13] = [
    "start",
    "sockets",
    "flows",
    "owners",
    "namespaces",
    "screen",
    "live",
    "nat",
    "nat-events",
    "log",
    "capture",
    "drops",
    "doctor",
];

/// The options of `cargo xtask bench`.
pub(crate) struct Options {
    /// Names from [`NAMES`]; empty means all.
    pub(crate) names: Vec<String>,
    /// Numbers of sockets; a task uses those within its range of sizes.
    pub(crate) rows: Vec<u64>,
    /// Number of rounds; `None` takes the default of the task and size.
    pub(crate) runs: Option<u32>,
    /// An earlier netwren binary that replaces the peers, to measure the effect of a change.
    pub(crate) against: Option<PathBuf>,
    /// Percentage of IPv6 connections.
    pub(crate) v6: u64,
    /// Run a smoke test and write no files.
    pub(crate) quick: bool,
    /// Run only the tasks and parts whose name contains this text (`log` and `capture` only).
    pub(crate) only: Option<String>,
}

impl Options {
    /// True if the task or part with this name must run.
    fn asks_for(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }
}

/// The cost of one program in one round.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    cpu_us: u64,
    user_us: u64,
    wall_us: u64,
    rss_kib: u64,
    bytes: u64,
}

/// The rounds of one task at one size.
struct Outcome<'t> {
    task: &'t Task,
    rows: u64,
    /// Rows that the contestants agree on.
    agreed: usize,
    load: Value,
    /// One entry per contestant, with its rounds in order.
    weights: Vec<(Contestant, Vec<Weight>)>,
    /// Contestants that are not installed, with the reason.
    skipped: Vec<String>,
}

/// The bench with this name, if it does its own measuring and reporting.
fn by_itself(name: &str) -> Option<fn(&Options, &Path) -> Result<()>> {
    Some(match name {
        "screen" => screen::run,
        "live" => live::run,
        "nat-events" => nat_events::run,
        "log" => log::run,
        "capture" => capture::run,
        "drops" => drops::run,
        "doctor" => doctor::run,
        _ => return None,
    })
}

/// Runs the named benches one after the other and writes their result files.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(testkit::root::is_privileged(), "bench needs root: it makes a namespace with its own sockets");
    let binary = binary()?;
    let binaries = Binaries { ours: binary.clone(), before: options.against.clone() };
    for name in NAMES.iter().filter(|name| options.names.is_empty() || options.names.iter().any(|n| n == *name)) {
        if let Some(run) = by_itself(name) {
            if options.against.is_some() {
                println!("bench {name}: --against is for whole runs and for refreshes");
                continue;
            }
            run(options, &binary)?;
            continue;
        }
        if *name == "nat" {
            let outcomes = nat::run(options, &binaries)?;
            write(name, &outcomes, &binaries, !options.quick)?;
            continue;
        }
        let mut outcomes = Vec::new();
        let tasks = tasks::of(name);
        // Tasks that spread sockets over namespaces define their own number of sockets.
        let spread: Vec<u64> = tasks.iter().filter(|task| task.namespaces > 1).map(|task| task.sizes.0).collect();
        for rows in if spread.is_empty() { &options.rows } else { &spread } {
            let now: Vec<&Task> = tasks.iter().filter(|task| (task.sizes.0..=task.sizes.1).contains(rows)).collect();
            let mut crowds: Vec<u64> = now.iter().map(|task| task.idle).collect();
            crowds.sort_unstable();
            crowds.dedup();
            for idle in crowds {
                let these: Vec<&Task> = now.iter().copied().filter(|task| task.idle == idle).collect();
                outcomes.extend(at_size(&these, *rows, options, &binaries)?);
            }
        }
        if outcomes.is_empty() {
            println!("bench {name}: no task at these sizes");
            continue;
        }
        write(name, &outcomes, &binaries, !options.quick)?;
    }
    Ok(())
}

/// Prints the table and, if `keep` is true, writes the result files. The files of a comparison with an earlier netwren
/// have their own name and list both versions.
fn write(name: &str, outcomes: &[Outcome<'_>], binaries: &Binaries, keep: bool) -> Result<()> {
    let mut about = machine::describe(&binaries.ours)?;
    let Some(before) = &binaries.before else { return report::write(name, outcomes, &about, keep) };
    about["versions"]["before"] = machine::version(before).into();
    report::write(&format!("{name}-before-and-after"), outcomes, &about, keep)
}

/// Cargo's target folder.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root::path().join("target"), PathBuf::from)
}

/// The static release binary: `NETWREN_BIN`, or the path where `./netwren.sh build` leaves it.
pub(crate) fn binary() -> Result<PathBuf> {
    let binary = std::env::var_os("NETWREN_BIN").map_or_else(|| target().join("netwren"), PathBuf::from);
    ensure!(binary.is_file(), "no {}: run ./netwren.sh build first", binary.display());
    Ok(binary.canonicalize()?)
}

/// The static release binary for a processor: for this host's as [`binary`], for others where `./netwren.sh build ARCH`
/// leaves it. It may not exist.
pub(crate) fn binary_for(arch: Arch) -> PathBuf {
    let name = arch.rpm();
    let other = || target().join(format!("netwren-{name}"));
    if name == std::env::consts::ARCH { binary().unwrap_or_else(|_| target().join("netwren")) } else { other() }
}

/// Open files of a process that does not use the network.
const IDLE_FILES: u64 = 20;

/// Opens the sockets once and runs all tasks of this size on them.
fn at_size<'t>(tasks: &[&'t Task], rows: u64, options: &Options, binaries: &Binaries) -> Result<Vec<Outcome<'t>>> {
    let count = tasks.iter().map(|task| task.namespaces).max().unwrap_or(1);
    let labs: Vec<Lab> = (0..count).map(|_| Lab::new("bench")).collect();
    let lab = labs.first().context("a task has a namespace")?;
    labs.iter().for_each(|lab| lab.ip(&["-6", "route", "add", "local", "fd77::/16", "dev", "lo"]));
    let idle = tasks.first().map_or(0, |task| task.idle);
    let load = load(rows, count, idle, options);
    println!(
        "bench: opening {rows} sockets in {count} namespaces, {} processes in each, {idle} idle ones",
        load.processes
    );
    let running = labs.iter().map(|lab| lab.run_inside(|| Running::start(&load))).collect::<Result<Vec<_>>>()?;
    let outcomes = tasks.iter().map(|task| {
        let runs = options.runs.unwrap_or_else(|| task.runs(rows));
        one(lab, task, rows, runs, &load.json(), binaries).with_context(|| format!("{} at {rows} rows", task.id))
    });
    let outcomes = outcomes.collect::<Result<Vec<_>>>();
    drop(running);
    outcomes
}

/// The load of one of `count` namespaces.
fn load(rows: u64, count: u64, idle: u64, options: &Options) -> Load {
    let files = if idle > 0 { IDLE_FILES } else { 0 };
    let load = Load { rows: rows / count, v6_percent: options.v6, idle, files, ..Load::default() };
    // With hundreds of namespaces, each has one process, as containers do.
    if count > 1 { Load { processes: 1, listeners: 1, ..load } } else { load }.filled()
}

fn one<'t>(lab: &Lab, task: &'t Task, rows: u64, runs: u32, load: &Value, binaries: &Binaries) -> Result<Outcome<'t>> {
    let (here, skipped) = contestants::present(task, rows, binaries);
    skipped.iter().for_each(|line| println!("bench: {line}"));
    ensure!(here.iter().any(|c| c.peer) && here.iter().any(|c| !c.peer), "{}: nobody to compare with", task.id);
    let agreed = equal::check(task, &here, |contestant| output(lab, contestant))?;
    println!("bench: {} at {rows}: {} contestants agree on {agreed} rows; {runs} rounds", task.id, here.len());
    let mut weights: Vec<(Contestant, Vec<Weight>)> = here.into_iter().map(|c| (c, Vec::new())).collect();
    for _ in 0..runs {
        for (contestant, list) in &mut weights {
            list.push(weigh(lab, contestant, "-")?);
        }
    }
    Ok(Outcome { task, rows, agreed, load: load.clone(), weights, skipped })
}

/// Measures the cost of a contestant: a whole run, or one further round if it repeats itself.
fn weigh(lab: &Lab, contestant: &Contestant, keep: &str) -> Result<Weight> {
    if contestant.rounds == 0 || keep != "-" {
        return run_once(lab, contestant, keep);
    }
    let [first, all] =
        [run_once(lab, contestant, "@1")?, run_once(lab, contestant, &format!("@{}", contestant.rounds + 1))?];
    let each = |more: u64, less: u64| more.saturating_sub(less) / u64::from(contestant.rounds);
    Ok(Weight {
        cpu_us: each(all.cpu_us, first.cpu_us),
        user_us: each(all.user_us, first.user_us),
        wall_us: each(all.wall_us, first.wall_us),
        bytes: each(all.bytes, first.bytes),
        ..all
    })
}

/// Runs a contestant once in the namespace. `keep` is a file for the output, `-` to drain and count it, or `@N` to
/// stop after N rounds.
fn run_once(lab: &Lab, contestant: &Contestant, keep: &str) -> Result<Weight> {
    let mut command = Command::new(scale()?);
    command.arg(keep).arg(&contestant.program).args(&contestant.args);
    if keep.starts_with('@') {
        command.arg("--watch=0.01");
    }
    command.envs(contestant.env.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let out = lab.run_inside(|| command.spawn()).context("cannot start the scale")?.wait_with_output()?;
    ensure!(out.status.success(), "the scale failed under {}", contestant.shown());
    let text = String::from_utf8(out.stdout)?;
    let numbers = text.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let [status, user_us, system_us, rss_kib, wall_us, bytes] = numbers[..] else { bail!("the scale says {text}") };
    // netwren exits with 3 when it cannot read one of this machine's processes, even as root; the peers do not report
    // that. The equality check has already shown that our output is complete.
    let partial = (!contestant.peer || contestant.is_before) && status >> 8 == 3;
    ensure!(status == 0 || partial, "{}: exit {}", contestant.shown(), status >> 8);
    Ok(Weight { cpu_us: user_us + system_us, user_us, wall_us, rss_kib, bytes })
}

/// The binary `weigh`, built next to the running xtask on first use.
fn scale() -> Result<PathBuf> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if let Some(built) = BUILT.get() {
        return Ok(built.clone());
    }
    let exe = std::env::current_exe()?;
    let folder = exe.parent().context("xtask lies in target/PROFILE")?;
    let target = folder.parent().context("xtask lies in target/PROFILE")?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let profile = if name == "debug" { "dev" } else { name.as_str() };
    let mut cargo = Command::new(root::cargo());
    cargo.args(["build", "--quiet", "--package", "xtask", "--bin", "weigh", "--profile", profile, "--target-dir"]);
    let status = cargo.arg(target).current_dir(root::path()).status()?;
    ensure!(status.success(), "the scale does not build");
    Ok(BUILT.get_or_init(|| folder.join("weigh")).clone())
}

fn output(lab: &Lab, contestant: &Contestant) -> Result<String> {
    let file = lab.dir().join("output");
    weigh(lab, contestant, &file.to_string_lossy())?;
    let text = std::fs::read_to_string(&file)?;
    std::fs::remove_file(&file)?;
    Ok(text)
}
