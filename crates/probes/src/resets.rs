//! Records connections that end with a reset during the window.

use doctor::seen::{Holder, RESETS_MAX, ResetCensus, ResetCount, ResetGroup, ResetKind, Sample};
use host::tcp_resets::{ResetWatch, TcpReset, parse};
use lookups::session::Session;
use record::rows::Socket;
use record::{Accounting, Lookups, Proto, State};
use std::cell::RefCell;
use sys::Errno;

use crate::counter_window::Samples;
use crate::probe::{ProbeReader, Round};
use crate::sockets::find_holder;

/// Name of the data in a recording.
const RECORDED: &str = "doctor/tcp resets";
/// Shortest silence of a peer after which a connection counts as idle, in milliseconds. Longer than the delay of any
/// answer on a working path.
const IDLE_MS: u64 = 1000;

/// Records resets from round to round.
#[derive(Default)]
pub(crate) struct ResetKeeper {
    /// The watch; `None` before the first round, and if resets are not recorded.
    watch: RefCell<Option<ResetWatch>>,
    /// Resets lost until the last round.
    lost: RefCell<u64>,
}

/// Reads the resets of a round.
pub(crate) struct ResetReader<'w> {
    keeper: &'w ResetKeeper,
    /// Resets of this round; `None` if they were not recorded.
    read: Option<Vec<u8>>,
}

impl<'w> ResetReader<'w> {
    pub(crate) fn new(keeper: &'w ResetKeeper) -> ResetReader<'w> {
        ResetReader { keeper, read: None }
    }
}

impl ProbeReader for ResetReader<'_> {
    fn begin(&mut self, round: &Round<'_>, stats: &mut Accounting) {
        if round.session.host().is_replay() {
            return;
        }
        let mut watch = self.keeper.watch.borrow_mut();
        if let Some(watch) = watch.as_mut() {
            // Those between two rounds belong to no window.
            self.keeper.lost.replace(watch.take(&mut Vec::new()).unwrap_or(0));
            return;
        }
        match ResetWatch::open(round.session.host(), only_netns(round.session)) {
            Ok(opened) => *watch = Some(opened),
            Err(error) => stats.incomplete(0, format!("resets of connections are not recorded: {error}")),
        }
    }

    fn end(&mut self, round: &Round<'_>, _: &mut Samples, stats: &mut Accounting) {
        let (mut watch, mut bytes) = (self.keeper.watch.borrow_mut(), Vec::new());
        if watch.is_none() && !round.session.host().is_replay() {
            return;
        }
        let mut lost = Ok(0);
        let read = round.session.host().bytes(RECORDED, "", &mut bytes, |into| {
            lost = watch.as_mut().map_or(Ok(0), |watch| watch.take(into));
            Ok(())
        });
        match read {
            Ok(()) => self.read = Some(bytes),
            // Recordings of earlier versions do not contain them.
            Err(error) if error.errno == Errno::NOT_RECORDED => return,
            Err(error) => stats.incomplete(1, format!("resets of connections are not recorded: {error}")),
        }
        match lost {
            Ok(lost) => {
                let new = lost.saturating_sub(self.keeper.lost.replace(lost));
                if new > 0 {
                    stats.incomplete(new, "resets of connections came too fast: some are not recorded".to_owned());
                }
            }
            Err(error) => stats.incomplete(1, format!("resets of connections are not recorded: {error}")),
        }
    }

    fn follow(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        if let Some(bytes) = &self.read {
            add_resets(round.lookups, bytes, samples, stats);
        }
    }
}

/// The namespace to record; `None` for all.
fn only_netns(session: &Session) -> Option<u32> {
    session.namespaces().is_none().then(|| u32::try_from(session.netns_id()).unwrap_or(0))
}

/// Adds the resets to the samples of their namespaces.
fn add_resets(lookups: &Lookups<'_>, bytes: &[u8], samples: &mut Samples, stats: &mut Accounting) {
    samples.values_mut().for_each(|sample| sample.around.resets = Some(ResetCensus::default()));
    let mut over = 0;
    for one in parse(bytes) {
        let Some(kind) = kind_of(&one) else { continue };
        let Some(sample) = samples.get_mut(&Some(one.netns_id)) else { continue };
        let (group, count) = (group_of(&one, kind, sample, lookups), count_of(&one));
        let Some(census) = sample.around.resets.as_mut() else { continue };
        let before = census.over;
        census.add(group, &count);
        over += census.over - before;
    }
    if over > 0 {
        let text = format!("resets of connections after the first {RESETS_MAX} groups are not checked");
        stats.incomplete(over, text);
    }
}

