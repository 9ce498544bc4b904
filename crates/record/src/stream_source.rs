//! Reads a stream to its end as a table, because sorts and groups need a last row.

use crate::{Accounting, Demand, Each, Next, Offer, Scan, Source, SourceError, Stream, StreamState, Table};
use std::cell::RefCell;

/// The rows of a stream up to its end, as one reading of a table. It can be read once.
pub struct StreamSource<'s, T: Table>(RefCell<&'s mut dyn Stream<T>>);

impl<'s, T: Table> StreamSource<'s, T> {
    /// Wraps `stream`. Nothing is read until a scan runs.
    pub fn new(stream: &'s mut dyn Stream<T>) -> StreamSource<'s, T> {
        StreamSource(RefCell::new(stream))
    }
}

impl<T: Table> Source<T> for StreamSource<'_, T> {
    fn prepare(&self, demand: &Demand<T>) -> Box<dyn Scan<T> + '_> {
        // `Demand` is not cloned, because that would require `T: Clone`.
        let mut copy = Demand::new(&demand.fields, demand.conjuncts.clone());
        copy.need = demand.need;
        Box::new(StreamScan { stream: &self.0, demand: copy })
    }
}

struct StreamScan<'r, 's, T: Table> {
    stream: &'r RefCell<&'s mut dyn Stream<T>>,
    demand: Demand<T>,
}

impl<T: Table> Scan<T> for StreamScan<'_, '_, T> {
    fn offer(&self) -> Offer {
        self.stream.borrow().offer(&self.demand)
    }

    fn run(&mut self, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        let mut stream = self.stream.borrow_mut();
        let (mut rows, mut is_over) = (0u64, false);
        let mut broken = None;
        while !is_over {
            let next = stream.next(&self.demand, &mut |row| {
                rows += 1;
                let next = each(row);
                is_over |= next == Next::Stop;
                next
            });
            match next {
                Ok(state) => is_over |= state == StreamState::Ended,
                Err(error) if rows == 0 => return Err(error),
                Err(error) => (is_over, broken) = (true, Some(error)),
            }
        }
        let mut stats = stream.close();
        if let Some(error) = broken {
            stats.incomplete(0, error.to_string());
        }
        Ok(stats)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::rows::{Socket, Sockets};
    use crate::{SourceFault, field_index};

    /// Three batches of two rows, then the end or an error.
    struct Batches(u32, bool);

    impl Stream<Sockets> for Batches {
        fn offer(&self, demand: &Demand<Sockets>) -> Offer {
            assert!(demand.wants("inode"));
            Offer { backend: "test", ..Offer::default() }
        }

        fn next(&mut self, _: &Demand<Sockets>, each: &mut Each<'_, Sockets>) -> Result<StreamState, SourceError> {
            for _ in 0..2 {
                self.0 += 1;
                if each(&Socket { inode: self.0, ..Socket::EMPTY }) == Next::Stop {
                    return Ok(StreamState::Open);
                }
            }
            match self.0 {
                6 if self.1 => Err(SourceError { what: "rows", fault: SourceFault::Io, cause: "broken".into() }),
                6 => Ok(StreamState::Ended),
                _ => Ok(StreamState::Open),
            }
        }

        fn close(&mut self) -> Accounting {
            Accounting { seen: self.0.into(), ..Accounting::default() }
        }
    }

    fn read(mut stream: Batches, most: u32) -> (Vec<u32>, Accounting) {
        let source = StreamSource::new(&mut stream);
        let demand = Demand::new(&[field_index::<Sockets>("inode").unwrap()], Vec::new());
        let mut scan = source.prepare(&demand);
        assert_eq!(scan.offer().backend, "test");
        let mut inodes = Vec::new();
        let stats = scan.run(&mut |row| {
            inodes.push(row.inode);
            if row.inode == most { Next::Stop } else { Next::More }
        });
        (inodes, stats.unwrap())
    }

    #[test]
    fn all_batches_are_one_table() {
        let (inodes, stats) = read(Batches(0, false), 99);
        assert_eq!((inodes, stats.seen, stats.incomplete), (vec![1, 2, 3, 4, 5, 6], 6, false));
        let (inodes, stats) = read(Batches(0, false), 3);
        assert_eq!((inodes, stats.seen), (vec![1, 2, 3], 3), "stopped");
        let (inodes, stats) = read(Batches(0, true), 99);
        assert_eq!((inodes.len(), stats.incomplete, stats.why.len()), (6, true, 1), "broken off");
    }
}
