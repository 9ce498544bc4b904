//! The transport to SQLite: rows are inserted into a table, in one transaction per batch.

use super::stream::WRITE_TIMEOUT;
use super::{TakenPart, Transport};
use crate::Batch;
use crate::typed_row::{ColumnType, TABLE_PLACE, TableShape, TypedValue, TypedValues, column_indexes, quote_name};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql, Transaction, TransactionBehavior};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::outfile::{Contents, FilePlace, OutfileOptions};

/// Longest time that another program may lock the database before it counts as away.
///
/// Bound: that another program locks a database. Beyond: the database counts as away; messages wait. By: any program
/// that may open the database.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// A database, which is created with its table if necessary. Each row is inserted completely and once, or not at all.
pub(super) struct Database {
    path: PathBuf,
    table: Table,
    connection: Option<Connection>,
    /// Device and inode, to notice that the database was moved away.
    identity: Option<(u64, u64)>,
    /// When we first found the database locked by another program.
    busy_since: Option<Instant>,
}

/// The table, and the first value of its rows.
struct Table {
    id: i64,
    shape: TableShape,
    /// For a table of another program: its columns, with the index of each in a row.
    places: Option<Vec<(String, Option<usize>)>>,
}

impl Table {
    fn from_header(header: &[u8]) -> Table {
        let shape = TableShape::of_header(header);
        Table { id: shape.id(), shape, places: None }
    }

    /// Creates what is missing: the table, columns of a table that an earlier run has made, and the view.
    fn create(&mut self, db: &Transaction<'_>) -> rusqlite::Result<()> {
        let shape = &self.shape;
        let name = quote_name(&shape.name);
        let column = |(name, kind): &(String, ColumnType)| format!("{} {}", quote_name(name), sql_type(*kind));
        let columns: Vec<String> = shape.columns.iter().map(column).collect();
        if shape.procedure.is_none() {
            db.execute_batch(&format!("CREATE TABLE IF NOT EXISTS {name} ({})", columns.join(", ")))?;
        }
        let mut known = db.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let known: Vec<String> = known.query_map([&shape.name], |row| row.get(0))?.collect::<Result<_, _>>()?;
        if shape.procedure.is_some() {
            // If there is no table, the insert reports it.
            self.places = Some(column_indexes(&known, &shape.columns));
            return Ok(());
        }
        let is_known = |name: &str| known.iter().any(|known| known.eq_ignore_ascii_case(name));
        for ((_, _), column) in shape.columns.iter().zip(&columns).filter(|((name, _), _)| !is_known(name)) {
            db.execute_batch(&format!("ALTER TABLE {name} ADD COLUMN {column}"))?;
        }
        self.create_view(db)
    }

    /// Creates the view, unless another program has a table of its name.
    fn create_view(&self, db: &Transaction<'_>) -> rusqlite::Result<()> {
        let Some((view, select)) = &self.shape.view else { return Ok(()) };
        let is_table = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?1";
        if db.query_row(is_table, [view], |row| row.get::<_, i64>(0))? != 0 {
            return Ok(());
        }
        let (view, select) = (quote_name(view), select.replace(TABLE_PLACE, &quote_name(&self.shape.name)));
        db.execute_batch(&format!("DROP VIEW IF EXISTS {view}; CREATE VIEW {view} AS {select}"))
    }

    fn insert(&self) -> String {
        let ours = || self.shape.columns.iter().map(|(name, _)| quote_name(name)).collect();
        let names: Vec<String> = match &self.places {
            Some(places) => places.iter().map(|(name, _)| quote_name(name)).collect(),
            None => ours(),
        };
        // A table without columns does not exist: the statement's error reports that.
        let places = vec!["?"; names.len().max(1)].join(", ");
        let names = if names.is_empty() { "x".to_owned() } else { names.join(", ") };
        format!("INSERT INTO {} ({names}) VALUES ({places})", quote_name(&self.shape.name))
    }
}

