//! `netwren sockets`.

use super::Outcome;
use super::plan::plan;
use super::table::{self, Reads};
use crate::exit::Exit;
use crate::flags::{Repeat, Request};
use crate::output;
use crate::session::Session;
use engine::{Memory, Watching, columns};
use record::rows::Sockets;
use record::{Accounting, LookupId, Lookups, Source};
use sockets::Via;
use std::cell::RefCell;

/// Runs the command.
pub(super) fn run(request: &Request) -> Outcome {
    if request.shown.columns.as_deref() == Some("help") {
        return output::print(&columns::help::<Sockets>()).into();
    }
    let plan = engine::filter::parse(&request.shown.filter).map_err(Into::into).and_then(|ast| plan(request, &ast));
    match plan {
        Ok(plan) => table::run(request, &plan, &Reading::new(request)),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    }
}

struct Reading {
    via: Option<Via>,
    /// What is remembered from round to round, if there are several.
    memory: Option<RefCell<Memory<Sockets>>>,
}

impl Reading {
    fn new(request: &Request) -> Reading {
        let memory = (request.repeat != Repeat::Once).then(RefCell::default);
        Reading { via: request.via, memory }
    }
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
        session.with_sockets(self.via, |source| match &self.memory {
            None => then(source),
            Some(memory) => then(&mut Watching::new(source, &mut memory.borrow_mut(), session.steady_ns())),
        })
    }
}
