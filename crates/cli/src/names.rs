//! `--resolve`: the engine holds rows, this asks for the names of their addresses.

use crate::session::Session;
use engine::Names;
use host::hosts::Options;
use host::{HostNames, Resolver};
use record::{Accounting, Addr};
use std::time::{Duration, Instant};
use sys::Host;

/// Names by /etc/hosts and DNS for one run.
pub(crate) struct DnsNames<'h> {
    host: &'h Host,
    resolver: Option<Resolver>,
    /// How long the last row waits for names. Nothing in repeated rounds: the next one shows what has arrived.
    patience: Duration,
    known: HostNames,
    troubles: Vec<String>,
}

impl<'h> DnsNames<'h> {
    /// Starts asking in the background. Without a thread there are no names, and [`DnsNames::report`] says why.
    pub(crate) fn start(session: &'h Session, bound: Duration, repeated: bool) -> DnsNames<'h> {
        let host = session.host();
        let mut troubles = Vec::new();
        let resolver = Resolver::start(host, &Options::default());
        let resolver = resolver.map_err(|error| troubles.push(error.to_string())).ok();
        let patience = if repeated { Duration::ZERO } else { bound };
        DnsNames { host, resolver, patience, known: HostNames::default(), troubles }
    }

    /// Adds to the books which names are missing. That is no reason for exit code 3: every row is there.
    pub(crate) fn report(&self, books: &mut Accounting) {
        let lines = self.resolver.iter().flat_map(|r| r.report().lines());
        lines.chain(self.troubles.iter().cloned()).for_each(|line| books.because(1, line));
    }
}

impl Names for DnsNames<'_> {
    fn ask(&mut self, addr: Addr) {
        if let Some(resolver) = &self.resolver {
            resolver.want(addr);
        }
    }

    fn settle(&mut self) {
        let Some(resolver) = &self.resolver else { return };
        if !self.host.is_replay() {
            resolver.wait_until(Instant::now() + self.patience);
        }
        match resolver.names(self.host) {
            Ok(known) => self.known = known,
            Err(error) => self.troubles.push(error.to_string()),
        }
    }

    fn name(&self, addr: Addr) -> Option<&[u8]> {
        self.known.name(addr)
    }
}
