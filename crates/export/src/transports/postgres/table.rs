//! The table on the server: creates it, or its missing columns.

use super::copy;
use super::faults::ServerError;
use super::wire::Wire;
use crate::PostgresAddress;
use crate::typed_row::{ColumnType, TABLE_PLACE, TableShape, TypedValue, TypedValues, column_indexes, quote_name};
use std::io;

/// The comment on our view; a view of its name with another comment stays unchanged.
const OURS: &str = "made by netwren";

/// A table, with its names in the form of SQL.
pub(super) struct ServerTable {
    /// First value of its rows.
    pub(super) id: i64,
    pub(super) shape: TableShape,
    schema: String,
    /// For a table of another program: its columns, with the index of each in a row.
    places: Vec<(String, Option<usize>)>,
}

impl ServerTable {
    /// The table that the header of messages describes, in the schema that the address names.
    pub(super) fn from_header(header: &[u8], address: &PostgresAddress) -> ServerTable {
        let shape = TableShape::of_header(header);
        let schema = address.schema.as_deref().map_or(String::new(), |schema| format!("{}.", quote_name(schema)));
        ServerTable { id: shape.id(), shape, schema, places: Vec::new() }
    }

    fn name(&self) -> String {
        format!("{}{}", self.schema, quote_name(&self.shape.name))
    }

    /// The COPY statement before the rows; `None` if each row is a statement itself.
    pub(super) fn copy(&self) -> Option<String> {
        let names: Vec<String> = match self.shape.procedure.as_deref() {
            None => self.shape.columns.iter().map(|(name, _)| quote_name(name)).collect(),
            Some("") => self.filled_columns().map(|(name, _)| quote_name(name)).collect(),
            Some(_) => return None,
        };
        Some(format!("COPY {} ({}) FROM STDIN", self.name(), names.join(", ")))
    }

    /// Columns of another program's table for which there are values.
    fn filled_columns(&self) -> impl Iterator<Item = (&String, usize)> {
        self.places.iter().filter_map(|(name, place)| Some((name, (*place)?)))
    }

    /// Appends a row: text for COPY, or a call of the procedure.
    pub(super) fn put_row<'r>(&self, out: &mut Vec<u8>, cells: &mut Vec<TypedValue<'r>>, values: TypedValues<'r>) {
        let columns = &self.shape.columns;
        let Some(procedure) = &self.shape.procedure else { return copy::put_row(out, columns, values) };
        cells.clear();
        cells.extend(values);
        let cell = |place: usize| cells.get(place).copied().unwrap_or(TypedValue::Null);
        if procedure.is_empty() {
            return copy::put_cells(out, self.filled_columns().map(|(_, place)| cell(place)));
        }
        out.extend_from_slice(format!("SELECT {procedure}(").as_bytes());
        for (index, (_, place)) in self.places.iter().enumerate() {
            out.extend_from_slice(if index == 0 { b"" } else { b"," });
            copy::put_literal(out, place.map_or(TypedValue::Null, cell));
        }
        out.extend_from_slice(b");");
    }

    /// Creates the table, or looks up the columns of another program's table.
    pub(super) fn create_or_inspect(&mut self, wire: &mut Wire) -> io::Result<Result<(), ServerError>> {
        if self.shape.procedure.is_none() {
            return self.create(wire);
        }
        let name = self.name();
        let ask = format!(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass({}) AND attnum > 0 AND NOT attisdropped \
             ORDER BY attnum",
            literal(&name)
        );
        match self.columns(wire, &ask)? {
            Ok(found) if found.is_empty() => {
                let text = format!("there is no table {name}: ulogd2's pgsql-ulogd2.sql creates it");
                Err(io::Error::new(io::ErrorKind::NotFound, text))
            }
            Ok(found) => {
                self.places = column_indexes(&found, &self.shape.columns);
                // Procedures name tables and each other without a schema.
                let path = format!("SET search_path = {}\"$user\", public", self.schema.replace('.', ", "));
                Ok(wire.query(&path)?.map(|_| ()))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// Creates what is missing. Two programs that begin at once wait for each other. If nothing is missing, the right
    /// to insert is enough.
    fn create(&self, wire: &mut Wire) -> io::Result<Result<(), ServerError>> {
        let outcome = self.create_within(wire)?;
        let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = wire.query(end)?;
        Ok(outcome.and(ended.map(|_| ())))
    }

    fn create_within(&self, wire: &mut Wire) -> io::Result<Result<(), ServerError>> {
        let name = self.name();
        let known = format!(
            "BEGIN; SELECT attname FROM pg_attribute WHERE attrelid = to_regclass({}) AND attnum > 0 \
             AND NOT attisdropped",
            literal(&name)
        );
        let known = match self.columns(wire, &known)? {
            Ok(known) => known,
            Err(error) => return Ok(Err(error)),
        };
        let missing: Vec<&(String, ColumnType)> =
            self.shape.columns.iter().filter(|(name, _)| !known.contains(name)).collect();
        let column = |(name, kind): &&(String, ColumnType)| format!("{} {}", quote_name(name), sql_type(*kind));
        let mut statements = vec!["SELECT pg_advisory_xact_lock(hashtext('netwren'))".to_owned()];
        if known.is_empty() {
            let columns: Vec<String> = missing.iter().map(column).collect();
            statements.push(format!("CREATE TABLE IF NOT EXISTS {name} ({})", columns.join(", ")));
        } else {
            let add = |missing| format!("ALTER TABLE {name} ADD COLUMN IF NOT EXISTS {}", column(missing));
            statements.extend(missing.iter().map(add));
        }
        if !missing.is_empty() {
            statements.extend(self.view(wire)?);
        }
        if statements.len() == 1 {
            return Ok(Ok(()));
        }
        Ok(wire.query(&statements.join("; "))?.map(|_| ()))
    }

    fn columns(&self, wire: &mut Wire, sql: &str) -> io::Result<Result<Vec<String>, ServerError>> {
        Ok(wire.query(sql)?.map(|rows| rows.into_iter().flatten().flatten().collect()))
    }

    /// Returns the statements that create the view; none if its name is taken by an object that is not ours.
    fn view(&self, wire: &mut Wire) -> io::Result<Vec<String>> {
        let Some((view, select)) = &self.shape.view else { return Ok(Vec::new()) };
        let view = format!("{}{}", self.schema, quote_name(view));
        let ask = format!(
            "SELECT coalesce(obj_description(to_regclass({0}), 'pg_class'), '') WHERE to_regclass({0}) IS NOT NULL",
            literal(&view)
        );
        let found = wire.query(&ask)?.unwrap_or_default();
        let found = found.first().and_then(|row| row.first()).cloned().flatten();
        if found.as_deref().is_some_and(|comment| comment != OURS) {
            return Ok(Vec::new());
        }
        let select = select.replace(TABLE_PLACE, &self.name());
        Ok(vec![
            format!("DROP VIEW IF EXISTS {view}"),
            format!("CREATE VIEW {view} AS {select}"),
            format!("COMMENT ON VIEW {view} IS {}", literal(OURS)),
        ])
    }
}

/// Text as an SQL literal, for standard_conforming_strings.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn sql_type(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Integer => "bigint",
        ColumnType::Real => "double precision",
        ColumnType::Text => "text",
        ColumnType::Time => "timestamptz",
        ColumnType::Flag => "boolean",
        ColumnType::Address => "inet",
    }
}
