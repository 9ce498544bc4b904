//! Frames that are larger than the interface at the other end accepts.

use record::rows::CounterSource::Iface;
use record::rows::{Confidence, Severity};

use super::words::{argument, of_object, state};
use super::{Check, Findings, Probe, Sample};
use crate::seen::{DropSeen, LinkSeen};

pub(super) const CHECK: Check = Check {
    id: "mtu-mismatch",
    needs: &[Probe::Drops, Probe::Links],
    area: "interfaces",
    about: "The two ends of a link, or the ports of a bridge, have different MTUs: large frames are dropped.",
    rule: "At least 3 frames were dropped on the way into an interface with a smaller MTU: by the other end of a veth \
           pair or by the port of a bridge; or an end of a veth pair dropped 3 received frames, and the other end has \
           a larger MTU.",
    sources: "the tracepoint kfree_skb via BPF: __dev_forward_skb, br_dev_queue_push_xmit; rx_dropped; MTU via \
              RTM_GETLINK, of the other end with IFLA_TARGET_NETNSID",
    refuted_by: "`ip link show` with the same MTU at both ends.",
    run,
};

/// Fewest frames for a finding.
const FEW: u64 = 3;
/// The function that sends a frame out of a port of a bridge.
const BRIDGE_PORT: &str = "br_dev_queue_push_xmit";

/// True if the two ends of this veth pair have different MTUs, which explains drops of received or sent packets.
pub(super) fn explains(sample: &Sample, name: &str, is_rx: bool) -> bool {
    let link = sample.around.links.iter().find(|link| link.name == name);
    let differs = |link: &LinkSeen| Some(if is_rx { link.peer_mtu? > link.mtu } else { link.peer_mtu? < link.mtu });
    link.and_then(differs).unwrap_or(false)
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let (around, dropped) = (&sample.around, sample.around.dropped(CHECK.id));
    if dropped.count >= FEW {
        let first = dropped.all.first().copied();
        let link = first.and_then(|one| around.links.iter().find(|link| link.index == one.ifindex));
        of_drops(sample, found, first, link);
    }
    for link in around.links.iter().filter(|link| explains(sample, &link.name, true)) {
        of_receiver(sample, found, link);
    }
}

/// Adds the finding of the sender.
fn of_drops(sample: &Sample, found: &mut Findings<'_>, first: Option<&DropSeen>, link: Option<&LinkSeen>) {
    let (around, dropped) = (&sample.around, sample.around.dropped(CHECK.id));
    let is_port = first.is_some_and(|one| one.place == BRIDGE_PORT);
    let peer_mtu = link.and_then(|link| link.peer_mtu);
    // The ends agree, or the port is down: the frames were dropped for another reason.
    if !is_port && link.zip(peer_mtu).is_some_and(|(link, peer)| peer >= link.mtu) {
        return;
    }
    let name = link.map_or("", |link| &*link.name);
    let (title, confidence) = match (link, peer_mtu) {
        (Some(link), _) if is_port => {
            let (bridge, mtu) = (around.iface(link.master), link.mtu);
            let text = format!("frames are larger than the MTU of {name}, {mtu}: other ports of {bridge} allow more");
            (text, Confidence::Likely)
        }
        (Some(link), Some(peer)) => {
            let text =
                format!("large frames are dropped: {name} has MTU {}, the other end of the pair {peer}", link.mtu);
            (text, Confidence::Certain)
        }
        _ => {
            let on = if name.is_empty() { String::new() } else { format!(" of {name}") };
            let text = format!("large frames are dropped: the two ends of the link{on} have different MTUs");
            (text, Confidence::Likely)
        }
    };
    let is_near =
        |other: &&LinkSeen| other.name != "lo" && !(is_port && link.is_some_and(|l| l.master != other.master));
    let links = around.links.iter().filter(is_near).take(8);
    let draft = found
        .add(Severity::Warning, confidence, title)
        .object(name)
        .proof(dropped.evidence())
        .proof(links.map(|link| state(format!("MTU of {}", link.name), link.mtu, None)))
        .proof(peer_mtu.map(|mtu| state(format!("MTU of the other end of {name}"), mtu, None)))
        .lost(dropped.count, "frames dropped");
    let word = argument(name, "IFACE");
    match peer_mtu.filter(|_| !is_port) {
        Some(mtu) => draft.remedy(
            format!("ip link set {word} mtu {mtu}"),
            "gives this end the MTU of the other; or raise that one where it is",
            "this host then sends smaller packets through it",
        ),
        None => draft.remedy(
            format!("ip link show {}", argument(name, "")).trim_end(),
            "shows the MTU; give both sides the same",
            "",
        ),
    };
}

/// Adds the finding of the receiver, whose kernel drops the frames on behalf of the sender and only counts them.
fn of_receiver(sample: &Sample, found: &mut Findings<'_>, link: &LinkSeen) {
    let (name, Some(peer)) = (&*link.name, link.peer_mtu) else { return };
    let of_link = sample.objects(Iface, "rx_dropped").find(|(of, _)| *of == name.as_bytes());
    let Some((object, moved)) = of_link.filter(|(_, moved)| moved.grown() >= FEW) else { return };
    let other = sample.around.explained(object).unwrap_or(0);
    let lost = moved.grown().saturating_sub(other);
    if lost < FEW {
        return;
    }
    let title = format!("{name} drops large frames: it has MTU {}, the other end of the pair {peer}", link.mtu);
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(name)
        .proof([
            of_object("rx_dropped", object, moved, None),
            state(format!("MTU of {name}"), link.mtu, None),
            state(format!("MTU of the other end of {name}"), peer, None),
        ])
        .lost(lost, "frames dropped")
        .remedy(
            format!("ip link set {} mtu {peer}", argument(name, "IFACE")),
            "gives this end the MTU of the other; or lower that one where it is",
            "this host then also sends packets of that size through it",
        );
}
