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
    let spec = shown.columns.as_deref();
    let mut columns = columns::resolve::<T>(spec, base, !shown.no_owner).map_err(Wrong::Column)?;
    if request.all_netns && changes_the_usual(spec) {
        columns.splice(0..0, record::field_index::<T>("netns").filter(|netns| !columns.contains(netns)));
    }
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

/// True if the value of `--columns` starts from the usual columns and does not leave out `netns`.
fn changes_the_usual(spec: Option<&str>) -> bool {
    let spec = spec.unwrap_or("").trim();
    (spec.is_empty() || spec.starts_with(['+', '-'])) && !spec.split(',').any(|item| item.trim() == "-netns")
}

fn names_in(list: Option<&str>) -> impl Iterator<Item = Box<str>> {
    list.unwrap_or("").split(',').map(str::trim).filter(|name| !name.is_empty()).map(Box::from)
}
