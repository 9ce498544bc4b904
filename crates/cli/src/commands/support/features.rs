//! Tries every feature of netwren with each of its backends. Changes nothing on the host: loads no kernel module, and
//! closes no socket.

use super::state;
use record::rows::{Feature, FeatureState};
use sys::caps::{self, Cap};
use sys::{Host, Missing, Modules, Trial};

/// Privileges that affect results, and what is missing without them.
const RIGHTS: &[(Cap, &str, &str)] = &[
    (Cap::NetAdmin, "socket marks are shown and can be filtered", "the kernel hides socket marks"),
    (Cap::SysPtrace, "owners of all users' sockets are found", "owners of other users' sockets are not shown"),
    (Cap::SysAdmin, "other network namespaces can be entered", "--netns works only for the user's own namespaces"),
];

/// All features with every backend, each tried with the smallest request.
pub(super) fn all(host: &Host, modules: &Modules<'_>, sockets: Vec<sockets::BackendTrial>) -> Vec<Feature> {
    let of_sockets = |backend: sockets::BackendTrial| {
        state::row(&format!("{} sockets", backend.proto.name()), backend.via.name(), backend.tried)
    };
    sockets
        .into_iter()
        .map(of_sockets)
        .chain([not_read()])
        .chain([owners()])
        .chain([closing(host, modules), all_namespaces(host), following(host)])
        .chain(tracked(host, modules))
        .chain([logged(modules), captured(), dropped(host), dropped_by_monitor(host)])
        .chain(counted_below(host))
        .chain(profiled(host))
        .chain(bpf_lines(host))
        .chain(rights())
        .collect()
}

/// Families that no backend supports.
fn not_read() -> Feature {
    state::known("ping sockets", FeatureState::NotBuilt, "not read by this version", String::new())
}

/// Owners of sockets.
fn owners() -> Feature {
    let tried = match sys::fs::stat(std::path::Path::new("/proc/self/fd")) {
        Ok(_) => Trial::new_working("descriptors in /proc/PID/fd, one system call each"),
        Err(error) => Trial::new_refused(Some(error.errno), error.to_string()),
    };
    state::row("owners", "proc", tried)
}

/// The feature `sockets kill`.
fn closing(host: &Host, modules: &Modules<'_>) -> Feature {
    state::row("closing sockets", "", sockets::try_closing(host, modules))
}

/// Whether the sockets of every namespace can be read, and whether namespaces that no process or name refers to are
/// known.
fn all_namespaces(host: &Host) -> Feature {
    let enters = caps::effective().is_ok_and(|held| held.contains(Cap::SysAdmin));
    let listed = sockets::BackendCache::new().every_namespace(host).is_some();
    let (entered, known) = (
        if enters { "each is entered" } else { "none can be entered (needs CAP_SYS_ADMIN)" },
        if listed {
            "the kernel lists them via BPF"
        } else {
            "found through bind mounts and processes; others remain unknown"
        },
    );
    let words = format!("{entered}; {known}");
    let tried = if enters { Trial::new_working(words) } else { Trial::new_missing(Missing::Right, words) };
    state::row("sockets of all namespaces", "", tried)
}

/// The feature `--follow`.
fn following(host: &Host) -> Feature {
    state::row("following connections", "", sockets::try_following(host))
}

/// The conntrack table with each backend, and its events.
fn tracked(host: &Host, modules: &Modules<'_>) -> Vec<Feature> {
    let table = conntrack::try_backends(host, modules)
        .into_iter()
        .map(|backend| state::row("connection tracking", backend.via.name(), backend.tried));
    let events = conntrack::events::try_events(host, modules);
    table.chain([state::row("events of connection tracking", "", events)]).collect()
}

/// Records of packets that rules log.
fn logged(modules: &Modules<'_>) -> Feature {
    state::row("log records", "", nflog::try_groups(modules))
}

/// Capturing packets of interfaces.
fn captured() -> Feature {
    state::row("capturing packets", "", capture::try_capturing())
}

/// Counting packets that the kernel drops.
fn dropped(host: &Host) -> Feature {
    state::row("counting drops", "", drops::try_counting(host))
}

/// Counting dropped packets with the kernel's drop monitor, without BPF and tracefs.
fn dropped_by_monitor(host: &Host) -> Feature {
    state::row("counting drops", "net-dm", drops::try_monitor(host))
}

/// Counters of drivers, and of devlink traps.
fn counted_below(host: &Host) -> [Feature; 2] {
    [
        state::row("statistics of drivers", "", counters::try_drivers(host)),
        state::row("devlink traps", "", counters::try_traps(host)),
    ]
}

/// Features that show where the kernel spends time on packets.
fn profiled(host: &Host) -> [Feature; 2] {
    [
        state::row("sampling CPUs", "", profile::try_sampling(host)),
        state::row("stages between netfilter hooks", "", profile::try_stages()),
    ]
}

/// Kernel features that netwren's BPF programs need, a row each.
#[cfg(feature = "bpf")]
fn bpf_lines(host: &Host) -> Vec<Feature> {
    let line = |one: bpf::AbilityTrial| {
        let tried = one.error.map_or_else(|| Trial::new_working(one.ability.purpose()), |error| error.to_tried());
        let feature = state::row(&format!("bpf: {}", one.ability.name()), "", tried);
        match feature.state {
            FeatureState::OptionMissing => {
                Feature { remedy: format!("Linux {}", one.ability.first_version()), ..feature }
            }
            _ => feature,
        }
    };
    bpf::try_abilities(host).into_iter().map(line).collect()
}

#[cfg(not(feature = "bpf"))]
fn bpf_lines(_host: &Host) -> Vec<Feature> {
    vec![state::row(
        "bpf: programs",
        "",
        Trial::new_missing(Missing::Build, "this netwren was built without the feature bpf"),
    )]
}

fn rights() -> impl Iterator<Item = Feature> {
    let held = caps::effective().unwrap_or_default();
    RIGHTS.iter().map(move |&(cap, with, without)| match held.contains(cap) {
        true => state::known(cap.name(), FeatureState::Works, with, String::new()),
        false => state::known(cap.name(), FeatureState::RightMissing, without, state::by_rights(&[cap])),
    })
}
