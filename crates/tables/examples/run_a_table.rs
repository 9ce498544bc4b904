//! Runs any table by its name, without the command line: `run_a_table routes 'protocol = kernel' dst_addr,iface`.

use lookups::session::{Session, SessionTarget};
use record::Accounting;
use sinks::{FormatOptions, Json, Out};
use std::error::Error;
use std::io::{self, Write};
use tables::{Selection, TableRequest};

/// Writes the rows of the table `name` that pass `filter` as JSON, with these columns if there are any. Returns the
/// row counts.
pub(crate) fn run(
    name: &str,
    filter: &str,
    columns: Option<&str>,
    to: impl Write,
) -> Result<Accounting, Box<dyn Error>> {
    let table = tables::find(name).ok_or_else(|| format!("there is no table `{name}`"))?;
    let read = table.read.ok_or_else(|| format!("only the command `netwren {name}` can read this table"))?;
    let shown = Selection { filter: filter.into(), columns: columns.map(Into::into), ..Selection::default() };
    let session = Session::open(SessionTarget::default()).map_err(|error| error.to_string())?;
    let mut sink = Json::new(Out::new(to), FormatOptions::default());
    // A stream has no end of its own.
    let ends_ns = Some(sys::clock::monotonic_ns().saturating_add(1_000_000_000));
    let request = TableRequest { ends_ns, ..TableRequest::new(&shown) };
    let mut stats = read(&session, &request, &mut sink)?.stats;
    session.finish(&mut stats);
    Ok(stats)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |place: usize| words.get(place).map(String::as_str);
    let Some(name) = word(0) else {
        for table in tables::TABLES.iter().filter(|table| table.read.is_some()) {
            println!("{}", table.schema.name());
        }
        return Ok(());
    };
    let stats = run(name, word(1).unwrap_or(""), word(2), io::stdout())?;
    stats.why.iter().for_each(|why| eprintln!("{}", why.text));
    Ok(())
}
