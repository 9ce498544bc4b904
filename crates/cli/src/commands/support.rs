//! `netwren support`: what this kernel and these rights allow, and what is used instead. Changes nothing on the host:
//! loads no kernel module, and closes no socket.

use super::made_rows::MadeRows;
use crate::command::{Command, ParsedWords, TableEntry};
use crate::exit::Exit;
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use crate::outcome::Outcome;
use crate::output;
use record::rows::{Feature, Features};
use record::text;
use sys::caps::{self, Cap};
use sys::{Host, Kernel, Modules};

/// Rights that change what is seen: what is missing without them.
const RIGHTS: &[(Cap, &str, &str)] = &[
    (Cap::NetAdmin, "marks of sockets are shown and filtered by", "marks of sockets are hidden by the kernel"),
    (Cap::SysPtrace, "owners of all users' sockets are found", "owners of other users' sockets stay empty"),
    (Cap::SysAdmin, "other network namespaces can be entered", "--netns works only for namespaces of one's own"),
];

/// Tables that every kernel has which is of use here; the others may be left out of a kernel without harm.
const ALWAYS_THERE: [record::Proto; 3] = [record::Proto::Tcp, record::Proto::Udp, record::Proto::Unix];

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "support",
    about: "What this kernel and these privileges allow, and what is used instead",
    scope: Scope::SUPPORT.and(Scope::COLUMNS).and(Scope::SORT).and(Scope::BY),
    tables: &[TableEntry::of::<Features>()],
    run: Some(run),
    ..Command::TABLE
};

/// Exit 0 if TCP, UDP and unix sockets can be read somehow, else 4.
fn run(words: &ParsedWords<'_>) -> Result<Outcome, String> {
    let asked = MadeRows::<Features>::plan(Request::of(words)?)?;
    let host = Host::live();
    let modules = Modules::new(&host);
    let probes = sockets::probe(&host, &modules);
    let blind: Vec<&str> = ALWAYS_THERE
        .iter()
        .filter(|proto| !probes.iter().any(|probe| probe.works && probe.proto == **proto))
        .map(|proto| proto.name())
        .collect();
    let features: Vec<Feature> = probes
        .into_iter()
        .map(|probe| Feature {
            feature: format!("{} sockets via {}", probe.proto.name(), probe.via.name()),
            works: probe.works,
            words: probe.words,
        })
        .chain([not_read()])
        .chain(owners())
        .chain([closing(&host, &modules), all_namespaces(&host), following(&host)])
        .chain(tracked(&host, &modules))
        .chain([logged(&modules), captured(), dropped(&host)])
        .chain(profiled(&host))
        .chain(bpf_lines(&host))
        .chain(rights())
        .collect();
    let outcome = match asked.wants_text() {
        true => output::print(&text_of(&features)).into(),
        false => asked.write(&features),
    };
    if blind.is_empty() {
        return Ok(outcome);
    }
    Ok(Outcome::because(Exit::Failed, format!("no way to read sockets of: {}", blind.join(", "))))
}

/// Families that no backend of ours leads to.
fn not_read() -> Feature {
    let words = "not read by this version".to_owned();
    Feature { feature: "ping sockets".to_owned(), works: false, words }
}

fn owners() -> Option<Feature> {
    let words = "descriptors in /proc/PID/fd, a system call each".to_owned();
    Some(Feature {
        feature: "owners via proc".to_owned(),
        works: sys::fs::stat(std::path::Path::new("/proc/self/fd")).is_ok(),
        words,
    })
}

fn closing(host: &Host, modules: &Modules<'_>) -> Feature {
    let (works, words) = sockets::probe_closing(host, modules);
    Feature { feature: "closing sockets".to_owned(), works, words }
}

