//! The file of `support --bundle`: contains rows of any table, but no names of the host.

mod pseudonyms;

use pseudonyms::{HidingSink, Pseudonyms};
use record::Sink;
use sinks::{FormatOptions, Json, Out};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use sys::outfile::{self, Contents, OutfileOptions};

/// The open file of a bundle.
#[derive(Clone, Debug)]
pub(crate) struct BundleWriter {
    file: Arc<File>,
    pseudonyms: Pseudonyms,
    /// The table whose rows are written.
    table: &'static str,
}

impl BundleWriter {
    /// Creates a new file that only its owner can access. Fails if the file exists, and does not follow links.
    pub(crate) fn create(path: &Path) -> io::Result<BundleWriter> {
        let file = outfile::open(path, OutfileOptions::private(Contents::New))?;
        Ok(BundleWriter { file: Arc::new(file), pseudonyms: Pseudonyms::new(), table: "" })
    }

    /// A writer to this file for the rows of a table.
    pub(crate) fn of_table(&self, table: &'static str) -> BundleWriter {
        BundleWriter { table, ..self.clone() }
    }

    /// The sink for the rows of the table.
    pub(crate) fn sink(&self) -> Box<dyn Sink> {
        let json = Json::new(Out::new(FileWriter(Arc::clone(&self.file))), FormatOptions::default());
        Box::new(HidingSink::new(json, self.table, self.pseudonyms.clone()))
    }

    /// Writes a line that contains no names.
    pub(crate) fn line(&self, line: &str) -> io::Result<()> {
        (&*self.file).write_all(line.as_bytes())
    }

    /// Waits until the file is on disk.
    pub(crate) fn finish(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// A handle of the file for sinks, each of which owns its output.
struct FileWriter(Arc<File>);

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
