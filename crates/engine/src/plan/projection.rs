//! The projection: the cells that are read from each row, and the work that is done with them.

use super::error::PlanError;
use super::group_bound::GroupBound;
use super::key_part::KeyPart;
use super::request::{Fold, PlanRequest, SortKey};
use crate::columns;
use crate::order::{RowOrder, TieOrder};
use crate::words;
use record::{Column, Columns, FieldInfo, Kind, Schema};

/// The work on rows that passed the filter.
pub(crate) enum RowWork {
    /// Rows are output as they arrive.
    Stream,
    /// Rows are kept and sorted.
    Sort(RowOrder),
    /// Rows are counted and folded into groups, and the groups are sorted.
    Group(Grouping),
}

/// How rows become groups.
pub(crate) struct Grouping {
    /// The part of each leading cell that forms the key; the folded cells follow.
    pub(crate) keys: Vec<KeyPart>,
    /// How each of the cells after the key is folded, in order.
    pub(crate) folds: Vec<Fold>,
    /// The order of the groups.
    pub(crate) order: RowOrder,
    /// The most groups at one time.
    pub(crate) bound: GroupBound,
}

/// The cells that are read from a row, and the work on them. The order of the cells is a contract with the run:
/// columns first, then fields that only the order needs; for groups keys first, then folded fields.
pub(super) struct Projection {
    /// Field of each cell, as indexes of the table.
    pub(super) fields: Vec<usize>,
    /// For each cell whether a link-local address in it has its interface.
    pub(super) links: Vec<bool>,
    /// The columns of the result.
    pub(super) columns: Columns,
    /// The work on the cells.
    pub(super) work: RowWork,
}

impl Projection {
    /// Returns the projection of a request: of groups if it has `--by` or a fold, otherwise of rows.
    pub(super) fn from_request(
        table: Schema,
        request: &PlanRequest,
        bound: GroupBound,
    ) -> Result<Projection, PlanError> {
        if request.is_grouped() { grouped(table, request, bound) } else { rows(table, request) }
    }
}

/// One cell for each column, then one for each sort key that is not a column.
fn rows(table: Schema, request: &PlanRequest) -> Result<Projection, PlanError> {
    let mut fields = request.columns.clone();
    let columns = columns::from_fields(table, &fields);
    let mut keys = Vec::with_capacity(request.sort.len());
    for sort in &request.sort {
        for index in find(table, "--sort", &sort.name)? {
            let place = fields.iter().position(|&f| f == index).unwrap_or_else(|| {
                fields.push(index);
                fields.len() - 1
            });
            let kind = table.field(index).map_or(Kind::Text, |field| field.kind);
            keys.push((place, sort.is_descending(kind)));
        }
    }
    let ties = if request.ties_by_arrival { TieOrder::Arrival } else { TieOrder::Columns };
    let is_rate = |place: usize| {
        let field = fields.get(place).and_then(|&index| table.field(index));
        field.is_some_and(|field| field.name.ends_with("_per_s"))
    };
    let by_rate = ties == TieOrder::Arrival && keys.iter().all(|&(place, descends)| descends && is_rate(place));
    let work = if keys.is_empty() {
        RowWork::Stream
    } else {
        RowWork::Sort(RowOrder { by_rate, ..RowOrder::new(keys, ties) })
    };
    let always: Vec<usize> =
        request.columns.iter().filter(|column| !request.optional.contains(column)).copied().collect();
    let links = links(table, &fields, &always, |field| field.links_rows);
    Ok(Projection { fields, links, columns, work })
}

/// One cell for each key, then one for each fold. The columns have `count` between them.
fn grouped(table: Schema, request: &PlanRequest, bound: GroupBound) -> Result<Projection, PlanError> {
    let (mut fields, keys) = keys(table, &request.by)?;
    let key_fields = fields.clone();
    let mut columns = columns::from_fields(table, &fields);
    for (column, part) in columns.0.iter_mut().zip(&keys) {
        if *part != KeyPart::Whole {
            column.kind = Kind::Addr;
        }
    }
    columns.0.push(Column { name: "count".into(), kind: Kind::Count });
    for (fold, name) in &request.folds {
        let option = option_of(*fold);
        let [index] = find(table, option, name)?[..] else {
            return Err(PlanError::Unfit { option, name: name.clone(), why: "it means several fields" });
        };
        let Some(field) = table.field(index) else { continue };
        check_fold(*fold, &field)?;
        fields.push(index);
        columns.0.push(Column { name: format!("{}_{}", fold.name(), field.name).into(), kind: field.kind });
    }
    let folds = request.folds.iter().map(|(fold, _)| *fold).collect();
    let order = RowOrder::new(group_order(table, &request.sort, &columns, keys.len())?, TieOrder::Columns);
    let links = links(table, &fields, &key_fields, |_| true);
    Ok(Projection { fields, links, columns, work: RowWork::Group(Grouping { keys, folds, order, bound }) })
}

