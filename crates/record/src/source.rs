//! Where rows come from.

use crate::{Accounting, Demand, Next, Offer, Table};
use std::error::Error;
use std::fmt;

/// What a source calls for each row. The row borrows the source's buffer: copy what you keep.
pub type Each<'e, T> = dyn for<'r, 'b> FnMut(&'r <T as Table>::Row<'b>) -> Next + 'e;

/// A producer of rows with one or more doors to the kernel.
pub trait Source<T: Table> {
    /// Which door it would use, which parts of the filter it would do. Reads nothing that costs.
    fn offer(&self, demand: &Demand<T>) -> Offer;

    /// Reads every row that the demand asks for and hands it to `each`, until `each` says stop.
    ///
    /// Rows for which the offer said [`crate::Push::Exact`] are already filtered.
    /// The accounting's `seen` counts rows handed out; `failed`, `doubled`, `lost` what was not.
    fn run(&mut self, demand: &Demand<T>, each: &mut Each<'_, T>) -> Result<Accounting, SourceError>;
}

/// Why a source gave nothing at all. (Partial results are an [`Accounting`] with reasons.)
#[derive(Debug)]
pub struct SourceError {
    /// What was being read: `TCP sockets`.
    pub what: &'static str,
    /// The class of the fault: the exit code and the fallback depend on it.
    pub fault: SourceFault,
    /// The cause, with the kernel's words.
    pub cause: Box<dyn Error + Send + Sync>,
}

/// Classes of faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourceFault {
    /// A right is missing.
    Denied,
    /// The kernel lacks the interface.
    Unsupported,
    /// Bytes that make no sense.
    Malformed,
    /// Anything else the system refused.
    Io,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read {}: {}", self.what, self.cause)
    }
}

impl Error for SourceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}
