//! Converts the words of a request to a plan of the engine.

use crate::request::{Repeat, TableRequest};
use engine::columns::{self, Base, UnknownColumn};
use engine::filter::Clock;
use engine::{Ast, FilterError, Fold, Plan, PlanRequest, SortKey};
use record::{Expr, Op, Operand, Schema, Show, Table, Test};
use std::fmt;
use std::path::Path;
use sys::Host;

/// Errors in the words.
#[derive(Debug)]
pub enum PlanError {
    /// An error in the filter.
    Filter(FilterError),
    /// An error in `--columns`.
    Column(UnknownColumn),
    /// An error in `--by`, `--sort` or a pattern.
    Plan(engine::PlanError),
    /// The filter names a value that the field does not have.
    NoSuchName {
        /// The field.
        field: &'static str,
        /// The name as the user wrote it.
        name: Box<str>,
        /// The name that was probably meant.
        hint: Option<&'static str>,
    },
    /// A field that compares two rounds is used with a single round.
    OneRound {
        /// The option that uses it, or the filter.
        place: &'static str,
        /// The field.
        name: &'static str,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Filter(error) => error.fmt(f),
            PlanError::Column(error) => error.fmt(f),
            PlanError::Plan(error) => error.fmt(f),
            PlanError::NoSuchName { field, name, hint } => {
                write!(f, "the filter: `{field}` has no value `{}`", name.escape_debug())?;
                hint.map_or(Ok(()), |hint| write!(f, "; did you mean `{hint}`?"))
            }
            PlanError::OneRound { place, name } => {
                write!(f, "{place} cannot use `{name}` in a single round: it compares two rounds, add --watch")
            }
        }
    }
}

impl From<UnknownColumn> for PlanError {
    fn from(error: UnknownColumn) -> PlanError {
        PlanError::Column(error)
    }
}

impl From<FilterError> for PlanError {
    fn from(error: FilterError) -> PlanError {
        PlanError::Filter(error)
    }
}

impl From<engine::PlanError> for PlanError {
    fn from(error: engine::PlanError) -> PlanError {
        PlanError::Plan(error)
    }
}

/// The plan of `request` over `T`, if the filter tests only fields of `T`.
pub fn of_request<T: Table>(request: &TableRequest<'_>) -> Result<Plan<T>, PlanError> {
    plan(request, &parse(Schema::from_table::<T>(), request)?)
}

/// Parses the filter of `table`. Errors propose the filter that was probably meant.
pub fn parse(table: Schema, request: &TableRequest<'_>) -> Result<Ast, FilterError> {
    let parsed = engine::filter::parse(&request.shown.filter);
    parsed.map_err(|error| engine::filter::with_proposal(table, error, &|filter| proposed(table, request, filter)))
}

/// Returns the request's command line with another filter; `None` if its columns or groups are unknown.
fn proposed(table: Schema, request: &TableRequest<'_>, filter: &str) -> Option<String> {
    let shown = &request.shown;
    columns::resolve(table, shown.columns.as_deref(), Base::Default, true).ok()?;
    let is_known = |name: Box<str>| !engine::words::fields(table, &name).is_empty();
    let are_known = names_in(shown.by.as_deref()).all(is_known);
    request.line.with_filter(filter).filter(|_| are_known)
}

/// The plan of `request` over `T`; `filter` is the part of the filter on `T`'s fields.
pub fn plan<T: Table>(request: &TableRequest<'_>, filter: &Ast) -> Result<Plan<T>, PlanError> {
    Ok(Plan::new(in_fields(Schema::from_table::<T>(), request, filter)?)?)
}

