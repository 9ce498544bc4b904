//! Adds TCP sockets that are in none of the kernel's tables to the rows, after the listed sockets, if a filter asks for
//! closed sockets.

use crate::session::Session;
use engine::Predicate;
use host::{Owners, UnhashedTcp, unhashed_tcp};
use record::rows::{Socket, Sockets};
use record::{
    Accounting, Demand, Each, Expr, Lookups, Next, Op, Operand, Proto, Scan, Source, SourceError, State, Test,
    field_index, scan_through,
};
use std::collections::HashSet;

/// True if the filter asks for closed sockets by name.
pub fn are_asked_for(conjuncts: &[Expr]) -> bool {
    let is_closed = |test: &Test| match &test.operand {
        Operand::Words(words) => test.op == Op::Eq && words.iter().any(|word| **word == *b"close"),
        _ => false,
    };
    let mut asked = false;
    for part in conjuncts {
        part.for_each_test(&mut |test| asked |= Some(test.field) == field_index::<Sockets>("state") && is_closed(test));
    }
    asked
}

/// A source that appends sockets missing from all tables to the sockets of another source.
pub struct WithLeaked<'s> {
    /// The sockets of the tables.
    pub source: &'s dyn Source<Sockets>,
    /// The session that reads the owners.
    pub session: &'s Session,
    /// The filter that appended sockets must pass.
    pub filter: &'s Predicate<Sockets>,
    /// The lookups of the filter.
    pub lookups: &'s Lookups<'s>,
    /// Returns true for a namespace that is shown.
    pub is_wanted: &'s dyn Fn(u64) -> bool,
}

impl Source<Sockets> for WithLeaked<'_> {
    fn prepare(&self, demand: &Demand<Sockets>) -> Box<dyn Scan<Sockets> + '_> {
        scan_through(self.source.prepare(demand), |inner, cache, each| {
            let mut is_over = false;
            let mut stats = inner.run_with(cache, &mut |row| {
                let next = each(row);
                is_over |= next == Next::Stop;
                next
            })?;
            if !is_over {
                self.add_leaked(&mut stats, each)?;
            }
            Ok(stats)
        })
    }
}

impl WithLeaked<'_> {
    fn add_leaked(&self, stats: &mut Accounting, each: &mut Each<'_, Sockets>) -> Result<(), SourceError> {
        // A recording holds only the sockets that were in the tables.
        let host = self.session.host();
        let Some(owners) = (!host.is_replay()).then(|| self.session.owners().read(host).ok()).flatten() else {
            return Ok(());
        };
        for socket in self.found(&owners)? {
            let row = Socket {
                proto: Proto::Tcp,
                family: if socket.is_v6 { 10 } else { 2 },
                state: State::CLOSE,
                inode: socket.inode,
                netns_id: socket.netns_id,
                ..Socket::EMPTY
            };
            if (self.is_wanted)(row.netns_id) && self.filter.matches(&row, self.lookups) {
                stats.seen += 1;
                if each(&row) == Next::Stop {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns the sockets that `owners` hold but no table lists.
    fn found(&self, owners: &Owners) -> Result<Vec<UnhashedTcp>, SourceError> {
        let (Some(proto), Some(inode)) = (field_index::<Sockets>("proto"), field_index::<Sockets>("inode")) else {
            return Ok(Vec::new());
        };
        let is_tcp = Test { field: proto, op: Op::Eq, operand: Operand::Words(vec![b"tcp".as_slice().into()]) };
        let demand = Demand::new(&[inode], vec![Expr::Test(is_tcp)]);
        let mut inodes = HashSet::new();
        self.source.prepare(&demand).run(&mut |row| {
            inodes.insert(row.inode);
            Next::More
        })?;
        Ok(unhashed_tcp(self.session.host(), owners, |inode| inodes.contains(&inode)).collect())
    }
}
