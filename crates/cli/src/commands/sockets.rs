//! `netwren sockets`.

use super::follow;
use super::ownerless::Ownerless;
use super::plan::PlanError;
use super::saved;
use super::table::{self, SourceProvider};
use crate::asked;
use crate::command::{Command, Home, ParsedWords, SavedPart, TableEntry};
use crate::enrich::Enrichment;
use crate::flags::defs::Scope;
use crate::flags::request::{Repeat, Request};
use crate::outcome::Outcome;
use crate::session::Session;
use engine::{DiffSource, DiffState, Plan, Predicate};
use record::Via;
use record::rows::{Socket, SocketEvents, Sockets};
use record::{Accounting, Expr, LookupId, Lookups, Source, Table};
use std::cell::RefCell;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "sockets",
    about: "Sockets of every family with their owners",
    examples: EXAMPLES,
    scope: Scope::OWNED_TABLE.and(Scope::FOLLOW),
    tables: &[TableEntry::of::<Sockets>(), TableEntry::of::<SocketEvents>()],
    home: Some(Home {
        title: "Listeners",
        words: &[
            "--columns",
            "proto,local_addr,local_port,accept_q,accept_q_max,process,pid,user",
            "--sort",
            "proto,local_port",
            LISTENERS,
        ],
    }),
    recorded: Some(SavedPart { rows: Some("sockets"), is_large: true, read: save }),
    run: Some(run),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren sockets                                       every socket
  netwren sockets state = listen                        who listens
  netwren sockets 'peer in 10.0.0.0/8 and rtt > 20ms'   slow peers
  netwren sockets 'process ~ \"nginx\"' --by peer_addr --limit 10
  netwren sockets proto = tcp -o json | jq .peer_addr
  netwren sockets --columns +cwnd,rtt_us,retrans_total --sort retrans_total:desc
  netwren sockets --columns help                        every field
  netwren sockets kill 'peer = 192.0.2.7'               what would be closed; with --yes it is
";

/// Which sockets take what anybody sends.
const LISTENERS: &str = "state = listen and proto = tcp or proto = udp and state = unconn and local_port != null";

fn run(words: &ParsedWords<'_>) -> Result<Outcome, String> {
    let request = &Request::of(words)?;
    if request.follow.is_some() {
        return Ok(follow::sockets(request));
    }
    Ok(table::show(request, |plan| {
        let memory = (request.repeat != Repeat::Once).then(RefCell::default);
        Ok(SocketProvider { via: request.via, places: chooser(plan)?, filter: whole_filter(plan)?, memory })
    }))
}

/// Saves every socket with every field, and owners before them, as every table reads them.
fn save(session: &Session, stats: &mut Accounting) -> u64 {
    let demand = saved::every_field::<Sockets>(0);
    let ids = LookupId::ALL.into_iter().filter(|id| *id != LookupId::Hosts).collect();
    let ids = asked::lookups(session.host(), &demand, ids, stats);
    Enrichment::read(session, &ids, stats);
    session.with_sockets(None, &|_| true, |source| saved::read(source, &demand, stats))
}

/// The parts of the filter that are about the namespace alone: where they do not hold, nothing needs to be read.
fn chooser(plan: &Plan<Sockets>) -> Result<Predicate<Sockets>, PlanError> {
    let about = |part: &&Expr| {
        let (mut tests, mut others) = (0, 0);
        part.for_each_test(&mut |test| match Sockets::FIELDS.get(test.field).map(|field| field.name) {
            Some("netns" | "netns_id") => tests += 1,
            _ => others += 1,
        });
        tests > 0 && others == 0
    };
    let parts: Vec<Expr> = plan.demand().conjuncts.iter().filter(about).cloned().collect();
    Predicate::new(&parts).map_err(|bad| PlanError::Plan(engine::PlanError::Pattern(bad)))
}

fn whole_filter(plan: &Plan<Sockets>) -> Result<Predicate<Sockets>, PlanError> {
    Predicate::new(&plan.demand().conjuncts).map_err(|bad| PlanError::Plan(engine::PlanError::Pattern(bad)))
}

struct SocketProvider {
    via: Option<Via>,
    /// Which namespaces are read when all could be.
    places: Predicate<Sockets>,
    filter: Predicate<Sockets>,
    /// What is remembered from round to round, if there are several.
    memory: Option<RefCell<DiffState<Sockets>>>,
}

impl SourceProvider<Sockets> for SocketProvider {
    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        stats: &mut Accounting,
        then: impl FnOnce(&dyn Source<Sockets>) -> R,
    ) -> R {
        // Without names (`--explain` reads none) every namespace may be meant.
        let named = lookups.has(LookupId::Netns);
        let wanted = |netns_id| !named || self.places.matches(&Socket { netns_id, ..Socket::EMPTY }, &lookups);
        session.with_sockets(self.via, &wanted, |source| {
            let source = Ownerless::new(source, session, lookups, &self.filter, stats.incomplete);
            match &self.memory {
                None => then(&source),
                Some(memory) => then(&DiffSource::new(&source, memory, session.steady_ns())),
            }
        })
    }
}
