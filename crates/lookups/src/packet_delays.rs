//! The lookup of measured delays: how late packet sockets announce packets to their readers.

use crate::pillars;
use crate::session::Session;
use bpf_delays::measured;
use record::rows::Sockets;
use record::{Accounting, Demand, Key, Lookup, Next, Schema, Table, Value};
use std::collections::HashMap;
use std::time::Duration;

/// Default duration of the measurement.
pub const SAMPLE: Duration = Duration::from_secs(2);

/// Figures per packet socket: wake-ups, and the median and the maximum delay in µs. The lookup's key has the index.
const FIGURES: usize = 3;

/// The figures of packet sockets by cookie.
#[derive(Debug, Default)]
pub struct MeasuredDelays(HashMap<u64, [Option<u64>; FIGURES]>);

impl Lookup for MeasuredDelays {
    fn value(&self, key: Key) -> Value<'_> {
        let Key::Pair(cookie, figure) = key else { return Value::Null };
        let figures = self.0.get(&cookie);
        Value::number(figures.and_then(|figures| figures.get(usize::try_from(figure).ok()?).copied().flatten()))
    }
}

impl MeasuredDelays {
    /// Lists the packet sockets, measures for the session's sample time or until an interruption, and reads the
    /// figures. Failures are added to `stats`.
    pub fn read(session: &Session, stats: &mut Accounting) -> MeasuredDelays {
        let mut why_not = |why: String| {
            stats.incomplete(0, format!("delays of packet sockets were not measured: {why}"));
            MeasuredDelays::default()
        };
        if session.host().is_replay() {
            return why_not("recordings do not contain them".to_owned());
        }
        let cookies = match cookies(session) {
            Ok(cookies) if cookies.is_empty() => return MeasuredDelays::default(),
            Ok(cookies) => cookies,
            Err(why) => return why_not(why),
        };
        match measured(session, &cookies, session.sample().unwrap_or(SAMPLE)) {
            Ok(figures) => MeasuredDelays(figures),
            Err(why) => why_not(why),
        }
    }
}

/// The cookies of the session's packet sockets. Errors of reading them are reported when their rows are shown.
fn cookies(session: &Session) -> Result<Vec<u64>, String> {
    let filter = engine::filter::conjuncts(Schema::from_table::<Sockets>(), "proto = packet")
        .map_err(|error| error.to_string())?;
    let cookie = Sockets::FIELDS.iter().position(|field| field.name == "cookie");
    let demand = Demand::<Sockets>::new(cookie.as_slice(), filter);
    pillars::with_sockets(session, None, &|_| true, |source| {
        let mut cookies = Vec::new();
        let read = source.run(&demand, &mut |row| {
            cookies.extend(Some(row.cookie).filter(|cookie| *cookie != 0));
            Next::More
        });
        read.map(|_| cookies).map_err(|error| error.to_string())
    })
}

#[cfg(feature = "bpf")]
mod bpf_delays {
    use super::{FIGURES, Session};
    use crate::long_work;
    use bpf::{PacketDelay, PacketDelays};
    use std::collections::HashMap;
    use std::time::Duration;

    /// Measures the sockets with these cookies; the error is a sentence for the user.
    pub(super) fn measured(
        session: &Session,
        cookies: &[u64],
        sample: Duration,
    ) -> Result<HashMap<u64, [Option<u64>; FIGURES]>, String> {
        let says = |error: bpf::BpfError| error.to_string();
        let delays = PacketDelays::open(session.host(), cookies).map_err(says)?;
        // After an interruption, the figures measured so far are shown.
        let _ = long_work::wait(session, sample, "measuring delays of packet sockets");
        let mut all = HashMap::new();
        let us = |ns: u64| ns / 1000;
        let mut put = |cookie, delay: PacketDelay| {
            all.insert(cookie, [Some(delay.wakeups), delay.median_ns.map(us), delay.longest_ns.map(us)]);
        };
        delays.for_each(&mut put).map_err(says)?;
        Ok(all)
    }
}

#[cfg(not(feature = "bpf"))]
mod bpf_delays {
    use super::{FIGURES, Session};
    use std::collections::HashMap;
    use std::time::Duration;

    pub(super) fn measured(
        _: &Session,
        _: &[u64],
        _: Duration,
    ) -> Result<HashMap<u64, [Option<u64>; FIGURES]>, String> {
        Err("netwren was built without BPF".to_owned())
    }
}
