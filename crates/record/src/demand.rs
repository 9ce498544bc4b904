//! What a run asks of a source, and what the source answers that it will do.

use crate::named_enum::named_enum;
use crate::{Expr, Table};

/// The question that goes back once, before any row comes forward.
#[derive(Clone, Debug)]
pub struct Demand<T: Table> {
    /// Indexes of every field that is shown, filtered by, sorted by or grouped by. Ascending, no doubles.
    pub fields: Vec<usize>,
    /// The `need` bits of those fields, or-ed.
    pub need: u64,
    /// The filter as the parts of one `and`.
    pub conjuncts: Vec<Expr>,
    /// True if rows will be asked for again and again.
    pub repeated: bool,
    _table: std::marker::PhantomData<fn() -> T>,
}

impl<T: Table> Demand<T> {
    /// A demand for these fields under this filter; the fields that the filter names are added.
    pub fn new(shown: &[usize], conjuncts: Vec<Expr>) -> Demand<T> {
        let mut fields = shown.to_vec();
        for part in &conjuncts {
            part.for_each_test(&mut |test| fields.push(test.field));
        }
        fields.sort_unstable();
        fields.dedup();
        let need = fields.iter().filter_map(|&i| T::FIELDS.get(i)).fold(0, |need, f| need | f.need);
        Demand { fields, need, conjuncts, repeated: false, _table: std::marker::PhantomData }
    }

    /// Demands one field more.
    pub fn add(&mut self, field: usize) {
        if let Err(place) = self.fields.binary_search(&field) {
            self.fields.insert(place, field);
        }
        self.need |= T::FIELDS.get(field).map_or(0, |f| f.need);
    }

    /// True if the field called `name` is demanded.
    pub fn wants(&self, name: &str) -> bool {
        self.fields.iter().any(|&i| T::FIELDS.get(i).is_some_and(|f| f.name == name))
    }
}

/// How much of one conjunct the source does itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Push {
    /// Nothing: the engine tests every row.
    No,
    /// Rows that cannot match are mostly left out; the engine tests the rest again.
    Narrowed,
    /// Exactly: the engine need not look.
    Exact,
}

named_enum! {
    /// A kernel interface to read a table through (`--via`).
    pub enum Via {
        /// A dump by netlink: sock_diag, ctnetlink.
        Netlink => "netlink",
        /// The files of /proc/net.
        Proc => "proc",
        /// A walk of the kernel's tables by a BPF program.
        Bpf => "bpf",
    }
}

/// What one backend cannot tell of the rows that a [`Demand`] asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendLacks {
    /// Its name, as `--via` takes it.
    pub backend: &'static str,
    /// `need` bits whose fields it leaves null in every row.
    pub lacks: u64,
}

/// A source's answer to a [`Demand`].
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// Name of the kernel interface that will be used (`netlink`, `proc`, `bpf`).
    pub backend: &'static str,
    /// One answer a conjunct, in the demand's order. Missing ones count as [`Push::No`].
    pub pushed: Vec<Push>,
    /// `need` bits that this backend has no answer for: their fields will be null.
    pub lacks: u64,
    /// Where the user forces a backend: that one, then the others, each with what it cannot tell. Empty where the
    /// source chooses.
    pub backends: Vec<BackendLacks>,
    /// Lines for `--explain`: which backend and why, what is asked of the kernel.
    pub explain: Vec<String>,
}