/// Resolves the words of `request` to fields of `table`.
pub fn in_fields(table: Schema, request: &TableRequest<'_>, filter: &Ast) -> Result<PlanRequest, PlanError> {
    let shown = &request.shown;
    let base = if shown.wide { Base::Wide } else { Base::Default };
    let columns =
        with_namespaces(table, request, columns::resolve(table, shown.columns.as_deref(), base, !shown.no_owner)?);
    let conjuncts = bind(table, request, filter)?.into_conjuncts();
    let columns = with_rounds(table, request, of_one_table(table, request, columns, &conjuncts));
    let optional: Vec<usize> = request.unusual.iter().filter_map(|name| table.index_of(name)).collect();
    let columns = with_optional(columns, &optional);
    let usual = usual(table, shown.columns.as_deref(), &columns);
    let is_unusual = |column: &usize| table.field(*column).is_some_and(|field| field.show == Show::Unusual);
    let unusual = usual.iter().copied().filter(is_unusual).collect();
    let columns = with_sort_keys(table, shown.sort.as_deref(), columns);
    if request.repeat == Repeat::Once {
        all_of_one_round(table, request, &conjuncts)?;
    }
    let mut folds = Vec::new();
    for (fold, names) in [Fold::Sum, Fold::Max, Fold::Avg].into_iter().zip(&shown.aggregates) {
        folds.extend(names_in(names.as_deref()).map(|name| (fold, name)));
    }
    let (sort, ties_by_arrival) = sort_keys(table, request, &columns);
    Ok(PlanRequest {
        columns,
        usual,
        unusual,
        optional,
        conjuncts,
        by: groups(table, request),
        folds,
        sort,
        ties_by_arrival,
        limit: shown.limit,
        repeated: request.repeat != Repeat::Once,
    })
}

/// Returns the fields of `--by`. If all namespaces are read, groups do not span namespaces, because equal addresses in
/// two namespaces are different endpoints. `-netns` in the list makes groups span all of them.
fn groups(table: Schema, request: &TableRequest<'_>) -> Vec<Box<str>> {
    let mut names: Vec<Box<str>> = names_in(request.shown.by.as_deref()).collect();
    let count = names.len();
    names.retain(|name| &**name != "-netns");
    let is_across = names.len() < count || names.iter().any(|name| matches!(&**name, "netns" | "netns_id"));
    if request.all_netns && !names.is_empty() && !is_across && table.index_of("netns").is_some() {
        names.insert(0, "netns".into());
    }
    names
}

/// The filter over the fields of `table`, with service names resolved to ports and relative times to absolute ones.
/// Names and the time zone are those of this machine, even in a replay, because the user wrote the filter here.
pub fn bind(table: Schema, request: &TableRequest<'_>, filter: &Ast) -> Result<Expr, FilterError> {
    let mut text: Option<Vec<u8>> = None;
    let mut ports_of = |name: &str| {
        let text = text.get_or_insert_with(|| {
            let mut text = Vec::new();
            // If the file is missing, no word is a name, and the error explains what a port is.
            let _ = Host::live().read_file("/etc/services", &mut text);
            text
        });
        let mut ports: Vec<u16> = host::ports_named(text, name.as_bytes()).iter().map(|(_, port)| *port).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    };
    let filter = engine::filter::name_ports(table, filter, &mut ports_of);
    let clock = FilterClock { replay: request.replay };
    engine::filter::bind(table, &engine::filter::resolve_times(table, &filter, &clock))
        .map_err(|error| engine::filter::with_proposal(table, error, &|filter| proposed(table, request, filter)))
}

/// The clock for times in a filter: the wall clock, or in a replay the time at which the recording began.
struct FilterClock<'r> {
    replay: Option<&'r Path>,
}

impl Clock for FilterClock<'_> {
    fn now_ns(&self) -> u64 {
        // An unreadable file is rejected when it is opened.
        let recorded =
            self.replay.and_then(|file| lookups::recording_file::header_of(file).ok()).map(|header| header.time);
        recorded.unwrap_or_else(sys::clock::wall).since_1970_ns()
    }

    fn utc_offset_s(&self, at_s: i64) -> i64 {
        sys::clock::local_time(at_s).map_or(0, |local| local.utc_offset_s.into())
    }
}

/// Appends the columns named by `--sort`, so that the order is visible.
fn with_sort_keys(table: Schema, sort: Option<&str>, mut columns: Vec<usize>) -> Vec<usize> {
    for key in SortKey::parse_list(sort.unwrap_or("")) {
        // The plan rejects unknown names.
        for index in engine::words::fields(table, &key.name) {
            if !columns.contains(&index) {
                columns.push(index);
            }
        }
    }
    columns
}

/// Rate fields that order tables with --watch, each with the columns of which at least one must be shown.
const ORDER_OF_ROUNDS: [(&str, &[&str]); 2] =
    [("bytes_per_s", &["bytes_in_per_s", "bytes_out_per_s"]), ("per_s", &["per_s"])];

