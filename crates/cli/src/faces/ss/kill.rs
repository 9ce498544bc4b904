//! `-K`: closes what matches and shows what was closed.

use crate::messages::say;
use crate::session::Session;
use record::rows::Socket;
use record::{Accounting, Next, Proto};
use sinks::face::ss::Options;
use sockets::{Closing, Cookie, Target};
use std::collections::HashSet;

/// How often a table is read at most. ss reads it once, and closing shifts what it has not read yet: in a table of
/// more than a few hundred sockets some stay open.
const PASSES: u32 = 8;

/// A pass over a table: hands its rows to the function.
type Pass<'p> = &'p mut dyn FnMut(&mut dyn FnMut(&Socket<'_>) -> Next) -> Result<Accounting, String>;

/// Closes sockets of one run.
pub(super) struct Killer<'s> {
    session: &'s Session,
    bug_compatible: bool,
    /// Cookies of those that were tried.
    tried: HashSet<Cookie>,
    /// Rows that nobody can close.
    unclosable: u64,
    denied: bool,
    /// Sockets or connections that are still open.
    still_open: Vec<Closing>,
}

impl<'s> Killer<'s> {
    pub(super) fn new(session: &'s Session, options: &Options) -> Killer<'s> {
        let bug_compatible = options.bug_compatible;
        Killer { session, bug_compatible, tried: HashSet::new(), unclosable: 0, denied: false, still_open: Vec::new() }
    }

    /// Closes every row of a table and shows those that were closed.
    pub(super) fn close_all(
        &mut self,
        proto: Proto,
        pass: Pass<'_>,
        show: &mut dyn FnMut(&Socket<'_>) -> Next,
    ) -> Result<Accounting, String> {
        if !matches!(proto, Proto::Tcp | Proto::Udp) {
            // ss shows them as if they had been closed.
            return pass(&mut |row| if self.bug_compatible { show(row) } else { self.leave() });
        }
        let mut stats = Accounting::default();
        for _ in 0..if self.bug_compatible { 1 } else { PASSES } {
            let mut new = 0u64;
            stats = pass(&mut |row| {
                let Some(target) = Target::of(row) else { return self.leave() };
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
            Closing::Closed | Closing::Aborted => show(row),
            result @ (Closing::StillOpen | Closing::ConnectionLives) => {
                self.still_open.push(result);
                show(row)
            }
            Closing::Denied => {
                self.denied = true;
                // ss says it in these words; it goes on with /proc, which can close nothing.
                let _ = sys::Out::stderr().write_all(b"SOCK_DESTROY answers: Operation not permitted\n");
                Next::Stop
            }
            Closing::Failed(words) => {
                say(&format!("not closed: {words}"));
                Next::More
            }
            // As ss: what is gone or cannot be closed is not shown.
            Closing::Gone | Closing::Hidden | Closing::Unsupported => Next::More,
        }
    }

    /// What could not be closed.
    pub(super) fn tell(&self, stats: &mut Accounting) {
        if self.bug_compatible {
            return;
        }
        for result in &self.still_open {
            stats.add_reason(1, result.to_string());
        }
        if self.unclosable > 0 {
            stats.add_reason(0, format!("{} sockets match that the kernel cannot close", self.unclosable));
        }
    }
}
