//! The kernel's own statistics of BPF programs: how often each ran, and how long.
//!
//! They are off until asked for, because each run then reads the clock twice.

use anyhow::{Context, Result};
use std::fs;

const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// The statistics are kept while this lives.
pub(super) struct Clock {
    was: String,
}

impl Clock {
    pub(super) fn start() -> Result<Clock> {
        let was = fs::read_to_string(SWITCH).context(SWITCH)?;
        fs::write(SWITCH, "1").context(SWITCH)?;
        Ok(Clock { was })
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let _ = fs::write(SWITCH, self.was.trim());
    }
}

/// Runs of some programs.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct Ran {
    pub(super) ns: u64,
    pub(super) runs: u64,
}

impl Ran {
    /// What came after `earlier`.
    pub(super) fn since(self, earlier: Ran) -> Ran {
        Ran { ns: self.ns.saturating_sub(earlier.ns), runs: self.runs.saturating_sub(earlier.runs) }
    }

    /// From the text of a descriptor below `/proc/PID/fdinfo`; nothing if it is no program.
    fn of(text: &str) -> Ran {
        let number = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
        };
        Ran { ns: number("run_time_ns"), runs: number("run_cnt") }
    }
}

/// All programs that process `pid` has open.
pub(super) fn ran(pid: u32) -> Result<Ran> {
    let mut all = Ran::default();
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        // A descriptor may be closed meanwhile. A link's text names its program, but has no numbers.
        let one = fs::read_to_string(entry?.path()).map(|text| Ran::of(&text)).unwrap_or_default();
        all = Ran { ns: all.ns + one.ns, runs: all.runs + one.runs };
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_descriptor() {
        let text = "pos:\t0\nflags:\t02000002\nprog_type:\t26\nrun_time_ns:\t5500\nrun_cnt:\t11\n";
        let ran = Ran::of(text);
        assert_eq!(ran, Ran { ns: 5500, runs: 11 });
        assert_eq!(ran.since(Ran { ns: 500, runs: 1 }), Ran { ns: 5000, runs: 10 });
        assert_eq!(Ran::of("pos:\t0\nflags:\t02\n"), Ran::default());
    }
}
