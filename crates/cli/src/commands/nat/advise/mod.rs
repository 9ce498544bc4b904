//! `netwren nat advise`: how large the table of connection tracking should be, and why.
//!
//! Reads (`gather`), lets `doctor` judge, shows (`show`), and sets what was advised (`settings`) if asked to (`apply`),
//! also over a restart (`kept`).

mod apply;
mod gather;
mod kept;
mod settings;
mod show;

pub(in super::super) use gather::survey;

use super::super::Outcome;
use crate::exit::Exit;
use crate::flags::NatAdvise;
use crate::messages::{footer_lines, refused};
use crate::output;
use crate::session::{Place, Session};
use doctor::nat::{Advice, Evidence, advise};
use record::Accounting;
use std::ffi::OsString;

/// One namespace with what is advised.
struct Judged {
    netns_id: u64,
    /// Hostile text.
    name: Vec<u8>,
    evidence: Evidence,
    advice: Advice,
}

/// Runs the command with the words behind `nat advise`.
pub(super) fn run(args: impl Iterator<Item = OsString>) -> Outcome {
    let asked = match NatAdvise::parse(args) {
        Ok(asked) => asked,
        Err(error) => return refused(&error).into(),
    };
    let place = Place {
        netns: asked.netns.as_deref(),
        // The limit, the buckets and the memory are the host's. A recording has the namespaces it was made of.
        all_netns: asked.all_netns || asked.netns.is_none() && asked.replay.is_none(),
        record: asked.record.as_deref(),
        replay: asked.replay.as_deref(),
        ..Place::default()
    };
    let session = match Session::open(place) {
        Ok(session) => session,
        Err(error) => return Outcome::because(error.exit(), error),
    };
    let mut stats = Accounting::default();
    session.find_namespaces(true, &mut stats);
    let gathered = gather::gather(&session, &asked, &mut stats);
    let outcome = match gathered {
        Ok(found) => tell(&session, &asked, found, &mut stats),
        Err(error) => Outcome::because(Exit::Failed, error),
    };
    session.finish(&mut stats);
    let Outcome { mut exit, mut messages } = outcome;
    messages.extend(footer_lines(&stats));
    if exit == Exit::Ok && stats.is_partial() {
        exit = Exit::Partial;
    }
    Outcome { exit, messages }
}

fn tell(session: &Session, asked: &NatAdvise, found: Vec<(u64, Evidence)>, stats: &mut Accounting) -> Outcome {
    let names = gather::names(session, &found, stats);
    let judged: Vec<Judged> = found
        .into_iter()
        .zip(names)
        .map(|((netns_id, evidence), name)| Judged { netns_id, name, advice: advise(&evidence), evidence })
        .collect();
    let text = if asked.json { show::json(&judged) } else { show::words(&judged) };
    let printed = output::print(&text);
    if printed != Exit::Ok || !asked.apply {
        return printed.into();
    }
    apply::run(session, &judged, asked)
}
