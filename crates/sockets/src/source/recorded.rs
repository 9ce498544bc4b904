//! The filters that a recording was made with.
use record::rows::Sockets;
use record::{Demand, Proto};

use super::SocketSource;
use crate::choose::Via;
use crate::keys::{self, Table};

impl SocketSource<'_> {
    // The filters of the recording that left out sockets which this run wants: those of the tables read now, except for
    // tables with the same filter that this run would pass to the kernel.
    pub(crate) fn narrower_filters(&self, demand: &Demand<Sockets>) -> Vec<&str> {
        let mut narrower: Vec<&str> = Vec::new();
        for filter in self.split(demand, &|_| true).tables {
            let wanted = [keys::note_of(&filter, &[]), keys::note_of(&filter, &[0])];
            let both: &[Table] = if filter.proto == Proto::Tcp { &[Table::Tcp] } else { &[] };
            for table in both.iter().chain(keys::tables_of(filter.proto)) {
                let key = |via| keys::key(*table, via, self.options.netns_id);
                let keys = [key(Via::Netlink), key(Via::Bpf)];
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

    // The filters that were recorded for this namespace's streams.
    pub(crate) fn recorded_filters(&self) -> impl Iterator<Item = &str> {
        let ours = |key: &str| keys::is_ours(key, self.options.netns_id);
        let notes = self.host.notes().iter().filter(move |(key, note)| ours(key) && !note.is_empty());
        notes.map(|(_, note)| &**note)
    }
}
