//! The ss face: its command line, order of tables and exit codes. `crate::ss::output` writes the bytes.
//!
//! Words become `flags::Flags`. The expression becomes a condition and then a filter over the field table
//! (`request::make`), with one question per socket table; `run` sends the questions to the source and hands every
//! row to the writer. Only the source knows netlink.

mod condition;
mod diag_file;
mod environment;
mod events;
mod expr;
mod families;
mod filter_file;
mod flags;
mod grammar;
mod installed;
mod kill;
mod live;
mod number;
mod operand;
pub mod output;
mod rare;
mod request;
mod run;
mod states;
mod stop;
mod summary;
mod tables;
mod tasks;
#[cfg(test)]
mod tests;
mod token;
mod translate;

use crate::ss::output::{Layout, show};
use live::Live;
use lookups::lazy_ifaces::LazyIfaces;
use lookups::session::{OpenError, Session, SessionTarget};
use stop::Stop;

/// The switches of ss, for completion.
pub(crate) fn switches() -> Vec<String> {
    flags::written()
}

/// True if ss accepts the arguments: its switches and the expression after them.
pub(crate) fn accepts(call: &super::Call) -> bool {
    let Ok(flags) = flags::parse(call.words(), installed::layout(), call.bug_compatible) else { return false };
    let Ok(session) = Session::open(SessionTarget::default()) else { return false };
    let ifaces = LazyIfaces::new(&session);
    request::make(&flags, &Live::new(&session, &ifaces)).is_ok()
}

/// Runs the face; returns the exit code.
pub(crate) fn run(call: &super::Call) -> u8 {
    let layout = installed::layout();
    match answer(call, layout) {
        Ok(code) => code,
        Err(stop) => stop.tell(layout, call.bug_compatible),
    }
}

fn answer(call: &super::Call, layout: Layout) -> Result<u8, Stop> {
    let mut flags = flags::parse(call.words(), layout, call.bug_compatible)?;
    flags.options.screen = sys::term::width(sys::term::STDOUT);
    let netns = flags.netns.as_deref().map(|name| String::from_utf8_lossy(name).into_owned());
    let target =
        SessionTarget { netns: netns.clone(), resolve: flags.options.has(show::RESOLVE), ..SessionTarget::default() };
    let session = Session::open(target).map_err(|error| no_namespace(netns.as_deref(), &error))?;
    if flags.summary && !summary::print(&session, call.bug_compatible) {
        return Ok(1);
    }
    if !flags.table {
        return Ok(0);
    }
    if let Some(file) = &flags.dump_file {
        return diag_file::write(&session, &flags, file);
    }
    let ifaces = LazyIfaces::new(&session);
    let live = Live::new(&session, &ifaces);
    let request = request::make(&flags, &live)?;
    if request.events.is_some() && request.questions.is_empty() {
        // The selected tables have no such events; ss is also silent here.
        return Ok(255);
    }
    Ok(run::table(&session, &request, &live, &ifaces))
}

fn no_namespace(netns: Option<&str>, error: &OpenError) -> Stop {
    match netns {
        Some(netns) => {
            let why = match error {
                OpenError::Host(host::HostError::NoNetns { .. }) => "No such file or directory".to_owned(),
                other => other.to_string(),
            };
            let name = super::text::printable(netns.as_bytes());
            Stop::operand(&format!("Cannot open network namespace \"{name}\": {why}"))
        }
        None => Stop::operand(&format!("ss: {error}")),
    }
}
