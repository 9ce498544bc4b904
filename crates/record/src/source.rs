//! The contract between producers of rows ([`Source`], [`Stream`]) and their consumers.
//!
//! ```text
//! source.prepare(&demand) ──► scan.offer()   what the scan does itself: backend, filter parts, holes
//!                             scan.run(each) reads the table; again for the next round
//! ```
//!
//! A source that evaluates no part of the filter is one function: see [`full_scan`].

use crate::{Accounting, Demand, Next, Offer, Table, Value};
use std::error::Error;
use std::fmt;

/// Receives each row of a scan and returns whether it wants more. The row borrows the receive buffer: copy what you
/// keep.
pub type Each<'e, T> = dyn for<'r, 'b> FnMut(&'r <T as Table>::Row<'b>) -> Next + 'e;

/// A table that can be read through one or more kernel interfaces.
pub trait Source<T: Table> {
    /// Decides how to read `demand`: the backend, and the parts of the filter that are evaluated before a row is
    /// handed out. No other function makes this decision. It may read small files and never fails; errors are reported
    /// when the scan runs.
    fn prepare(&self, demand: &Demand<T>) -> Box<dyn Scan<T> + '_>;

    /// Prepares a scan and runs it once.
    fn run(&self, demand: &Demand<T>, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        self.prepare(demand).run(each)
    }
}

impl<T: Table, S: Source<T> + ?Sized> Source<T> for &S {
    fn prepare(&self, demand: &Demand<T>) -> Box<dyn Scan<T> + '_> {
        (**self).prepare(demand)
    }
}

/// A prepared scan: everything is decided and nothing has been read yet. It may run several times (`--watch`).
pub trait Scan<T: Table> {
    /// Describes what [`Scan::run`] does. Makes no decision; costs a few allocations.
    fn offer(&self) -> Offer;

    /// Reads the table and hands each row to `each`, until `each` returns [`Next::Stop`].
    ///
    /// Filter parts offered as `crate::Push::Exact` have been applied already; the scan hands out all other rows. In
    /// the accounting, `seen` counts rows as they arrive from the kernel. `failed`, `duplicates`, `filtered` and
    /// `grouped` count the rows that are not handed out, at the place where that is decided. The engine compares the
    /// two, so a row that gets lost on the way is reported.
    ///
    /// Fails if nothing at all could be read. A partial result is an accounting with reasons.
    fn run(&mut self, each: &mut Each<'_, T>) -> Result<Accounting, SourceError>;

    /// Runs the scan for a later round. The scan may offer undecoded rows to `cache`, and then does not hand out the
    /// rows that the cache recognizes.
    ///
    /// Optional: the default decodes and hands out every row.
    fn run_cached(&mut self, cache: &dyn RowCache, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        let _ = cache;
        self.run(each)
    }

    /// [`Scan::run_cached`] if there is a cache, else [`Scan::run`].
    fn run_with(&mut self, cache: Option<&dyn RowCache>, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        match cache {
            Some(cache) => self.run_cached(cache, each),
            None => self.run(each),
        }
    }
}

/// A scan that reads the whole table through one backend and filters nothing itself. `read` hands out every row and
/// counts it as `seen`. `explain` is the scan's line for `--explain`.
///
/// ```text
/// impl<T: NetnsTable> Source<T> for NetnsSource<'_> {
///     fn prepare(&self, _: &Demand<T>) -> Box<dyn Scan<T> + '_> {
///         full_scan::<T, _>(T::BACKEND, T::EXPLAIN, |each| self.read(each))
///     }
/// }
/// ```
pub fn full_scan<'s, T, F>(backend: &'static str, explain: &'static str, read: F) -> Box<dyn Scan<T> + 's>
where
    T: Table,
    F: FnMut(&mut Each<'_, T>) -> Result<Accounting, SourceError> + 's,
{
    Box::new(FullScan { backend, explain, read })
}

struct FullScan<F> {
    backend: &'static str,
    explain: &'static str,
    read: F,
}

impl<T, F> Scan<T> for FullScan<F>
where
    T: Table,
    F: FnMut(&mut Each<'_, T>) -> Result<Accounting, SourceError>,
{
    fn offer(&self) -> Offer {
        Offer { backend: self.backend, explain: vec![self.explain.into()], ..Offer::default() }
    }

    fn run(&mut self, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        (self.read)(each)
    }
}

/// Recognizes rows of the previous round by the bytes from which they were decoded. A row with the same bytes need not
/// be decoded or rendered again.
///
/// A scan calls [`RowCache::exclude_field`] before the first row if necessary. Then it calls [`RowCache::reuse`] for
/// each row; if that returns `None`, it decodes the row and hands it to [`Each`].
pub trait RowCache {
    /// Declares that the bytes of a row identify the row except for `field`, whose value is passed separately (for
    /// example a remaining timeout). Returns false if the cache cannot work then, because something tests this field:
    /// the scan must not call [`RowCache::reuse`].
    fn exclude_field(&self, field: usize) -> bool;

    /// Looks the row up. If the previous round contained it, passes it on as rendered then. Returns `None` if the scan
    /// must decode the row and hand it out next.
    fn reuse(&self, bytes: RowBytes<'_>) -> Option<CachedRow>;

    /// Drops the row of the last [`RowCache::reuse`], because the scan does not hand it out after all.
    fn invalidate(&self);

    /// Sets the number that [`RowCache::reuse`] returns when the row that is handed out next occurs again; `None` if
    /// that row must not be reused. Without a call the number is 0.
    fn set_tag(&self, tag: Option<u32>);
}

/// An undecoded row as the backend received it.
#[derive(Clone, Copy, Debug)]
pub struct RowBytes<'b> {
    /// The rules that determine how these bytes are decoded.
    pub rules: Rules,
    /// A hash of the row's subject, the same in every round. Rows whose upper 32 bits differ are different rows.
    pub key: u64,
    /// The bytes from which the row is decoded.
    pub bytes: &'b [u8],
    /// The value of the excluded field, if there is one ([`RowCache::exclude_field`]).
    pub beside: Value<'b>,
}

/// The context that gives a row's bytes their meaning. Equal bytes under equal rules are equal rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// Network namespace (inode), where the bytes do not contain it.
    pub netns_id: u64,
    /// A backend-specific number for layout and units.
    pub layout: u64,
}

/// A row that was passed on from the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CachedRow {
    /// Whether more rows are wanted.
    pub next: Next,
    /// The number that [`RowCache::set_tag`] set for this row.
    pub tag: u32,
}

/// Rows that arrive when an event happens. A stream ends only when its creator's stop condition holds.
pub trait Stream<T: Table> {
    /// Describes which backend the stream uses and which parts of the filter it evaluates itself.
    fn offer(&self, demand: &Demand<T>) -> Offer;

