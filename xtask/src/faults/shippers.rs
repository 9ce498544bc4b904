//! The programs that ship records in a scene: netwren and ulogd2, with buffers of the same size.

use super::database::Database;
use super::scenes::To;
use crate::bench::log::contestants::ulogd;
use crate::bench::log::packets::GROUP;
use crate::bench::log::place::Place;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time that a program may need to start or to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// The shipping program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Who {
    Netwren,
    Ulogd,
}

/// A running program that ships records.
pub(super) struct Shipper {
    child: Child,
    /// The file with its output.
    says: PathBuf,
}

/// The result of an ended program.
#[derive(Default)]
pub(super) struct Ended {
    /// The number of records that it reported as lost; `None` if it reported nothing.
    pub(super) says_lost: Option<u64>,
}

/// Starts the program; returns `Ok(None)` if it is not installed or ended at once. `into` is the file that it writes
/// to or the certificate that it trusts, and the database that it fills. Instance 1 replaces instance 0; with netwren
/// it takes over the sockets.
pub(super) fn start(
    who: Who,
    binary: &Path,
    to: To,
    place: &Place<'_>,
    into: (&Path, Option<&Database>),
    number: u32,
) -> Result<Option<Shipper>> {
    let command = match who {
        Who::Netwren => Some(netwren(binary, to, place, into, number)),
        Who::Ulogd => by_ulogd(to, place, into)?,
    };
    let Some(mut command) = command else { return Ok(None) };
    let says = place.dir.join(format!("says-{number}"));
    command.stdin(Stdio::null()).stdout(File::create(&says)?).stderr(Stdio::null());
    let mut shipper = Shipper { child: command.spawn().context("a shipper")?, says };
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if place.lab.run_inside(is_bound) {
            return Ok(Some(shipper));
        }
        if shipper.child.try_wait()?.is_some() {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(None)
}

impl Shipper {
    /// Asks the program to end, and waits for it.
    pub(super) fn end(self) -> Result<Ended> {
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        self.ended()
    }

    /// Waits until the program ends.
    pub(super) fn ended(mut self) -> Result<Ended> {
        let begun = Instant::now();
        while self.child.try_wait()?.is_none() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        let text = std::fs::read_to_string(&self.says)?;
        let ledger: Option<Value> = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
        Ok(Ended { says_lost: ledger.map(|ledger| lost(&ledger["outputs"][0])) })
    }
}

impl Drop for Shipper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number of lost records in one output's statistics.
fn lost(output: &Value) -> u64 {
    let dropped = output["dropped"].as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64());
    dropped.sum::<u64>() + output["lost_in_kernel"].as_u64().unwrap_or(0)
}

fn is_bound() -> bool {
    let list = std::fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_log").unwrap_or_default();
    list.lines().any(|line| line.split_whitespace().next() == Some(&GROUP.to_string()))
}

fn netwren(
    binary: &Path,
    to: To,
    place: &Place<'_>,
    (file, database): (&Path, Option<&Database>),
    number: u32,
) -> Command {
    let mut command = place.lab.command(binary);
    let group = GROUP.to_string();
    command.args(["log", "--group", &group, "--buffer", "64MiB", "--stats", "--columns", "time,src,prefix"]);
    command.arg("--control").arg(place.dir.join("control"));
    if number > 0 {
        command.arg("--take-over");
    }
    match to {
        To::Collector => command.args(["--to", &format!("json+tcp://{}", place.addr)]),
        To::Disk => command.args(["--to", &format!("json:{}", file.display())]),
        To::Tls => command.args(["--to", &format!("json+tls://{}", place.addr)]).arg("--tls-ca").arg(file),
        To::Database => command.arg("--to").arg(database.map(Database::url).unwrap_or_default()),
    };
    command
}

fn by_ulogd(to: To, place: &Place<'_>, (file, database): (&Path, Option<&Database>)) -> Result<Option<Command>> {
    let section = match to {
        To::Collector => {
            format!("[json1]\nmode=\"tcp\"\nhost=\"{}\"\nport=\"{}\"\n", place.addr.ip(), place.addr.port())
        }
        To::Disk => format!("[json1]\nfile=\"{}\"\nsync=1\n", file.display()),
        To::Tls => return Ok(None),
        To::Database => return database.map_or(Ok(None), |database| database.ulogd(place)),
    };
    ulogd("ifi1:IFINDEX,ip2str1:IP2STR,json1:JSON", &section, place)
}
