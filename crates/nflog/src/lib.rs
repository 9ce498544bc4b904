//! Records of netfilter's log as rows: one for each packet that a rule with `log group N` (nft) or `-j NFLOG`
//! (iptables) logs.
//!
//! Live from the kernel or from a recording. The number of records that the kernel could not deliver is exact. This
//! crate knows nfnetlink_log; it knows nothing of rules, processes, filter text or output. Start reading at
//! [`LogStream`]; [`decode_record`] turns a message into a row.
#![forbid(unsafe_code)]

mod events;
mod fuzz;
mod taken;
mod trial;
mod uapi;

pub use events::netlink::groups::{COPY_BYTES, LATENCY};
pub use events::netlink::other_netns::FindOtherNetns;
pub use events::netlink::record::decode_record;
pub use events::preview::Preview;
pub use events::stream::{BUFFER_BYTES, FollowLog, LogStream, sends_entries};
pub use events::succession::{InheritedGroup, NextNumber, StoreNumbers, Succession};
pub use events::wanted::WantedParts;
pub use fuzz::fuzz_nflog;
pub use taken::GroupReader;
pub use trial::try_groups;
