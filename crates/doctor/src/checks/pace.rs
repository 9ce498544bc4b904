//! Helpers of the checks of slow connections.

use super::{Findings, Sample};
use crate::seen::{Account, Transfer};
use record::rows::Evidence;

/// From this rate on, in bytes per second, a connection is not slow: 100 Mb/s.
pub(super) const FAST: u64 = 12_500_000;

/// Fewest connections that are named; the others are counted.
const NAMED: usize = 3;

/// A connection and what happened to it within the window.
pub(super) struct TransferRate<'s> {
    /// It at the second reading.
    pub(super) now: &'s Transfer,
    /// It at the first reading; `None` if it did not exist, or nothing was remarkable about it.
    pub(super) before: Option<&'s Transfer>,
    /// The growth of its totals since the first reading, or since it began.
    pub(super) grown: Account,
}

impl TransferRate<'_> {
    /// True if a wait of this length is a tenth of the time with data in flight, and at least 0.2 s. BBR spreads its
    /// segments over the round trip, so that it meets a limit for a part of the time only.
    pub(super) fn is_much(&self, wait_us: u64) -> bool {
        wait_us >= 200_000 && wait_us.saturating_mul(10) >= self.grown.busy_us
    }

    /// Acknowledged bytes per second with data in flight.
    pub(super) fn sent_per_s(&self) -> u64 {
        per_s(self.grown.acked, self.grown.busy_us)
    }

    /// One of its totals as evidence; the time is in milliseconds.
    pub(super) fn evidence(&self, what: &str, of: fn(&Account) -> u64) -> Evidence {
        let number = |one: &Transfer| i64::try_from(of(&one.account)).unwrap_or(i64::MAX);
        let before = Some(self.before.map_or(0, number));
        Evidence { counter: format!("{what} of {}", self.now.name), before, after: number(self.now), limit: None }
    }
}

/// Returns the recorded connections, matched by their identity.
pub(super) fn paces(sample: &Sample) -> impl Iterator<Item = TransferRate<'_>> {
    sample.after.pace.transfers.iter().map(|(identity, now)| {
        let before = sample.before.pace.transfers.get(identity);
        let zero = Account::default();
        TransferRate { now, before, grown: now.account.since(before.map_or(&zero, |before| &before.account)) }
    })
}

/// Adds a finding for each of the first connections; `add` gets the number of further ones.
pub(super) fn add_each<'s>(
    all: &[TransferRate<'s>],
    found: &mut Findings<'_>,
    add: fn(&TransferRate<'s>, usize, &mut Findings<'_>),
) {
    let further = all.len().saturating_sub(NAMED);
    for (place, one) in all.iter().take(NAMED).enumerate() {
        add(one, if place + 1 == NAMED { further } else { 0 }, found);
    }
}

/// The words about further connections in the same state, for a cost.
pub(super) fn and_further(further: usize) -> String {
    if further > 0 { format!("; {further} more connections are as slow") } else { String::new() }
}

/// A number of bytes in a number of microseconds, as bytes per second.
pub(super) fn per_s(bytes: u64, us: u64) -> u64 {
    bytes.saturating_mul(1_000_000) / us.max(1)
}

/// A rate in words: `3.7 Mb/s`.
pub(super) fn rate(bytes_per_s: u64) -> String {
    format!("{:.1} Mb/s", bytes_per_s as f64 * 8.0 / 1e6)
}

/// A number of bytes in words: `18.4 KiB`.
pub(super) fn kib(bytes: u64) -> String {
    format!("{:.1} KiB", bytes as f64 / 1024.0)
}

