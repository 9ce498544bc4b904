//! The plan: a request whose names are resolved to indexes once. Mistakes are refused before anything is read.
//!
//! A [`PlanRequest`] has the user's words. [`Plan::new`] resolves every name: the result contains the fields that a
//! source must deliver ([`Demand`]), the filter ([`Predicate`]), the cells that are read from a row (`projection`),
//! and whether rows stream, are sorted, or are counted into groups. The plan reads nothing; [`run`](crate::run) does.
mod error;
mod group_bound;
mod key_part;
mod projection;
mod request;

use crate::predicate::Predicate;
use projection::Projection;
use record::{Column, Columns, Demand, Field, Get, LookupId, Schema, Table};

pub use error::PlanError;
pub use group_bound::GROUPS_MAX;
pub(crate) use group_bound::GroupBound;
pub(crate) use key_part::KeyPart;
pub(crate) use projection::{Grouping, RowWork};
pub use request::{Fold, PlanRequest, SortKey};

/// A request with every name resolved. It can run any number of times.
pub struct Plan<T: Table> {
    pub(crate) demand: Demand<T>,
    /// Fields that the request names: a forced backend must have them.
    pub(crate) asked: Vec<usize>,
    pub(crate) predicate: Predicate<T>,
    /// The columns of the result.
    pub(crate) columns: Columns,
    /// The getter of each cell of a row; cells that are not shown come last.
    pub(crate) cells: Vec<Get<T>>,
    pub(crate) work: RowWork,
    pub(crate) limit: Option<u64>,
}

impl<T: Table> Plan<T> {
    /// Resolves every name of the request.
    ///
    /// Fails on an unknown field (or an unknown column of the groups), and on a fold or an order that does not fit.
    pub fn new(request: PlanRequest) -> Result<Plan<T>, PlanError> {
        let predicate = Predicate::new(&request.conjuncts).map_err(PlanError::Pattern)?;
        let bound = if T::ENDLESS { GroupBound::OF_STREAMS } else { GroupBound::NONE };
        let Projection { fields, links, columns, work } =
            Projection::from_request(Schema::from_table::<T>(), &request, bound)?;
        let asked = request.named_fields(Schema::from_table::<T>(), &fields);
        let always: Vec<usize> = fields.iter().filter(|field| !request.unusual.contains(field)).copied().collect();
        let mut demand = Demand::new(&always, request.conjuncts);
        demand.need |=
            request.unusual.iter().filter_map(|&i| T::FIELDS.get(i)).fold(0, |need, field| need | field.need);
        demand.repeated = request.repeated;
        let cells = fields.iter().zip(links).filter_map(|(&i, on_link)| {
            let field = T::FIELDS.get(i)?;
            Some(if on_link { field.get_on_link() } else { field.get })
        });
        let cells = cells.collect();
        Ok(Plan { demand, asked, predicate, columns, cells, work, limit: request.limit })
    }

    /// A plan for typed rows ([`Plan::run_rows`]): only `demand`, no columns.
    ///
    /// Fails on a regular expression that does not compile.
    pub fn of_rows(demand: Demand<T>) -> Result<Plan<T>, PlanError> {
        let predicate = Predicate::new(&demand.conjuncts).map_err(PlanError::Pattern)?;
        let (asked, cells) = (Vec::new(), Vec::new());
        Ok(Plan { demand, asked, predicate, columns: Columns::default(), cells, work: RowWork::Stream, limit: None })
    }

    /// Returns the plan's demand on a source.
    pub fn demand(&self) -> &Demand<T> {
        &self.demand
    }

    /// Returns the `need` bits of the fields that the request names: in the filter, the order and `--columns`; with
    /// groups, of all fields.
    pub fn named_need(&self) -> u64 {
        self.asked.iter().filter_map(|&index| T::FIELDS.get(index)).fold(0, |need, field| need | field.need)
    }

    /// Returns the columns of the result, in the form that the sink gets.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Returns the plan with `key` as additional last columns, for a command that must know the object of each line.
    /// The fields belong to the command and need not be in the table. Groups stay unchanged.
    pub fn with_key(mut self, key: &[Field<T>]) -> Plan<T> {
        if matches!(self.work, RowWork::Group(_)) {
            return self;
        }
        let shown = self.columns.0.len();
        for (place, field) in key.iter().enumerate() {
            self.cells.insert(shown + place, field.get);
            self.columns.0.push(Column { name: field.name.into(), kind: field.kind });
            self.demand.need |= field.need;
        }
        if let RowWork::Sort(order) = &mut self.work {
            // Sort keys that are not shown come after the columns.
            order.keys.iter_mut().filter(|(place, _)| *place >= shown).for_each(|(place, _)| *place += key.len());
        }
        self
    }

    /// True if a shown, filtered or grouped field comes from this lookup: only then it must be filled.
    pub fn needs_lookup(&self, id: LookupId) -> bool {
        let fields = self.demand.fields.iter().filter_map(|&i| T::FIELDS.get(i));
        fields.into_iter().any(|field| field.needs_lookup(id))
    }

    /// True if some rows may need this lookup for a cell: of those, few or none. It is filled once such a row comes.
    pub fn may_need_lookup(&self, id: LookupId) -> bool {
        self.cells.iter().any(|get| get.needs_lookup(id))
    }

    /// True if no row is left out: there is neither a filter nor a limit.
    pub fn takes_all(&self) -> bool {
        self.demand.conjuncts.is_empty() && self.limit.is_none()
    }

    /// True if every row is output as it arrives.
    pub fn is_streaming(&self) -> bool {
        matches!(self.work, RowWork::Stream)
    }
}

#[cfg(test)]
mod tests;
