//! From a request to a plan: names become indexes once, what does not fit is refused before anything is read.

use crate::columns;
use crate::nearest::nearest;
use crate::predicate::{BadPattern, Predicate};
use record::{Column, Columns, Demand, Expr, Field, Get, Kind, LookupId, Table, field_index};
use std::fmt;

/// What a command asks for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Fields to show, as indexes (see [`columns::resolve`]). Not used when rows are grouped.
    pub columns: Vec<usize>,
    /// Those of the columns that the user did not name: they may be null by a backend that lacks them.
    pub usual: Vec<usize>,
    /// The filter as the parts of one `and` (see [`crate::filter::conjuncts`]).
    pub conjuncts: Vec<Expr>,
    /// `--by`: names of the fields that make a group.
    pub by: Vec<Box<str>>,
    /// `--sum`, `--max`, `--avg` with their fields' names, in the order of the result's columns. Without `by` they
    /// make one group of all rows.
    pub folds: Vec<(Fold, Box<str>)>,
    /// `--sort`.
    pub sort: Vec<Sort>,
    /// `--limit`.
    pub limit: Option<u64>,
    /// True if the plan will run in rounds.
    pub repeated: bool,
}

/// How the values of a group become one.
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
    /// `sum`, `max`, `avg`: the option and the beginning of the column's name.
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
pub struct Sort {
    /// A field, or a column of the groups (`count`, `sum_bytes_in`).
    pub name: Box<str>,
    /// True for `:desc`.
    pub descending: bool,
}

impl Sort {
    /// Reads the value of `--sort`: `a`, `a:desc`, `a:asc,b:desc`. Names are looked up by [`Plan::new`], which also
    /// refuses directions that there are not, as a part of the name.
    pub fn parse_list(text: &str) -> Vec<Sort> {
        let one = |item: &str| match item.rsplit_once(':') {
            Some((name, "desc")) => Sort { name: name.into(), descending: true },
            Some((name, "asc")) => Sort { name: name.into(), descending: false },
            _ => Sort { name: item.into(), descending: false },
        };
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(one).collect()
    }
}

/// Why a request makes no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// `option` names a column that there is not.
    UnknownField {
        /// The option: `--by`.
        option: &'static str,
        /// As written.
        name: Box<str>,
        /// What was probably meant.
        hint: Option<Box<str>>,
    },
    /// `option` cannot work on this field.
    Unfit {
        /// The option: `--sum`.
        option: &'static str,
        /// The field.
        name: Box<str>,
        /// What the field is, and what to do instead.
        why: &'static str,
    },
    /// A regular expression that does not compile.
    Pattern(BadPattern),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::UnknownField { option, name, hint } => {
                write!(f, "unknown field `{}` in {option}", name.escape_debug())?;
                match hint {
                    Some(hint) => write!(f, "; did you mean `{hint}`?"),
                    None => f.write_str("; `--columns help` lists the fields"),
                }
            }
            PlanError::Unfit { option, name, why } => write!(f, "{option} cannot take `{name}`: {why}"),
            PlanError::Pattern(bad) => bad.fmt(f),
        }
    }
}

impl std::error::Error for PlanError {}

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

/// What happens to rows that passed the filter.
pub(crate) enum Work {
    /// They go out as they come.
    Stream,
    /// They are kept and put in order: place of a cell, true for descending.
    Sort(Vec<(usize, bool)>),
    /// They are counted and folded, the result is put in order.
    Group(Grouping),
}

/// How rows become groups.
pub(crate) struct Grouping {
    /// How many of the cells are the key; the folded ones follow.
    pub(crate) keys: usize,
    pub(crate) folds: Vec<Fold>,
    /// The order of the result: place of a column, true for descending.
    pub(crate) order: Vec<(usize, bool)>,
}

impl<T: Table> Plan<T> {
    /// Looks up every name of the request.
    ///
    /// Fails on a name that is no field (or no column of the groups), on a fold or an order that does not fit.
    pub fn new(request: Request) -> Result<Plan<T>, PlanError> {
        let predicate = Predicate::new(&request.conjuncts).map_err(PlanError::Pattern)?;
        let grouped = !request.by.is_empty() || !request.folds.is_empty();
        let parts = if grouped { grouped_parts::<T>(&request)? } else { row_parts::<T>(&request)? };
        let asked = asked::<T>(&request, &parts.fields);
        let mut demand = Demand::new(&parts.fields, request.conjuncts);
        demand.repeated = request.repeated;
        let cells = parts.fields.iter().filter_map(|&i| T::FIELDS.get(i)).map(|field| field.get).collect();
        Ok(Plan { demand, asked, predicate, columns: parts.columns, cells, work: parts.work, limit: request.limit })
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
        if let Work::Sort(keys) = &mut self.work {
            // Sort keys that are not shown stand after the columns.
            keys.iter_mut().filter(|(place, _)| *place >= shown).for_each(|(place, _)| *place += key.len());
        }
        self
    }

    /// True if any field that is shown, filtered or grouped by is found in this lookup: only then it must be filled.
    pub fn needs_lookup(&self, id: LookupId) -> bool {
        let fields = self.demand.fields.iter().filter_map(|&i| T::FIELDS.get(i));
        fields.into_iter().any(|field| field.needs_lookup(id))
    }

