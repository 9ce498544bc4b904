//! Readings in addition to counters and sockets: drops, interfaces, neighbours, routes, queues, log groups, flows.

mod arp;
mod controls;
mod drop_watch;
mod entries;
mod flows;
mod log_groups;
mod ports;
mod queues;
mod routes;

pub(super) use drop_watch::DropWatch;

use arp::ArpListeners;
use doctor::checks::{DropSeen, LinkSeen, ModeSeen, NeighbourSeen, Sample, Surroundings};
use host::group_rules::GroupRule;
use host::link_modes::{self, LINK_MODES_MAX, LinkMode};
use host::links::LINKS_MAX;
use host::neighbours::{self, NEIGHBOURS_MAX, SilentNeighbour};
use host::{HostError, Links};
use lookups::session::Session;
use queues::Queues;
use record::{Accounting, Addr};
use std::collections::{BTreeMap, BTreeSet};
use sys::{Errno, Host};

/// `IFA_F_DADFAILED`, include/uapi/linux/if_addr.h.
const DUPLICATE: u8 = 8;

/// Samples by namespace; the host's has the key None.
type Samples = BTreeMap<Option<u64>, Sample>;

/// Values of the first reading, for comparison with the second.
#[derive(Default)]
pub(super) struct FirstLook {
    queues: Queues,
    /// Neighbours without a reply, by namespace.
    silent: BTreeMap<u64, Vec<SilentNeighbour>>,
    /// Rules whose log group has no reader, by namespace; namespaces without such rules are left out.
    unread: BTreeMap<u64, Vec<GroupRule>>,
    /// Listens for other hosts that use this host's addresses.
    arp: ArpListeners,
}

/// Takes the second reading of a namespace.
pub(super) fn add(session: &Session, samples: &mut Samples, before: &FirstLook, stats: &mut Accounting) {
    let (host, mut wants_routes) = (session.host(), false);
    session.in_each_namespace(&mut |netns_id| {
        let Some(sample) = samples.get_mut(&Some(netns_id)) else { return };
        let names = add_links(host, netns_id, &mut sample.around, &before.arp, stats);
        add_neighbours(host, sample, &names, before.silent.get(&netns_id).map_or(&[], Vec::as_slice), stats);
        let around = &mut sample.around;
        let now = queues::read(host, netns_id, stats).into_values();
        around.queues = now.map(|queue| queues::since(&before.queues, netns_id, queue)).collect();
        if let Some(unread) = before.unread.get(&netns_id) {
            around.unread = log_groups::since(unread, log_groups::unread(host, netns_id, stats));
        }
        wants_routes |= around.drops.iter().flatten().any(DropSeen::is_refused) || !around.neighbours.is_empty();
    });
    if wants_routes {
        routes::add(session, samples, stats);
    }
    flows::add(session, samples, stats);
    controls::add(session, samples, stats);
    ports::add(session, samples, stats);
}

/// Adds the error of a reading. A feature that the kernel does not have is not an error.
fn note<T>(result: Result<T, HostError>, stats: &mut Accounting) -> Option<T> {
    match result {
        Ok(found) => return Some(found),
        Err(HostError::Sys(sys::SysError { errno: Errno::NOENT, .. })) => {}
        Err(error) if error.is_not_recorded() => {
            stats.unanswered = true;
            stats.add_reason(
                0,
                "the recording holds no interfaces or neighbours (`netwren record FILE` records everything)",
            );
        }
        Err(error) => {
            stats.incomplete(1, error.to_string());
        }
    }
    None
}

