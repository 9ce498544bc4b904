//! Routes of a network namespace as rows of the table `routes`.
use record::rows::{Route, Routes};
use record::{Addr, Each, MergedStats, Next, RowStats, text};
use sys::Host;

use super::{AF_INET, AF_INET6, Decoded, RT_TABLE_DEFAULT, RT_TABLE_LOCAL, RT_TABLE_MAIN, decode, dump};
use crate::netns_table::{NetnsTable, add_dump};

/// Reads all tables, IPv4 then IPv6, in the kernel's order.
impl NetnsTable for Routes {
    const BACKEND: &'static str = "netlink";
    const EXPLAIN: &'static str = "routes of all tables via rtnetlink (RTM_GETROUTE), IPv4 then IPv6";

    fn read_netns(host: &Host, netns_id: u64, many: &mut MergedStats, each: &mut Each<'_, Routes>) -> Next {
        let (mut text, mut next) = (RouteText::default(), Next::More);
        for family in [AF_INET, AF_INET6] {
            let mut stats = RowStats::default();
            let end = dump(host, netns_id, None, family, |part| {
                match decode(part, family) {
                    Ok(Some(decoded)) => next = text.rows(netns_id, &decoded, &mut stats, each),
                    Ok(None) => {}
                    Err(error) => stats.add_undecoded(error),
                }
                next.into()
            });
            add_dump::<Routes>(many, stats, end);
            if next == Next::Stop {
                break;
            }
        }
        next
    }
}

/// Text cells of a route, in reused memory.
#[derive(Debug, Default)]
pub(super) struct RouteText {
    destination: Vec<u8>,
    source: Vec<u8>,
    table: Vec<u8>,
}

impl RouteText {
    /// Passes a route to `each`, once or once per next hop.
    fn rows(&mut self, netns_id: u64, route: &Decoded<'_>, stats: &mut RowStats, each: &mut Each<'_, Routes>) -> Next {
        self.put(route);
        let only = Some(route.route).filter(|_| route.hops.is_empty());
        for route in only.into_iter().chain(route.hops()) {
            stats.add_arrived(1);
            stats.row();
            if each(&Route { netns_id, ..self.row(route) }) == Next::Stop {
                return Next::Stop;
            }
        }
        Next::More
    }

    /// Overwrites the text of the previous route.
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

    /// The route with its text, which must have been written last.
    pub(super) fn row(&self, route: Route<'static>) -> Route<'_> {
        Route { destination: &self.destination, source: &self.source, table: &self.table, ..route }
    }
}

/// Replaces `into` with a prefix in the format of `ip route`.
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