fn sql_type(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Integer | ColumnType::Time | ColumnType::Flag => "INTEGER",
        // SQLite converts decimal text to a number in such a column.
        ColumnType::Real => "REAL",
        ColumnType::Text | ColumnType::Address => "TEXT",
    }
}

impl ToSql for TypedValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            TypedValue::Null => ValueRef::Null,
            TypedValue::Integer(n) => ValueRef::Integer(*n),
            TypedValue::Text(text) => ValueRef::Text(text.as_bytes()),
            TypedValue::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl Database {
    /// Writes to the database at `path`, into the table that `header` describes.
    pub(super) fn new(path: PathBuf, header: &[u8]) -> Database {
        Database { path, table: Table::from_header(header), connection: None, identity: None, busy_since: None }
    }

    fn open_database(&mut self) -> rusqlite::Result<Connection> {
        // Does not enable URIs, so a name that begins with `file:` is a plain file name.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut db = Connection::open_with_flags(&self.path, flags)?;
        db.busy_timeout(WRITE_TIMEOUT)?;
        // Readers do not block the writer. A crash of the machine may lose the last transactions, but not the
        // database.
        if self.table.shape.procedure.is_none() {
            db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")?;
        }
        let create = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        self.table.create(&create)?;
        create.commit()?;
        Ok(db)
    }

    /// Inserts the messages of `batch` from `first` on.
    fn insert(db: &mut Connection, table: &Table, batch: &Batch, first: usize) -> rusqlite::Result<TakenPart> {
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut taken = TakenPart { bytes: batch.bytes().len() - batch.start_of(first), ..TakenPart::default() };
        let mut insert = transaction.prepare(&table.insert())?;
        let mut cells: Vec<TypedValue<'_>> = Vec::new();
        for message in (first..).map_while(|index| batch.message(index)) {
            let mut values = TypedValues::from_bytes(message);
            if values.next() != Some(TypedValue::Integer(table.id)) {
                // The row waited on disk while the columns were changed.
                taken.refused += 1;
                continue;
            }
            if let Some(places) = &table.places {
                cells.clear();
                cells.extend(values);
                for (index, (_, place)) in places.iter().enumerate() {
                    let value = place.and_then(|place| cells.get(place)).unwrap_or(&TypedValue::Null);
                    insert.raw_bind_parameter(index + 1, value)?;
                }
                insert.raw_execute()?;
                continue;
            }
            for (place, value) in (1..=table.shape.columns.len()).zip(values.chain(std::iter::repeat(TypedValue::Null)))
            {
                insert.raw_bind_parameter(place, value)?;
            }
            insert.raw_execute()?;
        }
        drop(insert);
        transaction.commit()?;
        Ok(taken)
    }

    fn is_busy_for_long(&mut self) -> bool {
        self.busy_since.get_or_insert_with(Instant::now).elapsed() > BUSY_MAX
    }

    fn current_identity(&self) -> Option<(u64, u64)> {
        fs::metadata(&self.path).ok().map(|facts| (facts.dev(), facts.ino()))
    }

    fn with_object(&self, what: &str, error: &rusqlite::Error) -> io::Error {
        let kind = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => io::ErrorKind::StorageFull,
            Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => io::ErrorKind::PermissionDenied,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, format!("{what} {}: {error}", self.path.display()))
    }
}

impl Transport for Database {
    fn open(&mut self) -> io::Result<()> {
        self.connection = None;
        let path = self.path.to_string_lossy();
        check_files(&self.path).map_err(|error| super::with_object("cannot open the database", &path, &error))?;
        self.connection =
            Some(self.open_database().map_err(|error| self.with_object("cannot open the database", &error))?);
        self.identity = self.current_identity();
        self.busy_since = None;
        Ok(())
    }