/// A duration in words: `40.7 ms`.
pub(super) fn ms(us: u64) -> String {
    format!("{:.1} ms", us as f64 / 1000.0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use super::*;
    use crate::checks::diagnose;
    use crate::seen::{LinkSeen, SmallPath};
    use record::Addr;
    use record::rows::CounterSource::{self, Netstat, Snmp};
    use record::rows::Severity;

    const PEER: Addr = Addr::V4([192, 0, 2, 9]);

    type Change = fn(&mut Transfer);

    /// 3 s of an upload that a send buffer of 32 KiB limits.
    pub(in crate::checks) const FULL_SNDBUF: Change = |one| {
        one.account.busy_us = 3_000_000;
        one.account.sndbuf_limited_us = 1_000_000;
        one.account.acked = 2_900_000;
    };

    /// 3 s of an upload that the peer's buffer limits.
    pub(in crate::checks) const SMALL_PEER_WINDOW: Change = |one| {
        one.account.busy_us = 3_000_000;
        one.account.rwnd_limited_us = 1_400_000;
        (one.account.acked, one.peer_window.1) = (4_700_000, 1);
    };

    /// 3 s of a download that the own buffer limits.
    pub(in crate::checks) const SMALL_OWN_WINDOW: Change = |one| one.account.received = 4_700_000;

    /// Requests in two parts, of which the second waits 40 ms.
    pub(in crate::checks) const HELD: Change = |one| {
        (one.account.sent_segments, one.account.received_segments) = (140, 70);
        (one.account.busy_us, one.account.acked) = (2_900_000, 21_000);
        (one.is_held, one.min_rtt_us) = (true, 50);
    };

    /// Requests that TCP_CORK holds back.
    pub(in crate::checks) const CORKED: Change = |one| {
        (one.account.sent_segments, one.account.received_segments) = (14, 14);
        (one.account.busy_us, one.account.acked) = (2_950_000, 4_200);
        (one.is_corked, one.min_rtt_us) = (true, 50);
    };

    /// The exchanges of HELD, seen by the peer.
    pub(in crate::checks) const PEER_HELD: Change = |one| {
        (one.account.sent_segments, one.account.received_segments, one.account.pure_acks) = (70, 140, 140);
        (one.account.received, one.min_rtt_us) = (21_000, 50);
    };

    /// A path that drops SYNs with ECN.
    pub(in crate::checks) fn swallow_ecn(sample: &mut Sample) {
        sample.add_setting("ipv4/tcp_ecn", vec![1]);
        sample.counters_of(&[
            (Netstat, "TcpExtTCPSynRetrans", "", 0, 99),
            (Snmp, "TcpActiveOpens", "", 0, 100),
            (Snmp, "TcpRetransSegs", "", 0, 99),
            (Snmp, "TcpOutSegs", "", 0, 496),
        ]);
        sample.after.pace.opening.insert((PEER.into(), 80), 33);
    }

    /// The findings about a connection to which the changes happen.
    fn found(changes: &[Change]) -> Vec<(&'static str, Severity)> {
        let (before, mut now) = (Transfer::example(), Transfer::example());
        changes.iter().for_each(|change| change(&mut now));
        let mut sample = Sample::of(&[(Netstat, "TcpExtDelayedACKs", "", 0, 60)]);
        sample.before.pace.transfers.insert(7, before);
        sample.after.pace.transfers.insert(7, now);
        diagnose(&[sample]).iter().map(|one| (one.id, one.severity)).collect()
    }

    #[test]
    fn a_full_send_buffer_is_slow_on_a_long_path_only() {
        assert_eq!(found(&[FULL_SNDBUF]), [("send-buffer", Severity::Warning)]);
        assert_eq!(found(&[FULL_SNDBUF, |one| one.min_rtt_us = 300]), []);
        assert_eq!(found(&[FULL_SNDBUF, |one| one.account.sndbuf_limited_us = 250_000]), []);
        assert_eq!(found(&[FULL_SNDBUF, |one| one.account.acked = 60_000_000]), [("send-buffer", Severity::Hint)]);
        // A program that sends little waits for nothing.
        assert_eq!(found(&[|one| one.account.busy_us = 900_000]), []);
    }

    #[test]
    fn a_window_that_changes_belongs_to_a_slow_reader() {
        assert_eq!(found(&[SMALL_PEER_WINDOW]), [("small-window", Severity::Warning)]);
        let is_scaled: Change = |one| one.peer_window.1 = 7;
        assert_eq!(found(&[SMALL_PEER_WINDOW, is_scaled]), [("small-window", Severity::Hint)], "it may be larger");
        assert_eq!(found(&[SMALL_PEER_WINDOW, |one| one.peer_window.0 = 60_000]), []);
        assert_eq!(found(&[SMALL_PEER_WINDOW, |one| one.min_rtt_us = 300]), []);
        assert_eq!(found(&[SMALL_PEER_WINDOW, |one| one.account.acked = 900_000]), [], "less than the window allows");
        // The congestion window is about as small, so the kernel counts little of the time for the peer's.
        let is_both: Change = |one| one.account.rwnd_limited_us = 180_000;
        assert_eq!(found(&[SMALL_PEER_WINDOW, is_both]), [("small-window", Severity::Warning)]);
        assert_eq!(found(&[SMALL_PEER_WINDOW, is_both, |one| one.account.acked = 3_900_000]), [], "not a whole one");
        assert_eq!(found(&[SMALL_PEER_WINDOW, |one| one.account.rwnd_limited_us = 90_000]), []);
    }

    #[test]
    fn an_own_window_limits_a_program_that_reads() {
        assert_eq!(found(&[SMALL_OWN_WINDOW]), [("small-window", Severity::Warning)]);
        assert_eq!(found(&[SMALL_OWN_WINDOW, |one| one.unread = 60_000]), []);
        assert_eq!(found(&[SMALL_OWN_WINDOW, |one| one.own_window = 131_072]), [], "it grows");
        assert_eq!(found(&[SMALL_OWN_WINDOW, |one| one.account.received = 2_000_000]), []);
    }

    #[test]
    fn writes_that_nothing_holds_back_are_no_finding() {
        assert_eq!(found(&[HELD]), [("nagle", Severity::Warning)]);
        // A peer that answers late acknowledges the second part at once; whole requests; lines of a log; a long path.
        assert_eq!(found(&[HELD, |one| one.account.busy_us = 160_000]), []);
        assert_eq!(found(&[HELD, |one| one.is_held = false]), [("nagle", Severity::Hint)]);
        assert_eq!(found(&[HELD, |one| one.account.sent_segments = 70]), []);
        assert_eq!(found(&[HELD, |one| one.account.received_segments = 0]), []);
        assert_eq!(found(&[HELD, |one| one.min_rtt_us = 20_000]), []);
        assert_eq!(found(&[CORKED]), [("nagle", Severity::Warning)]);
        assert_eq!(found(&[CORKED, |one| one.is_corked = false]), []);
        assert_eq!(found(&[CORKED, |one| one.account.busy_us = 900_000]), [], "shorter than the timer");
        assert_eq!(found(&[PEER_HELD]), [("nagle", Severity::Hint)]);
        // The parts arrive at once and are acknowledged together.
        assert_eq!(found(&[PEER_HELD, |one| one.account.pure_acks = 70]), []);
    }

    #[test]
    fn one_finding_for_each_of_three_connections() {
        let mut sample = Sample::of(&[]);
        for identity in 1..=9 {
            let mut one = Transfer::example();
            sample.before.pace.transfers.insert(identity, one.clone());
            FULL_SNDBUF(&mut one);
            sample.after.pace.transfers.insert(identity, one);
        }
        let found = diagnose(&[sample]);
        assert_eq!(found.len(), 3);
        assert!(found[2].cost.ends_with("6 more connections are as slow"), "{}", found[2].cost);
    }

    #[test]
    fn a_small_path_is_small_for_its_link_only() {
        let found = |mtu, path| {
            let mut sample = Sample::of(&[]);
            sample.around.links.push(LinkSeen { name: "eth0".into(), flags: 1 | 1 << 16, mtu, ..LinkSeen::default() });
            sample.after.pace.small_paths.insert(PEER.into(), SmallPath { mtu: path, connections: 1 });
            diagnose(&[sample]).first().map(|one| one.remedy[0].command.clone())
        };
        assert_eq!(found(1500, 552).unwrap(), "ip route get 192.0.2.9");
        assert_eq!(found(576, 552), None);
    }

    #[test]
    fn syns_are_lost_with_ecn_only() {
        let found = |change: fn(&mut Sample)| {
            let mut sample = Sample::of(&[]);
            swallow_ecn(&mut sample);
            change(&mut sample);
            diagnose(&[sample]).iter().map(|one| one.id).collect::<Vec<_>>()
        };
        assert_eq!(found(|_| {}), ["ecn-syn"]);
        assert_eq!(found(|sample| sample.add_setting("ipv4/tcp_ecn", vec![2])), ["syn-retrans"]);
        // The peer does not answer at all; it uses ECN; most connections need no retransmission.
        let silent = |sample: &mut Sample| _ = sample.after.unanswered.insert((PEER.into(), 80), 5);
        let has_ecn = |sample: &mut Sample| _ = sample.after.pace.ecn_peers.insert(PEER.into());
        assert_eq!((found(silent), found(has_ecn)), (vec!["syn-retrans"], vec!["syn-retrans"]));
        assert_eq!(found(|sample| sample.counters_of(&[(Snmp, "TcpActiveOpens", "", 0, 900)])), ["syn-retrans"]);
    }

    #[test]
    fn lost_segments_are_neither_late_nor_double() {
        let found = |rows: &[(CounterSource, &'static str, &'static str, i64, i64)]| {
            diagnose(&[Sample::of(rows)]).iter().map(|one| one.id).collect::<Vec<_>>()
        };
        let sent = (Snmp, "TcpOutSegs", "", 0, 5000);
        let again = (Snmp, "TcpRetransSegs", "", 0, 160);
        assert_eq!(found(&[sent, again, (Netstat, "TcpExtTCPSACKReorder", "", 0, 9)]), ["retransmits"]);
        assert_eq!(found(&[sent, again, (Netstat, "TcpExtTCPSACKReorder", "", 0, 800)]), ["reordering"]);
        assert_eq!(found(&[sent, again, (Netstat, "TcpExtTCPDSACKRecv", "", 0, 9)]), ["retransmits"]);
        // Gaps and segments that arrive again: reordering, or a path that loses acknowledgements as well.
        let received = (Snmp, "TcpInSegs", "", 0, 5000);
        let arrived = (Netstat, "TcpExtTCPDSACKOldSent", "", 0, 177);
        assert_eq!(found(&[received, arrived, (Netstat, "TcpExtTCPOFOQueue", "", 0, 303)]), [] as [&str; 0]);
        assert_eq!(found(&[received, arrived]), ["duplicates"]);
        assert_eq!(found(&[received, arrived, (Netstat, "TcpExtPAWSEstab", "", 0, 170)]), ["paws"]);
    }
}
