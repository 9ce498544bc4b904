//! Commands that show a small table that exists once per network namespace.

use super::saved;
use super::table;
use crate::command::{Command, ParsedWords, SavedPart};
use crate::flags::request::Request;
use host::{NetnsSource, NetnsTable};
use lookups::session::Session;
use record::{Accounting, Demand, Schema};
use runtime::outcome::Outcome;
use std::marker::PhantomData;
use tables::NetnsProvider;

/// The command for table `T`.
pub(super) struct NetnsCommand<T>(PhantomData<T>);

impl<T: NetnsTable> NetnsCommand<T> {
    const TABLES: &'static [Schema] = &[Schema::from_table::<T>()];

    /// The registry's entry, except for the help line and the examples. Any user can fill the tables of a network
    /// namespace of their own, so they are recorded after the small parts.
    pub(super) const COMMAND: Command = Command {
        name: T::NAME,
        tables: Self::TABLES,
        recorded: Some(SavedPart { rows: Some(T::NAME), is_large: true, open: || Box::new(Self::save) }),
        run: Some(Self::run),
        ..Command::TABLE
    };

    fn run(words: &ParsedWords<'_>) -> Result<Outcome, String> {
        Self::shown(&Request::of(words)?)
    }

    /// Shows the table.
    pub(super) fn shown(request: &Request) -> Result<Outcome, String> {
        Ok(table::show::<T, _>(request, |_| Ok(NetnsProvider)))
    }

    fn save(session: &Session, stats: &mut Accounting) -> u64 {
        let namespaces = session.namespaces();
        let source = NetnsSource::new(session.host(), session.ways(namespaces.as_deref()));
        saved::read(&source, &Demand::<T>::every_field(0), stats)
    }
}
