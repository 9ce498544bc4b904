//! Enters many network namespaces, one after the other.
//!
//! ctnetlink and /proc answer for the caller's namespace. If a namespace cannot be entered or no longer exists, only
//! its rows are missing, and the accounting says so. How namespaces are found is not this module's concern.
pub(crate) mod source;

use record::{Accounting, MergedStats, Next, SourceError};
use std::ops::ControlFlow;
use sys::{Host, NetnsTarget, visit_each};

/// Reads one namespace, given its inode, and returns whether to go on to the next. An error affects this namespace
/// only.
pub type VisitNetns<'v> = dyn FnMut(u64, &mut Accounting) -> Result<Next, SourceError> + 'v;

/// Calls `visit` inside each of `targets`, on the calling thread and in their order, until it returns [`Next::Stop`].
///
/// The accounting lists the namespaces that could not be entered or read. Fails with the first error if none could be
/// read. Entering needs CAP_SYS_ADMIN.
pub fn in_each(
    host: &Host,
    targets: &[NetnsTarget<'_>],
    visit: &mut VisitNetns<'_>,
) -> Result<Accounting, SourceError> {
    in_each_for(host, targets, "", visit)
}

/// Like [`in_each`], for one of several readers of a recording ([`NetnsTarget::enter_for`]).
pub fn in_each_for(
    host: &Host,
    targets: &[NetnsTarget<'_>],
    purpose: &str,
    visit: &mut VisitNetns<'_>,
) -> Result<Accounting, SourceError> {
    let mut many = MergedStats::default();
    let not_entered = visit_each(host, targets, purpose, &mut |target| {
        match visit(target.netns_id, &mut many.stats) {
            Ok(next) => {
                many.add_success();
                if next == Next::Stop {
                    return ControlFlow::Break(());
                }
            }
            Err(error) => many.add_failure(error),
        }
        ControlFlow::Continue(())
    });
    many.add_vanished(not_entered.gone);
    not_entered.unreadable.into_iter().for_each(|why| many.not_entered(why.error.errno.is_denied(), why));
    many.finish()
}
