//! Stateless NAT: publishing a port by rewriting each packet on its own, without connection tracking, and the cases in
//! which that is impossible.
//!
//! Publishing with DNAT costs one entry of the tracking table per connection; a server with many short connections
//! fills the table, and then packets are dropped. If one port of this host maps to one port of one backend, the way
//! back follows from the packet alone and needs no entry. [`plan`] decides whether that holds, [`Plan::ruleset`]
//! writes it for nft(8).
//!
//! The module reads nothing and changes nothing; `probes` applies the rules.

mod hits;
mod impossible;
mod notation;
mod obstacles;
mod plan;
mod publish;
mod ruleset;

pub use hits::{Hits, parse_hits, render_hits};
pub use impossible::Impossible;
pub use obstacles::{Obstacle, Settings, obstacles};
pub use plan::{HostRoutes, Plan, Rewrite, plan};
pub use publish::{Publish, Transport};
pub use ruleset::{Direction, TABLE, counter_name};
