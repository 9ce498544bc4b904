//! `netwren sockets`.

use super::Outcome;
use super::plan::plan;
use super::table::{self, Reads};
use crate::exit::Exit;
use crate::flags::Request;
use crate::output;
use crate::session::Session;
use engine::columns;
use record::rows::Sockets;
use record::{Accounting, LookupId, Lookups, Source};
use sockets::{Options, SocketSource, Via};

/// Runs the command.
pub(super) fn run(request: &Request) -> Outcome {
    if request.shown.columns.as_deref() == Some("help") {
        return output::print(&columns::help::<Sockets>()).into();
    }
    let plan = engine::filter::parse(&request.shown.filter).map_err(Into::into).and_then(|ast| plan(request, &ast));
    match plan {
        Ok(plan) => table::run(request, &plan, &Reading { via: request.via }),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    }
}

struct Reading {
    via: Option<Via>,
}

impl Reads<Sockets> for Reading {
    fn needs_lookup(&self, _id: LookupId) -> bool {
        false
    }

    fn with_source<R>(
        &self,
        session: &Session,
        _lookups: Lookups<'_>,
        _books: &mut Accounting,
        then: impl FnOnce(&mut dyn Source<Sockets>) -> R,
    ) -> R {
        let options = Options { via: self.via, ..Options::new(session.netns_id()) };
        then(&mut SocketSource::new(session.host(), options).keeping(session.doors()))
    }
}
