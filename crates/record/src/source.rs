//! Where rows come from.

use crate::{Accounting, Demand, Next, Offer, Table, Value};
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
    /// The accounting's `seen` counts what came from the kernel, where it came; `failed`, `duplicates`, `filtered` and
    /// `grouped` count what of it was not handed out, where that was decided. The engine compares.
    ///
    /// In a round that follows another rows may be shown to `cache` as bytes before they are decoded, and those that
    /// it knows are not handed to `each`. A source that has no use for it leaves it alone.
    fn read(
        &mut self,
        demand: &Demand<T>,
        cache: Option<&dyn RowCache>,
        each: &mut Each<'_, T>,
    ) -> Result<Accounting, SourceError>;

    /// The same for a round by itself.
    fn run(&mut self, demand: &Demand<T>, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        self.read(demand, None, each)
    }
}

/// Who knows the rows of the round before by the bytes they were decoded from: what is the same, byte for byte, need
/// be neither decoded nor written as text again.
pub trait RowCache {
    /// The bytes of rows in this round and all others tell everything but this field: what is left of a time, say, which
    /// stands beside them. False if rows must then not be shown as bytes (somebody filters by it). Asked before any row.
    fn exclude_field(&self, field: usize) -> bool;

    /// A row that was handed on in the round before is there again, and has been dealt with. `None`: it must be decoded
    /// and handed to [`Each`] next.
    fn reuse(&self, bytes: RowBytes<'_>) -> Option<Reused>;

    /// The row that was asked for last is not handed on after all.
    fn invalidate(&self);

    /// For the row that is handed on next: a number to be given back when it is there again; `None` if it must not be
    /// taken for the same then. Without a call it is 0.
    fn set_tag(&self, tag: Option<u32>);
}

/// A row as its door has it.
#[derive(Clone, Copy, Debug)]
pub struct RowBytes<'b> {
    /// By which rules these bytes are decoded.
    pub rules: Rules,
    /// Nearly unique for what the row is about, and the same in every round. The upper half alone may be looked at: rows
    /// that differ there are different.
    pub key: u64,
    /// All that the row is made of.
    pub bytes: &'b [u8],
    /// The field that they do not tell, if one was named ([`RowCache::exclude_field`]).
    pub beside: Value<'b>,
}

/// Two rows with the same bytes and the same rules are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// Network namespace, where the bytes do not tell it.
    pub netns_id: u64,
    /// The door's own: layout, units.
    pub layout: u64,
}

/// A row that is there again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reused {
    /// Whether more rows are wanted.
    pub next: Next,
    /// What [`RowCache::set_tag`] was given for it.
    pub tag: u32,
}

/// A producer of rows that come when something happens: it has no end of its own.
pub trait Stream<T: Table> {
    /// Which door it uses, which parts of the filter it does itself.
    fn offer(&self, demand: &Demand<T>) -> Offer;

    /// Waits until something has happened, or a moment, and hands what there is to `each`, until that says stop.
    ///
    /// Whoever made the stream gave it a way to learn that the run shall end: then the last rows come with
    /// [`StreamState::Ended`].
    fn next(&mut self, demand: &Demand<T>, each: &mut Each<'_, T>) -> Result<StreamState, SourceError>;

    /// The row counts: what was lost, what the user should know. Called once, after the last row.
    fn close(&mut self) -> Accounting;
}

/// Whether more can come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamState {
    /// Ask again.
    Open,
    /// That was all.
    Ended,
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
