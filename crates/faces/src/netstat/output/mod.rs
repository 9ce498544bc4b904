//! The bytes of netstat (net-tools 2.10).
//!
//! The writers take sockets, interfaces, routes, groups or counter files, and write netstat's lines. They know no
//! switch and read nothing: the command line decides what is listed and in how many rounds, except which sockets
//! netstat counts as listening ([`Show::wants`]).

mod address;
mod counter_words;
mod counters;
mod hardware;
mod interfaces;
mod options;
mod routes;
mod timer;
mod unix;
mod writer;

pub use counters::{CounterBlocks, GarbledFile, Statistics};
pub use interfaces::{INTERFACES_HEADING, INTERFACES_TITLE, Interface};
pub use options::{Names, Show, SocketLayout};
pub use routes::{
    GROUPS_HEADING, NetworkNames, RouteColumns, RouteOptions, named_hosts, put_cache_heading, put_membership,
    put_route, put_route6, put_routes_heading, put_routes6_heading,
};
pub use writer::Writer;
