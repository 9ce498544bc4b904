//! `-K`: closes the matching sockets and shows those that it closed.

use crate::ss::output::Options;
use crate::text::warn;
use lookups::session::Session;
use record::rows::Socket;
use record::{Accounting, Next, Proto};
use runtime::messages::print_message;
use sockets::{CloseOutcome, Cookie, Target};
use std::collections::HashSet;

/// The maximum number of passes over a table. ss makes one pass, and closing shifts entries that it has not read yet:
/// in a table of more than a few hundred sockets some stay open.
const PASSES: u32 = 8;

/// A pass over a table: hands each row to the function.
type Pass<'p> = &'p mut dyn FnMut(&mut dyn FnMut(&Socket<'_>) -> Next) -> Result<Accounting, String>;

/// Closes the sockets of one run.
pub(super) struct Killer<'s> {
    session: &'s Session,
    bug_compatible: bool,
    /// Cookies of the sockets already tried.
    tried: HashSet<Cookie>,
    /// Number of rows of types that the kernel cannot close.
    unclosable: u64,
    denied: bool,
    /// Results for sockets or connections that are still open.
    still_open: Vec<CloseOutcome>,
}

impl<'s> Killer<'s> {
    pub(super) fn new(session: &'s Session, options: &Options) -> Killer<'s> {
        let bug_compatible = options.bug_compatible;
        Killer { session, bug_compatible, tried: HashSet::new(), unclosable: 0, denied: false, still_open: Vec::new() }
    }

    /// Closes every row of a table and shows the sockets that it closed.
    pub(super) fn close_all(
        &mut self,
        proto: Proto,
        pass: Pass<'_>,
        show: &mut dyn FnMut(&Socket<'_>) -> Next,
    ) -> Result<Accounting, String> {
        if !matches!(proto, Proto::Tcp | Proto::Udp) {
            // ss shows these rows as if it had closed them.
            return pass(&mut |row| if self.bug_compatible { show(row) } else { self.leave() });
        }
        let mut stats = Accounting::default();
        for _ in 0..if self.bug_compatible { 1 } else { PASSES } {
            let mut new = 0u64;
            stats = pass(&mut |row| {
                let Some(target) = Target::from_row(row) else { return self.leave() };
                if !self.tried.insert(target.cookie()) {
                    return Next::More;
                }
                new += 1;
                self.close(row, &target, show)
            })?;
            if new == 0 || self.denied || self.session.interrupted() {
                break;
            }
        }
        Ok(stats)
    }

    fn leave(&mut self) -> Next {
        self.unclosable += 1;
        Next::More
    }

    fn close(&mut self, row: &Socket<'_>, target: &Target, show: &mut dyn FnMut(&Socket<'_>) -> Next) -> Next {
        match sockets::close(self.session.host(), target) {
            // Like ss, shows every socket for which the kernel reported no error.
            CloseOutcome::Closed | CloseOutcome::Aborted => show(row),
            result @ (CloseOutcome::StillOpen | CloseOutcome::ConnectionLives) => {
                self.still_open.push(result);
                show(row)
            }
            CloseOutcome::Denied => {
                self.denied = true;
                // This is ss's message. ss then continues with /proc, where nothing can be closed.
                warn("SOCK_DESTROY answers: Operation not permitted\n");
                Next::Stop
            }
            CloseOutcome::Failed(words) => {
                print_message(&format!("not closed: {words}"));
                Next::More
            }
            // Like ss, hides sockets that are already closed or cannot be closed.
            CloseOutcome::Gone | CloseOutcome::Hidden | CloseOutcome::Unsupported => Next::More,
        }
    }

    /// Adds the sockets that could not be closed to `stats`.
    pub(super) fn tell(&self, stats: &mut Accounting) {
        if self.bug_compatible {
            return;
        }
        for result in &self.still_open {
            stats.add_reason(1, result.to_string());
        }
        if self.unclosable > 0 {
            stats.add_reason(0, format!("{} matching sockets cannot be closed by the kernel", self.unclosable));
        }
    }
}
