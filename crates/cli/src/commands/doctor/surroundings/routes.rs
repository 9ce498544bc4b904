//! Next hops, and routes that reject packets.

use super::Samples;
use crate::commands::lacks::note;
use crate::commands::saved;
use host::NetnsSource;
use lookups::session::Session;
use record::rows::Routes;
use record::{Accounting, Next, Source};

/// Bound: next hops and refusing routes that `doctor` remembers for a namespace. Beyond: further ones are not checked,
/// counted (exit code 3). By: anyone who may add routes there.
const ROUTES_MAX: usize = 65_536;

/// Adds next hops and routes that reject packets.
pub(super) fn add(session: &Session, samples: &mut Samples, stats: &mut Accounting) {
    let namespaces = session.namespaces();
    let source = NetnsSource::new(session.host(), session.ways(namespaces.as_deref()));
    let demand = saved::every_field::<Routes>(0);
    let mut over = 0;
    let read = source.run(&demand, &mut |route| {
        let Some(sample) = samples.get_mut(&Some(route.netns_id)) else { return Next::More };
        let around = &mut sample.around;
        if let Some(gateway) = route.gateway.filter(|gateway| !around.gateways.contains(gateway)) {
            if around.gateways.len() < ROUTES_MAX { around.gateways.push(gateway) } else { over += 1 }
        }
        // The kernel adds an unreachable default route where IPv6 has no other.
        if let Some(kind) =
            refusal(route.kind).filter(|_| route.ifindex.is_none_or(|index| index == 0) || route.dst.1 > 0)
        {
            let to = String::from_utf8_lossy(route.destination).into_owned();
            if around.refused.len() < ROUTES_MAX { around.refused.push((to, kind)) } else { over += 1 }
        }
        Next::More
    });
    match read {
        Ok(read) => note(stats, &read),
        Err(error) => {
            stats.incomplete(1, format!("routes are not checked: {error}"));
        }
    }
    if over > 0 {
        stats.incomplete(over, format!("routes after the first {ROUTES_MAX} next hops are not checked"));
    }
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