/// Returns for each field whether link-local addresses in it are written with their interface: where `has_link` says
/// that the field does, unless the columns that are `shown` in any case name the interface.
fn links(table: Schema, fields: &[usize], shown: &[usize], has_link: impl Fn(&FieldInfo) -> bool) -> Vec<bool> {
    let is_shown = |name: &&str| table.index_of(name).is_some_and(|index| shown.contains(&index));
    let is_linked =
        |field: FieldInfo| !field.link_names.is_empty() && has_link(&field) && !field.link_names.iter().all(&is_shown);
    fields.iter().map(|&index| table.field(index).is_some_and(is_linked)).collect()
}

/// Returns the fields of `--by` and the key part of each.
fn keys(table: Schema, by: &[Box<str>]) -> Result<(Vec<usize>, Vec<KeyPart>), PlanError> {
    let (mut fields, mut parts) = (Vec::new(), Vec::new());
    for name in by {
        let unfit = |why| PlanError::Unfit { option: "--by", name: name.clone(), why };
        let (word, prefix) = KeyPart::split(name).ok_or_else(|| unfit(KeyPart::LENGTHS))?;
        let known = words::keys(table, word);
        if known.is_empty() {
            return Err(PlanError::unknown_name("--by", word, table.names()));
        }
        for (index, field) in known.into_iter().filter_map(|index| Some((index, table.field(index)?))) {
            let part = KeyPart::of_field(&field, prefix).map_err(unfit)?;
            match fields.iter().position(|known| *known == index) {
                None => {
                    fields.push(index);
                    parts.push(part);
                }
                Some(place) if parts.get(place) == Some(&part) => {}
                Some(_) => return Err(unfit("its field is already a key with another prefix length")),
            }
        }
    }
    Ok((fields, parts))
}

/// Returns the order of groups: the requested one, else by the first fold or by count, largest first.
fn group_order(
    table: Schema,
    sort: &[SortKey],
    columns: &Columns,
    count: usize,
) -> Result<Vec<(usize, bool)>, PlanError> {
    if sort.is_empty() {
        let fold = (count + 1 < columns.0.len()).then_some((count + 1, true));
        return Ok(fold.into_iter().chain([(count, true)]).collect());
    }
    let mut order = Vec::with_capacity(sort.len());
    for sort in sort {
        let places = find_columns(table, &sort.name, columns);
        if places.is_empty() {
            return Err(match PlanError::unknown_name("--sort", &sort.name, columns.0.iter().map(|c| &*c.name)) {
                PlanError::UnknownField { option, name, hint: None } if table.index_of(&name).is_some() => {
                    PlanError::Unfit { option, name, why: "it is not a column of these groups" }
                }
                unknown => unknown,
            });
        }
        let kind = |place: usize| columns.0.get(place).map_or(Kind::Text, |column| column.kind);
        // A fold is a quantity, even a fold of identifiers: `max_pid`.
        let descends = |place: usize| if place > count { Kind::Count } else { kind(place) };
        order.extend(places.into_iter().map(|place| (place, sort.is_descending(descends(place)))));
    }
    Ok(order)
}

/// Returns the index of the column called `name`, or of the columns whose fields it stands for.
fn find_columns(table: Schema, name: &str, columns: &Columns) -> Vec<usize> {
    let place = |name: &str| columns.0.iter().position(|column| *column.name == *name);
    match place(name) {
        Some(place) => vec![place],
        None => words::fields(table, name)
            .into_iter()
            .filter_map(|index| table.field(index))
            .filter_map(|f| place(f.name))
            .collect(),
    }
}

/// Returns the option of a fold, for messages.
fn option_of(fold: Fold) -> &'static str {
    match fold {
        Fold::Sum => "--sum",
        Fold::Max => "--max",
        Fold::Avg => "--avg",
    }
}

/// Fails if the values of `field` cannot be folded: only quantities have a sum, but any whole number has a maximum.
fn check_fold(fold: Fold, field: &FieldInfo) -> Result<(), PlanError> {
    let is_whole = field.kind.is_number() && field.kind != Kind::Thousandths;
    let fits = if fold == Fold::Max { is_whole } else { field.kind.is_quantity() };
    if fits {
        return Ok(());
    }
    let why = if field.kind.is_number() { "an identifier is not a quantity" } else { "it is not a number" };
    Err(PlanError::Unfit { option: option_of(fold), name: field.name.into(), why })
}

/// Returns the indexes of the fields that `option` names.
fn find(table: Schema, option: &'static str, name: &str) -> Result<Vec<usize>, PlanError> {
    match words::fields(table, name) {
        unknown if unknown.is_empty() => Err(PlanError::unknown_name(option, name, table.names())),
        known => Ok(known),
    }
}
