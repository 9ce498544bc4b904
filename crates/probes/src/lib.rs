//! Probes: what a diagnosis, the home screen and advice read of a host, and what they set.
//!
//! A check of `doctor` names the probes that it needs. [`Watch`] takes their steps in an order that is the same for all
//! of them: first reading, window, second reading, and then what these readings call for. Each probe is a file that
//! implements `ProbeReader`; the data that it reads has its types in `doctor::seen`. Start reading at
//! [`Watch::samples`].
#![forbid(unsafe_code)]

mod arp;
pub mod baseline;
mod cgroups;
mod controls;
mod counter_window;
mod descriptors;
mod dns;
mod drops;
mod entries;
mod flows;
mod groups;
pub mod home;
mod ignored_arp;
mod ipsec;
mod links;
mod log_groups;
mod mac_moves;
mod macvlans;
pub mod nat;
mod neighbours;
mod probe;
mod processes;
mod queues;
mod resets;
mod router_adverts;
mod routes;
mod settings;
mod shared_ports;
mod snat_ports;
mod sockets;
pub mod stateless;
mod unix;
mod watch;

pub use counter_window::CounterWindow;
pub use descriptors::forgive_missing;
pub use drops::{DropWatch, drop_scope};
pub use watch::{Watch, begun_ns, save};
