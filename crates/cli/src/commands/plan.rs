//! From the words of a request to an engine's plan.

use crate::flags::{Repeat, Request};
use engine::columns::{self, Base, UnknownColumn};
use engine::{Ast, FilterError, Fold, Plan, PlanError, Sort};
use record::Table;
use std::fmt;

/// What is wrong with the words.
#[derive(Debug)]
pub(super) enum Wrong {
    /// The filter.
    Filter(FilterError),
    /// `--columns`.
    Column(UnknownColumn),
    /// `--by`, `--sort`, a pattern.
    Plan(PlanError),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Filter(error) => error.fmt(f),
            Wrong::Column(error) => error.fmt(f),
            Wrong::Plan(error) => error.fmt(f),
        }
    }
}

impl From<UnknownColumn> for Wrong {
    fn from(error: UnknownColumn) -> Wrong {
        Wrong::Column(error)
    }
}

impl From<FilterError> for Wrong {
    fn from(error: FilterError) -> Wrong {
        Wrong::Filter(error)
    }
}

impl From<PlanError> for Wrong {
    fn from(error: PlanError) -> Wrong {
        Wrong::Plan(error)
    }
}

/// The plan of `request` over `T`; `filter` is the part of the filter that is about `T`'s fields.
pub(super) fn plan<T: Table>(request: &Request, filter: &Ast) -> Result<Plan<T>, Wrong> {
    let shown = &request.shown;
    let base = if shown.wide { Base::Wide } else { Base::Default };
    let columns =
        with_namespaces::<T>(request, columns::resolve::<T>(shown.columns.as_deref(), base, !shown.no_owner)?);
    let columns = with_rounds::<T>(request, columns);
    let mut folds = Vec::new();
    for (fold, names) in [Fold::Sum, Fold::Max, Fold::Avg].into_iter().zip(&shown.aggregates) {
        folds.extend(names_in(names.as_deref()).map(|name| (fold, name)));
    }
    Ok(Plan::new(engine::Request {
        columns,
        conjuncts: engine::filter::bind::<T>(filter)?.into_conjuncts(),
        by: names_in(shown.by.as_deref()).collect(),
        folds,
        sort: Sort::parse_list(shown.sort.as_deref().unwrap_or("")),
        limit: shown.limit,
        repeated: request.repeat != Repeat::Once,
    })?)
}

/// Columns behind the usual ones when all namespaces are read.
const OTHER_END: &[&str] = &["peer_netns", "peer_process", "peer_pid"];

/// The columns that were resolved; if all namespaces are read, with those that tell them apart.
fn with_namespaces<T: Table>(request: &Request, mut columns: Vec<usize>) -> Vec<usize> {
    let spec = request.shown.columns.as_deref().unwrap_or("").trim();
    if !request.all_netns || !(spec.is_empty() || spec.starts_with(['+', '-'])) {
        return columns;
    }
    let left_out = |name: &str| spec.split(',').any(|item| item.trim().strip_prefix('-') == Some(name));
    let field = |name: &&str| if left_out(name) { None } else { record::field_index::<T>(name) };
    if let Some(netns) = field(&"netns") {
        columns.retain(|&column| column != netns);
        columns.insert(0, netns);
    }
    for index in OTHER_END.iter().filter_map(field) {
        let owner = T::FIELDS.get(index).is_some_and(columns::is_owner_field);
        let unwanted = owner && request.shown.no_owner;
        if !unwanted && !columns.contains(&index) {
            columns.push(index);
        }
    }
    columns
}

/// Columns of `--watch`, the first before all others and the rest behind them; the last three only with many columns.
const OF_ROUNDS: &[&str] =
    &["change", "bytes_in_per_s", "bytes_out_per_s", "segs_in_per_s", "segs_out_per_s", "retrans_per_s"];
/// How many of them stand in the plain table.
const OF_ROUNDS_PLAIN: usize = 3;

/// The columns that were resolved; if they are the usual ones of repeated rounds, with those that compare rounds.
fn with_rounds<T: Table>(request: &Request, mut columns: Vec<usize>) -> Vec<usize> {
    let spec = request.shown.columns.as_deref().unwrap_or("").trim();
    if request.repeat == Repeat::Once || !(spec.is_empty() || spec.starts_with(['+', '-'])) {
        return columns;
    }
    let left_out = |name: &str| spec.split(',').any(|item| item.trim().strip_prefix('-') == Some(name));
    let shown = if request.shown.wide { OF_ROUNDS.len() } else { OF_ROUNDS_PLAIN };
    for name in OF_ROUNDS.iter().take(shown).filter(|name| !left_out(name)) {
        match record::field_index::<T>(name) {
            Some(index) if columns.contains(&index) => {}
            Some(index) if *name == "change" => columns.insert(0, index),
            Some(index) => columns.push(index),
            None => {}
        }
    }
    columns
}

fn names_in(list: Option<&str>) -> impl Iterator<Item = Box<str>> {
    list.unwrap_or("").split(',').map(str::trim).filter(|name| !name.is_empty()).map(Box::from)
}
