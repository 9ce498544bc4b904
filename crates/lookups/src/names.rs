//! `--resolve`: resolves the names of the addresses in rows that the engine holds.

use crate::session::Session;
use engine::{Feed, Names, Plan, ResolvingSink, Run, RunError};
use host::{HostNames, Resolver};
use record::{Addr, Sink, Table};
use std::time::{Duration, Instant};
use sys::Host;

/// Host names from /etc/hosts and DNS for one run.
pub struct DnsNames<'h> {
    host: &'h Host,
    resolver: Option<&'h Resolver>,
    /// Time that the last row waits for names. Zero in repeated rounds, because the next one shows names that have
    /// arrived.
    patience: Duration,
    known: HostNames,
}

impl<'h> DnsNames<'h> {
    /// Resolves names for the session's rows.
    pub fn new(session: &'h Session, bound: Duration, repeated: bool) -> DnsNames<'h> {
        let patience = if repeated { Duration::ZERO } else { bound };
        DnsNames { host: session.host(), resolver: session.resolver(), patience, known: HostNames::default() }
    }
}

impl Names for DnsNames<'_> {
    fn request(&mut self, addr: Addr) {
        if let Some(resolver) = self.resolver {
            resolver.want(addr);
        }
    }

    fn wait_for_answers(&mut self) {
        let Some(resolver) = self.resolver else { return };
        if !self.host.is_replay() {
            resolver.wait_until(Instant::now() + self.patience);
        }
        // A recording without names is replayed without names.
        self.known = resolver.names(self.host).unwrap_or_default();
    }

    fn name(&self, addr: Addr) -> Option<&[u8]> {
        self.known.name(addr)
    }
}

/// Runs `plan` over `feed`. With `names`, rows wait for the names of their addresses.
pub fn run<T: Table>(
    plan: &Plan<T>,
    feed: &mut dyn Feed<T>,
    names: Option<&mut DnsNames<'_>>,
    sink: &mut dyn Sink,
) -> Result<Run, RunError> {
    match names {
        None => plan.run(feed, sink),
        Some(names) => plan.run(feed, &mut ResolvingSink::new(sink, names)),
    }
}
