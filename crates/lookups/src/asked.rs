//! The fields requested while a recording is made, and the fields that a replay requests but the recording lacks.
//!
//! A field that was not requested from the kernel is null in a replay, like a field that the kernel does not have, and
//! a filter on it matches nothing. So the recording names its fields, and a replay that needs another field reports it
//! and exits with code 3. Recordings of format 1 do not name their fields; for them nothing is reported.

use record::rows::need;
use record::{Accounting, Demand, LookupId, Scan, Source, Table, scan_through};
use sys::{Host, Mode};

/// Bound: field names in a sentence. Beyond: further names are counted. By: the user.
const NAMES_MAX: usize = 8;

/// The table under which a recording names its lookups.
const LOOKUPS: &str = "lookups";

/// A source wrapper: notes in a recording which fields it will contain, and reports fields that a replay lacks.
pub struct Asked<'a, T: Table> {
    inner: &'a dyn Source<T>,
    host: &'a Host,
    /// Returns the `need` bits that rows contain, for an interface and the requested bits.
    held: fn(&str, u64) -> u64,
}

impl<'a, T: Table> Asked<'a, T> {
    /// Wraps `inner`, which reads `host`.
    pub fn new(inner: &'a dyn Source<T>, host: &'a Host, held: fn(&str, u64) -> u64) -> Asked<'a, T> {
        Asked { inner, host, held }
    }

    /// The fields that rows contain for this demand, when read via `interface`.
    fn held_fields(&self, interface: &str, demand: &Demand<T>) -> Vec<&'static str> {
        let held = (self.held)(interface, demand.need);
        let fields = T::FIELDS.iter().enumerate();
        fields
            .filter(|(at, field)| demand.fields.binary_search(at).is_ok() || field.need & !held == 0)
            .map(|(_, field)| field.name)
            .collect()
    }
}

impl<T: Table> Source<T> for Asked<'_, T> {
    fn prepare(&self, demand: &Demand<T>) -> Box<dyn Scan<T> + '_> {
        let (inner, missing) = (self.inner.prepare(demand), missing(self.host, demand));
        let held = match self.host.mode() {
            Mode::Recording => self.held_fields(inner.offer().backend, demand),
            _ => Vec::new(),
        };
        scan_through(inner, move |inner, cache, each| {
            if self.host.mode() == Mode::Recording {
                self.host.note_requested(T::NAME, &mut held.iter().copied());
            }
            let mut stats = inner.run_with(cache, each)?;
            if !missing.is_empty() {
                stats.unanswered = true;
                stats.add_reason(0, not_asked(T::NAME, &missing));
            }
            Ok(stats)
        })
    }
}

/// Calls `then` with a source; in a recording or replay with one that notes or compares the demanded fields.
pub fn with_asked<T: Table, R>(host: &Host, source: &dyn Source<T>, then: impl FnOnce(&dyn Source<T>) -> R) -> R {
    match host.mode() {
        Mode::Live => then(source),
        _ => then(&Asked::new(source, host, |_, demanded| demanded)),
    }
}

/// The `need` bits that a recording of sockets contains.
pub fn of_sockets(interface: &str, demanded: u64) -> u64 {
    // The walk copies single members of `tcp_info`: only those requested by name. It always has the interface, and
    // whether listeners take IPv4.
    if interface.contains(record::Via::Bpf.name()) {
        return (demanded | need::IFACE_MARK | need::V6ONLY) & !need::TCP_INFO;
    }
    sockets::recorded_bits(interface, demanded)
}

/// The requested fields that the recorded run did not request.
fn missing<T: Table>(host: &Host, demand: &Demand<T>) -> Vec<&'static str> {
    let names = demand.fields.iter().filter_map(|&at| T::FIELDS.get(at)).map(|field| field.name);
    names.filter(|name| host.was_requested(T::NAME, name) == Some(false)).collect()
}

