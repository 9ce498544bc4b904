//! `netstat -r`: prints the routing tables.

use super::complain;
use super::list::NAMES_WITHIN;
use super::rounds::{RoundEnd, repeat};
use super::switches::{RouteFamily, Routes};
use crate::netstat::output::{
    NetworkNames, named_hosts, put_cache_heading, put_route, put_route6, put_routes_heading, put_routes6_heading,
};
use crate::text::warn;
use host::routes::{Routes6, read4};
use host::{HostNames, Ifaces, Networks, Resolver};
use lookups::session::Session;
use record::rows::{ProcRoute, rtf};
use record::{LookupId, Lookups};
use runtime::messages;
use runtime::stdout::Stdout;
use sinks::Out;
use std::ops::ControlFlow;
use std::time::Instant;

/// Prints the tables, repeatedly if requested; returns the exit code.
pub(super) fn run(session: &Session, request: &Routes) -> u8 {
    let mut out = Out::new(Stdout::new());
    let networks = if request.options.numeric { None } else { Networks::read(session.host()).ok() };
    let reader = Reader { session, request, networks: networks.unwrap_or_default() };
    repeat(session, request.continuous, || {
        let done = reader.round(&mut out);
        let flushed = out.flush().map_err(RoundEnd::Output);
        done.and(flushed)
    })
}

struct Reader<'s> {
    session: &'s Session,
    request: &'s Routes,
    networks: Networks,
}

impl Reader<'_> {
    fn round(&self, out: &mut Out<Stdout>) -> Result<(), RoundEnd> {
        for family in &self.request.families {
            match family {
                RouteFamily::Four => self.four(out)?,
                RouteFamily::Six => self.six(out)?,
                RouteFamily::Without(name) => {
                    out.flush().map_err(RoundEnd::Output)?;
                    warn(&format!("No routing for address family `{name}'.\n"));
                    return Err(RoundEnd::Reported(3));
                }
            }
        }
        Ok(())
    }

    fn four(&self, out: &mut Out<Stdout>) -> Result<(), RoundEnd> {
        if self.request.fib {
            let hosts = self.names(|want| {
                let _ = self.each4(&Ifaces::new(), |row| {
                    want(row);
                    ControlFlow::Continue(())
                });
            });
            put_routes_heading(out.buf(), &self.request.options);
            self.table4(out, hosts.as_ref())?;
        }
        if self.request.cache {
            put_cache_heading(out.buf(), &self.request.options);
        }
        Ok(())
    }

    fn table4(&self, out: &mut Out<Stdout>, hosts: Option<&HostNames>) -> Result<(), RoundEnd> {
        let (host, netns) = (self.session.host(), self.session.netns_id());
        let lookups = lookups(hosts);
        let names = NetworkNames { network: &|network| self.networks.name(network) };
        // Routes are shown even if the names of interfaces cannot be read.
        let ifaces = Ifaces::read(host, netns).unwrap_or_default();
        let mut broken = Ok(());
        let read = self.each4(&ifaces, |row| {
            put_route(out.buf(), row, &self.request.options, names, &lookups);
            if let Err(error) = out.line_done() {
                broken = Err(RoundEnd::Output(error));
            } else if self.session.interrupted() {
                broken = Err(RoundEnd::Interrupted);
            }
            if broken.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        broken?;
        match read {
            Ok(end) if end.interrupted => {
                messages::print_message("the routes changed while they were read: some may be missing")
            }
            Ok(_) => {}
            Err(error) => {
                return Err(RoundEnd::Reported(complain(&format!("cannot read the routes: {error}"), 1)));
            }
        }
        Ok(())
    }

    fn each4(
        &self,
        ifaces: &Ifaces,
        each: impl FnMut(&ProcRoute<'_>) -> ControlFlow<()>,
    ) -> Result<netlink::DumpEnd, host::HostError> {
        read4(self.session.host(), self.session.netns_id(), None, ifaces, each)
    }

    fn six(&self, out: &mut Out<Stdout>) -> Result<(), RoundEnd> {
        let (host, netns) = (self.session.host(), self.session.netns_id());
        let routes = Routes6::read(host, netns, None).map_err(|error| {
            out.buf().extend_from_slice(b"INET6 (IPv6) not configured in this system.\n");
            RoundEnd::Reported(complain(&error.to_string(), 1))
        })?;
        let hosts = self.names(|want| routes.iter().for_each(|row| want(&row)));
        let lookups = lookups(hosts.as_ref());
        let passes = [(self.request.fib, false), (self.request.cache, true)];
        for (_, cache) in passes.into_iter().filter(|(request, _)| *request) {
            put_routes6_heading(out.buf(), cache);
            for row in routes.iter().filter(|row| (row.flags & rtf::CACHE != 0) == cache) {
                put_route6(out.buf(), &row, &self.request.options, &lookups);
                out.line_done().map_err(RoundEnd::Output)?;
            }
        }
        Ok(())
    }

    /// Resolves the hosts in the routes that `all` passes to its argument, all at once and before the first line.
    fn names(&self, all: impl FnOnce(&mut dyn FnMut(&ProcRoute<'_>))) -> Option<HostNames> {
        if self.request.options.numeric {
            return None;
        }
        let resolver = Resolver::start(self.session.host(), &host::hosts::ResolverOptions::default()).ok()?;
        all(&mut |row| named_hosts(row).for_each(|addr| resolver.want(addr.unmapped())));
        resolver.wait_until(Instant::now() + NAMES_WITHIN);
        resolver.names(self.session.host()).ok()
    }
}

fn lookups(hosts: Option<&HostNames>) -> Lookups<'_> {
    match hosts {
        Some(hosts) => Lookups::empty().with_lookup(LookupId::Hosts, hosts),
        None => Lookups::empty(),
    }
}