    fn send(&mut self, batch: &Batch, at: usize) -> io::Result<TakenPart> {
        let db = self.connection.as_mut().ok_or_else(super::stream::closed_error)?;
        match Database::insert(db, &self.table, batch, batch.count_complete(at)) {
            Ok(taken) => {
                self.busy_since = None;
                Ok(taken)
            }
            Err(error) if is_busy(&error) && !self.is_busy_for_long() => Ok(TakenPart::default()),
            Err(error) => Err(self.with_object("cannot write to the database", &error)),
        }
    }

    /// Recreates a database that was moved away or removed.
    fn check(&mut self) -> io::Result<()> {
        if self.identity.is_some() && self.current_identity() == self.identity {
            return Ok(());
        }
        self.open()
    }

    fn close(&mut self) {
        self.connection = None;
    }
}

/// Fails if the database would be refused now. Creates nothing.
pub(super) fn check(path: &Path) -> io::Result<()> {
    let place = FilePlace::find(path)?;
    place.check_path()?;
    let own = OutfileOptions::regular(Contents::Kept);
    place.stat(place.name(), own)?;
    BESIDE.into_iter().try_for_each(|suffix| {
        let name = sibling_name(&place, suffix);
        place.stat(&name, own).map(drop).map_err(|error| sibling_error(&name, &error))
    })
}

fn sibling_name(place: &FilePlace, suffix: &str) -> OsString {
    let mut name = place.name().to_owned();
    name.push(suffix);
    name
}

fn sibling_error(name: &OsStr, error: &io::Error) -> io::Error {
    super::with_object("beside it,", &name.to_string_lossy(), error)
}

/// Suffixes of the files that SQLite creates next to a database: the write-ahead log, its index, the rollback journal.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Creates the database if it does not exist. Refuses a database that another user can write to or has written to:
/// SQLite opens it by name, runs its triggers and replays the journal next to it. Files that SQLite creates get the
/// mode of the database.
fn check_files(path: &Path) -> io::Result<()> {
    let place = FilePlace::find(path)?;
    place.check_path()?;
    place.prepare(place.name(), true)?;
    // In /tmp another user could create them first. SQLite ignores an empty file.
    let makes = place.is_shared()?;
    for suffix in BESIDE {
        let name = sibling_name(&place, suffix);
        place.prepare(&name, makes).map_err(|error| sibling_error(&name, &error))?;
    }
    Ok(())
}

