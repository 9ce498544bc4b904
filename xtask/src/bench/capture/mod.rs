//! `bench capture` compares latency, CPU per packet and losses of packet capture with tcpdump.
//!
//! A sender emits numbered packets at one end of a pair of interfaces in a namespace; contestants take turns at the
//! other end with the same load. The CPU of the whole process is measured from the moment it listens until half a
//! second after the last packet. The loss is the number of sent packets minus the number of shown packets.

mod contestant;
mod files;
mod latency;
mod load;
mod rates;
mod report;

use super::{Options, machine};
use anyhow::{Result, ensure};
use report::Row;
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// Default number of rounds.
const ROUNDS: u32 = 3;
/// A smoke test sends one packet in this many.
const QUICK_SHARE: u32 = 20;

/// Runs the tasks and writes the result files, except with `--only`.
pub(super) fn run(options: &Options, binary: &Path) -> Result<()> {
    ensure!(testkit::tool::is_installed("tcpdump"), "bench capture needs tcpdump: ./netwren.sh bench installs it");
    let rounds = options.runs.unwrap_or(if options.quick { 1 } else { ROUNDS });
    let share = if options.quick { QUICK_SHARE } else { 1 };
    let is_asked = |name: &str| options.asks_for(name);
    let mut rows = latency::rows(binary, rounds, options.quick, &is_asked)?;
    let parts: [(&str, &Part<'_>); 7] = [
        ("steady", &|| rates::steady(binary, rounds, share)),
        ("idle", &|| rates::idle(binary, rounds)),
        ("nowhere", &|| rates::to_nowhere(binary, rounds, share)),
        ("to a file", &|| rates::to_file(binary, rounds, share)),
        ("text", &|| files::text(binary, rounds, share)),
        ("last", &|| files::last_packets(binary, rounds)),
        ("filter", &|| files::filter(binary, rounds)),
    ];
    for (_, part) in parts.into_iter().filter(|(name, _)| is_asked(name)) {
        rows.extend(part()?);
    }
    let mut about = machine::describe(binary)?;
    let tcpdump = Command::new("tcpdump").arg("--version").output()?;
    let said = String::from_utf8_lossy(&[tcpdump.stdout, tcpdump.stderr].concat()).into_owned();
    about["versions"]["tcpdump"] = said.lines().take(2).collect::<Vec<_>>().join(", ").into();
    let head = format!(
        "# bench capture, {}\n\n{}, {} CPUs, Linux {}; {}. {rounds} rounds in turn; medians (min–max), ratio: ours \
         by theirs, round by round. Latency: from before the packet is sent until its line is read.\n\n\
         | task | netwren | peer | ours | theirs | ratio | wanted | beside |\n|---|---|---|--:|--:|--:|---|---|\n",
        about["date"].as_str().unwrap_or_default(),
        about["machine"]["cpu"].as_str().unwrap_or_default(),
        about["machine"]["cpus"],
        about["machine"]["kernel"].as_str().unwrap_or_default(),
        about["versions"]["tcpdump"].as_str().unwrap_or_default(),
    );
    let lines: String = rows.iter().map(Row::line).collect();
    let file = json!({"name": "capture", "about": about, "rows": rows.iter().map(Row::json).collect::<Vec<_>>()});
    super::report::save("capture", &file, &(head + &lines), !options.quick && options.only.is_none())
}

/// Measures some rows of the table.
type Part<'p> = dyn Fn() -> Result<Vec<Row>> + 'p;

/// The arguments that print live packets as lines: tcpdump's own where this netwren captures under that name.
fn live_text(binary: &Path) -> &'static str {
    let help = Command::new(binary).args(["tcpdump", "--help"]).output().map(|out| out.stdout).unwrap_or_default();
    match String::from_utf8_lossy(&help).contains("-i interface") {
        true => "tcpdump -n -i IFACE",
        false => "capture -i IFACE",
    }
}
