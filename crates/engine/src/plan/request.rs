//! The request of a command, before any name is resolved.

use crate::words;
use record::{Expr, Kind, Schema};

/// The request of a command: the user's columns, filter, groups, order and limit, with unresolved names.
#[derive(Clone, Debug, Default)]
pub struct PlanRequest {
    /// Fields to show, as indexes (see [`crate::columns::resolve`]). Not used when rows are grouped.
    pub columns: Vec<usize>,
    /// The columns that the user did not name: they may be null with a backend that lacks them.
    pub usual: Vec<usize>,
    /// Those of the columns that few rows have and the user did not name ([`record::Show::Unusual`]). They are no part
    /// of the demand: what they need is read once a row needs it.
    pub unusual: Vec<usize>,
    /// Those of the unusual columns that a table leaves out unless a row has them.
    pub optional: Vec<usize>,
    /// The filter as the parts of one `and` (see [`crate::filter::conjuncts`]).
    pub conjuncts: Vec<Expr>,
    /// `--by`: names of the fields that form a group. A prefix length after an address groups by network:
    /// `peer_addr/24`.
    pub by: Vec<Box<str>>,
    /// `--sum`, `--max`, `--avg` with their fields' names, in the order of the result's columns. Without `by` all rows
    /// form one group.
    pub folds: Vec<(Fold, Box<str>)>,
    /// `--sort`.
    pub sort: Vec<SortKey>,
    /// True if rows that are equal under `sort` keep their order of arrival. Otherwise the remaining columns decide.
    pub ties_by_arrival: bool,
    /// `--limit`.
    pub limit: Option<u64>,
    /// True if the plan will run in rounds.
    pub repeated: bool,
}

impl PlanRequest {
    /// True if the result has a row for each group instead of each row.
    pub(super) fn is_grouped(&self) -> bool {
        !self.by.is_empty() || !self.folds.is_empty()
    }

    /// Returns the fields that the user named: those of `fields` that are not usual columns, and the fields of order
    /// and filter.
    pub(super) fn named_fields(&self, table: Schema, fields: &[usize]) -> Vec<usize> {
        let grouped = self.is_grouped();
        let named = |field: &&usize| grouped || !self.usual.contains(field) && !self.unusual.contains(field);
        let mut asked: Vec<usize> = fields.iter().filter(named).copied().collect();
        asked.extend(self.sort.iter().flat_map(|sort| words::fields(table, &sort.name)).filter(|_| !grouped));
        for part in &self.conjuncts {
            part.for_each_test(&mut |test| asked.push(test.field));
        }
        asked
    }
}

/// How the values of a group are combined into one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fold {
    /// Their sum.
    Sum,
    /// The greatest.
    Max,
    /// Their mean, rounded to a whole number.
    Avg,
}

impl Fold {
    /// Returns `sum`, `max` or `avg`: the option, and the prefix of the column's name.
    pub fn name(self) -> &'static str {
        match self {
            Fold::Sum => "sum",
            Fold::Max => "max",
            Fold::Avg => "avg",
        }
    }
}

/// One key of `--sort`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SortKey {
    /// A field, or a column of the groups (`count`, `sum_bytes_in`).
    pub name: Box<str>,
    /// The requested direction; `None` for the field's default (`Sort::descends`).
    pub descending: Option<bool>,
}

impl SortKey {
    /// Parses the value of `--sort`: `a`, `-a` (descending), `a:desc`, `a:asc,b:desc`. An unknown direction stays part
    /// of the name, so [`Plan::new`](crate::Plan::new), which looks up the names, rejects it.
    pub fn parse_list(text: &str) -> Vec<SortKey> {
        let one = |item: &str| {
            let (name, descending) = match (item.rsplit_once(':'), item.strip_prefix('-')) {
                (Some((name, "desc")), _) => (name.strip_prefix('-').unwrap_or(name), Some(true)),
                (Some((name, "asc")), _) => (name, Some(false)),
                (_, Some(name)) => (name, Some(true)),
                _ => (item, None),
            };
            SortKey { name: name.into(), descending }
        };
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(one).collect()
    }

    /// True if cells of this kind sort from greatest to least: as requested, by default only for quantities.
    /// Identifiers (ports, pids), texts, addresses and times sort ascending by default.
    pub(super) fn is_descending(&self, kind: Kind) -> bool {
        self.descending.unwrap_or(kind.is_quantity() || kind == Kind::Thousandths)
    }
}
