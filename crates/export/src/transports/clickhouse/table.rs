//! The table on the server: creates it, or its missing columns, and finds out what it takes.

use super::block::InsertPlan;
use super::column::{ColumnWriter, ServerType};
use super::fault::{ServerFault, evaluate};
use super::http_interface::HttpInterface;
use crate::transports::protobuf::take_varint;
use crate::transports::with_object;
use crate::typed_row::{ColumnType, TableShape};
use std::io::{self, ErrorKind};

/// The column with the name of the host, which is not in the rows.
const HOST: &str = "host";
/// The column by which rows are sorted within a host.
const TIME: &str = "time";
/// A table that netwren creates remembers the tokens of this many inserts.
const WINDOW: u32 = 10_000;

/// A column of the server's table: its name and type.
type ServerColumn = (String, String);

/// Returns what the server's table takes, after creating what is missing. If nothing is missing, the right to insert is
/// enough.
pub(super) fn create_or_inspect(connection: &mut HttpInterface, shape: &TableShape) -> io::Result<InsertPlan> {
    let mut columns = columns(connection, shape)?;
    if columns.is_empty() {
        run(connection, &create(shape), "cannot create", shape)?;
        columns = self::columns(connection, shape)?;
    }
    let is_missing = |name: &str| columns.iter().all(|(known, _)| known != name);
    let missing: Vec<&(String, ColumnType)> = shape.columns.iter().filter(|(name, _)| is_missing(name)).collect();
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|(name, _)| &**name).collect();
        let what = format!("cannot add the missing columns {} (or leave them out with --columns) to", names.join(", "));
        run(connection, &add(shape, &missing), &what, shape)?;
        columns = self::columns(connection, shape)?;
    }
    plan(connection, shape, &columns)
}

/// Joins our columns with the server's.
fn plan(connection: &mut HttpInterface, shape: &TableShape, found: &[ServerColumn]) -> io::Result<InsertPlan> {
    let is_ours = |name: &str| shape.columns.iter().any(|(known, _)| known == name);
    let has_host = !is_ours(HOST) && found.iter().any(|(name, _)| name == HOST);
    let host = (HOST.to_owned(), ColumnType::Text);
    let all = has_host.then_some(&host).into_iter().chain(&shape.columns);
    let writers: io::Result<Vec<ColumnWriter>> = all.map(|(name, kind)| writer(name, *kind, found, shape)).collect();
    let writers = writers?;
    let names: Vec<String> = writers.iter().map(|column| quote(column.name())).collect();
    Ok(InsertPlan {
        statement: format!("INSERT INTO {} ({}) FORMAT Native", quote(&shape.name), names.join(", ")),
        knows_tokens: knows_tokens(connection, shape)?,
        shape_id: shape.id(),
        has_host,
        columns: writers,
    })
}

fn writer(name: &str, kind: ColumnType, found: &[ServerColumn], shape: &TableShape) -> io::Result<ColumnWriter> {
    let server = found.iter().find(|(known, _)| known == name).map_or("", |(_, server)| server);
    let fitting = ServerType::parse(server).filter(|server| server.takes(kind));
    let fitting = fitting.ok_or_else(|| {
        let text = format!(
            "the column {name} of table {} is {}, but values of netwren's are {}",
            shape.name,
            if server.is_empty() { "missing" } else { server },
            sql_type(name, kind)
        );
        io::Error::new(ErrorKind::InvalidInput, text)
    })?;
    Ok(ColumnWriter::new(name, kind, fitting))
}

/// Asks for the columns of the table; none if it does not exist. Columns that the server computes are left out.
fn columns(connection: &mut HttpInterface, shape: &TableShape) -> io::Result<Vec<ServerColumn>> {
    let statement = format!(
        "SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = {} \
         AND default_kind NOT IN ('ALIAS', 'MATERIALIZED') ORDER BY position FORMAT RowBinary",
        literal(&shape.name)
    );
    let texts = run(connection, &statement, "cannot look at the columns of", shape)?;
    Ok(texts.chunks_exact(2).filter_map(|pair| Some((pair.first()?.clone(), pair.get(1)?.clone()))).collect())
}

/// True if the table remembers the tokens of inserts.
fn knows_tokens(connection: &mut HttpInterface, shape: &TableShape) -> io::Result<bool> {
    let statement = format!(
        "SELECT engine, engine_full FROM system.tables WHERE database = currentDatabase() AND name = {} \
         FORMAT RowBinary",
        literal(&shape.name)
    );
    let texts = run(connection, &statement, "cannot look at", shape)?;
    let [engine, settings] = &texts[..] else { return Ok(false) };
    let window = |name: &str| {
        let (_, rest) = settings.split_once(name)?;
        rest.trim_start_matches([' ', '=']).split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
    };
    Ok(if engine.starts_with("Replicated") || engine.starts_with("Shared") {
        window(" replicated_deduplication_window").is_none_or(|window| window > 0)
    } else {
        engine.ends_with("MergeTree") && window("non_replicated_deduplication_window").is_some_and(|window| window > 0)
    })
}

