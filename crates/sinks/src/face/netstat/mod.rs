//! The bytes of netstat (net-tools 2.10).
//!
//! Sockets, interfaces, routes, groups or counter files in, netstat's lines out. Knows no switch and reads nothing: who
//! is listed and in how many rounds is the command line's business, but for the question what netstat counts as
//! listening ([`Show::wants`]).

mod address;
mod cell;
mod counter_words;
mod counters;
mod hardware;
mod interfaces;
mod options;
mod routes;
mod timer;
mod unix;
mod writer;

pub use counters::{Counted, Garbled, Statistics};
pub use interfaces::{INTERFACES_HEADING, INTERFACES_TITLE, Interface};
pub use options::{Names, Show, SocketLayout};
pub use routes::{
    GROUPS_HEADING, NetworkNames, RouteColumns, RouteOptions, named_hosts, put_cache_heading, put_membership,
    put_route, put_route6, put_routes_heading, put_routes6_heading,
};
pub use writer::Writer;
