//! Observes the host in rounds: the steps of all probes, in their order.

use doctor::checks::Probe;
use doctor::seen::Sample;
use drops::{DropCounter, DropsError, DropsVia};
use lookups::session::Session;
use record::rows::Drops;
use record::{Accounting, Lookups, Source, SourceError};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;
use sys::Host;

use crate::arp::ArpReader;
use crate::cgroups::CgroupReader;
use crate::controls::ControlReader;
use crate::counter_window::CounterWindow;
use crate::descriptors::DescriptorReader;
use crate::dns::DnsReader;
use crate::drops::{DropReader, DropWatch};
use crate::flows::FlowReader;
use crate::groups::GroupReader;
use crate::ipsec::IpsecReader;
use crate::links::LinkReader;
use crate::log_groups::LogGroupReader;
use crate::mac_moves::MoveReader;
use crate::macvlans::MacvlanReader;
use crate::neighbours::NeighbourReader;
use crate::probe::{InNetns, ProbeReader, Round};
use crate::processes::ProcessReader;
use crate::queues::QueueReader;
use crate::resets::{ResetKeeper, ResetReader};
use crate::router_adverts::RouterAdvertReader;
use crate::routes::RouteReader;
use crate::settings::NetSettings;
use crate::shared_ports::SharedPortReader;
use crate::snat_ports::SnatPortReader;
use crate::sockets::{SocketReader, SocketReading};
use crate::unix::UnixReader;

/// What probes keep from one round to the next.
#[derive(Default)]
struct Lasting {
    drops: DropWatch,
    resets: ResetKeeper,
    /// True if a replay is analyzed as a whole instead of round by round.
    sums_rounds: bool,
    /// Sockets at the end of the previous round.
    sockets: RefCell<Option<SocketReading>>,
}

impl Lasting {
    /// Makes the reader of a probe for one round.
    fn reader(&self, probe: Probe) -> Box<dyn ProbeReader + '_> {
        match probe {
            Probe::Arp => Box::<ArpReader>::default(),
            Probe::Cgroups => Box::new(CgroupReader),
            Probe::Controls => Box::new(ControlReader),
            Probe::Descriptors => Box::new(DescriptorReader),
            Probe::Dns => Box::<DnsReader>::default(),
            Probe::Drops => Box::new(DropReader { watch: &self.drops, sums_rounds: self.sums_rounds }),
            Probe::Flows => Box::new(FlowReader),
            Probe::Groups => Box::new(GroupReader),
            Probe::Ipsec => Box::new(IpsecReader),
            Probe::Links => Box::new(LinkReader::default()),
            Probe::LogGroups => Box::<LogGroupReader>::default(),
            Probe::MacMoves => Box::<MoveReader>::default(),
            Probe::Neighbours => Box::<NeighbourReader>::default(),
            Probe::Processes => Box::new(ProcessReader),
            Probe::Queues => Box::<QueueReader>::default(),
            Probe::Resets => Box::new(ResetReader::new(&self.resets)),
            Probe::Macvlans => Box::new(MacvlanReader),
            Probe::RouterAdverts => Box::new(RouterAdvertReader),
            Probe::Routes => Box::new(RouteReader),
            Probe::SharedPorts => Box::<SharedPortReader>::default(),
            Probe::SnatPorts => Box::new(SnatPortReader),
            Probe::Sockets => Box::new(SocketReader::new(&self.sockets)),
            Probe::Unix => Box::<UnixReader>::default(),
        }
    }
}

/// Observes the host in rounds.
pub struct Watch {
    counters: CounterWindow,
    /// The probes that the chosen checks need.
    probes: BTreeSet<Probe>,
    lasting: Lasting,
    /// A time just before the owners of the round were read, in ns of CLOCK_BOOTTIME.
    owners_ns: Cell<u64>,
}

impl Watch {
    /// Makes a watch that reads counters, settings and these probes.
    pub fn new(counters: CounterWindow, probes: BTreeSet<Probe>) -> Watch {
        Watch {
            lasting: Lasting { sums_rounds: counters.is_once(), ..Lasting::default() },
            counters,
            probes,
            owners_ns: Cell::new(sys::clock::boottime_ns()),
        }
    }

    /// Starts counting drops with a BPF program, see [`DropWatch::open`].
    pub fn open_drops(&self, session: &Session) -> Result<(), DropsError> {
        self.lasting.drops.open(session, Some(DropsVia::Bpf), true)
    }

    /// Makes a source of the drops that the last samples have.
    pub fn same_drops<'s>(&'s self, session: &'s Session) -> impl Source<Drops> + use<'s> {
        let Lasting { drops, sums_rounds, .. } = &self.lasting;
        drops.counter.borrow_mut().iter_mut().for_each(DropCounter::repeat);
        drops.source(session, false, *sums_rounds)
    }

    /// Sets the time between the two readings of the first round; `None` for the time in the request.
    pub fn shorten(&self, window: Option<Duration>) {
        self.counters.set_window(window);
    }

    /// Takes two readings of each namespace and of the host. Takes as long as the window.
    pub fn samples(
        &self,
        session: &Session,
        lookups: &Lookups<'_>,
        stats: &mut Accounting,
    ) -> Result<Vec<Sample>, SourceError> {
        self.samples_of(&|probe| self.lasting.reader(probe), session, lookups, stats)
    }