    /// True if every row goes out as it comes.
    pub fn is_streaming(&self) -> bool {
        matches!(self.work, Work::Stream)
    }
}

/// The fields that the request names: of `fields`, those that are not usual columns, then those of order and filter.
fn asked<T: Table>(request: &Request, fields: &[usize]) -> Vec<usize> {
    let grouped = !request.by.is_empty() || !request.folds.is_empty();
    let named = |field: &&usize| grouped || !request.usual.contains(field);
    let mut asked: Vec<usize> = fields.iter().filter(named).copied().collect();
    asked.extend(request.sort.iter().filter_map(|sort| field_index::<T>(&sort.name)).filter(|_| !grouped));
    for part in &request.conjuncts {
        part.for_each_test(&mut |test| asked.push(test.field));
    }
    asked
}

/// What differs between plans of rows and of groups.
struct Parts {
    fields: Vec<usize>,
    columns: Columns,
    work: Work,
}

fn row_parts<T: Table>(request: &Request) -> Result<Parts, PlanError> {
    let mut fields = request.columns.clone();
    let columns = columns::of::<T>(&fields);
    let mut keys = Vec::with_capacity(request.sort.len());
    for sort in &request.sort {
        let index = find::<T>("--sort", &sort.name)?;
        let place = fields.iter().position(|&f| f == index).unwrap_or_else(|| {
            fields.push(index);
            fields.len() - 1
        });
        keys.push((place, sort.descending));
    }
    let work = if keys.is_empty() { Work::Stream } else { Work::Sort(keys) };
    Ok(Parts { fields, columns, work })
}

fn grouped_parts<T: Table>(request: &Request) -> Result<Parts, PlanError> {
    let mut fields = Vec::new();
    for name in &request.by {
        let index = find::<T>("--by", name)?;
        if let Some(kind) = field::<T>(index).map(|field| field.kind).filter(|kind| kind.is_list()) {
            let why = match kind {
                Kind::Owners => "a list of owners makes no group; take `process` or `pid`",
                _ => "a list makes no group",
            };
            return Err(PlanError::Unfit { option: "--by", name: name.clone(), why });
        }
        if !fields.contains(&index) {
            fields.push(index);
        }
    }
    let keys = fields.len();
    let mut columns = columns::of::<T>(&fields);
    columns.0.push(Column { name: "count".into(), kind: Kind::Count });
    for (fold, name) in &request.folds {
        let index = find::<T>(option_of(*fold), name)?;
        let Some(field) = field::<T>(index) else { continue };
        fits(*fold, field)?;
        fields.push(index);
        columns.0.push(Column { name: format!("{}_{}", fold.name(), field.name).into(), kind: field.kind });
    }
    let folds = request.folds.iter().map(|(fold, _)| *fold).collect();
    let order = group_order(&request.sort, &columns, keys)?;
    Ok(Parts { fields, columns, work: Work::Group(Grouping { keys, folds, order }) })
}

/// The order of groups: as asked, else by count with the largest first.
fn group_order(sort: &[Sort], columns: &Columns, count: usize) -> Result<Vec<(usize, bool)>, PlanError> {
    if sort.is_empty() {
        return Ok(vec![(count, true)]);
    }
    let place = |sort: &Sort| match columns.0.iter().position(|c| c.name == sort.name) {
        Some(place) => Ok((place, sort.descending)),
        None => Err(unknown("--sort", &sort.name, columns.0.iter().map(|c| &*c.name))),
    };
    sort.iter().map(place).collect()
}

fn option_of(fold: Fold) -> &'static str {
    match fold {
        Fold::Sum => "--sum",
        Fold::Max => "--max",
        Fold::Avg => "--avg",
    }
}

fn fits<T: Table>(fold: Fold, field: &Field<T>) -> Result<(), PlanError> {
    let is_whole = field.kind.is_number() && field.kind != Kind::Thousandths;
    let fits = if fold == Fold::Max { is_whole } else { field.kind.is_quantity() };
    if fits {
        return Ok(());
    }
    let why = if field.kind.is_number() { "an identifier is no quantity" } else { "it is no number" };
    Err(PlanError::Unfit { option: option_of(fold), name: field.name.into(), why })
}

fn field<T: Table>(index: usize) -> Option<&'static Field<T>> {
    T::FIELDS.get(index)
}

fn find<T: Table>(option: &'static str, name: &str) -> Result<usize, PlanError> {
    field_index::<T>(name).ok_or_else(|| unknown(option, name, T::FIELDS.iter().map(|f| f.name)))
}

/// A name that is none of `known`. What looks like a direction behind it (`pid:down`) is mended, too.
fn unknown<'n>(option: &'static str, name: &str, known: impl Iterator<Item = &'n str>) -> PlanError {
    let (word, direction) = name.split_once(':').map_or((name, ""), |(word, _)| (word, ":desc"));
    let hint = nearest(word, known).map(|near| format!("{near}{direction}").into());
    PlanError::UnknownField { option, name: name.into(), hint }
}

#[cfg(test)]
mod tests;
