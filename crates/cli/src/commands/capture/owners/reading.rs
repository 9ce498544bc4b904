//! One reading of the sockets, their owners and the addresses of namespaces, as messages.

use super::message::{MessageWriter, SocketWords};
use super::outbox::Outbox;
use ::owners::SocketIndex;
use lookups::enrich::Enrichment;
use lookups::pillars;
use lookups::session::Session;
use record::rows::{Socket, Sockets, capture_need};
use record::{Accounting, Demand, LookupId, Lookups, Next, Owner, Table, Value, field_index};
use std::cell::RefCell;
use sys::clock;

/// Messages are sent when this many bytes are waiting.
const PORTION: usize = 64 << 10;
/// Words about the owner, in the order of [`SocketWords::words`].
const WORDS: [&str; 5] = ["user", "container", "pod", "unit", "cmdline"];

/// Reads sockets repeatedly.
pub(super) struct SocketReader<'s> {
    session: &'s Session,
    demand: Demand<Sockets>,
    lookups: Vec<LookupId>,
    /// Fields of [`WORDS`]; `None` for words that are not needed.
    words: [Option<usize>; 5],
}

impl<'s> SocketReader<'s> {
    /// `need`: bits of `capture_need`.
    pub(super) fn new(session: &'s Session, need: u64) -> SocketReader<'s> {
        let is_wanted = |at: usize| match at {
            0 => true,
            1..=3 => need & capture_need::PLACES == capture_need::PLACES,
            _ => need & capture_need::CMDLINES == capture_need::CMDLINES,
        };
        let mut words = [None; 5];
        for (at, (name, place)) in WORDS.iter().zip(&mut words).enumerate() {
            *place = if is_wanted(at) { field_index::<Sockets>(name) } else { None };
        }
        let mut demand = SocketIndex::demand();
        let named = ["uid", "state", "owners"].into_iter().filter_map(field_index::<Sockets>);
        let shown: Vec<usize> = demand.fields.iter().copied().chain(named).chain(words.into_iter().flatten()).collect();
        demand = Demand::new(&shown, demand.conjuncts);
        let fields = || demand.fields.iter().filter_map(|at| Sockets::FIELDS.get(*at));
        let lookups = LookupId::ALL.into_iter().filter(|id| fields().any(|field| field.needs_lookup(*id))).collect();
        SocketReader { session, demand, lookups, words }
    }

    /// Takes a reading. False once the reader of the messages has closed its end.
    pub(super) fn read(&mut self, messages: &Outbox) -> bool {
        let (mut out, mut stats) = (Vec::with_capacity(2 * PORTION), Accounting::default());
        let begun_ns = clock::monotonic_ns();
        MessageWriter(&mut out).begin(clock::wall_ns());
        pillars::find_namespaces(self.session, true, &mut stats);
        let enrichment = Enrichment::read(self.session, &self.lookups, &mut stats);
        let lookups = enrichment.lookups();
        let mut is_read = true;
        let read = pillars::with_sockets(self.session, None, &|_| true, |sockets| {
            sockets.run(&self.demand, &mut |socket| {
                self.put(socket, &lookups, &mut out);
                is_read = out.len() < PORTION || messages.send(&mut out);
                if is_read { Next::More } else { Next::Stop }
            })
        });
        match read {
            Ok(read) => stats.add(&read),
            Err(error) => {
                stats.incomplete(1, format!("owners are missing: {error}"));
            }
        }
        self.put_addresses(&mut out, &mut stats);
        let mut writer = MessageWriter(&mut out);
        stats.why.iter().filter(|_| stats.is_partial()).for_each(|why| writer.trouble(why.count, &why.text));
        messages.await_events(begun_ns);
        writer.end();
        is_read && messages.send(&mut out)
    }

    fn put(&self, socket: &Socket<'_>, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        if socket.inode == 0 {
            return;
        }
        let cell = |field: Option<usize>| {
            let field = field.and_then(|at| Sockets::FIELDS.get(at));
            field.map_or(Value::Null, |field| field.cell(socket, lookups))
        };
        let word = |field| if let Value::Bytes(word) = cell(field) { word } else { &[] };
        let owners: &[Owner] = match cell(field_index::<Sockets>("owners")) {
            Value::Owners(owners) => owners,
            _ => &[],
        };
        MessageWriter(out).socket(socket, &SocketWords { uid: socket.uid, owners, words: self.words.map(word) });
    }

    fn put_addresses(&self, out: &mut Vec<u8>, stats: &mut Accounting) {
        let (out, stats) = (RefCell::new(out), RefCell::new(stats));
        self.session.in_each_namespace(&mut |netns_id| {
            let mut add = |addr| MessageWriter(&mut out.borrow_mut()).address(netns_id, addr);
            if let Err(error) = host::addresses::read(self.session.host(), netns_id, None, &mut add) {
                let mut stats = stats.borrow_mut();
                stats.incomplete(1, format!("{error}; owners of listeners are missing"));
            }
        });
    }
}