/// Returns the sort keys, and true if rows with equal keys keep their order. The user's or the command's order comes
/// first; otherwise tables of rounds that show rates are sorted by rate. JSON and CSV are streamed.
fn sort_keys(table: Schema, request: &TableRequest<'_>, columns: &[usize]) -> (Vec<SortKey>, bool) {
    let shown = &request.shown;
    if let Some(order) = shown.sort.as_deref().or(shown.order) {
        return (SortKey::parse_list(order), false);
    }
    if request.repeat == Repeat::Once || shown.by.is_some() || !request.is_for_people {
        return (Vec::new(), false);
    }
    let is_shown = |name: &&str| table.index_of(name).is_some_and(|index| columns.contains(&index));
    let rate = ORDER_OF_ROUNDS.iter().find(|(_, needed)| needed.iter().any(is_shown));
    (rate.map_or(Vec::new(), |(name, _)| SortKey::parse_list(name)), true)
}

/// Rejects fields that are null in every row of a single round: sorting, grouping, adding or testing them would look
/// like a result.
pub fn all_of_one_round(table: Schema, request: &TableRequest<'_>, conjuncts: &[Expr]) -> Result<(), PlanError> {
    let shown = &request.shown;
    let [sum, max, avg] = &shown.aggregates;
    let lists = [("--by", &shown.by), ("--sum", sum), ("--max", max), ("--avg", avg)];
    let named = lists.into_iter().flat_map(|(place, list)| names_in(list.as_deref()).map(move |name| (place, name)));
    let sorted = SortKey::parse_list(shown.sort.as_deref().unwrap_or("")).into_iter().map(|key| ("--sort", key.name));
    for (place, name) in named.chain(sorted) {
        if let Some(name) = engine::words::fields(table, &name).into_iter().find_map(|it| compared(table, it)) {
            return Err(PlanError::OneRound { place, name });
        }
    }
    match conjuncts.iter().find_map(|it| tested(table, it)) {
        Some(name) => Err(PlanError::OneRound { place: "the filter", name }),
        None => Ok(()),
    }
}

/// The field's name, if only a comparison of rounds fills it: changes, rates and differences.
fn compared(table: Schema, index: usize) -> Option<&'static str> {
    table.index_of("change")?;
    let name = table.field(index)?.name;
    (name == "change" || name.ends_with("_per_s") || name.ends_with("_delta")).then_some(name)
}

/// The first such field that a filter tests.
fn tested(table: Schema, expr: &Expr) -> Option<&'static str> {
    let mut found = None;
    expr.for_each_test(&mut |test| found = found.or_else(|| compared(table, test.field)));
    found
}

/// The columns with those that a table writes only if a row has them.
fn with_optional(mut columns: Vec<usize>, optional: &[usize]) -> Vec<usize> {
    let new: Vec<usize> = optional.iter().copied().filter(|index| !columns.contains(index)).collect();
    columns::insert(&mut columns, &new);
    columns
}

/// The columns that are not named in `--columns`.
fn usual(table: Schema, spec: Option<&str>, columns: &[usize]) -> Vec<usize> {
    let items = spec.unwrap_or("").split(',').map(|item| item.trim().trim_start_matches('+'));
    let named: Vec<usize> = items.flat_map(|word| engine::words::fields(table, word)).collect();
    columns.iter().copied().filter(|column| !named.contains(column)).collect()
}

/// Columns appended when all namespaces are read.
const OTHER_END: &[&str] = &["peer_netns", "peer_process", "peer_pid"];

/// The resolved columns; if all namespaces are read, with additional columns that identify the namespaces.
fn with_namespaces(table: Schema, request: &TableRequest<'_>, mut columns: Vec<usize>) -> Vec<usize> {
    let spec = request.shown.columns.as_deref().unwrap_or("").trim();
    if !request.all_netns || !(spec.is_empty() || spec.starts_with(['+', '-'])) {
        return columns;
    }
    let left_out = |name: &str| spec.split(',').any(|item| item.trim().strip_prefix('-') == Some(name));
    let field = |name: &&str| if left_out(name) { None } else { table.index_of(name) };
    if let Some(netns) = field(&"netns") {
        columns.retain(|&column| column != netns);
        columns.insert(0, netns);
    }
    for index in OTHER_END.iter().filter_map(field) {
        let owner = table.field(index).is_some_and(|field| columns::is_owner_field(&field));
        let unwanted = owner && request.shown.no_owner;
        if !unwanted && !columns.contains(&index) {
            columns.push(index);
        }
    }
    columns
}

/// The address columns.
const ADDRESSES: &[&str] = &["local_addr", "local_port", "peer_addr", "peer_port"];

