//! Saves one table for `netwren record`: requests every field, and discards the rows.

use record::{Accounting, Demand, Next, Source, SourceError, SourceFault, Table};

/// Reads a source to its end; returns the number of rows. A table that this kernel does not have is reported, but does
/// not count as missing.
pub(super) fn read<T: Table>(source: &dyn Source<T>, demand: &Demand<T>, stats: &mut Accounting) -> u64 {
    let mut rows = 0;
    let result = source.run(demand, &mut |_| {
        rows += 1;
        Next::More
    });
    match result {
        Ok(read) => {
            stats.incomplete |= read.is_partial();
            read.why.into_iter().for_each(|why| stats.add_reason(why.count, why.text));
        }
        Err(SourceError { what, fault, cause }) => {
            stats.incomplete |= fault != SourceFault::Unsupported;
            stats.add_reason(0, format!("{what} could not be recorded: {cause}"));
        }
    }
    rows
}
