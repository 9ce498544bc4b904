//! Every feature of netwren, tried by each of its backends. Changes nothing on the host: loads no kernel module, and
//! closes no socket.

use super::state;
use record::rows::{Feature, FeatureState};
use sys::caps::{self, Cap};
use sys::{Host, Modules};

/// Rights that change what is seen: what is missing without them.
const RIGHTS: &[(Cap, &str, &str)] = &[
    (Cap::NetAdmin, "marks of sockets are shown and filtered by", "marks of sockets are hidden by the kernel"),
    (Cap::SysPtrace, "owners of all users' sockets are found", "owners of other users' sockets stay empty"),
    (Cap::SysAdmin, "other network namespaces can be entered", "--netns works only for namespaces of one's own"),
];

/// Every feature by every backend, each tried with the smallest question.
pub(super) fn all(host: &Host, modules: &Modules<'_>, sockets: Vec<sockets::Probe>) -> Vec<Feature> {
    let of_sockets = |probe: sockets::Probe| {
        state::row(&format!("{} sockets", probe.proto.name()), probe.via.name(), probe.works, probe.words)
    };
    sockets
        .into_iter()
        .map(of_sockets)
        .chain([not_read()])
        .chain([owners()])
        .chain([closing(host, modules), all_namespaces(host), following(host)])
        .chain(tracked(host, modules))
        .chain([logged(modules), captured(), dropped(host)])
        .chain(profiled(host))
        .chain(bpf_lines(host))
        .chain(rights())
        .collect()
}

/// Families that no backend of ours leads to.
fn not_read() -> Feature {
    state::known("ping sockets", FeatureState::NotBuilt, "not read by this version", String::new())
}

/// Owners of sockets.
fn owners() -> Feature {
    let works = sys::fs::stat(std::path::Path::new("/proc/self/fd")).is_ok();
    state::row("owners", "proc", works, "descriptors in /proc/PID/fd, a system call each".to_owned())
}

/// `sockets kill`.
fn closing(host: &Host, modules: &Modules<'_>) -> Feature {
    let (works, words) = sockets::probe_closing(host, modules);
    state::row("closing sockets", "", works, words)
}

/// Whether the sockets of every namespace can be read, and whether those namespaces are known that nothing leads to.
fn all_namespaces(host: &Host) -> Feature {
    let enters = caps::effective().is_ok_and(|held| held.has(Cap::SysAdmin));
    let listed = sockets::BackendCache::new().every_namespace(host).is_some();
    let (entered, known) = (
        if enters { "each is entered" } else { "none can be entered (needs CAP_SYS_ADMIN)" },
        if listed { "the kernel lists them by bpf" } else { "found by bind mounts and processes; others stay unknown" },
    );
    state::row("sockets of all namespaces", "", enters, format!("{entered}; {known}"))
}

/// `--follow`.
fn following(host: &Host) -> Feature {
    let (works, words) = sockets::probe_following(host);
    state::row("following connections", "", works, words)
}

/// The table of connection tracking by each backend, and its events.
fn tracked(host: &Host, modules: &Modules<'_>) -> Vec<Feature> {
    let table = conntrack::probe(host, modules)
        .into_iter()
        .map(|probe| state::row("connection tracking", probe.via.name(), probe.works, probe.words));
    let (works, words) = conntrack::events::probe_events(host, modules);
    table.chain([state::row("events of connection tracking", "", works, words)]).collect()
}

/// Records of packets that rules log.
fn logged(modules: &Modules<'_>) -> Feature {
    let (works, words) = nflog::probe(modules);
    state::row("log records", "", works, words)
}

/// Packets of interfaces.
fn captured() -> Feature {
    let (works, words) = capture::probe();
    state::row("capturing packets", "", works, words)
}

/// Packets that the kernel drops.
fn dropped(host: &Host) -> Feature {
    let (works, words) = drops::probe(host);
    state::row("counting drops", "", works, words)
}

/// Features that show where the kernel spends time on packets.
fn profiled(host: &Host) -> [Feature; 2] {
    let row = |name: &str, (works, words)| state::row(name, "", works, words);
    [
        row("sampling CPUs", profile::probe_sampling(host)),
        row("stages between netfilter hooks", profile::probe_stages()),
    ]
}

/// Abilities of the kernel for our BPF programs, a row each.
#[cfg(feature = "bpf")]
fn bpf_lines(host: &Host) -> Vec<Feature> {
    let line = |probe: bpf::FeatureProbe| {
        let words = match &probe.error {
            None => probe.ability.serves().to_owned(),
            Some(bpf::BpfError::Denied { needs, errno, .. }) => format!("{errno}: needs {needs}"),
            Some(error) => error.to_string(),
        };
        let feature = state::row(&format!("bpf: {}", probe.ability.name()), "", probe.error.is_none(), words);
        match feature.state {
            FeatureState::OptionMissing => Feature { remedy: format!("Linux {}", probe.ability.since()), ..feature },
            _ => feature,
        }
    };
    bpf::probe(host).into_iter().map(line).collect()
}

#[cfg(not(feature = "bpf"))]
fn bpf_lines(_host: &Host) -> Vec<Feature> {
    vec![state::row("bpf: programs", "", false, "this netwren was built without the feature bpf".to_owned())]
}

fn rights() -> impl Iterator<Item = Feature> {
    let held = caps::effective().unwrap_or_default();
    RIGHTS.iter().map(move |&(cap, with, without)| match held.has(cap) {
        true => state::known(cap.name(), FeatureState::Works, with, String::new()),
        false => state::known(cap.name(), FeatureState::RightMissing, without, state::by_rights(&[cap])),
    })
}
