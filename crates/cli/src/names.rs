//! `--resolve`: the engine holds rows, this asks for the names of their addresses.

use crate::session::Session;
use engine::Names;
use host::{HostNames, Resolver};
use record::Addr;
use std::time::{Duration, Instant};
use sys::Host;

/// Names by /etc/hosts and DNS for one run.
pub(crate) struct DnsNames<'h> {
    host: &'h Host,
    resolver: Option<&'h Resolver>,
    /// How long the last row waits for names. Nothing in repeated rounds: the next one shows what has arrived.
    patience: Duration,
    known: HostNames,
}

impl<'h> DnsNames<'h> {
    /// Names for the session's rows.
    pub(crate) fn new(session: &'h Session, bound: Duration, repeated: bool) -> DnsNames<'h> {
        let patience = if repeated { Duration::ZERO } else { bound };
        DnsNames { host: session.host(), resolver: session.resolver(), patience, known: HostNames::default() }
    }
}

impl Names for DnsNames<'_> {
    fn ask(&mut self, addr: Addr) {
        if let Some(resolver) = self.resolver {
            resolver.want(addr);
        }
    }

    fn settle(&mut self) {
        let Some(resolver) = self.resolver else { return };
        if !self.host.is_replay() {
            resolver.wait_until(Instant::now() + self.patience);
        }
        // A recording without names replays without names.
        self.known = resolver.names(self.host).unwrap_or_default();
    }

    fn name(&self, addr: Addr) -> Option<&[u8]> {
        self.known.name(addr)
    }
}
