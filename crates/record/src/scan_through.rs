//! A scan wrapped in a function that sees its rows first.

use crate::{Accounting, Each, Offer, RowCache, Scan, SourceError, Table};

/// A scan that makes the same offer as `inner` and runs the closure `around`. `around` runs `inner` with
/// [`Scan::run_with`]; it may inspect the rows, change them before the reader receives them, and add to the row
/// counts. Costs one dynamic call per run and none per row.
///
/// ```text
/// scan_through(source.prepare(demand), |inner, cache, each| {
///     inner.run_with(cache, &mut |row| { count(row); each(row) })
/// })
/// ```
pub fn scan_through<'s, T, F>(inner: Box<dyn Scan<T> + 's>, around: F) -> Box<dyn Scan<T> + 's>
where
    T: Table,
    F: FnMut(&mut dyn Scan<T>, Option<&dyn RowCache>, &mut Each<'_, T>) -> Result<Accounting, SourceError> + 's,
{
    Box::new(ScanThrough { inner, around })
}

struct ScanThrough<'s, T: Table, F> {
    inner: Box<dyn Scan<T> + 's>,
    around: F,
}

impl<T, F> Scan<T> for ScanThrough<'_, T, F>
where
    T: Table,
    F: FnMut(&mut dyn Scan<T>, Option<&dyn RowCache>, &mut Each<'_, T>) -> Result<Accounting, SourceError>,
{
    fn offer(&self) -> Offer {
        self.inner.offer()
    }

    fn run(&mut self, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        (self.around)(&mut *self.inner, None, each)
    }

    fn run_cached(&mut self, cache: &dyn RowCache, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        (self.around)(&mut *self.inner, Some(cache), each)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::rows::{Socket, Sockets};
    use crate::{CachedRow, Next, RowBytes};

    /// Hands out two rows; their inode is the number of caches.
    struct TwoRows;

    impl TwoRows {
        fn rows(inode: u32, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
            let more = (0..2).take_while(|_| each(&Socket { inode, ..Socket::EMPTY }) == Next::More).count();
            Ok(Accounting { seen: more as u64, ..Accounting::default() })
        }
    }

    impl Scan<Sockets> for TwoRows {
        fn offer(&self) -> Offer {
            Offer { lacks: 7, ..Offer::default() }
        }

        fn run(&mut self, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
            TwoRows::rows(0, each)
        }

        fn run_cached(&mut self, _: &dyn RowCache, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
            TwoRows::rows(1, each)
        }
    }

    struct NoRows;

    impl RowCache for NoRows {
        fn exclude_field(&self, _: usize) -> bool {
            true
        }

        fn reuse(&self, _: RowBytes<'_>) -> Option<CachedRow> {
            None
        }

        fn invalidate(&self) {}

        fn set_tag(&self, _: Option<u32>) {}
    }

    #[test]
    fn rows_the_cache_and_the_counts_pass_through() {
        let mut scan = scan_through::<Sockets, _>(Box::new(TwoRows), |inner, cache, each| {
            let mut stats = inner.run_with(cache, &mut |row| each(&Socket { inode: row.inode + 10, ..*row }))?;
            stats.filtered = 5;
            Ok(stats)
        });
        assert_eq!(scan.offer().lacks, 7);
        for (cache, inode) in [(None, 10), (Some(&NoRows as &dyn RowCache), 11)] {
            let mut inodes = Vec::new();
            let stats = scan.run_with(cache, &mut |row| {
                inodes.push(row.inode);
                Next::More
            });
            let stats = stats.unwrap();
            assert_eq!((inodes, stats.seen, stats.filtered), (vec![inode; 2], 2, 5));
        }
    }
}
