//! Going into many network namespaces, one after the other.
//!
//! ctnetlink and /proc answer for the namespace of whoever asks. One namespace that cannot be entered or that has gone
//! costs its own rows and a line, not the run. Knows nothing of how namespaces are found.
use record::{Accounting, Next, SourceError, SourceFault};
use sys::{Host, NotEntered, Way};

/// What is done inside a namespace, known by its inode: whether to go on with the next one. An error costs this one only.
pub type Visit<'v> = dyn FnMut(u64, &mut Accounting) -> Result<Next, SourceError> + 'v;

/// Calls `visit` inside each namespace, on the calling thread, in the order of `ways`, until it wants no more. What could
/// not be entered or read stands in the books; the error is the first one, if nothing at all was read. Entering needs
/// CAP_SYS_ADMIN.
pub fn in_each(host: &Host, ways: &[Way<'_>], visit: &mut Visit<'_>) -> Result<Accounting, SourceError> {
    let mut round = Round::default();
    for way in ways {
        match way.enter(host) {
            Ok(inside) => {
                let read = visit(way.netns_id, &mut round.books);
                drop(inside);
                if round.visited(read) == Next::Stop {
                    break;
                }
            }
            Err(error) => round.not_entered.add(way, error),
        }
    }
    round.finish()
}

/// The books of all namespaces.
#[derive(Default)]
struct Round {
    books: Accounting,
    has_read: bool,
    not_entered: NotEntered,
    failure: Option<SourceError>,
}

impl Round {
    fn visited(&mut self, read: Result<Next, SourceError>) -> Next {
        match read {
            Ok(next) => {
                self.has_read = true;
                next
            }
            Err(error) => {
                self.books.incomplete = true;
                self.books.because(1, error.to_string());
                self.failure.get_or_insert(error);
                Next::More
            }
        }
    }

    fn finish(mut self) -> Result<Accounting, SourceError> {
        if self.not_entered.gone > 0 {
            // What they had went with them: the table is as whole as one read a moment later.
            self.books.because(self.not_entered.gone, "a network namespace went away before it was read");
        }
        for unreadable in self.not_entered.unreadable {
            self.books.incomplete = true;
            self.books.because(0, unreadable.to_string());
            self.failure.get_or_insert_with(|| {
                let fault = if unreadable.error.errno.is_denied() { SourceFault::Denied } else { SourceFault::Io };
                SourceError { what: "network namespaces", fault, cause: Box::new(unreadable) }
            });
        }
        match self.failure {
            Some(error) if !self.has_read => Err(error),
            _ => Ok(self.books),
        }
    }
}
