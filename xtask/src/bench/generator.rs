//! Opens a known number of loopback sockets in the current namespace and holds them.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Hidden command that runs the generator until its input ends, for manual use.
pub(crate) const NAME: &str = "generate-sockets";

/// Hidden command that runs one of the generator's processes.
pub(crate) const WORKER: &str = "generate-sockets-worker";

/// Sockets per process; the open-files limit is usually 20,000.
const ROWS_PER_PROCESS: u64 = 15_000;

/// The sockets to open. Both ends of a connection are local, so each connection counts as two rows.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Established sockets.
    pub(crate) rows: u64,
    /// Processes that hold the sockets; 0 chooses the number from the open-files limit, at least 8.
    pub(crate) processes: u64,
    /// Listening ports, all bound to the wildcard address; at least one per process.
    pub(crate) listeners: u64,
    /// Distinct client addresses.
    pub(crate) clients: u64,
    /// Additional sockets in TIME_WAIT.
    pub(crate) time_wait: u64,
    /// Percentage of connections over IPv6.
    pub(crate) v6_percent: u64,
    /// Other open files of each process.
    pub(crate) files: u64,
    /// Additional processes that hold only open files.
    pub(crate) idle: u64,
    /// The processes end after this many seconds at the latest.
    pub(crate) hold_s: u64,
}

impl Default for Load {
    fn default() -> Load {
        Load {
            rows: 1_000,
            processes: 0,
            listeners: 16,
            clients: 1_000,
            time_wait: 0,
            v6_percent: 0,
            files: 0,
            idle: 0,
            hold_s: 1_800,
        }
    }
}

/// One number of [`Load`] and its name on the command line.
type Setting = (&'static str, fn(&mut Load) -> &mut u64);

const SETTINGS: &[Setting] = &[
    ("rows", |load| &mut load.rows),
    ("processes", |load| &mut load.processes),
    ("listeners", |load| &mut load.listeners),
    ("clients", |load| &mut load.clients),
    ("time-wait", |load| &mut load.time_wait),
    ("v6", |load| &mut load.v6_percent),
    ("files", |load| &mut load.files),
    ("idle", |load| &mut load.idle),
    ("hold", |load| &mut load.hold_s),
];

impl Load {
    /// Parses `--rows 1000 --v6 20 …`; numbers that are not given have their default.
    pub(crate) fn parse(args: &[String]) -> Result<Load> {
        let mut load = Load::default();
        for pair in args.chunks(2) {
            let [name, value] = pair else { bail!("{}: a number is missing", pair.join(" ")) };
            let setting = SETTINGS.iter().find(|(known, _)| name.strip_prefix("--") == Some(known));
            let names = || SETTINGS.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(" --");
            let (_, place) = setting.with_context(|| format!("{name}: unknown; there are: --{}", names()))?;
            *place(&mut load) = value.parse().with_context(|| format!("{name} {value}"))?;
        }
        ensure!(load.rows <= 1_000_000 && load.time_wait <= 200_000, "bounded at 1000000 rows and 200000 in TIME_WAIT");
        ensure!(load.clients >= 1 && load.v6_percent <= 100 && load.hold_s <= 7_200, "a number is out of range");
        Ok(load.filled())
    }

    /// Fills in the numbers that depend on others.
    pub(crate) fn filled(mut self) -> Load {
        if self.processes == 0 {
            self.processes = ((self.rows + 2 * self.time_wait) / ROWS_PER_PROCESS + 1).max(8);
        }
        self.listeners = self.listeners.max(self.processes);
        self
    }

    fn args(&self) -> Vec<String> {
        let mut load = self.clone();
        SETTINGS.iter().flat_map(|(name, place)| [format!("--{name}"), place(&mut load).to_string()]).collect()
    }

    /// The load for the result file.
    pub(crate) fn json(&self) -> Value {
        let mut load = self.clone();
        SETTINGS.iter().map(|(name, place)| ((*name).to_owned(), json!(*place(&mut load)))).collect()
    }
}

/// The open sockets; they are closed on drop.
pub(crate) struct Running {
    workers: Vec<Worker>,
}

struct Worker {
    child: Child,
    orders: Option<ChildStdin>,
    says: BufReader<ChildStdout>,
}

impl Running {
    /// Starts the processes in the calling thread's namespace; returns when all sockets are open.
    pub(crate) fn start(load: &Load) -> Result<Running> {
        let count = load.processes + load.idle;
        let mut running = Running { workers: Vec::new() };
        for number in 0..count {
            running.workers.push(Worker::start(number, load)?);
        }
        // Every worker must listen before the first client takes a port.
        running.hear("listening")?;
        for worker in &mut running.workers {
            if let Some(orders) = &mut worker.orders {
                writeln!(orders, "connect").context("a worker has ended")?;
            }
        }
        running.hear("open")?;
        Ok(running)
    }

    fn hear(&mut self, word: &str) -> Result<()> {
        for worker in &mut self.workers {
            let mut line = String::new();
            worker.says.read_line(&mut line)?;
            ensure!(line.trim() == word, "a worker failed before it was {word} (its message is above)");
        }
        Ok(())
    }
}

impl Worker {
    fn start(number: u64, load: &Load) -> Result<Worker> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(WORKER).arg(number.to_string()).args(load.args());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let says = BufReader::new(child.stdout.take().context("stdout was asked for")?);
        Ok(Worker { orders: child.stdin.take(), says, child })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Close all pipes first, so that the workers close their sockets in parallel.
        self.workers.iter_mut().for_each(|worker| drop(worker.orders.take()));
        for worker in &mut self.workers {
            let _ = worker.child.wait();
        }
    }
}

/// Entry point for manual use: opens the sockets, prints `ready` with the numbers, and holds them until its input
/// ends.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let load = Load::parse(args)?;
    let running = Running::start(&load)?;
    println!("ready {}", load.json());
    std::io::stdin().lock().lines().for_each(drop);
    drop(running);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn arguments_go_there_and_back() {
        let load = Load::parse(&["--rows", "100000", "--v6", "20"].map(str::to_owned)).unwrap();
        assert_eq!((load.rows, load.v6_percent, load.processes, load.listeners), (100_000, 20, 8, 16));
        assert_eq!(Load::parse(&load.args()).unwrap().json(), load.json());
        assert!(Load::parse(&["--rows".to_owned()]).is_err());
        assert!(Load::parse(&["--nonsense", "1"].map(str::to_owned)).is_err());
        assert!(Load::parse(&["--rows", "9000000"].map(str::to_owned)).is_err());
    }
}
