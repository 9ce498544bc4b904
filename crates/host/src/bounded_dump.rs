//! A dump that keeps the first answers and counts the others.
use std::ops::ControlFlow;

use netlink::{AnswerMessage, Query};
use sys::Host;

use crate::HostError;

/// Reads a dump to its end. Returns the answers that `decode` accepts, at most `kept_max`, and the number of further
/// accepted answers.
pub(crate) fn read<T>(
    host: &Host,
    ask: &Query<'_>,
    kept_max: usize,
    decode: impl Fn(&AnswerMessage<'_>) -> Option<T>,
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
