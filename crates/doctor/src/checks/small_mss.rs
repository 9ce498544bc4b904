//! Segments far smaller than the path allows, because one end announced so, or a rule changed what it announced.

use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::words::state;
use super::{Check, Findings, Probe, Sample};

/// Fewest segments of a connection for more than a hint: small devices announce a small MSS and say little.
const MANY: u32 = 1000;

pub(super) const CHECK: Check = Check {
    id: "small-mss",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "The segments of connections are far smaller than the path allows: the maximum segment size (MSS) that was \
            announced is tiny.",
    rule: "A connection that transfers data has an MSS below 400 bytes for sending or receiving, although its path MTU \
           is at least 1000 bytes and the peer's window is larger than a few segments. It is a hint if no such \
           connection has transferred 1000 segments: small devices are like that.",
    sources: "tcp_info via sock_diag: snd_mss, advmss, pmtu",
    refuted_by: "SYNs with a larger MSS at both ends: `netwren tcpdump -vn 'tcp[tcpflags] & tcp-syn != 0'`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let all = &sample.after.pace.small_segments;
    let Some((peer, most)) = all.iter().max_by_key(|(_, one)| one.segments) else { return };
    let further = if all.len() > 1 { format!("; {} more peers are concerned", all.len() - 1) } else { String::new() };
    let (mss, mtu) = (most.mss, most.mtu);
    let title = if most.is_own {
        format!("this host asks {peer} for segments of {mss} bytes, although the path MTU is {mtu}{further}")
    } else {
        format!("segments to {peer} have {mss} bytes at most, although the path MTU is {mtu}{further}")
    };
    let which = if most.is_own { "announced MSS" } else { "MSS" };
    let draft = found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(peer.to_string())
        .proof([state(format!("{which} of {} connections with {peer}", most.connections), mss, Some(mtu.into()))])
        .reach(if most.segments >= MANY { Reach::part(1, 1) } else { Reach::Nobody }, "")
        .cost(format!("{:.0} times as many packets for the same data", f64::from(mtu) / f64::from(mss.max(1))));
    if most.is_own {
        draft.remedy(format!("ip route get {}", peer.addr), "shows the route, which may have a small `advmss`", "");
    } else {
        let look = "look for a rule on the path that sets the MSS of SYNs (`maxseg size set`, TCPMSS), or a route with \
                    a small `advmss` at the peer";
        draft.remedy("", look, "");
    }
}
