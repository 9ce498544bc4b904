//! What a recording says of the filters it was made with.
use record::rows::Sockets;
use record::{Demand, Proto};

use super::SocketSource;
use crate::choose::Via;
use crate::keys::{self, Table};
use crate::pushdown::TableFilter;
use crate::pushdown::bytecode::Code;

impl SocketSource<'_> {
    // What the recording lacks though this run wants it: the filters it was made with, of the tables read now, unless
    // one of them is the very filter that this run would have asked the kernel for.
    pub(crate) fn narrower_filters(&self, demand: &Demand<Sockets>) -> Vec<&str> {
        let mut narrower: Vec<&str> = Vec::new();
        for filter in self.split(demand, &|_| true).tables {
            let wanted = [note_of(&filter, &[]), note_of(&filter, &[0])];
            let both: &[Table] = if filter.proto == Proto::Tcp { &[Table::Tcp] } else { &[] };
            for table in both.iter().chain(keys::tables_of(filter.proto)) {
                let keys = [self.key(*table, Via::Netlink), self.key(*table, Via::Bpf)];
                let ours = |of: &str| keys.iter().any(|key| **key == *of);
                let notes = || self.host.notes().iter().filter(|(of, _)| ours(of)).map(|(_, note)| &**note);
                if !notes().any(|note| wanted.iter().any(|wanted| *wanted == note)) {
                    narrower.extend(notes().filter(|note| !note.is_empty()));
                }
            }
        }
        narrower.sort_unstable();
        narrower.dedup();
        narrower
    }

    // The notes of this namespace's streams that tell of a filter.
    pub(crate) fn recorded_filters(&self) -> impl Iterator<Item = &str> {
        let ours = |key: &str| keys::is_ours(key, self.options.netns_id);
        let notes = self.host.notes().iter().filter(move |(key, note)| ours(key) && !note.is_empty());
        notes.map(|(_, note)| &**note)
    }
}

// What a recording has to say about itself: what the kernel left out is missing in it.
pub(crate) fn note_of(filter: &TableFilter, program: &[u8]) -> String {
    let words =
        if program.is_empty() { TableFilter { code: Code::True, ..filter.clone() }.words() } else { filter.words() };
    if words.is_empty() { words } else { format!("kernel filter: {words}") }
}
