//! What probes saw of a host: the data that checks look at. Each probe has a file here, which the file of the same name
//! in the crate `probes` fills.
//!
//! Start reading at [`Sample`].

mod arp;
pub(crate) mod cause;
mod controls;
mod descriptors;
mod dns;
mod drops;
mod ends;
mod flows;
mod links;
mod log_groups;
mod moved;
mod neighbours;
mod pace;
mod processes;
mod queues;
mod sample;
mod sockets;
mod surroundings;
mod unix;
mod waiting;

pub use arp::Conflict;
pub use controls::{CONTROLS_MAX, Control, ControlKind};
pub use descriptors::Descriptors;
pub use dns::{DnsMismatch, DnsSeen, DnsServerSeen};
pub use drops::{DropSeen, RuleSeen};
pub use ends::{Holder, NameOwner, PeerHost, SOCKETS_MAX};
pub use flows::{COMPARED_MAX, DESTINATIONS_MAX, Difference, FlowCensus, PublishedPort, StaleFlow, TrackedFlow};
pub(crate) use links::SET_DOWN;
pub use links::{AddressSeen, LinkSeen, ModeSeen};
pub use log_groups::RuleWithoutReader;
pub use moved::Moved;
pub use neighbours::NeighbourSeen;
pub use pace::{Account, PaceCensus, SmallPath, Transfer};
pub(crate) use pace::{DELAYED_US, LONG_US};
pub use processes::{Hold, ProcessSeen};
pub use queues::NfQueue;
pub use sample::Sample;
pub use sockets::{Asking, LateReader, PortsInUse, Queue, SocketCensus, Stuck, Unclosed};
pub use surroundings::Surroundings;
pub use unix::{UNIX_MAX, UnixKind, UnixQueue};
pub use waiting::{Silent, Unaccepted, Unanswered, UnreadData, Waiting};
