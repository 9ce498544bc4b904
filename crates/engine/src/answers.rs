//! Whether the backend can answer what the plan asks: a field that it lacks is null in every row, and a filter over such
//! a field lets no row through. Neither may look like an answer.

use crate::plan::Plan;
use record::{Accounting, BackendLacks, Field, Offer, Table};
use std::fmt;

/// A field that the user asks for by name, and the backend that the user forces lacks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// The field.
    pub field: &'static str,
    /// The forced backend.
    pub backend: &'static str,
    /// Backends that have the field, for the same rows.
    pub has_it: Vec<&'static str>,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unanswered { field, backend, has_it } = self;
        write!(f, "`{field}` cannot be read by {backend}")?;
        match has_it.as_slice() {
            [] => f.write_str("; no other backend has it either"),
            backends => write!(f, "; --via {} can, or leave --via out", backends.join(" or --via ")),
        }
    }
}

impl std::error::Error for Unanswered {}

impl<T: Table> Plan<T> {
    /// Fails if a field that the request names is lacked by the backend that it forces.
    pub(crate) fn check(&self, offer: &Offer) -> Result<(), Unanswered> {
        let Some((forced, others)) = offer.backends.split_first() else { return Ok(()) };
        let has = |backend: &BackendLacks, field: &Field<T>| field.need & backend.lacks == 0;
        let lacking = self.asked.iter().filter_map(|&index| T::FIELDS.get(index)).find(|field| !has(forced, field));
        lacking.map_or(Ok(()), |field| {
            let has_it = others.iter().filter(|other| has(other, field)).map(|other| other.backend).collect();
            Err(Unanswered { field: field.name, backend: forced.backend, has_it })
        })
    }

    /// The sentence for `stats` if the filter tests a field that is unknown in some of the rows: rows may be missing.
    pub(crate) fn filter_gap(&self, offer: &Offer) -> Option<String> {
        let mut lacking = Vec::new();
        for part in &self.demand.conjuncts {
            part.for_each_test(&mut |test| {
                let field = T::FIELDS.get(test.field).filter(|field| field.need & offer.lacks != 0);
                lacking.extend(field.map(|field| field.name).filter(|name| !lacking.contains(name)));
            });
        }
        (!lacking.is_empty()).then(|| {
            let names = lacking.join("`, `");
            format!("the filter tests `{names}`, which {} does not tell of every row: rows may be missing", offer.door)
        })
    }
}

/// Adds the sentence of [`Plan::filter_gap`].
pub(crate) fn add_gap(gap: Option<&str>, stats: &mut Accounting) {
    if let Some(gap) = gap {
        stats.incomplete = true;
        stats.because(0, gap.to_owned());
    }
}
