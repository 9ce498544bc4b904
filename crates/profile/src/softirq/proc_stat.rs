//! The time of CPUs from /proc/stat, in ticks of a hundredth of a second.
use sys::{Host, SysError};

use crate::softirq::block::CpuCounts;

/// Returns the ticks of each CPU since boot: all, in user space, in softirqs.
pub(crate) fn read(host: &Host) -> Result<Vec<CpuCounts>, SysError> {
    let mut text = Vec::new();
    sys::fs::read_file(&host.proc_path("stat"), &mut text)?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(|line| parse(std::str::from_utf8(line).ok()?)).collect())
}

/// Parses `cpu1 user nice system idle iowait irq softirq steal …`. The line for all CPUs is skipped.
fn parse(line: &str) -> Option<CpuCounts> {
    let mut words = line.split_ascii_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    let ticks: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
    let [user, nice, _, _, _, _, softirq, _] = *ticks.as_slice() else { return None };
    let samples = ticks.iter().copied().fold(0, u64::saturating_add);
    Some(CpuCounts { cpu, samples, user: user.saturating_add(nice), softirq, ..CpuCounts::default() })
}

/// Returns the ticks since `before`. CPUs that appeared since then are left out.
pub(crate) fn difference(before: &[CpuCounts], now: &[CpuCounts]) -> Vec<CpuCounts> {
    let of_cpu = |now: &CpuCounts| {
        let old = before.iter().find(|old| old.cpu == now.cpu)?;
        Some(CpuCounts {
            samples: now.samples.saturating_sub(old.samples),
            user: now.user.saturating_sub(old.user),
            softirq: now.softirq.saturating_sub(old.softirq),
            ..*now
        })
    };
    now.iter().filter_map(of_cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cpus() {
        let one = CpuCounts { cpu: 1, samples: 36, user: 3, softirq: 7, ..CpuCounts::default() };
        assert_eq!(parse("cpu1 1 2 3 4 5 6 7 8 9 10"), Some(one));
        for line in ["cpu  1 2 3 4 5 6 7 8 9 10", "cpu1 1 2 3", "intr 1 2 3 4 5 6 7 8", ""] {
            assert_eq!(parse(line), None, "{line}");
        }
        let later = CpuCounts { samples: 136, softirq: 57, ..one };
        assert_eq!(difference(&[one], &[later])[0], CpuCounts { samples: 100, user: 0, softirq: 50, ..one });
        assert!(read(&Host::live()).is_ok_and(|cpus| !cpus.is_empty()));
    }
}
