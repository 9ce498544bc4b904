//! From the command line to questions for the source.

use super::condition::Condition;
use super::flags::Flags;
use super::stop::Stop;
use super::tables::{Asked, Db, Family, READABLE, UNIX};
use super::translate::{expr, test};
use super::world::World;
use super::{grammar, states};
use record::{Expr, Op, Operand, Proto};
use sinks::face::ss::Options;

/// Everything that a run needs.
#[derive(Debug)]
pub(super) struct Request {
    /// How rows are shown.
    pub(super) options: Options,
    /// One question a socket table, in the order of the output.
    pub(super) questions: Vec<Question>,
    /// `-K`: rows are closed, and shown if that went well.
    pub(super) kill: bool,
    /// `-E`: these sockets are shown as they end.
    pub(super) events: Option<Ending>,
    /// Tables that are meant but cannot be read yet.
    pub(super) unreadable: Vec<&'static str>,
}

/// Sockets whose end is waited for.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Ending {
    pub(super) protos: Vec<Proto>,
    pub(super) inet: bool,
    pub(super) inet6: bool,
}

/// The rows of one table.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Question {
    pub(super) proto: Proto,
    /// The parts of an `and`; the first is `proto = …`.
    pub(super) filter: Vec<Expr>,
}

/// Reads the expression, inside the namespace that will be read, and makes the questions.
pub(super) fn make(flags: &Flags, world: &dyn World) -> Result<Request, Stop> {
    let mut asked = flags.asked;
    if asked.tables == 0 {
        return Err(Stop::nothing("no socket tables"));
    }
    if asked.states == 0 {
        return Err(Stop::nothing("no socket states"));
    }
    let unreadable_only = asked.tables & READABLE == 0;
    let condition = grammar::parse(&flags.expression, &mut asked, world)?;
    if unreadable_only {
        return Err(Stop::later("these socket tables", "`netwren sockets` reads tcp, udp and unix"));
    }
    let options = Options { netid: asked.several_tables(), state: asked.several_states(), ..flags.options };
    let mut questions = Vec::new();
    if asked.tables & UNIX != 0 && asked.shows(Family::Unix) && !flags.events {
        questions.push(question(Proto::Unix, &asked, condition.as_ref(), world, flags));
    }
    for (db, proto) in [(Db::Udp, Proto::Udp), (Db::Tcp, Proto::Tcp)] {
        if asked.has(db) && asked.inet() != (false, false) {
            questions.push(question(proto, &asked, condition.as_ref(), world, flags));
        }
    }
    let ending = || Ending {
        protos: [(Db::Tcp, Proto::Tcp), (Db::Udp, Proto::Udp)]
            .into_iter()
            .filter(|(db, _)| asked.has(*db))
            .map(|(_, proto)| proto)
            .collect(),
        inet: asked.shows(Family::Inet),
        inet6: asked.shows(Family::Inet6),
    };
    let events = flags.events.then(ending);
    let unreadable = if flags.events { Vec::new() } else { asked.unreadable() };
    Ok(Request { options, questions, kill: flags.kill, events, unreadable })
}

fn words<'w>(field: &str, words: impl IntoIterator<Item = &'w str>) -> Expr {
    let words = words.into_iter().map(|w| w.as_bytes().into()).collect();
    test(field, Op::Eq, Operand::Words(words))
}

fn question(proto: Proto, asked: &Asked, condition: Option<&Condition>, world: &dyn World, flags: &Flags) -> Question {
    let mut filter = vec![words("proto", [proto.name()])];
    // A socket ends in whatever state: with `-E` ss does not look at it.
    let states = if flags.events { None } else { states::filter_words(asked.states, proto) };
    if let Some(states) = states {
        filter.push(test("state", Op::Eq, Operand::Words(states)));
    }
    match (proto, asked.inet()) {
        (Proto::Unix, _) => filter.extend(unix_types(asked)),
        (_, (true, false)) => filter.push(words("family", ["inet"])),
        (_, (false, true)) => filter.push(words("family", ["inet6"])),
        _ => {}
    }
    if let Some(condition) = condition {
        filter.extend(expr(condition, proto, world).into_conjuncts());
    }
    Question { proto, filter }
}

/// The types of unix sockets, unless all are shown.
fn unix_types(asked: &Asked) -> Option<Expr> {
    if asked.tables & UNIX == UNIX {
        return None;
    }
    let types = [(Db::UnixStream, "stream"), (Db::UnixDatagram, "dgram"), (Db::UnixSeqpacket, "seqpacket")];
    Some(words("unix_type", types.iter().filter(|(db, _)| asked.has(*db)).map(|(_, word)| *word)))
}
