//! What probes saw of a host: the data that checks look at. Each probe has a file here, which the file of the same name
//! in the crate `probes` fills.
//!
//! Start reading at [`Sample`].

mod arp;
mod bridges;
pub(crate) mod cause;
mod cgroups;
mod controls;
mod descriptors;
mod dns;
mod drops;
mod ends;
mod flows;
mod groups;
mod ipsec;
mod links;
mod log_groups;
mod mac_moves;
mod moved;
mod neighbours;
mod pace;
mod port_use;
mod processes;
mod queues;
mod resets;
mod router_adverts;
mod routes;
mod routing_rules;
mod sample;
mod shared_ports;
mod sockets;
mod surroundings;
mod unix;
mod waiting;

pub use arp::{ArpSetting, Conflict, IgnoredArp};
pub use cgroups::{CgroupSeen, SocketCgroup};
pub use controls::{CONTROLS_MAX, Control, ControlKind};
pub use descriptors::Descriptors;
pub use dns::{DnsMismatch, DnsSeen, DnsServerSeen};
pub use drops::{DropSeen, RuleSeen};
pub use ends::{Holder, NameOwner, PeerHost, SOCKETS_MAX};
pub use flows::{COMPARED_MAX, DESTINATIONS_MAX, Difference, FlowCensus, PublishedPort, StaleFlow, TrackedFlow};
pub use groups::{GroupListener, GroupSeen};
pub use ipsec::{IpsecDirection, IpsecPolicy};
pub(crate) use links::SET_DOWN;
pub use links::{AddressSeen, LinkSeen, ModeSeen, XdpSeen};
pub use log_groups::RuleWithoutReader;
pub use mac_moves::MacMoved;
pub use moved::Moved;
pub use neighbours::{NeighbourSeen, OwnMacvlan, PermanentSeen};
pub use pace::{Account, PaceCensus, SmallPath, SmallSegments, Transfer};
pub(crate) use pace::{DELAY_MAX_US, DELAYED_US, LONG_US};
pub use port_use::{PortsTaken, SHARERS_MAX, Sharers};
pub use processes::{Hold, ProcessSeen};
pub use queues::NfQueue;
pub use resets::{RESETS_MAX, ResetCensus, ResetCount, ResetGroup, ResetKind};
pub use router_adverts::IgnoredAdverts;
pub use routes::{Gateway, PATHS_MAX, PathSeen, RedirectSeen};
pub(crate) use routing_rules::is_v6;
pub use routing_rules::{RoutingRule, RuleAction, TablesSeen};
pub use sample::Sample;
pub use shared_ports::SharedPort;
pub use sockets::{Asking, LateReader, PortsInUse, Queue, SendingConnection, Served, SocketCensus, Stuck, Unclosed};
pub use surroundings::Surroundings;
pub use unix::{UNIX_MAX, UnixKind, UnixQueue};
pub use waiting::{Silent, Unaccepted, Unanswered, UnreadData, Waiting};
