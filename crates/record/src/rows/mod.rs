//! The tables: one module each, with the row and its field table.

mod baseline_change;
mod capture_file;
mod captured_packet;
mod conntrack;
mod conntrack_fields;
mod counter;
mod cpu_group;
mod diff;
mod dropping_rule;
mod families;
mod family_extras;
mod family_extras_fields;
mod family_fields;
mod feature;
mod finding;
mod flow;
mod flow_diff;
mod flow_event;
mod home_screen;
mod link;
mod log_record;
mod log_shape;
mod logging_rule;
mod nat_advice;
mod nat_event;
mod nat_stats;
mod nested;
mod packet;
mod packet_drop;
mod packet_entry;
mod packet_parts;
mod packet_socket;
mod path_stage;
mod proc_route;
mod route;
mod sctp;
mod skmem;
mod snat_rule;
mod socket;
mod socket_diff;
mod socket_event;
mod socket_fields;
mod tcp_info;
mod tcp_info_fields;

pub use baseline_change::{BaselineChange, BaselineChanges, BaselineVerb, ChangedThing};
pub use capture_file::{CaptureFile, CaptureFileIface, CaptureFiles};
pub use captured_packet::{
    ArpHeader, CapturedFrame, CapturedPacket, CapturedPackets, FramePlace, LinkHeader, LinkType, PktType,
    SimilarFrames, StampSource, UnusualTime, capture_need,
};
pub use conntrack::{
    Conntrack, CtCounters, CtState, CtStatus, CtTuple, Expectation, IcmpPart, NatKind, ip_proto, nat_need,
};
pub use conntrack_fields::Nat;
pub use counter::{Counter, CounterKind, CounterNote, CounterSource, KernelCounters, is_numbered};
pub use cpu_group::{CallChain, CallChains, CodeContext, CodeGroup, CpuGroup, CpuGroups};
pub use diff::{Change, Counters, DiffTable, Identity, Rate, RowDiff};
pub use dropping_rule::{DroppingRule, RuleBasis};
pub use families::{SockType, TipcConnection, TipcPart, VsockPart, XdpPart, XdpStats, XdpUmem};
pub use family_extras::{
    FamilyExtras, MptcpPart, NetlinkPart, NetlinkProtocol, PacketPart, PacketRing, PacketType, UlpPart,
};
pub use feature::{Feature, FeatureState, Features};
pub use finding::{Confidence, Evidence, Finding, Findings, Remedy, Severity};
pub use flow::{Direction, Flow, FlowRtt, FlowStates, Flows};
pub use flow_diff::SavedFlow;
pub use flow_event::{FlowEvent, FlowEvents};
pub use home_screen::{HomeScreen, HomeScreens};
pub use link::{BridgeState, Link, LinkAddr, LinkAddr6, LinkMap, LinkStats, LinkXdp, Membership, PortState, iff};
pub use log_record::{LogRecord, LogRecords, log_need};
pub use logging_rule::{LoggingRule, VERDICTS};
pub use nat_advice::{AdviceNumber, NatAdvice, NatAdvices};
pub use nat_event::{NatEvent, NatEventKind, NatEvents, nat_event_need};
pub use nat_stats::{CtSetting, CtSettings, NatStat, NatStats, StatCounter, StatCounts, stat_need};
pub use packet::{Fragment, IcmpHeader, PacketHeaders, TcpHeader, Transport, tcp_flag};
pub use packet_drop::{CountedIn, DropEvent, DropEvents, DroppedFrame, Drops, NetfilterHook, PacketDrop, drop_need};
pub use packet_entry::{CtAttrs, CtDirection, EntrySource, PacketEntry, PacketState};
pub use packet_socket::{HolderWords, PacketSocket};
pub use path_stage::{PathFamily, PathStage, PathStages, StageName};
pub use proc_route::{ProcRoute, rtf};
pub use route::{Route, Routes};
pub use sctp::{SctpNumbers, SctpPart, SctpState, sctp_addrs};
pub use skmem::SkMem;
pub use snat_rule::{PortRange, SnatPorts, SnatRule};
pub use socket::{Endpoint, Socket, Sockets, UnixPart, UnixType, need};
pub use socket_diff::SavedSocket;
pub use socket_event::{CloseReason, EventKind, Holder, SocketEvent, SocketEvents};
pub use tcp_info::TcpInfo;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;

    fn are_unique_and_documented<T: Table>() {
        for (i, field) in T::FIELDS.iter().enumerate() {
            assert!(!field.doc.is_empty(), "{}: {} has no sentence", T::NAME, field.name);
            assert!(T::FIELDS[..i].iter().all(|f| f.name != field.name), "{}: {} stands twice", T::NAME, field.name);
        }
    }

    #[test]
    fn fields_of_every_table_are_unique_and_documented() {
        are_unique_and_documented::<CapturedPackets>();
        are_unique_and_documented::<KernelCounters>();
        are_unique_and_documented::<CpuGroups>();
        are_unique_and_documented::<CallChains>();
        are_unique_and_documented::<PathStages>();
        are_unique_and_documented::<Findings>();
        are_unique_and_documented::<BaselineChanges>();
        are_unique_and_documented::<Drops>();
        are_unique_and_documented::<DropEvents>();
        are_unique_and_documented::<Flows>();
        are_unique_and_documented::<FlowEvents>();
        are_unique_and_documented::<HomeScreens>();
        are_unique_and_documented::<LogRecords>();
        are_unique_and_documented::<Nat>();
        are_unique_and_documented::<Routes>();
        are_unique_and_documented::<NatEvents>();
        are_unique_and_documented::<NatStats>();
        are_unique_and_documented::<Sockets>();
        are_unique_and_documented::<SocketEvents>();
    }
}
