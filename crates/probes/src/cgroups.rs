//! Cgroups with BPF programs that decide on packets, and the cgroups of sockets whose packets were dropped.

use doctor::seen::{CgroupSeen, DropSeen, Sample, SocketCgroup};
use host::cgroup_programs::{self, CGROUPS_MAX};
use host::{Cgroups, HostError};
use lookups::pillars;
use record::rows::Sockets;
use record::{Accounting, Demand, Next, Schema, field_index};

use crate::counter_window::Samples;
use crate::probe::{ProbeReader, Round, keep_first, note_error};

/// Bound: sockets whose cgroup `doctor` looks up for a namespace. Beyond: the cgroups of further sockets are unknown,
/// counted (exit code 3). By: a user who may make sockets there.
const SOCKETS_MAX: usize = 256;

/// Reads programs of cgroups if packets were dropped that such programs can drop.
pub(crate) struct CgroupReader;

impl ProbeReader for CgroupReader {
    fn follow(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        let host = round.session.host();
        let is_filtered = |sample: &Sample| sample.around.drops.iter().flatten().any(DropSeen::may_be_of_cgroup);
        if !samples.values().any(is_filtered) {
            return;
        }
        let programs = read_programs(round, stats);
        if programs.is_empty() {
            return;
        }
        let paths = Cgroups::read(host);
        for sample in samples.values_mut().filter(|sample| is_filtered(sample)) {
            sample.around.cgroups = programs.clone();
            if let Ok(paths) = &paths {
                sample.around.cgroups_of_sockets = read_sockets(round, sample, paths, stats);
            }
        }
    }
}

/// The cgroups that have programs. Without the privilege they are unknown, and so they are in recordings of earlier
/// versions.
fn read_programs(round: &Round<'_>, stats: &mut Accounting) -> Vec<CgroupSeen> {
    let read = cgroup_programs::read(round.session.host());
    let is_old = read.as_ref().is_err_and(HostError::is_not_recorded);
    let (found, over) = if is_old { (Vec::new(), 0) } else { note_error(read, stats).unwrap_or_default() };
    if over > 0 {
        stats.incomplete(over, format!("programs of cgroups after the first {CGROUPS_MAX} are not checked"));
    }
    let seen = |one: cgroup_programs::CgroupPrograms| CgroupSeen {
        path: String::from_utf8_lossy(&one.path).into_owned(),
        ingress: one.ingress,
        egress: one.egress,
    };
    found.into_iter().map(seen).collect()
}

/// The local ports of dropped packets.
fn ports(sample: &Sample, stats: &mut Accounting) -> Vec<u16> {
    let drops = sample.around.drops.iter().flatten().filter(|one| one.may_be_of_cgroup());
    let mut ports: Vec<u16> = drops.filter_map(|one| one.ports).flat_map(|(from, to)| [from, to]).collect();
    ports.sort_unstable();
    ports.dedup();
    keep_first(&mut ports, SOCKETS_MAX, "cgroups of the sockets at ports of dropped packets", stats);
    ports
}

/// The cgroups of the sockets at these ports.
fn read_sockets(round: &Round<'_>, sample: &Sample, paths: &Cgroups, stats: &mut Accounting) -> Vec<SocketCgroup> {
    let ports = ports(sample, stats);
    if ports.is_empty() {
        return Vec::new();
    }
    let list = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    let filter = format!("proto in (tcp, udp) and local_port in ({list})");
    let filter = engine::filter::conjuncts(Schema::from_table::<Sockets>(), &filter).unwrap_or_default();
    let fields = ["proto", "local_port", "cgroup_id"].into_iter().filter_map(field_index::<Sockets>);
    let demand = Demand::new(&fields.collect::<Vec<_>>(), filter);
    let (mut found, mut over): (Vec<SocketCgroup>, u64) = (Vec::new(), 0);
    let read = pillars::with_sockets(round.session, None, &|netns_id| Some(netns_id) == sample.netns_id, |sockets| {
        sockets.run(&demand, &mut |socket| {
            let port = Some(socket.local.port).filter(|port| ports.contains(port));
            let path = socket.cgroup_id.and_then(|id| paths.path(id));
            if let (Some(port), Some(path), true) = (port, path, Some(socket.netns_id) == sample.netns_id) {
                let path = String::from_utf8_lossy(path).into_owned();
                let one = SocketCgroup { proto: socket.proto, port, path };
                match found.contains(&one) {
                    true => {}
                    false if found.len() < SOCKETS_MAX => found.push(one),
                    false => over += 1,
                }
            }
            Next::More
        })
    });
    if over > 0 {
        stats.incomplete(over, format!("cgroups of sockets after the first {SOCKETS_MAX} are not checked"));
    }
    match read {
        Ok(read) => stats.add_gaps(&read),
        // The programs are still named.
        Err(_) => stats.add_reason(0, "the cgroups of sockets are unknown"),
    }
    found
}
