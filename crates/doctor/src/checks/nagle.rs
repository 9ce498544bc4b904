//! Small writes that wait for delayed acknowledgements.

use record::rows::CounterSource::Netstat;
use record::rows::{Confidence, Severity};

use super::pace::{TransferRate, add_each, and_further, ms, paces};
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::{DELAY_MAX_US, DELAYED_US};

/// Fewest exchanges within the window.
const SOME: u64 = 5;
const DELAYED: &str = "TcpExtDelayedACKs";

pub(super) const CHECK: Check = Check {
    id: "nagle",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "A program writes a request in small parts: each waits for a delayed acknowledgement of the one before, or \
            for the end of TCP_CORK.",
    rule: "A connection sent 1.5 to 4 small segments per received one, at least 5 exchanges, each with data in flight \
           for 30 to 300 ms, four times its round trip or more. It is a hint unless the kernel held back a small \
           segment at a reading although both windows had room; with TCP_CORK nothing was in flight, and each exchange \
           took 150 to 300 ms. Nothing was retransmitted. It is a hint at the other end: a connection received as many \
           segments per answer and acknowledged each, and TCPDelayedACKs grew by 80 % of the answers.",
    sources: "tcp_info via sock_diag: notsent_bytes, unacked, cwnd, busy_time, min_rtt, data_segs_out, data_segs_in, \
              segs_out; /proc/net/netstat: DelayedACKs",
    refuted_by: "a program that sets TCP_NODELAY: then the peer answers late.",
    run,
};

/// Returns the time with data in flight per answer, in microseconds.
fn wait_us(one: &TransferRate<'_>) -> u64 {
    one.grown.busy_us / one.grown.received_segments.max(1)
}

/// True if a small segment was held back at a reading.
fn is_seen(one: &TransferRate<'_>) -> bool {
    one.now.is_held || one.before.is_some_and(|before| before.is_held)
}

fn is_held(one: &TransferRate<'_>) -> bool {
    let wait = wait_us(one);
    let is_delay = (DELAYED_US..=DELAY_MAX_US).contains(&wait) && wait >= u64::from(one.now.min_rtt_us) * 4;
    let is_exchange = one.grown.received_segments >= SOME && one.grown.waits_for_acks(one.now.mss);
    is_delay && is_exchange && one.grown.retransmitted == 0
}

/// True if the kernel sends each request only when the timer of TCP_CORK expires.
fn is_corked(one: &TransferRate<'_>) -> bool {
    let is_corked = one.now.is_corked || one.before.is_some_and(|before| before.is_corked);
    let is_timer = one.grown.waits_for_timer() && wait_us(one) >= u64::from(one.now.min_rtt_us) * 4;
    is_corked && is_timer && one.grown.received_segments >= SOME && one.grown.retransmitted == 0
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let mut all: Vec<_> = paces(sample).filter(is_held).collect();
    all.sort_by_key(|one| (!is_seen(one), std::cmp::Reverse(one.grown.busy_us)));
    add_each(&all, found, add);
    let mut all: Vec<_> = paces(sample).filter(is_corked).collect();
    all.sort_by_key(|one| std::cmp::Reverse(wait_us(one)));
    add_each(&all, found, add_corked);
    let mut all: Vec<_> = paces(sample).filter(|one| is_peer_held(one, sample)).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.grown.sent_segments));
    let answers: u64 = all.iter().map(|one| one.grown.sent_segments).sum();
    if sample.grown(Netstat, DELAYED).saturating_mul(10) >= answers.saturating_mul(8) {
        add_each(&all, found, add_peer);
    }
}

/// True if the peer may wait for acknowledgements of this host.
fn is_peer_held(one: &TransferRate<'_>, sample: &Sample) -> bool {
    let answers = one.grown.sent_segments;
    let us_per_answer = sample.window_ns / 1000 / answers.max(1);
    let is_slow = (DELAYED_US..=DELAY_MAX_US).contains(&us_per_answer);
    let is_exchange = answers >= SOME && one.grown.is_sent_parts(one.now.mss);
    one.before.is_some() && is_slow && is_exchange && one.grown.retransmitted == 0
}

fn add(one: &TransferRate<'_>, further: usize, found: &mut Findings<'_>) {
    let (now, count) = (one.now, one.grown.received_segments);
    let title = format!(
        "{} waits {} for each answer of {}: it writes small parts, and Nagle's algorithm holds them until delayed \
         acknowledgements arrive",
        now.owner,
        ms(wait_us(one)),
        now.peer
    );
    found
        .add(if is_seen(one) { Severity::Warning } else { Severity::Hint }, Confidence::Likely, title)
        .object(&*now.name)
        .holder(&now.owner)
        .proof([
            one.evidence("microseconds with data in flight", |all| all.busy_us),
            one.evidence("data segments sent", |all| all.sent_segments),
            one.evidence("data segments received", |all| all.received_segments),
            state(format!("round trip in microseconds of {}", now.name), now.min_rtt_us, None),
        ])
        .cost(format!(
            "each of {count} exchanges took {} instead of about {}{}",
            ms(wait_us(one)),
            ms(u64::from(now.min_rtt_us) * 2),
            and_further(further)
        ))
        .remedy("", "let the program write a request at once (one buffer, writev), or set TCP_NODELAY", "");
}

fn add_corked(one: &TransferRate<'_>, further: usize, found: &mut Findings<'_>) {
    let (now, wait) = (one.now, ms(wait_us(one)));
    let title = format!(
        "{} waits {wait} for each answer of {}: TCP_CORK or MSG_MORE holds its requests back",
        now.owner, now.peer
    );
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(&*now.name)
        .holder(&now.owner)
        .proof([
            one.evidence("microseconds with data to send", |all| all.busy_us),
            one.evidence("data segments sent", |all| all.sent_segments),
            one.evidence("data segments received", |all| all.received_segments),
        ])
        .cost(format!("the kernel waits up to 200 ms for the rest of each segment{}", and_further(further)))
        .remedy("", "let the program clear TCP_CORK, or write without MSG_MORE, at the end of each request", "");
}

fn add_peer(one: &TransferRate<'_>, further: usize, found: &mut Findings<'_>) {
    let (now, sample) = (one.now, found.sample);
    let us = sample.window_ns / 1000 / one.grown.sent_segments.max(1);
    let title = format!(
        "{} sends small parts to {} and seems to wait for the delayed acknowledgement of each (Nagle)",
        now.peer, now.owner
    );
    found
        .add(Severity::Hint, Confidence::Likely, title)
        .object(&*now.name)
        .holder(&now.owner)
        .proof([
            one.evidence("data segments received", |all| all.received_segments),
            one.evidence("data segments sent", |all| all.sent_segments),
            one.evidence("acknowledgements sent without data", |all| all.pure_acks),
        ])
        .proof(sample.evidence(Netstat, DELAYED, None))
        .cost(format!("an exchange takes {}{}", ms(us), and_further(further)))
        .remedy(
            "",
            "let the program at the peer write at once (one buffer, writev), or set TCP_NODELAY; if it has done so, \
             the program here answers late",
            "",
        );
}