/// True if another program has locked the database.
fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::put_typed;

    fn shape(columns: &[(&str, ColumnType)]) -> TableShape {
        let columns = columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        let view = Some(("seen".to_owned(), "SELECT \"a\" AS other FROM \"lo\"\"g\"".to_owned()));
        TableShape { name: "lo\"g".to_owned(), columns, view, procedure: None }
    }

    fn batch(shape: &TableShape, rows: &[&[TypedValue<'_>]]) -> Batch {
        let mut batch = Batch::new();
        for (n, row) in rows.iter().enumerate() {
            // The third row has another shape.
            let id = if n == 2 { 0 } else { shape.id() };
            put_typed(batch.bytes_mut(), TypedValue::Integer(id));
            row.iter().for_each(|value| put_typed(batch.bytes_mut(), *value));
            batch.end_message();
        }
        batch
    }

    fn read(path: &std::path::Path, query: &str) -> Vec<String> {
        let db = Connection::open(path).unwrap();
        let mut query = db.prepare(query).unwrap();
        let columns = query.column_count();
        let row = |row: &rusqlite::Row<'_>| -> rusqlite::Result<String> {
            let cells: Vec<String> = (0..columns).map(|i| format!("{:?}", row.get_ref(i).unwrap())).collect();
            Ok(cells.join(" "))
        };
        query.query_map([], row).unwrap().map(Result::unwrap).collect()
    }

    const AB: &[(&str, ColumnType)] = &[("a", ColumnType::Integer), ("b", ColumnType::Text)];
    const A: &[TypedValue<'_>] = &[TypedValue::Integer(-1), TypedValue::Text("x'; --\0")];
    const B: &[TypedValue<'_>] = &[TypedValue::Null, TypedValue::Bytes(b"\xff")];

    #[test]
    fn rows_come_to_lie_in_the_table() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let mut db =
            Database::new(path.clone(), &shape(&[("a", ColumnType::Integer), ("b c", ColumnType::Text)]).to_header());
        db.open().unwrap();
        let rows = batch(&shape(&[("a", ColumnType::Integer), ("b c", ColumnType::Text)]), &[A, B, A, &A[..1]]);
        let part = rows.start_of(1);
        let taken = db.send(&rows, part).unwrap();
        assert_eq!((taken.bytes, taken.refused), (rows.bytes().len() - part, 1), "one is of another shape");
        db.close();
        assert_eq!(read(&path, "SELECT typeof(a), typeof(\"b c\") FROM \"lo\"\"g\"").len(), 2);
        let cells = read(&path, "SELECT a, hex(\"b c\") FROM \"lo\"\"g\"");
        assert!(cells[0].starts_with("Null Text") && cells[1].starts_with("Integer(-1)"), "{cells:?}");
        assert_eq!(read(&path, "SELECT count(*) FROM \"lo\"\"g\" WHERE \"b c\" IS NULL"), ["Integer(1)"], "cut off");
        assert_eq!(read(&path, "SELECT other FROM seen").len(), 2);
    }

    #[test]
    fn a_later_run_may_have_other_columns() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        for columns in [
            [("a", ColumnType::Integer), ("b", ColumnType::Text)],
            [("A", ColumnType::Integer), ("c", ColumnType::Text)],
        ] {
            let mut db = Database::new(path.clone(), &shape(&columns).to_header());
            db.open().unwrap();
            db.send(&batch(&shape(&columns), &[A]), 0).unwrap();
        }
        assert_eq!(
            read(&path, "SELECT a, b IS NULL, c IS NULL FROM \"lo\"\"g\""),
            ["Integer(-1) Integer(0) Integer(1)", "Integer(-1) Integer(1) Integer(0)"]
        );
    }

    #[test]
    fn a_locked_database_is_tried_later_and_nothing_is_twice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let mut db = Database::new(path.clone(), &shape(AB).to_header());
        db.open().unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_eq!(db.send(&batch(&shape(AB), &[A, B]), 0).unwrap(), TakenPart::default());
        // After this long, the database counts as away and the error is reported.
        db.busy_since = Instant::now().checked_sub(2 * BUSY_MAX);
        let said = db.send(&batch(&shape(AB), &[A, B]), 0).unwrap_err().to_string();
        assert!(said.ends_with("database is locked"), "{said}");
        other.execute_batch("ROLLBACK").unwrap();
        assert!(db.send(&batch(&shape(AB), &[A, B]), 0).unwrap().bytes > 0);
        assert_eq!(read(&path, "SELECT count(*) FROM \"lo\"\"g\""), ["Integer(2)"]);
    }

    #[test]
    fn a_table_that_is_there_is_no_view() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE seen (x)").unwrap();
        let mut db = Database::new(path.clone(), &shape(AB).to_header());
        db.open().unwrap();
        assert!(read(&path, "SELECT x FROM seen").is_empty());
    }

    #[test]
    fn a_database_that_was_moved_is_recreated() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let mut db = Database::new(path.clone(), &shape(AB).to_header());
        db.open().unwrap();
        db.check().unwrap();
        fs::rename(&path, dir.path().join("old.db")).unwrap();
        db.check().unwrap();
        db.send(&batch(&shape(AB), &[A]), 0).unwrap();
        assert_eq!(read(&path, "SELECT count(*) FROM \"lo\"\"g\""), ["Integer(1)"]);
    }

    #[test]
    fn a_file_that_is_no_database_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        fs::write(&path, "a text that is certainly longer than the header of a database, which is no database")
            .unwrap();
        let mut db = Database::new(path, &shape(&[("a", ColumnType::Integer)]).to_header());
        let said = db.open().unwrap_err().to_string();
        assert!(said.starts_with("cannot open the database") && said.contains("not a database"), "{said}");
    }
}