    /// Waits for rows, or for a short time, and hands all arrived rows to `each`, until `each` returns [`Next::Stop`].
    ///
    /// The last rows come together with [`StreamState::Ended`].
    fn next(&mut self, demand: &Demand<T>, each: &mut Each<'_, T>) -> Result<StreamState, SourceError>;

    /// Returns the row counts and the losses. Called once, after the last row.
    fn close(&mut self) -> Accounting;
}

impl<T: Table, S: Stream<T> + ?Sized> Stream<T> for &mut S {
    fn offer(&self, demand: &Demand<T>) -> Offer {
        (**self).offer(demand)
    }

    fn next(&mut self, demand: &Demand<T>, each: &mut Each<'_, T>) -> Result<StreamState, SourceError> {
        (**self).next(demand, each)
    }

    fn close(&mut self) -> Accounting {
        (**self).close()
    }
}

impl<T: Table, S: Stream<T> + ?Sized> Stream<T> for Box<S> {
    fn offer(&self, demand: &Demand<T>) -> Offer {
        (**self).offer(demand)
    }

    fn next(&mut self, demand: &Demand<T>, each: &mut Each<'_, T>) -> Result<StreamState, SourceError> {
        (**self).next(demand, each)
    }

    fn close(&mut self) -> Accounting {
        (**self).close()
    }
}

/// Whether a stream may have more rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamState {
    /// Call [`Stream::next`] again.
    Open,
    /// The stream has ended.
    Ended,
}

/// Why nothing at all could be read. (A partial result is an [`Accounting`] with reasons.)
#[derive(Debug)]
pub struct SourceError {
    /// The thing that was being read: `TCP sockets`.
    pub what: &'static str,
    /// The error class; the exit code and the fallback depend on it.
    pub fault: SourceFault,
    /// The cause, including the kernel's message.
    pub cause: Box<dyn Error + Send + Sync>,
}

/// The class of a [`SourceError`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourceFault {
    /// A capability or permission is missing.
    Denied,
    /// The kernel does not have the interface.
    Unsupported,
    /// The received bytes cannot be decoded.
    Malformed,
    /// Any other system error.
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