/// Whether the sockets of every namespace can be read, and whether those namespaces are known that nothing leads to.
fn all_namespaces(host: &Host) -> Feature {
    let enters = caps::effective().is_ok_and(|held| held.has(Cap::SysAdmin));
    let listed = sockets::BackendCache::new().every_namespace(host).is_some();
    let (entered, known) = (
        if enters { "each is entered" } else { "none can be entered (needs CAP_SYS_ADMIN)" },
        if listed { "the kernel lists them by bpf" } else { "found by bind mounts and processes; others stay unknown" },
    );
    Feature { feature: "sockets of all namespaces".to_owned(), works: enters, words: format!("{entered}; {known}") }
}

fn following(host: &Host) -> Feature {
    let (works, words) = sockets::probe_following(host);
    Feature { feature: "following connections".to_owned(), works, words }
}

/// The table of connection tracking by each backend, and its events.
fn tracked(host: &Host, modules: &Modules<'_>) -> Vec<Feature> {
    let table = conntrack::probe(host, modules).into_iter().map(|probe| {
        let feature = format!("connection tracking via {}", probe.via.name());
        Feature { feature, works: probe.works, words: probe.words }
    });
    let (works, words) = conntrack::events::probe_events(host, modules);
    let events = Feature { feature: "events of connection tracking".to_owned(), works, words };
    table.chain([events]).collect()
}

/// Records of packets that rules log.
fn logged(modules: &Modules<'_>) -> Feature {
    let (works, words) = nflog::probe(modules);
    Feature { feature: "log records".to_owned(), works, words }
}

/// Packets of interfaces.
fn captured() -> Feature {
    let (works, words) = capture::probe();
    Feature { feature: "capturing packets".to_owned(), works, words }
}

/// Packets that the kernel drops.
fn dropped(host: &Host) -> Feature {
    let (works, words) = drops::probe(host);
    Feature { feature: "counting drops".to_owned(), works, words }
}

/// Where the kernel spends time on packets.
fn profiled(host: &Host) -> [Feature; 2] {
    let feature = |name: &str, (works, words)| Feature { feature: name.to_owned(), works, words };
    [
        feature("sampling CPUs", profile::probe_sampling(host)),
        feature("stages between netfilter hooks", profile::probe_stages()),
    ]
}

/// What BPF programs of ours would find: one line an ability.
#[cfg(feature = "bpf")]
fn bpf_lines(host: &Host) -> Vec<Feature> {
    let line = |probe: bpf::FeatureProbe| {
        let words = match &probe.error {
            None => probe.ability.serves().to_owned(),
            Some(bpf::BpfError::Denied { needs, errno, .. }) => format!("{errno}: needs {needs}"),
            Some(error) => error.to_string(),
        };
        Feature { feature: format!("bpf: {}", probe.ability.name()), works: probe.error.is_none(), words }
    };
    bpf::probe(host).into_iter().map(line).collect()
}

#[cfg(not(feature = "bpf"))]
fn bpf_lines(_host: &Host) -> Vec<Feature> {
    let words = "this netwren was built without the feature bpf".to_owned();
    vec![Feature { feature: "bpf: programs".to_owned(), works: false, words }]
}

fn rights() -> impl Iterator<Item = Feature> {
    let held = caps::effective().unwrap_or_default();
    RIGHTS.iter().map(move |&(cap, with, without)| Feature {
        feature: cap.name().to_owned(),
        works: held.has(cap),
        words: if held.has(cap) { with.to_owned() } else { without.to_owned() },
    })
}

/// The text: the kernel and the user, then a line for each feature.
fn text_of(features: &[Feature]) -> String {
    let mut out = b"kernel\t".to_vec();
    text::put_text(&mut out, Kernel::running().release.as_bytes());
    out.extend_from_slice(format!("\tuid {}\n", caps::euid()).as_bytes());
    for Feature { feature, works, words } in features {
        text::put_text(&mut out, feature.as_bytes());
        out.extend_from_slice(if *works { b"\tyes\t" } else { b"\tno\t" });
        text::put_text(&mut out, words.as_bytes());
        out.push(b'\n');
    }
    String::from_utf8_lossy(&out).into_owned()
}
