//! Reads the kernel's statistics of BPF programs: how often each ran, and for how long.
//!
//! The statistics are disabled by default because they read the clock twice per run.

use anyhow::{Context, Result};
use std::fs;

const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// Enables the statistics until it is dropped.
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

/// Number and duration of runs of some programs.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct Ran {
    pub(super) ns: u64,
    pub(super) runs: u64,
}

impl Ran {
    /// The runs since `earlier`.
    pub(super) fn since(self, earlier: Ran) -> Ran {
        Ran { ns: self.ns.saturating_sub(earlier.ns), runs: self.runs.saturating_sub(earlier.runs) }
    }

    /// Parses the text of a descriptor from `/proc/PID/fdinfo`; other descriptors than programs give zero runs.
    fn of(text: &str) -> Ran {
        let number = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
        };
        Ran { ns: number("run_time_ns"), runs: number("run_cnt") }
    }
}

/// The runs of all programs that process `pid` has open.
pub(super) fn ran(pid: u32) -> Result<Ran> {
    let mut all = Ran::default();
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        // A descriptor may be closed since the listing. A link's text contains its program's ID, but no numbers of
        // runs.
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
