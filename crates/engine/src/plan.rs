//! From a request to a plan: names become indexes once, what does not fit is refused before anything is read.
//!
//! A [`PlanRequest`] holds what the user wrote. [`Plan::new`] looks every name up: the result says which fields a
//! source must deliver ([`Demand`]), what is tested ([`Predicate`]), which cells are read from a row (`projection`),
//! and whether rows stream, are sorted, or are counted into groups. The plan reads nothing; [`run`](crate::run) does.
mod error;
mod key_part;
mod projection;
mod request;

use crate::group::GroupBound;
use crate::predicate::Predicate;
use projection::Projection;
use record::{Column, Columns, Demand, Field, Get, LookupId, Schema, Table};

pub use error::PlanError;
pub(crate) use key_part::KeyPart;
pub(crate) use projection::{Grouping, Work};
pub use request::{Fold, PlanRequest, Sort};

/// A request with every name looked up: runs as often as one likes.
pub struct Plan<T: Table> {
    pub(crate) demand: Demand<T>,
    /// Fields that the request names: a forced backend must have them.
    pub(crate) asked: Vec<usize>,
    pub(crate) predicate: Predicate<T>,
    /// The columns of the result.
    pub(crate) columns: Columns,
    /// How each cell of a row is got; the cells that are not shown come last.
    pub(crate) cells: Vec<Get<T>>,
    pub(crate) work: Work,
    pub(crate) limit: Option<u64>,
}

impl<T: Table> Plan<T> {
    /// Looks up every name of the request.
    ///
    /// Fails on a name that is no field (or no column of the groups), on a fold or an order that does not fit.
    pub fn new(request: PlanRequest) -> Result<Plan<T>, PlanError> {
        let predicate = Predicate::new(&request.conjuncts).map_err(PlanError::Pattern)?;
        let bound = if T::ENDLESS { GroupBound::OF_STREAMS } else { GroupBound::NONE };
        let Projection { fields, columns, work } = Projection::of(Schema::of::<T>(), &request, bound)?;
        let asked = request.named_fields(Schema::of::<T>(), &fields);
        let mut demand = Demand::new(&fields, request.conjuncts);
        demand.repeated = request.repeated;
        let cells = fields.iter().filter_map(|&i| T::FIELDS.get(i)).map(|field| field.get).collect();
        Ok(Plan { demand, asked, predicate, columns, cells, work, limit: request.limit })
    }

    /// A plan for typed rows ([`Plan::run_rows`]): what `demand` says, and no columns.
    ///
    /// Fails on a regular expression that does not compile.
    pub fn of_rows(demand: Demand<T>) -> Result<Plan<T>, PlanError> {
        let predicate = Predicate::new(&demand.conjuncts).map_err(PlanError::Pattern)?;
        let (asked, cells) = (Vec::new(), Vec::new());
        Ok(Plan { demand, asked, predicate, columns: Columns::default(), cells, work: Work::Stream, limit: None })
    }

    /// What the plan asks of a source.
    pub fn demand(&self) -> &Demand<T> {
        &self.demand
    }

    /// The `need` bits of the fields that the request names: in the filter, the order, `--columns`, of groups all.
    pub fn named_need(&self) -> u64 {
        self.asked.iter().filter_map(|&index| T::FIELDS.get(index)).fold(0, |need, field| need | field.need)
    }

    /// The columns of the result, as the sink will see them.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The same plan with `key` as more columns after the others: for a command that must know which object a line is.
    /// The fields are the command's own and need not stand in the table. Nothing changes for groups.
    pub fn with_key(mut self, key: &[Field<T>]) -> Plan<T> {
        if matches!(self.work, Work::Group(_)) {
            return self;
        }
        let shown = self.columns.0.len();
        for (place, field) in key.iter().enumerate() {
            self.cells.insert(shown + place, field.get);
            self.columns.0.push(Column { name: field.name.into(), kind: field.kind });
            self.demand.need |= field.need;
        }
        if let Work::Sort(order) = &mut self.work {
            // Sort keys that are not shown stand after the columns.
            order.keys.iter_mut().filter(|(place, _)| *place >= shown).for_each(|(place, _)| *place += key.len());
        }
        self
    }

    /// True if any field that is shown, filtered or grouped by is found in this lookup: only then it must be filled.
    pub fn needs_lookup(&self, id: LookupId) -> bool {
        let fields = self.demand.fields.iter().filter_map(|&i| T::FIELDS.get(i));
        fields.into_iter().any(|field| field.needs_lookup(id))
    }

    /// True if no row is left out: there is neither a filter nor a limit.
    pub fn takes_all(&self) -> bool {
        self.demand.conjuncts.is_empty() && self.limit.is_none()
    }

    /// True if every row goes out as it comes.
    pub fn is_streaming(&self) -> bool {
        matches!(self.work, Work::Stream)
    }
}

#[cfg(test)]
mod tests;
