//! One reading of the sockets, their owners and the addresses of namespaces, as messages.

use super::message::{self, SocketOwner, word_fields};
use super::outbox::Outbox;
use crate::enrich::Enrichment;
use crate::owners::readings::read_addresses;
use crate::pillars;
use crate::session::Session;
use ::owners::SocketIndex;
use record::rows::{Socket, Sockets};
use record::{Accounting, Demand, LookupId, Lookups, Next, Owner, Table, Value, field_index};
use sys::clock;

/// Messages are sent when this many bytes are waiting.
const PORTION: usize = 64 << 10;

/// Reads sockets repeatedly.
pub(super) struct SocketReader<'s> {
    session: &'s Session,
    demand: Demand<Sockets>,
    lookups: Vec<LookupId>,
    /// See [`word_fields`].
    words: [Option<usize>; 5],
}

impl<'s> SocketReader<'s> {
    /// `need`: bits of `capture_need`.
    pub(super) fn new(session: &'s Session, need: u64) -> SocketReader<'s> {
        let words = word_fields::<Sockets>(need);
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
        message::put_begin(&mut out, clock::wall_ns());
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
        self.session.in_each_namespace(&mut |netns_id| {
            let mut put = |addr| message::put_address(&mut out, netns_id, addr);
            read_addresses(self.session, netns_id, &mut stats, &mut put);
        });
        for why in stats.why.iter().filter(|_| stats.is_partial()) {
            message::put_trouble(&mut out, why.count, &why.text);
        }
        messages.await_events(begun_ns);
        message::put_end(&mut out);
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
        message::put_socket(out, socket, &SocketOwner { owners, words: self.words.map(word) });
    }
}
