//! The conntrack face (conntrack-tools 1.4.7): its command line, requests and exit codes. `crate::conntrack::output`
//! writes the bytes, and the crate `conntrack` the messages to the kernel.
//!
//! Words become a `parse::Line`, which `commands::execute` runs. `filter` decides which entries pass.

mod addresses;
mod args;
mod commands;
mod counters;
mod edit;
mod entries;
mod events;
mod filter;
mod labels;
mod load;
mod options;
mod origin;
pub mod output;
mod parse;
mod protocol_names;
mod protocols;
mod run;
mod stop;
mod table;
mod usage;
mod want;
mod words;

use lookups::session::{Session, SessionTarget};
use run::Run;
use stop::Stop;

/// The switches of conntrack, for completion.
pub(crate) fn switches() -> Vec<String> {
    options::written()
}

/// True if conntrack accepts the arguments.
pub(crate) fn accepts(call: &super::Call) -> bool {
    parse::parse(&sys::Host::live(), call.words(), call.bug_compatible).is_ok()
}

/// Runs the face; returns the exit code.
pub(crate) fn run(call: &super::Call) -> u8 {
    match answer(call) {
        Ok(code) => code,
        Err(stop) => stop.tell(),
    }
}

fn answer(call: &super::Call) -> Result<u8, Stop> {
    let words = call.words();
    let session = Session::open(SessionTarget::default()).map_err(|error| Stop::other(error.to_string()))?;
    if let [first, file, ..] = words.as_slice() {
        if first == b"-R" || first == b"--load-file" {
            return load::file(&session, file, call.bug_compatible);
        }
    }
    let line = parse::parse(session.host(), words, call.bug_compatible)?;
    let mut run = Run::new(&session);
    let count = commands::execute(&mut run, &line)?;
    Ok(run.finish(&line, count))
}
