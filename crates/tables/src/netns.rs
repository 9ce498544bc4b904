//! Small tables that exist once per network namespace.

use crate::error::TableError;
use crate::plan;
use crate::provider::SourceProvider;
use crate::request::TableRequest;
use crate::rounds;
use engine::Run;
use host::{NetnsSource, NetnsTable};
use lookups::asked::with_asked;
use lookups::session::Session;
use record::{Accounting, Lookups, Sink, Source};

/// Reads a table of the session's namespaces.
pub struct NetnsProvider;

impl<T: NetnsTable> SourceProvider<T> for NetnsProvider {
    fn with_source<R>(
        &self,
        session: &Session,
        _: Lookups<'_>,
        _: &mut Accounting,
        then: impl FnOnce(&dyn Source<T>) -> R,
    ) -> R {
        let namespaces = session.namespaces();
        let source = NetnsSource::new(session.host(), session.targets(namespaces.as_deref()));
        with_asked(session.host(), &source, then)
    }
}

/// Reads the table of a request into a sink.
pub fn read<T: NetnsTable>(
    session: &Session,
    request: &TableRequest<'_>,
    sink: &mut dyn Sink,
) -> Result<Run, TableError> {
    let plan = plan::of_request::<T>(request).map_err(TableError::Plan)?;
    rounds::read(session, request, &plan, &NetnsProvider, sink).map_err(TableError::Run)
}
