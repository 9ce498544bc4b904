//! Listening sockets without a process: how many there are, and why.

use crate::session::Session;
use engine::Predicate;
use record::rows::{Socket, Sockets};
use record::{
    Accounting, Demand, Each, Key, LookupId, Lookups, Next, Offer, Proto, Source, SourceError, State, Unchanged,
};
use sys::Host;

/// `PROC_PID_INIT_INO` of include/linux/proc_ns.h: the initial pid namespace.
const INIT_PID_NS: &[u8] = b"pid:[4026531836]";

/// A source of sockets that counts listeners without a process, if processes are wanted at all.
pub(super) struct Ownerless<'s> {
    source: &'s mut dyn Source<Sockets>,
    session: &'s Session,
    lookups: Lookups<'s>,
    /// The whole filter: what is not shown is not missed.
    filter: &'s Predicate<Sockets>,
}

impl<'s> Ownerless<'s> {
    pub(super) fn new(
        source: &'s mut dyn Source<Sockets>,
        session: &'s Session,
        lookups: Lookups<'s>,
        filter: &'s Predicate<Sockets>,
    ) -> Ownerless<'s> {
        Ownerless { source, session, lookups, filter }
    }
}

impl Source<Sockets> for Ownerless<'_> {
    fn offer(&self, demand: &Demand<Sockets>) -> Offer {
        self.source.offer(demand)
    }

    fn read(
        &mut self,
        demand: &Demand<Sockets>,
        unchanged: Option<&dyn Unchanged>,
        each: &mut Each<'_, Sockets>,
    ) -> Result<Accounting, SourceError> {
        if !self.lookups.has(LookupId::Owners) {
            return self.source.read(demand, unchanged, each);
        }
        let (lookups, filter) = (self.lookups, self.filter);
        let mut count = 0u64;
        let mut books = self.source.read(demand, unchanged, &mut |row| -> Next {
            count += u64::from(has_none(row, &lookups, filter));
            each(row)
        })?;
        tell(self.session.host(), count, &mut books);
        Ok(books)
    }
}

// A listener, or a UDP socket that anybody may send to.
fn waits_for_peers(row: &Socket<'_>) -> bool {
    let is_udp = matches!(row.proto, Proto::Udp | Proto::UdpLite);
    row.state == State::LISTEN || (is_udp && row.state == State::CLOSE && row.local.port != 0)
}

fn has_none(row: &Socket<'_>, lookups: &Lookups<'_>, filter: &Predicate<Sockets>) -> bool {
    waits_for_peers(row)
        && row.inode != 0
        && lookups.owners(Key::Id(row.inode.into())).is_empty()
        && filter.matches(row, lookups)
}

/// One line for the end of the run. Where processes are out of sight for good, the result is not whole.
fn tell(host: &Host, count: u64, books: &mut Accounting) {
    if count == 0 {
        return;
    }
    let sockets = if count == 1 { "1 listening socket has" } else { &format!("{count} listening sockets have") };
    let mut link = Vec::new();
    let is_initial = host.read_link("/proc/self/ns/pid", &mut link).is_err() || link == INIT_PID_NS;
    let why = if is_initial {
        "the kernel's own, or opened after the processes were read"
    } else {
        books.incomplete = true;
        "the kernel's own, or those of processes outside this pid namespace"
    };
    books.because(0, format!("{sockets} no process that can be seen: {why}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_and_open_udp_ports_wait_for_peers() {
        let of = |proto, state, port| {
            let local = record::rows::Endpoint { port, ..Socket::EMPTY.local };
            waits_for_peers(&Socket { proto, state, local, ..Socket::EMPTY })
        };
        assert!(of(Proto::Tcp, State::LISTEN, 80) && of(Proto::Unix, State::LISTEN, 0));
        assert!(of(Proto::Udp, State::CLOSE, 53));
        assert!(!of(Proto::Udp, State::CLOSE, 0) && !of(Proto::Udp, State::ESTABLISHED, 53));
        assert!(!of(Proto::Tcp, State::ESTABLISHED, 80) && !of(Proto::Tcp, State::CLOSE, 80));
    }

    #[test]
    fn issue_10_one_line_says_how_many_and_why() {
        let tell = |count| {
            let mut books = Accounting::default();
            tell(&Host::live(), count, &mut books);
            (books.why.iter().map(|why| why.text.to_string()).collect::<Vec<_>>(), books)
        };
        assert!(tell(0).0.is_empty());
        assert!(tell(1).0[0].starts_with("1 listening socket has no process that can be seen: the kernel's own, or "));
        assert!(tell(2).0[0].starts_with("2 listening sockets have no process"));
    }
}