/// Adds the interfaces; returns their names by index.
fn add_links(
    host: &Host,
    netns_id: u64,
    around: &mut Surroundings,
    arp: &ArpListeners,
    stats: &mut Accounting,
) -> BTreeMap<u32, String> {
    let read = Links::read(host, netns_id, None);
    let Some(mut links) = note(read, stats) else { return BTreeMap::new() };
    let _ = note(links.read_inet6(host, netns_id, None).map_err(HostError::from), stats);
    if links.over > 0 {
        stats.incomplete(links.over, format!("interfaces and addresses after the first {LINKS_MAX} are not checked"));
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let modes = modes(host, netns_id, stats);
    for link in &links.links {
        let of_four = links.addrs.iter().any(|addr| addr.index == link.index);
        let of_six = links.addrs6.iter().any(|addr| addr.iface == link.name && addr.scope == 0);
        around.links.push(LinkSeen {
            name: text(&link.name),
            flags: link.flags,
            mtu: link.mtu,
            has_address: of_four || of_six,
            is_bridge_port: link.master != 0,
            // An interface on top of another reports the lower one's mode, which has its own finding.
            mode: modes.get(&link.index).copied().filter(|_| link.lower == 0),
        });
    }
    around.conflicts = arp.conflicts(host, netns_id, &links, stats);
    let duplicates = links.addrs6.iter().filter(|addr| addr.flags & DUPLICATE != 0);
    around.duplicates = duplicates.map(|addr| (text(&addr.iface), Addr::V6(addr.addr))).collect();
    let names: BTreeMap<u32, String> = links.links.iter().map(|link| (link.index, text(&link.name))).collect();
    for one in around.drops.iter_mut().flatten() {
        if let Some(name) = one.iface.parse().ok().and_then(|index| names.get(&index)) {
            one.iface.clone_from(name);
        } else if !one.iface.is_empty() {
            one.iface.insert_str(0, "if");
        }
    }
    names
}

/// Speed and duplex by interface index, for interfaces whose driver knows both.
fn modes(host: &Host, netns_id: u64, stats: &mut Accounting) -> BTreeMap<u32, ModeSeen> {
    let read = link_modes::read(host, netns_id, None);
    // Recordings of earlier versions do not contain them.
    let is_old = read.as_ref().is_err_and(HostError::is_not_recorded);
    let (modes, over) = if is_old { (Vec::new(), 0) } else { note(read, stats).unwrap_or_default() };
    if over > 0 {
        let text = format!("speed and duplex of interfaces after the first {LINK_MODES_MAX} are not checked");
        stats.incomplete(over, text);
    }
    let seen = |one: LinkMode| {
        let mode = ModeSeen {
            mbps: one.mbps?,
            is_half: !one.is_full?,
            is_negotiated: one.is_negotiated,
            supported_mbps: one.supported.best_full_mbps(),
            common_mbps: one.ours.and(one.theirs).best_full_mbps(),
        };
        Some((one.index, mode))
    };
    modes.into_iter().filter_map(seen).collect()
}

/// Neighbours without a reply in the calling thread's namespace.
fn silent(host: &Host, netns_id: u64, stats: &mut Accounting) -> Vec<SilentNeighbour> {
    let (silent, over) = note(neighbours::silent(host, netns_id, None), stats).unwrap_or_default();
    if over > 0 {
        let text = format!("unanswering neighbours after the first {NEIGHBOURS_MAX} are not checked");
        stats.incomplete(over, text);
    }
    silent
}

/// Adds neighbours that did not reply within the window; `before` are those without a reply at its start.
fn add_neighbours(
    host: &Host,
    sample: &mut Sample,
    names: &BTreeMap<u32, String>,
    before: &[SilentNeighbour],
    stats: &mut Accounting,
) {
    let Some(netns_id) = sample.netns_id else { return };
    let window_s = u32::try_from(sample.window_ns.div_ceil(1_000_000_000)).unwrap_or(u32::MAX);
    let was_silent = |one: &SilentNeighbour| {
        before.iter().any(|old| (old.ifindex, old.addr) == (one.ifindex, one.addr) && window_s > 0)
    };
    let of_window = silent(host, netns_id, stats).into_iter().filter(|one| match one.is_given_up {
        true => one.used_s.is_none_or(|used_s| used_s <= window_s),
        // A neighbour queried for less than a second may still reply.
        false => was_silent(one) || one.since_s.is_none_or(|since_s| since_s >= 1),
    });
    let iface = |index: u32| names.get(&index).cloned().unwrap_or_else(|| format!("if{index}"));
    sample.around.neighbours =
        of_window.map(|one| NeighbourSeen { addr: one.addr, iface: iface(one.ifindex) }).collect();
}

/// Takes the first reading of the namespaces, except those in `unread`. With `listens` it starts to listen for ARP.
pub(super) fn first_look(
    session: &Session,
    unread: &BTreeSet<u64>,
    listens: bool,
    stats: &mut Accounting,
) -> FirstLook {
    let mut look = FirstLook::default();
    let namespaces = session.namespaces().filter(|_| listens && !session.host().is_replay());
    let chosen = namespaces.map(|all| all.choose(arp::NAMESPACES_MAX, session.netns_id()));
    session.in_each_namespace(&mut |netns_id| {
        if unread.contains(&netns_id) {
            return;
        }
        if listens {
            let is_chosen = chosen.as_ref().is_none_or(|chosen| chosen.contains(&netns_id));
            look.arp.begin(session.host(), netns_id, is_chosen, stats);
        }
        let of_netns = queues::read(session.host(), netns_id, stats).into_values();
        look.queues.extend(of_netns.map(|queue| ((netns_id, queue.number), queue)));
        look.silent.insert(netns_id, silent(session.host(), netns_id, stats));
        let unread = log_groups::unread(session.host(), netns_id, stats);
        if !unread.is_empty() {
            look.unread.insert(netns_id, unread);
        }
    });
    look
}

/// For a recording of everything: reads data that is neither in a table nor read for every recording.
pub(super) fn save(session: &Session, stats: &mut Accounting) {
    first_look(session, &BTreeSet::new(), false, stats);
}
