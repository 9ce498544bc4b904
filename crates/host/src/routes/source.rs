//! Routes of one network namespace or many as rows of the table `routes`.
use std::ops::ControlFlow;

use record::rows::{Route, Routes};
use record::{
    Accounting, Addr, Demand, Each, MergedStats, Next, RowStats, Scan, Source, SourceError, SourceFault, full_scan,
    text,
};
use sys::{Host, NetnsTarget, NotEntered};

use super::{AF_INET, AF_INET6, Decoded, RT_TABLE_DEFAULT, RT_TABLE_LOCAL, RT_TABLE_MAIN, decode, dump};
use crate::HostError;

/// Reads the routes of every target in turn: all tables, IPv4 then IPv6, in the kernel's order.
#[derive(Debug)]
pub struct RouteSource<'h> {
    host: &'h Host,
    targets: Vec<NetnsTarget<'h>>,
}

impl<'h> RouteSource<'h> {
    /// A source for the namespaces `targets`; entering another one than the current needs CAP_SYS_ADMIN.
    pub fn new(host: &'h Host, targets: Vec<NetnsTarget<'h>>) -> RouteSource<'h> {
        RouteSource { host, targets }
    }

    /// The routes of the namespace that the calling thread is in. A family that cannot be read costs its own rows and a
    /// reason; the run fails if nothing can be read.
    fn namespace(&self, netns_id: u64, many: &mut MergedStats, each: &mut Each<'_, Routes>) -> Next {
        let (mut text, mut next) = (RouteText::default(), Next::More);
        for family in [AF_INET, AF_INET6] {
            let mut stats = RowStats::default();
            let end = dump(self.host, netns_id, None, family, |part| {
                match decode(part, family) {
                    Ok(None) => {}
                    Ok(Some(decoded)) => next = text.rows(netns_id, &decoded, &mut stats, each),
                    Err(error) => {
                        stats.arrived(1);
                        stats.failed(error);
                    }
                }
                if next == Next::Stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if end.as_ref().is_ok_and(|end| end.interrupted) {
                stats.incomplete(0, "routes changed while they were read: some may be missing or shown twice");
            }
            many.stats.add(&stats.close());
            match end {
                Ok(_) => many.succeeded(),
                Err(error) => many.failed(fault(error)),
            }
            if next == Next::Stop {
                break;
            }
        }
        next
    }
}

impl Source<Routes> for RouteSource<'_> {
    fn prepare(&self, _: &Demand<Routes>) -> Box<dyn Scan<Routes> + '_> {
        let explain = "routes of all tables by rtnetlink (RTM_GETROUTE), IPv4 then IPv6";
        full_scan::<Routes, _>("netlink", explain, |each| self.read(each))
    }
}

impl RouteSource<'_> {
    /// The routes of every target.
    fn read(&self, each: &mut Each<'_, Routes>) -> Result<Accounting, SourceError> {
        let mut many = MergedStats::default();
        many.stats.used("netlink");
        let mut not_entered = NotEntered::default();
        for target in &self.targets {
            match target.enter_for(self.host, " routes") {
                Ok(_inside) => {
                    if self.namespace(target.netns_id, &mut many, each) == Next::Stop {
                        break;
                    }
                }
                Err(error) => not_entered.add(target, error),
            }
        }
        many.gone(not_entered.gone);
        not_entered.unreadable.into_iter().for_each(|why| many.not_entered(why.error.errno.is_denied(), why));
        many.finish()
    }
}

fn fault(error: HostError) -> SourceError {
    if error.is_not_recorded() {
        let cause = "the recording holds no routes (`netwren record FILE` records everything)";
        return SourceError { what: "routes", fault: SourceFault::Io, cause: cause.into() };
    }
    let is_denied = matches!(&error, HostError::Netlink(netlink::DumpError::Io(error)) if error.errno.is_denied());
    let fault = if is_denied { SourceFault::Denied } else { SourceFault::Io };
    SourceError { what: "routes", fault, cause: Box::new(error) }
}

/// Text cells of a route, in memory that is reused.
#[derive(Debug, Default)]
pub(super) struct RouteText {
    destination: Vec<u8>,
    source: Vec<u8>,
    table: Vec<u8>,
}

impl RouteText {
    /// Hands a route to `each`: once, or once per next hop.
    fn rows(&mut self, netns_id: u64, route: &Decoded<'_>, stats: &mut RowStats, each: &mut Each<'_, Routes>) -> Next {
        self.put(route);
        let only = Some(route.route).filter(|_| route.hops.is_empty());
        for route in only.into_iter().chain(route.hops()) {
            stats.arrived(1);
            stats.row();
            if each(&Route { netns_id, ..self.row(route) }) == Next::Stop {
                return Next::Stop;
            }
        }
        Next::More
    }

    /// Writes the text of a route over that of the one before.
    pub(super) fn put(&mut self, route: &Decoded<'_>) {
        put_prefix(&mut self.destination, route.route.dst);
        put_prefix(&mut self.source, route.source);
        if route.source.1 == 0 {
            self.source.clear();
        }
        self.table.clear();
        match route.route.table_id {
            RT_TABLE_DEFAULT => self.table.extend_from_slice(b"default"),
            RT_TABLE_MAIN => self.table.extend_from_slice(b"main"),
            RT_TABLE_LOCAL => self.table.extend_from_slice(b"local"),
            number => text::put_u64(&mut self.table, number.into()),
        }
    }

    /// The route with the text that was written last.
    pub(super) fn row(&self, route: Route<'static>) -> Route<'_> {
        Route { destination: &self.destination, source: &self.source, table: &self.table, ..route }
    }
}

/// Replaces `into` by a prefix as `ip route` writes it.
fn put_prefix(into: &mut Vec<u8>, (addr, len): (Addr, u8)) {
    into.clear();
    if len == 0 {
        return into.extend_from_slice(b"default");
    }
    text::put_addr(into, addr);
    if len < addr.bits() {
        into.push(b'/');
        text::put_u64(into, len.into());
    }
}
