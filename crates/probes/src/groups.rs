//! Members of the multicast groups whose packets were dropped, and the sockets at their ports.

use doctor::seen::{DropSeen, GroupListener, GroupSeen, Sample};
use host::groups::Groups;
use lookups::pillars;
use record::rows::Sockets;
use record::{Accounting, Addr, Demand, Next, Schema, field_index};
use std::collections::{BTreeMap, BTreeSet};
use sys::{Errno, Host};

use crate::counter_window::Samples;
use crate::probe::{InNetns, ProbeReader, Round, keep_first, note_error};
use crate::sockets::find_holder;

/// Maximum number of memberships, and of sockets, that are kept of a namespace.
///
/// Bound: memberships in groups whose packets were dropped, and sockets at their ports. Beyond: further ones are
/// counted (exit code 3). By: anyone who may open sockets there.
const KEPT_MAX: usize = 256;
/// The file with the sources that programs want or do not want: interface, group, source, numbers of both.
const FILTERS: &str = "/proc/thread-self/net/mcfilter";

/// Reads members of groups whose packets were dropped.
pub(crate) struct GroupReader;

impl ProbeReader for GroupReader {
    fn second(&mut self, netns: &InNetns<'_>, sample: &mut Sample, stats: &mut Accounting) {
        let dropped = sample.around.drops.iter().flatten().filter_map(DropSeen::unjoined);
        let wanted: BTreeSet<Addr> = dropped.map(|(group, _)| group).collect();
        if wanted.is_empty() {
            return;
        }
        let (host, mut groups) = (netns.host(), Groups::default());
        note_error(groups.read4(host, netns.netns_id, None).map_err(host::HostError::from), stats);
        note_error(groups.read6(host, netns.netns_id, None).map_err(host::HostError::from), stats);
        let sources = read_sources(host, netns.netns_id, stats);
        let seen = |of: record::rows::Membership<'_>| {
            let iface = String::from_utf8_lossy(of.iface).into_owned();
            let only = sources.get(&(iface.clone(), of.group)).cloned().unwrap_or_default();
            GroupSeen { iface, group: of.group, sources: only }
        };
        let joined = groups.iter().filter(|of| of.users > 0 && wanted.contains(&of.group));
        sample.around.groups = joined.map(seen).collect();
        keep_first(&mut sample.around.groups, KEPT_MAX, "memberships in multicast groups", stats);
    }

    fn follow(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        let ports = |sample: &Sample| -> BTreeSet<u16> {
            let dropped = sample.around.drops.iter().flatten().filter_map(DropSeen::unjoined);
            dropped.filter(|_| !sample.around.groups.is_empty()).map(|(_, port)| port).collect()
        };
        let wanted: BTreeMap<u64, BTreeSet<u16>> =
            samples.iter().filter_map(|(id, sample)| Some(((*id)?, ports(sample)))).collect();
        if wanted.values().all(BTreeSet::is_empty) {
            return;
        }
        let fields: Vec<usize> =
            ["proto", "local_port", "inode"].iter().filter_map(|name| field_index::<Sockets>(name)).collect();
        let filter = engine::filter::conjuncts(Schema::from_table::<Sockets>(), "proto = udp").unwrap_or_default();
        let demand = Demand::new(&fields, filter);
        let mut over = 0;
        let read = pillars::with_sockets(round.session, None, &|_| true, |sockets| {
            sockets.run(&demand, &mut |socket| {
                let port = socket.local.port;
                let is_wanted = wanted.get(&socket.netns_id).is_some_and(|ports| ports.contains(&port));
                if let Some(sample) = samples.get_mut(&Some(socket.netns_id)).filter(|_| is_wanted) {
                    let listeners = &mut sample.around.listeners;
                    if listeners.len() < KEPT_MAX {
                        listeners.push(GroupListener { port, owner: find_holder(socket, round.lookups) });
                    } else {
                        over += 1;
                    }
                }
                Next::More
            })
        });
        if over > 0 {
            stats.incomplete(over, format!("sockets of multicast groups after the first {KEPT_MAX} are not checked"));
        }
        match read {
            Ok(read) => stats.add_gaps(&read),
            Err(error) => {
                stats.incomplete(1, format!("sockets of multicast groups are not checked: {error}"));
            }
        }
    }

    /// A recording of everything has no drops that call for groups.
    fn save(&mut self, _: &InNetns<'_>, _: &mut Accounting) {}
}

/// The sources that programs want, by interface and IPv4 group; groups that are joined for all sources are left out.
fn read_sources(host: &Host, netns_id: u64, stats: &mut Accounting) -> BTreeMap<(String, Addr), Vec<Addr>> {
    let mut text = Vec::new();
    let read = host.bytes(&format!("{FILTERS}@{netns_id}"), "", &mut text, |into| {
        sys::fs::read_file(&host.real_path(FILTERS), into)
    });
    match read {
        Ok(()) => {}
        Err(error) if [Errno::NOENT, Errno::NOT_RECORDED].contains(&error.errno) => {}
        Err(error) => {
            stats.incomplete(1, format!("sources of multicast groups are not checked: {error}"));
        }
    }
    let mut sources: BTreeMap<(String, Addr), Vec<Addr>> = BTreeMap::new();
    let mut lines: Vec<_> = String::from_utf8_lossy(&text).lines().filter_map(parse_source).collect();
    keep_first(&mut lines, KEPT_MAX, "sources of multicast groups", stats);
    for (iface, group, source) in lines {
        sources.entry((iface, group)).or_default().push(source);
    }
    sources
}

/// Parses a line, such as `  2     eth0 0xef010203 0x0a000001      1      0`: a source that a program wants. `None` for
/// others.
fn parse_source(line: &str) -> Option<(String, Addr, Addr)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let iface = words.next()?.to_owned();
    let mut addr = || {
        let number = u32::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        Some(Addr::V4(number.to_be_bytes()))
    };
    let (group, source) = (addr()?, addr()?);
    let wanted: u32 = words.next()?.parse().ok()?;
    (wanted > 0).then_some((iface, group, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_sources() {
        let (group, source) = (Addr::V4([239, 1, 2, 3]), Addr::V4([10, 0, 0, 1]));
        let line = "  2     eth0 0xef010203 0x0a000001      1      0";
        assert_eq!(parse_source(line), Some(("eth0".to_owned(), group, source)));
        assert_eq!(parse_source("  2     eth0 0xef010203 0x0a000001      0      1"), None, "an unwanted source");
        assert_eq!(parse_source("Idx Device        MCA        SRC    INC    EXC"), None);
    }
}