/// The resolved columns; if the filter admits only one table without IP addresses, the plain view replaces the four
/// empty address columns with that table's own.
fn of_one_table(table: Schema, request: &TableRequest<'_>, mut columns: Vec<usize>, conjuncts: &[Expr]) -> Vec<usize> {
    let spec = request.shown.columns.as_deref().unwrap_or("").trim();
    // Machine-readable output has the same columns for every filter.
    let is_plain = request.is_for_people && !request.shown.wide;
    let is_plain = is_plain && (spec.is_empty() || spec.starts_with(['+', '-']));
    let only = |word: &str, names: &[&str]| conjuncts.iter().any(|part| admits_only(table, part, word, names));
    let Some((_, names)) = request.columns_of_proto.iter().find(|(proto, names)| is_plain && only(proto, names)) else {
        return if is_plain { with_path(table, columns, conjuncts) } else { columns };
    };
    let Some(at) = columns.iter().position(|&column| table.field(column).is_some_and(|f| f.name == ADDRESSES[0]))
    else {
        return columns;
    };
    let here: Vec<usize> = names.iter().filter_map(|name| table.index_of(name)).collect();
    columns.retain(|&column| table.field(column).is_none_or(|field| !ADDRESSES.contains(&field.name)));
    let at = at.min(columns.len());
    let new: Vec<usize> = here.into_iter().filter(|column| !columns.contains(column)).collect();
    columns.splice(at..at, new);
    columns
}

/// True for `proto = word`, and for a test of one of the `names` that only such sockets have.
fn admits_only(table: Schema, part: &Expr, word: &str, names: &[&str]) -> bool {
    /// A field that other sockets also have.
    const SHARED: &str = "iface";
    let Expr::Test(Test { field, op, operand }) = part else { return false };
    let Some(name) = table.field(*field).map(|field| field.name) else { return false };
    match operand {
        Operand::Words(words) if name == "proto" => *op == Op::Eq && words.iter().all(|w| **w == *word.as_bytes()),
        // A comparison is false for null, which is the value in other sockets.
        operand => *operand != Operand::Null && name != SHARED && names.contains(&name),
    }
}

/// Adds the path after the addresses if the filter names unix sockets among others.
fn with_path(table: Schema, mut columns: Vec<usize>, conjuncts: &[Expr]) -> Vec<usize> {
    let at = columns.iter().position(|&column| table.field(column).is_some_and(|f| f.name == ADDRESSES[3]));
    let Some((at, path)) = at.zip(table.index_of("path")) else { return columns };
    if conjuncts.iter().any(|part| names_unix(table, part)) && !columns.contains(&path) {
        columns.insert(at + 1, path);
    }
    columns
}

/// True if some part of the filter explicitly includes unix sockets.
fn names_unix(table: Schema, part: &Expr) -> bool {
    match part {
        Expr::And(parts) | Expr::Or(parts) => parts.iter().any(|part| names_unix(table, part)),
        Expr::Not(_) => false,
        Expr::Test(Test { field, op, operand: Operand::Words(words) }) => {
            let is_proto = table.field(*field).is_some_and(|field| field.name == "proto");
            is_proto && *op == Op::Eq && words.iter().any(|word| **word == *b"unix")
        }
        Expr::Test(_) => false,
    }
}

/// Columns of `--watch`: the first before all others, the rest after them; the last three only in the wide view.
const OF_ROUNDS: &[&str] =
    &["change", "bytes_in_per_s", "bytes_out_per_s", "segs_in_per_s", "segs_out_per_s", "retrans_per_s"];
/// Number of these columns in the plain table.
const OF_ROUNDS_PLAIN: usize = 3;

/// The resolved columns; if these are the default columns and rounds repeat, with columns that compare rounds.
fn with_rounds(table: Schema, request: &TableRequest<'_>, mut columns: Vec<usize>) -> Vec<usize> {
    let spec = request.shown.columns.as_deref().unwrap_or("").trim();
    if request.repeat == Repeat::Once || !(spec.is_empty() || spec.starts_with(['+', '-'])) {
        return columns;
    }
    let left_out = |name: &str| spec.split(',').any(|item| item.trim().strip_prefix('-') == Some(name));
    let shown = if request.shown.wide { OF_ROUNDS.len() } else { OF_ROUNDS_PLAIN };
    for name in OF_ROUNDS.iter().take(shown).filter(|name| !left_out(name)) {
        match table.index_of(name) {
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