/// Runs a statement, and returns the texts that it answers with.
fn run(connection: &mut HttpInterface, statement: &str, what: &str, shape: &TableShape) -> io::Result<Vec<String>> {
    let server = connection.address.server.clone();
    let answer = connection.ask(statement).map_err(|error| match error.kind() {
        // It names the server already.
        ErrorKind::PermissionDenied | ErrorKind::InvalidInput | ErrorKind::ConnectionRefused => error,
        _ => with_object("no answers from", &server, &error),
    })?;
    let object = format!("table {} at {server}", shape.name);
    evaluate(&answer).map_err(|fault: ServerFault| fault.error(what, &object))?;
    read_texts(&answer.body)
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, format!("{server} does not answer as ClickHouse does")))
}

/// Reads the texts of an answer in the format RowBinary; `None` if it is another one.
pub(super) fn read_texts(mut rest: &[u8]) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    while !rest.is_empty() {
        let length = usize::try_from(take_varint(&mut rest)?).ok()?;
        let (text, more) = rest.split_at_checked(length)?;
        texts.push(String::from_utf8(text.to_vec()).ok()?);
        rest = more;
    }
    Some(texts)
}

/// The statement that creates the table. It is partitioned by month, so that a queue of a hundred days can be inserted
/// at once, and old months can be dropped.
fn create(shape: &TableShape) -> String {
    let is_ours = |name: &str| shape.columns.iter().any(|(known, _)| known == name);
    let host = (!is_ours(HOST)).then(|| (HOST.to_owned(), ColumnType::Text));
    let columns: Vec<String> = host.iter().chain(&shape.columns).map(|(name, kind)| definition(name, *kind)).collect();
    let has_time = shape.columns.iter().any(|(name, kind)| is_time(name, *kind));
    let (partition, order) = if has_time { ("PARTITION BY toYYYYMM(time) ", "(host, time)") } else { ("", "host") };
    format!(
        "CREATE TABLE IF NOT EXISTS {} ({}) ENGINE = MergeTree {partition}ORDER BY {order} \
         SETTINGS non_replicated_deduplication_window = {WINDOW}",
        quote(&shape.name),
        columns.join(", ")
    )
}

/// The statement that adds columns.
fn add(shape: &TableShape, missing: &[&(String, ColumnType)]) -> String {
    let add = |(name, kind): &&(String, ColumnType)| format!("ADD COLUMN IF NOT EXISTS {}", definition(name, *kind));
    let columns: Vec<String> = missing.iter().map(add).collect();
    format!("ALTER TABLE {} {}", quote(&shape.name), columns.join(", "))
}

fn definition(name: &str, kind: ColumnType) -> String {
    format!(
        "{} {} CODEC({}ZSTD(1))",
        quote(name),
        sql_type(name, kind),
        if is_time(name, kind) { "Delta, " } else { "" }
    )
}

fn is_time(name: &str, kind: ColumnType) -> bool {
    name == TIME && kind == ColumnType::Time
}

/// The type of a column that netwren creates. A table cannot be sorted by a column that may be null.
fn sql_type(name: &str, kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Text if name == HOST => "LowCardinality(String)",
        ColumnType::Time if name == TIME => "DateTime64(9, 'UTC')",
        ColumnType::Integer => "Nullable(Int64)",
        ColumnType::Real => "Nullable(Float64)",
        ColumnType::Text => "Nullable(String)",
        ColumnType::Time => "Nullable(DateTime64(9, 'UTC'))",
        ColumnType::Flag => "Nullable(Bool)",
        ColumnType::Address => "Nullable(IPv6)",
    }
}

/// A name in a statement.
fn quote(name: &str) -> String {
    format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`"))
}

/// Text in a statement.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_statements_quote_hostile_names() {
        let columns = vec![("time".to_owned(), ColumnType::Time), ("a`b\\".to_owned(), ColumnType::Address)];
        let shape = TableShape { name: "x`; DROP TABLE y; --\\".to_owned(), columns, ..TableShape::default() };
        assert_eq!(
            create(&shape),
            "CREATE TABLE IF NOT EXISTS `x\\`; DROP TABLE y; --\\\\` (`host` LowCardinality(String) CODEC(ZSTD(1)), \
             `time` DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)), `a\\`b\\\\` Nullable(IPv6) CODEC(ZSTD(1))) \
             ENGINE = MergeTree PARTITION BY toYYYYMM(time) ORDER BY (host, time) \
             SETTINGS non_replicated_deduplication_window = 10000"
        );
        assert_eq!(literal("a'b\\"), "'a\\'b\\\\'");
    }

    #[test]
    fn texts_are_read() {
        let long = "x".repeat(300);
        let mut bytes = vec![1, b'a', 0, 0xac, 2];
        bytes.extend_from_slice(long.as_bytes());
        assert_eq!(read_texts(&bytes), Some(vec!["a".to_owned(), String::new(), long]));
        for bad in [&[2, b'a'][..], &[0xff], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], &[1, 0xff]] {
            assert_eq!(read_texts(bad), None, "{bad:?}");
        }
    }
}