fn not_asked(table: &str, missing: &[&str]) -> String {
    let shown = missing.get(..NAMES_MAX).unwrap_or(missing);
    let more = missing.len() - shown.len();
    let (names, columns) = (shown.join("`, `"), shown.join(","));
    let more = if more > 0 { format!(" and {more} more fields") } else { String::new() };
    format!(
        "the recording does not hold `{names}`{more} of {table}: they were not requested from the kernel then \
         (`netwren {table} --columns +{columns} --record FILE` requests them, `netwren record FILE` records \
         everything)"
    )
}

/// Notes in a recording which lookups are read. In a replay, returns the wanted lookups that the recording contains,
/// and adds the fields of `T` that need other lookups to `stats`.
pub fn lookups<T: Table>(
    host: &Host,
    demand: &Demand<T>,
    wanted: Vec<LookupId>,
    stats: &mut Accounting,
) -> Vec<LookupId> {
    // Measurements are not recorded; the measuring code reports that.
    let is_measured = |id: &LookupId| *id == LookupId::PacketDelays;
    host.note_requested(LOOKUPS, &mut wanted.iter().filter(|id| !is_measured(id)).map(|id| name(*id)));
    let (held, lacking): (Vec<_>, Vec<_>) =
        wanted.into_iter().partition(|id| is_measured(id) || host.was_requested(LOOKUPS, name(*id)) != Some(false));
    let fields = demand.fields.iter().filter_map(|&at| T::FIELDS.get(at));
    let fields = fields.filter(|field| lacking.iter().any(|id| field.needs_lookup(*id))).map(|field| field.name);
    // If the recording of the table itself lacks the field, that is reported with the table.
    let missing: Vec<&str> = fields.filter(|name| host.was_requested(T::NAME, name) != Some(false)).collect();
    if !lacking.is_empty() {
        stats.unanswered = true;
    }
    if !missing.is_empty() {
        stats.add_reason(0, not_asked(T::NAME, &missing));
    } else if !lacking.is_empty() {
        let names: Vec<&str> = lacking.iter().map(|id| name(*id)).collect();
        let text = format!("the recording holds no {} (`netwren record FILE` records everything)", names.join(", "));
        stats.add_reason(0, text);
    }
    held
}

/// Tells a recording that a lookup is read for rows that may need it.
pub fn note(host: &Host, id: LookupId) {
    host.note_requested(LOOKUPS, &mut std::iter::once(name(id)));
}

/// True unless a recording is replayed that does not say that it holds this lookup.
pub fn holds(host: &Host, id: LookupId) -> bool {
    !host.is_replay() || host.was_requested(LOOKUPS, name(id)) == Some(true)
}

/// Notes in a recording that host names are requested. In a replay of a recording without them, adds that to `stats`.
pub fn host_names(host: &Host, stats: &mut Accounting) {
    let word = name(LookupId::Hosts);
    host.note_requested(LOOKUPS, &mut std::iter::once(word));
    if host.was_requested(LOOKUPS, word) == Some(false) {
        stats.unanswered = true;
        stats.add_reason(0, "the recording holds no names of hosts (`--resolve` with `--record FILE` records them)");
    }
}

