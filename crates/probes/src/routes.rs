//! Next hops, and routes that reject packets.

use doctor::seen::DropSeen;
use host::NetnsSource;
use record::rows::{Route, Routes};
use record::{Accounting, Demand, Next, Source};

use crate::counter_window::Samples;
use crate::probe::{ProbeReader, Round};

/// Bound: next hops and refusing routes that `doctor` remembers for a namespace. Beyond: further ones are not checked,
/// counted (exit code 3). By: anyone who may add routes there.
const ROUTES_MAX: usize = 65_536;

/// Reads next hops and routes that reject packets, if packets were refused or neighbours are silent.
pub(crate) struct RouteReader;

impl ProbeReader for RouteReader {
    fn follow(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        let is_refused = |drops: &Vec<DropSeen>| drops.iter().any(DropSeen::is_refused);
        let mut around = samples.values().map(|sample| &sample.around);
        if !around.any(|around| around.drops.as_ref().is_some_and(is_refused) || !around.neighbours.is_empty()) {
            return;
        }
        let session = round.session;
        let namespaces = session.namespaces();
        let source = NetnsSource::new(session.host(), session.targets(namespaces.as_deref()));
        let mut over = 0;
        let read = source.run(&Demand::<Routes>::every_field(0), &mut |route| {
            over += add_route(samples, route);
            Next::More
        });
        match read {
            Ok(read) => stats.add_gaps(&read),
            Err(error) => {
                stats.incomplete(1, format!("routes are not checked: {error}"));
            }
        }
        if over > 0 {
            stats.incomplete(over, format!("routes after the first {ROUTES_MAX} next hops are not checked"));
        }
    }
}

/// Adds a route to the sample of its namespace; returns the number of parts beyond [`ROUTES_MAX`].
fn add_route(samples: &mut Samples, route: &Route<'_>) -> u64 {
    let Some(sample) = samples.get_mut(&Some(route.netns_id)) else { return 0 };
    let (around, mut over) = (&mut sample.around, 0);
    if let Some(gateway) = route.gateway.filter(|gateway| !around.gateways.contains(gateway)) {
        if around.gateways.len() < ROUTES_MAX { around.gateways.push(gateway) } else { over += 1 }
    }
    // The kernel adds an unreachable default route where IPv6 has no other.
    if let Some(kind) = refusal(route.kind).filter(|_| route.ifindex.is_none_or(|index| index == 0) || route.dst.1 > 0)
    {
        let to = String::from_utf8_lossy(route.destination).into_owned();
        if around.refused.len() < ROUTES_MAX { around.refused.push((to, kind)) } else { over += 1 }
    }
    over
}

/// The word for a type of route that rejects packets: RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT.
fn refusal(kind: u8) -> Option<&'static str> {
    match kind {
        6 => Some("blackhole"),
        7 => Some("unreachable"),
        8 => Some("prohibit"),
        _ => None,
    }
}
