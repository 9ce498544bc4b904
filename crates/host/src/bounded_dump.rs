//! A dump of which the first answers are kept, and the others counted.
use std::ops::ControlFlow;

use netlink::{Answer, Query};
use sys::Host;

use crate::HostError;

/// Reads a dump to its end. Returns what `decode` makes of the answers, `kept_max` at most, and how many more it made
/// something of.
pub(crate) fn read<T>(
    host: &Host,
    ask: &Query<'_>,
    kept_max: usize,
    decode: impl Fn(&Answer<'_>) -> Option<T>,
) -> Result<(Vec<T>, u64), HostError> {
    let (mut kept, mut over) = (Vec::new(), 0);
    netlink::dump(host, ask, |part| {
        match decode(part) {
            Some(one) if kept.len() < kept_max => kept.push(one),
            Some(_) => over += 1,
            None => {}
        }
        ControlFlow::Continue(())
    })?;
    Ok((kept, over))
}