    /// Takes two readings with the readers that `make` returns.
    fn samples_of<'m>(
        &self,
        make: &dyn Fn(Probe) -> Box<dyn ProbeReader + 'm>,
        session: &Session,
        lookups: &Lookups<'_>,
        stats: &mut Accounting,
    ) -> Result<Vec<Sample>, SourceError> {
        let settings = NetSettings::read(session, stats);
        let owners_ns = if session.host().is_replay() { u64::MAX } else { self.owners_ns.get() };
        let round = Round { session, lookups, settings: &settings, owners_ns };
        let mut readers: Vec<_> = self.probes.iter().map(|probe| make(*probe)).collect();
        session.in_each_namespace(&mut |netns_id| {
            let netns = InNetns::new(session, netns_id);
            let readers = readers.iter_mut().filter(|_| settings.has_read(netns_id));
            readers.for_each(|reader| reader.first(&netns, stats));
        });
        readers.iter_mut().for_each(|reader| reader.begin(&round, stats));
        let mut samples = self.counters.samples(session, stats)?;
        samples.retain(|netns_id, _| netns_id.is_none_or(|netns_id| settings.has_read(netns_id)));
        if samples.is_empty() {
            stats.incomplete = true;
            return Ok(Vec::new());
        }
        readers.iter_mut().for_each(|reader| reader.end(&round, &mut samples, stats));
        self.owners_ns.set(sys::clock::boottime_ns());
        settings.add_to(&mut samples);
        session.in_each_namespace(&mut |netns_id| {
            let Some(sample) = samples.get_mut(&Some(netns_id)) else { return };
            let netns = InNetns::new(session, netns_id);
            readers.iter_mut().for_each(|reader| reader.second(&netns, sample, stats));
        });
        readers.iter_mut().for_each(|reader| reader.follow(&round, &mut samples, stats));
        Ok(samples.into_values().collect())
    }
}

/// Returns the start of a watch in ns since 1970, which is also recorded.
pub fn begun_ns(host: &Host) -> u64 {
    let (now_ns, mut bytes) = (host.now().since_1970_ns(), Vec::new());
    let read = host.bytes("doctor/begun", "", &mut bytes, |into| {
        into.extend_from_slice(&now_ns.to_le_bytes());
        Ok(())
    });
    // If it is missing, the time of the round is close enough.
    read.ok().and_then(|()| bytes.as_slice().try_into().ok()).map_or(now_ns, u64::from_le_bytes)
}

/// For a recording of everything: reads the data of all probes that no table of the recording has.
pub fn save(session: &Session, stats: &mut Accounting) -> u64 {
    begun_ns(session.host());
    // A recording reports at its replay that it has no settings.
    NetSettings::read(session, stats);
    let lasting = Lasting::default();
    let mut readers: Vec<_> = Probe::ALL.iter().map(|probe| lasting.reader(*probe)).collect();
    session.in_each_namespace(&mut |netns_id| {
        let netns = InNetns::new(session, netns_id);
        readers.iter_mut().for_each(|reader| reader.save(&netns, stats));
    });
    0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::counter_window::Samples;
    use doctor::checks::{CHECKS, probes_of};
    use engine::Windows;
    use lookups::session::SessionTarget;
    use std::collections::BTreeMap;

    /// The steps that were taken, by probe.
    type Steps = RefCell<BTreeMap<Probe, Vec<&'static str>>>;

    struct CountingReader<'s>(Probe, &'s Steps);

    impl CountingReader<'_> {
        fn note(&self, step: &'static str) {
            self.1.borrow_mut().entry(self.0).or_default().push(step);
        }
    }

    impl ProbeReader for CountingReader<'_> {
        fn first(&mut self, _: &InNetns<'_>, _: &mut Accounting) {
            self.note("first");
        }

        fn begin(&mut self, _: &Round<'_>, _: &mut Accounting) {
            self.note("begin");
        }

        fn end(&mut self, _: &Round<'_>, _: &mut Samples, _: &mut Accounting) {
            self.note("end");
        }

        fn second(&mut self, _: &InNetns<'_>, _: &mut Sample, _: &mut Accounting) {
            self.note("second");
        }

        fn follow(&mut self, _: &Round<'_>, _: &mut Samples, _: &mut Accounting) {
            self.note("follow");
        }
    }

    /// The steps of the probes that these checks need.
    fn steps(checks: &[&str]) -> BTreeMap<Probe, Vec<&'static str>> {
        let chosen = CHECKS.iter().copied().filter(|check| checks.contains(&check.id));
        let watch = Watch::new(
            CounterWindow::new(None, Windows { once: Duration::ZERO, period: None, ends_ns: None }),
            probes_of(chosen),
        );
        let session = Session::open(SessionTarget::default()).ok().unwrap();
        let steps = Steps::default();
        let make = |probe| Box::new(CountingReader(probe, &steps)) as Box<dyn ProbeReader>;
        let mut stats = Accounting::default();
        let samples = watch.samples_of(&make, &session, &Lookups::empty(), &mut stats).ok().unwrap();
        assert!(!samples.is_empty());
        steps.take()
    }

    #[test]
    fn only_the_probes_of_chosen_checks_are_read_once() {
        let once = vec!["first", "begin", "end", "second", "follow"];
        let of = |probes: &[Probe]| probes.iter().map(|probe| (*probe, once.clone())).collect::<BTreeMap<_, _>>();
        assert_eq!(steps(&["ct-full", "softnet-drop"]), of(&[]));
        assert_eq!(steps(&["fd-limit"]), of(&[Probe::Descriptors, Probe::Sockets]));
        assert_eq!(steps(&["close-wait", "nfqueue"]), of(&[Probe::Drops, Probe::Queues, Probe::Sockets]));
        let all: Vec<&str> = CHECKS.iter().map(|check| check.id).collect();
        assert_eq!(steps(&all), of(&Probe::ALL));
    }
}
