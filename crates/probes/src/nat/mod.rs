//! The connection-tracking table: what advice on its size reads and sets, and rules of source NAT.

mod apply;
mod evidence;
mod port_use;
mod settings_file;
mod snat_rules;
pub(crate) mod stale;
pub mod stateless;

pub use apply::{ApplyOptions, apply};
pub use evidence::{Sampling, gather, is_first_netns, names, save};
pub use port_use::PortUseSink;
pub use snat_rules::SnatRules;