fn count_of(one: &TcpReset) -> ResetCount {
    // The SYN counts as one byte.
    let is_empty = one.received == 0 && one.acked <= 1;
    ResetCount {
        count: 1,
        empty: is_empty.into(),
        unacked: (one.unacked > 0).into(),
        unanswered: (one.received == 0).into(),
        closed: (one.state == State::CLOSE_WAIT).into(),
        unread_bytes: one.unread.into(),
        silent_ms: one.heard_ms,
    }
}

fn group_of(one: &TcpReset, kind: ResetKind, sample: &Sample, lookups: &Lookups<'_>) -> ResetGroup {
    let listener = sample.after.listener_inodes.get(&one.local.port).copied();
    let is_service = listener.is_some();
    let port = if is_service { one.local.port } else { one.peer.port };
    let by_inode = |inode: u32| {
        let socket = Socket { proto: Proto::Tcp, inode, netns_id: one.netns_id, ..Socket::EMPTY };
        find_holder(&socket, lookups)
    };
    let owner = match kind {
        ResetKind::Unread | ResetKind::Aborted => {
            let name = format!("{} ({})", String::from_utf8_lossy(&one.process), one.pid);
            Holder { name, pid: Some(one.pid), is_shared: false }
        }
        // The program has closed it, or it opened after the owners were read.
        _ => Some(by_inode(one.inode))
            .filter(|owner| owner.pid.is_some())
            .unwrap_or_else(|| by_inode(listener.unwrap_or(0))),
    };
    ResetGroup { kind, is_service, port, peer: one.peer.addr.unmapped(), owner }
}

/// Returns the kind; `None` if the reset hurts no connection: a refused one, or one that its program has closed.
fn kind_of(one: &TcpReset) -> Option<ResetKind> {
    let is_idle = one.heard_ms >= IDLE_MS && one.unacked > 0 && one.retransmits == 0;
    Some(match (one.is_received, one.state) {
        (true, State::ESTABLISHED) if is_idle => ResetKind::ByPeerAfterIdle,
        (true, State::ESTABLISHED | State::CLOSE_WAIT) => ResetKind::ByPeer,
        (true, _) => return None,
        (false, State::LISTEN) => ResetKind::Unknown,
        (false, State::CLOSE) if one.pid == 0 => ResetKind::AfterClose,
        (false, State::CLOSE) if one.unread > 0 => ResetKind::Unread,
        (false, State::CLOSE) => ResetKind::Aborted,
        (false, _) => ResetKind::OfKernel,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::Addr;
    use record::rows::Endpoint;

    fn reset(state: State, pid: u32) -> TcpReset {
        let end = |port| Endpoint { addr: Addr::V4([192, 0, 2, 1]), port };
        TcpReset {
            netns_id: 7,
            is_received: false,
            state,
            local: end(80),
            peer: end(40_000),
            pid,
            process: b"server".to_vec(),
            inode: 0,
            heard_ms: 0,
            retransmits: 0,
            unacked: 0,
            unread: 0,
            received: 100,
            acked: 1,
        }
    }

    #[test]
    fn the_socket_shows_who_reset() {
        let closed = reset(State::CLOSE, 7);
        let kind = |one: &TcpReset| kind_of(one).unwrap();
        assert_eq!(kind(&closed), ResetKind::Aborted);
        assert_eq!(kind(&reset(State::CLOSE, 0)), ResetKind::AfterClose);
        assert_eq!(kind(&TcpReset { unread: 1, ..closed }), ResetKind::Unread);
        assert_eq!(kind(&reset(State::LISTEN, 0)), ResetKind::Unknown);
        assert_eq!(kind(&reset(State::ESTABLISHED, 9)), ResetKind::OfKernel, "a timer that interrupted a process");
        let by_peer = TcpReset { is_received: true, unacked: 9, ..reset(State::ESTABLISHED, 0) };
        assert_eq!(kind(&by_peer), ResetKind::ByPeer);
        let idle = TcpReset { heard_ms: 5000, ..by_peer };
        assert_eq!(kind(&idle), ResetKind::ByPeerAfterIdle);
        assert_eq!(kind(&TcpReset { retransmits: 2, ..idle.clone() }), ResetKind::ByPeer, "it lost segments before");
        assert_eq!(kind(&TcpReset { unacked: 0, ..idle }), ResetKind::ByPeer, "the peer was slow to answer");
        assert_eq!(kind_of(&TcpReset { is_received: true, ..reset(State::FIN_WAIT2, 0) }), None);
    }
}
