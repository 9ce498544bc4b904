//! `netwren doctor softirq [FILTER]`: shows what CPUs do in the kernel's network code.

use super::super::counters::window;
use super::super::table;
use crate::command::{Command, ParsedWords, Prepared};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use engine::Windows;
use lookups::asked::with_asked;
use lookups::long_work;
use lookups::session::Session;
use profile::{ChainSource, ProfileError, SampleOptions, SampleSource, Sampler, SamplerBackend};
use record::rows::{CallChains, CpuGroups};
use record::{Accounting, Lookups, Source, SourceError};
use std::cell::RefCell;
use std::time::Duration;
use tables::{Intervals, Repeat, RoundTime, SourceProvider};

/// Default duration of sampling.
const WINDOW: Duration = Duration::from_secs(3);
/// Samples per second and CPU. The rate is not a divisor of the kernel's timer rates, to avoid sampling in step with
/// them.
const HZ: u32 = 999;
/// Valid rates for `--hz`, in samples per second.
const HZ_RANGE: std::ops::RangeInclusive<u32> = 1..=10_000;
/// Time between calls that drain the sample buffers.
const STEP_NS: u64 = 100_000_000;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "doctor softirq",
    about: "CPU time in the kernel's network code: connection tracking, NAT, rules, TCP, drivers, copying, …",
    examples: EXAMPLES,
    scope: Scope::TABLE.without(Scope::NAMES).without(Scope::ALL_NETNS).without(Scope::LASTS).and(Scope::SOFTIRQ),
    tables: &[tables::CPU_GROUPS, tables::CALL_CHAINS],
    other_table: &["stack"],
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren doctor softirq                          CPU time spent on packets, for three seconds
  netwren doctor softirq --for 10 --per-cpu       for each CPU separately
  netwren doctor softirq --for 1 --all -o json    including programs, the rest of the kernel and idle time
  netwren doctor softirq --for 5 --stack --limit 5    the hottest call chains
  netwren doctor softirq --for 5 'group in (conntrack, nat, rules)'
A timer takes 999 samples per second on each CPU (--hz): code that runs with interrupts off is counted where it
enables them again. Needs CAP_BPF and CAP_PERFMON, and CAP_SYSLOG for function names; without BPF every sample is
passed to netwren, and without either, /proc/stat shows the share of softirqs on each CPU.
";

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let request = Request::of(words)?;
    let provider = SampleProvider {
        options: SampleOptions { per_cpu: words.has("per-cpu"), all: words.has("all") },
        hz: hz(words)?,
        via: SamplerBackend::ALL.into_iter().find(|backend| words.value("via") == Some(backend.name())),
        windows: Windows {
            once: window(words, &request)?.unwrap_or(WINDOW),
            period: request.repeat.period(),
            ends_ns: request.ends_ns,
        },
        sampler: RefCell::default(),
    };
    match words.has("stack") {
        true if provider.options.per_cpu => {
            let wrong = "--per-cpu cannot be used with --stack: each call chain shows the CPU on which it was sampled \
                         most often";
            Err(wrong.to_owned().into())
        }
        true => table::prepare::<CallChains, _>(request, |_| Ok(provider)),
        false => table::prepare::<CpuGroups, _>(request, |_| Ok(provider)),
    }
}

fn hz(words: &ParsedWords<'_>) -> Result<u32, String> {
    let Some(written) = words.value("hz") else { return Ok(HZ) };
    let (least, most) = (HZ_RANGE.start(), HZ_RANGE.end());
    let hz = written.parse().ok().filter(|hz| HZ_RANGE.contains(hz));
    hz.ok_or_else(|| format!("--hz takes a number from {least} to {most}, not `{written}`"))
}

/// Takes samples once per round.
struct SampleProvider {
    options: SampleOptions,
    hz: u32,
    via: Option<SamplerBackend>,
    windows: Windows,
    /// The sampler of the round.
    sampler: RefCell<Option<Sampler>>,
}

impl Intervals for SampleProvider {
    /// Takes samples until the round is over.
    fn wait(&self, session: &Session, repeat: Repeat) -> Result<RoundTime, SourceError> {
        if session.host().is_replay() {
            return Ok(RoundTime::Moment);
        }
        let (window, is_last) = self.windows.begin(sys::clock::monotonic_ns());
        let mut sampler = Sampler::start(session.host(), self.hz, self.via).map_err(ProfileError::of_samples)?;
        let end_ns = sys::clock::monotonic_ns().saturating_add(u64::try_from(window.as_nanos()).unwrap_or(u64::MAX));
        let is_once = repeat == Repeat::Once;
        let _line = is_once.then(|| long_work::progress(session, "sampling CPUs", Some(window), String::new));
        let mut goes_on = true;
        while goes_on && sys::clock::monotonic_ns() < end_ns {
            goes_on = session.sleep_until(end_ns.min(sys::clock::monotonic_ns().saturating_add(STEP_NS)));
            sampler.empty();
        }
        self.sampler.replace(Some(sampler));
        Ok(RoundTime::of_interval(is_last || !goes_on))
    }
}

impl SourceProvider<CpuGroups> for SampleProvider {
    fn intervals(&self) -> Option<&dyn Intervals> {
        Some(self)
    }

    fn with_source<R>(
        &self,
        session: &Session,
        _: Lookups<'_>,
        _: &mut Accounting,
        then: impl FnOnce(&dyn Source<CpuGroups>) -> R,
    ) -> R {
        with_asked(session.host(), &SampleSource::new(session.host(), self.options, &self.sampler), then)
    }
}

impl SourceProvider<CallChains> for SampleProvider {
    fn intervals(&self) -> Option<&dyn Intervals> {
        Some(self)
    }

    fn with_source<R>(
        &self,
        session: &Session,
        _: Lookups<'_>,
        _: &mut Accounting,
        then: impl FnOnce(&dyn Source<CallChains>) -> R,
    ) -> R {
        with_asked(session.host(), &ChainSource::new(session.host(), self.options, &self.sampler), then)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::parser;

    #[test]
    fn rates() {
        let of = |line: &str| parser::parse_line(&COMMAND, line, hz);
        assert_eq!((of("").unwrap(), of("--hz 49").unwrap()), (HZ, 49));
        for wrong in ["--hz 0", "--hz 10001", "--hz many"] {
            assert!(of(wrong).unwrap_err().to_string().contains("from 1 to 10000"), "{wrong}");
        }
    }
}
