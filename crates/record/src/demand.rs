//! Demands: the fields and the filter that a run requests from a source, and the source's offer in return.

use crate::named_enum::named_enum;
use crate::{Expr, Table};

/// The request that a run sends to its source once, before the first row is read.
#[derive(Clone, Debug)]
pub struct Demand<T: Table> {
    /// Indexes of all fields that are shown, filtered by, sorted by or grouped by. Ascending, without duplicates.
    pub fields: Vec<usize>,
    /// The `need` bits of those fields, OR-ed together.
    pub need: u64,
    /// The filter as a list of conjuncts.
    pub conjuncts: Vec<Expr>,
    /// True if the rows will be read repeatedly.
    pub repeated: bool,
    _table: std::marker::PhantomData<fn() -> T>,
}

impl<T: Table> Demand<T> {
    /// A demand for these fields under this filter. Fields that the filter names are added.
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

    /// A demand for all fields, without a filter. Fields that need one of the bits in `except` are left out.
    pub fn every_field(except: u64) -> Demand<T> {
        let fields = T::FIELDS.iter().enumerate().filter(|(_, field)| field.need & except == 0);
        Demand::new(&fields.map(|(at, _)| at).collect::<Vec<_>>(), Vec::new())
    }

    /// Adds one field.
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

/// How much of one conjunct the source evaluates itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilterPushdown {
    /// The source evaluates nothing: the engine tests every row.
    Unsupported,
    /// The source drops most rows that cannot match; the engine tests the remaining rows again.
    Inexact,
    /// The source evaluates the conjunct exactly: the engine need not test it.
    Exact,
}

named_enum! {
    /// A kernel interface to read a table through (`--via`).
    pub enum Via {
        /// A netlink dump: sock_diag, ctnetlink.
        Netlink => "netlink",
        /// The files of /proc/net.
        Proc => "proc",
        /// A BPF program that walks the kernel's tables.
        Bpf => "bpf",
    }
}

/// The demanded fields that one backend cannot deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendLacks {
    /// The backend's name, as `--via` accepts it.
    pub backend: &'static str,
    /// `need` bits of the fields that are null in every row of this backend.
    pub lacks: u64,
}

/// A source's answer to a [`Demand`].
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// Name of the kernel interface that will be used (`netlink`, `proc`, `bpf`).
    pub backend: &'static str,
    /// One answer per conjunct, in the demand's order. Missing answers count as [`FilterPushdown::Unsupported`].
    pub pushdown: Vec<FilterPushdown>,
    /// `need` bits that this backend cannot serve: their fields will be null.
    pub lacks: u64,
    /// If the user forces a backend: that backend first, then the others, each with the fields it lacks. Empty if the
    /// source chooses the backend.
    pub backends: Vec<BackendLacks>,
    /// Lines for `--explain`: the backend, the reason for choosing it, and the request to the kernel.
    pub explain: Vec<String>,
}
