//! Commands that show a small table that exists once per network namespace.

use super::saved;
use super::table;
use crate::command::{Command, ParsedWords, Prepared, SavedPart};
use crate::flags::request::Request;
use host::{NetnsSource, NetnsTable};
use lookups::session::Session;
use record::{Accounting, Demand, Schema};
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
        prepare: Some(Self::prepare),
        ..Command::TABLE
    };

    fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
        Self::prepare_request(Request::of(words)?)
    }

    /// Prepares a run that shows the table.
    pub(super) fn prepare_request(request: Request) -> Prepared<'static> {
        table::prepare::<T, _>(request, |_| Ok(NetnsProvider))
    }

    fn save(session: &Session, stats: &mut Accounting) -> u64 {
        let namespaces = session.namespaces();
        let source = NetnsSource::new(session.host(), session.targets(namespaces.as_deref()));
        saved::read(&source, &Demand::<T>::every_field(0), stats)
    }
}
