//! NAT without state: what a published port looks like when every packet is rewritten by itself and connection tracking
//! is left out, and when that cannot be.
//!
//! Publishing by DNAT costs an entry of the tracking table a connection; a server of short connections fills it, and
//! then packets are dropped. Where one port of this host stands for one port of one backend, the way back follows from
//! the packet alone: no entry is needed. [`plan`] says whether it is so, [`Plan::ruleset`] writes it for nft(8).
//!
//! Reads nothing and changes nothing; who applies it is the command line.

mod impossible;
mod notation;
mod obstacles;
mod plan;
mod publish;
mod ruleset;

pub use impossible::Impossible;
pub use obstacles::{Obstacle, Settings, obstacles};
pub use plan::{HostRoutes, Plan, Rewrite, plan};
pub use publish::{Publish, Transport};
pub use ruleset::{Direction, TABLE, counter_name};
