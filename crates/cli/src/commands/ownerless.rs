//! Listening sockets without a process: how many there are, and why.

use crate::session::Session;
use engine::Predicate;
use record::rows::{Socket, Sockets};
use record::{
    Accounting, Demand, Each, Key, LookupId, Lookups, Next, Offer, Proto, RowCache, Scan, Source, SourceError, State,
};
use sys::Host;

/// `PROC_PID_INIT_INO` of include/linux/proc_ns.h: the initial pid namespace.
const INIT_PID_NS: &[u8] = b"pid:[4026531836]";

/// A source of sockets that counts listeners without a process, if processes are wanted at all.
pub(super) struct Ownerless<'s> {
    source: &'s dyn Source<Sockets>,
    session: &'s Session,
    lookups: Lookups<'s>,
    /// The whole filter: what is not shown is not missed.
    filter: &'s Predicate<Sockets>,
    /// True if some processes could not be read.
    partial: bool,
}

impl<'s> Ownerless<'s> {
    pub(super) fn new(
        source: &'s dyn Source<Sockets>,
        session: &'s Session,
        lookups: Lookups<'s>,
        filter: &'s Predicate<Sockets>,
        partial: bool,
    ) -> Ownerless<'s> {
        Ownerless { source, session, lookups, filter, partial }
    }
}

impl Source<Sockets> for Ownerless<'_> {
    fn prepare(&self, demand: &Demand<Sockets>) -> Box<dyn Scan<Sockets> + '_> {
        let inner = self.source.prepare(demand);
        if !self.lookups.has(LookupId::Owners) {
            return inner;
        }
        Box::new(OwnerlessScan { inner, source: self })
    }
}

struct OwnerlessScan<'s> {
    inner: Box<dyn Scan<Sockets> + 's>,
    source: &'s Ownerless<'s>,
}

impl OwnerlessScan<'_> {
    /// Runs the inner scan by `run`, whose rows are looked at on their way.
    fn counting(
        &mut self,
        each: &mut Each<'_, Sockets>,
        run: impl FnOnce(&mut dyn Scan<Sockets>, &mut Each<'_, Sockets>) -> Result<Accounting, SourceError>,
    ) -> Result<Accounting, SourceError> {
        let Ownerless { lookups, filter, session, partial, .. } = self.source;
        let mut count = 0u64;
        let mut stats = run(&mut *self.inner, &mut |row| -> Next {
            count += u64::from(has_none(row, lookups, filter));
            each(row)
        })?;
        tell(session.host(), count, *partial, &mut stats);
        Ok(stats)
    }
}

impl Scan<Sockets> for OwnerlessScan<'_> {
    fn offer(&self) -> Offer {
        self.inner.offer()
    }

    fn run(&mut self, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        self.counting(each, |inner, each| inner.run(each))
    }

    fn run_cached(&mut self, cache: &dyn RowCache, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        self.counting(each, |inner, each| inner.run_cached(cache, each))
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
fn tell(host: &Host, count: u64, partial: bool, stats: &mut Accounting) {
    if count == 0 {
        return;
    }
    let sockets = if count == 1 { "1 listening socket has" } else { &format!("{count} listening sockets have") };
    let mut link = Vec::new();
    let is_initial = host.read_link("/proc/self/ns/pid", &mut link).is_err() || link == INIT_PID_NS;
    stats.incomplete |= !is_initial;
    let why = match (is_initial, partial) {
        (false, _) => "those of processes outside this pid namespace",
        (true, true) => "those of processes that could not be read",
        (true, false) => "opened after the processes were read",
    };
    stats.add_reason(0, format!("{sockets} no process that can be seen: the kernel's own, or {why}"));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
        // The link as in the initial pid namespace, in another one, and missing as in an old recording.
        let said = |link: Option<&str>, count, partial| {
            let tmp = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(tmp.path().join("self/ns")).unwrap();
            let place = tmp.path().join("self/ns/pid");
            link.iter().for_each(|link| std::os::unix::fs::symlink(link, &place).unwrap());
            let host = Host::with_roots(tmp.path().into(), "/sys".into(), "/etc".into());
            let mut stats = Accounting::default();
            tell(&host, count, partial, &mut stats);
            (stats.why.first().map(|why| why.text.to_string()), stats.incomplete)
        };
        let first = Some("pid:[4026531836]");
        assert_eq!(said(first, 0, true), (None, false));
        let one = "1 listening socket has no process that can be seen: the kernel's own, or ";
        let many = "2 listening sockets have no process that can be seen: the kernel's own, or ";
        for (link, count, partial, text, incomplete) in [
            (first, 1, false, format!("{one}opened after the processes were read"), false),
            (None, 1, false, format!("{one}opened after the processes were read"), false),
            (first, 2, true, format!("{many}those of processes that could not be read"), false),
            (Some("pid:[7]"), 2, true, format!("{many}those of processes outside this pid namespace"), true),
        ] {
            assert_eq!(said(link, count, partial), (Some(text), incomplete));
        }
    }
}