/// The name of a lookup in recordings. It must never change: a replay of an older recording would miss the lookup.
fn name(id: LookupId) -> &'static str {
    match id {
        LookupId::Owners => "owners",
        LookupId::Users => "users",
        LookupId::Ifaces => "interfaces",
        LookupId::Cgroups => "cgroups",
        LookupId::Netns => "namespaces",
        LookupId::Hosts => "hosts",
        LookupId::Cmdlines => "command lines",
        LookupId::Containers => "containers",
        LookupId::Pods => "pods",
        LookupId::Units => "units",
        LookupId::ContainerPids => "pids in containers",
        LookupId::Contexts => "security contexts",
        LookupId::LocalPorts => "port ranges",
        LookupId::PacketDelays => "measured delays",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::rows::Sockets;
    use record::{Next, field_index, full_scan};
    use std::collections::HashSet;

    /// Reads no rows, via the given interface.
    struct By(&'static str);

    impl Source<Sockets> for By {
        fn prepare(&self, _: &Demand<Sockets>) -> Box<dyn Scan<Sockets> + '_> {
            full_scan::<Sockets, _>(self.0, "nothing", |_| Ok(Accounting::default()))
        }
    }

    fn demand(names: &[&str]) -> Demand<Sockets> {
        let fields: Vec<usize> = names.iter().map(|name| field_index::<Sockets>(name).unwrap()).collect();
        Demand::new(&fields, Vec::new())
    }

    /// The message of a replay that requests `then`, after a recording that requested `first`.
    fn said(interface: &'static str, first: &[&str], then: &[&str]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tape");
        let host = Host::live().recording(&file).unwrap();
        Asked::new(&By(interface), &host, of_sockets).run(&demand(first), &mut |_| Next::More).unwrap();
        host.finish().unwrap();
        let host = Host::open_replay(&file).unwrap();
        let stats = Asked::new(&By(interface), &host, of_sockets).run(&demand(then), &mut |_| Next::More).unwrap();
        assert_eq!(stats.is_partial(), !stats.why.is_empty());
        stats.why.first().map(|why| why.text.to_string())
    }

    #[test]
    fn issue_10_a_field_that_was_not_asked_is_named() {
        let text = said("netlink", &["state"], &["state", "rtt_us", "path"]).unwrap();
        assert!(text.contains("`rtt_us`, `path` of sockets") || text.contains("`path`, `rtt_us` of sockets"), "{text}");
        // Values that netlink always sends are present, and all of tcp_info if a part was requested.
        assert_eq!(said("netlink", &["state"], &["timer", "cookie", "process"]), None);
        assert_eq!(said("netlink", &["bytes_out"], &["rtt_us", "cwnd"]), None);
        // The walk copies single members.
        assert_eq!(said("bpf, netlink", &["bytes_out"], &["bytes_out"]), None);
        assert!(said("bpf, netlink", &["bytes_out"], &["cwnd"]).is_some());
        assert!(said("proc", &["state"], &["cookie"]).is_some());
        let all: Vec<&str> = record::rows::Sockets::FIELDS.iter().map(|field| field.name).collect();
        assert!(said("netlink", &["state"], &all).unwrap().contains(" more fields of sockets"));
        assert_eq!(said("netlink", &all, &all), None);
    }

    #[test]
    fn issue_10_a_lookup_that_was_not_read_is_named_by_its_fields() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tape");
        let host = Host::live().recording(&file).unwrap();
        let mut stats = Accounting::default();
        let wanted = vec![LookupId::Owners, LookupId::Cmdlines];
        assert_eq!(lookups(&host, &demand(&["process"]), vec![LookupId::Owners], &mut stats), [LookupId::Owners]);
        host.finish().unwrap();
        let host = Host::open_replay(&file).unwrap();
        assert!(!stats.is_partial());
        assert_eq!(lookups(&host, &demand(&["process", "cmdline"]), wanted, &mut stats), [LookupId::Owners]);
        assert!(stats.unanswered && stats.why[0].text.contains("does not hold `cmdline` of sockets"), "{stats:?}");
    }

    /// Recordings contain these words: they must not change, and a new lookup needs a new word.
    #[test]
    fn lookups_keep_their_names_in_recordings() {
        let expected = "owners, users, interfaces, cgroups, namespaces, hosts, command lines, containers, pods, units, \
                        pids in containers, security contexts, port ranges, measured delays";
        let names: HashSet<&str> = LookupId::ALL.map(name).into();
        assert_eq!(names, expected.split(", ").collect());
        assert_eq!(names.len(), LookupId::ALL.len());
    }
}
