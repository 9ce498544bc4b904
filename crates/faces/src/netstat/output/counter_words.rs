//! The sentences of `netstat -s`: the text for each counter.
//!
//! A counter that is not here is printed as `Name: N` unless it is zero. This also holds for counters for which
//! netstat has a sentence but never finds it (`TCPTimeouts`, `TCPDSACKRecv`, …: it searches its tables as if they were
//! sorted, and they are not). Scripts rely on the actual bytes, so those sentences are omitted here.

/// The condition under which a counter is printed, and its title.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Print {
    /// Always.
    Always,
    /// Unless it is zero.
    NotZero,
    /// Under "ICMP input histogram:", unless it is zero.
    IcmpIn,
    /// Under "ICMP output histogram:", unless it is zero.
    IcmpOut,
    /// Never: it is configuration, not a counter.
    Never,
}

/// A counter: the kernel's name and the words around its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    pub(super) name: &'static str,
    pub(super) print: Print,
    pub(super) before: &'static str,
    pub(super) after: &'static str,
}

/// The switch that requests a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BlockSwitch {
    /// `-w`
    Raw,
    /// `-t`
    Tcp,
    /// `-u`
    Udp,
    /// `-S`
    Sctp,
}

/// A block of counters: its heading, the switch that requests it, and its counters in the order of their names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) heading: &'static str,
    pub(super) asked: BlockSwitch,
    counters: &'static [Counter],
}

impl Block {
    /// Returns the counter called `name`, if netstat knows it.
    pub(super) fn counter(&self, name: &[u8]) -> Option<&'static Counter> {
        let at = self.counters.binary_search_by(|c| c.name.as_bytes().cmp(name)).ok()?;
        self.counters.get(at)
    }
}

/// Blocks of /proc/net/snmp, /proc/net/netstat and /proc/net/sctp/snmp. Any other block is always printed.
pub(super) const BLOCKS: &[Block] = &[
    Block { heading: "Ip", asked: BlockSwitch::Raw, counters: IP },
    Block { heading: "Icmp", asked: BlockSwitch::Raw, counters: ICMP },
    Block { heading: "Tcp", asked: BlockSwitch::Tcp, counters: TCP },
    Block { heading: "Udp", asked: BlockSwitch::Udp, counters: UDP },
    Block { heading: "Sctp", asked: BlockSwitch::Sctp, counters: SCTP },
    Block { heading: "TcpExt", asked: BlockSwitch::Tcp, counters: TCP_EXT },
];

/// Blocks of /proc/net/snmp6.
pub(super) const BLOCKS6: &[Block] = &[
    Block { heading: "Ip6", asked: BlockSwitch::Raw, counters: IP6 },
    Block { heading: "Icmp6", asked: BlockSwitch::Raw, counters: ICMP6 },
    Block { heading: "Udp6", asked: BlockSwitch::Udp, counters: UDP6 },
    Block { heading: "Tcp6", asked: BlockSwitch::Tcp, counters: TCP },
];

const fn counter(name: &'static str, print: Print, before: &'static str, after: &'static str) -> Counter {
    Counter { name, print, before, after }
}

const fn hidden(name: &'static str) -> Counter {
    Counter { name, print: Print::Never, before: "", after: "" }
}

/// `Ip:`
const IP: &[Counter] = &[
    hidden("DefaultTTL"),
    counter("ForwDatagrams", Print::Always, "", " forwarded"),
    counter("FragCreates", Print::NotZero, "", " fragments created"),
    counter("FragFails", Print::NotZero, "", " outgoing packets failed fragmentation"),
    counter("FragOKs", Print::NotZero, "", " outgoing packets fragmented ok"),
    counter("InAddrErrors", Print::NotZero, "", " with invalid addresses"),
    counter("InDelivers", Print::Always, "", " incoming packets delivered"),
    counter("InDiscards", Print::Always, "", " incoming packets discarded"),
    counter("InHdrErrors", Print::NotZero, "", " with invalid headers"),
    counter("InReceives", Print::Always, "", " total packets received"),
    counter("InUnknownProtos", Print::NotZero, "", " with unknown protocol"),
    counter("OutDiscards", Print::NotZero, "", " outgoing packets dropped"),
    counter("OutNoRoutes", Print::NotZero, "", " dropped because of missing route"),
    counter("OutRequests", Print::Always, "", " requests sent out"),
    counter("ReasmFails", Print::NotZero, "", " packet reassemblies failed"),
    counter("ReasmOKs", Print::NotZero, "", " packets reassembled ok"),
    counter("ReasmReqds", Print::NotZero, "", " reassemblies required"),
    counter("ReasmTimeout", Print::NotZero, "", " fragments dropped after timeout"),
];

/// `Ip6:`
const IP6: &[Counter] = &[
    counter("Ip6FragCreates", Print::NotZero, "", " fragments created"),
    counter("Ip6FragFails", Print::NotZero, "", " outgoing packets failed fragmentation"),
    counter("Ip6FragOKs", Print::NotZero, "", " outgoing packets fragmented ok"),
    counter("Ip6InAddrErrors", Print::NotZero, "", " with invalid addresses"),
    counter("Ip6InDelivers", Print::Always, "", " incoming packets delivered"),
    counter("Ip6InDiscards", Print::Always, "", " incoming packets discarded"),
    counter("Ip6InHdrErrors", Print::NotZero, "", " with invalid headers"),
    counter("Ip6InMcastPkts", Print::NotZero, "", " incoming multicast packets"),
    counter("Ip6InNoRoutes", Print::NotZero, "", " incoming packets with no route"),
    counter("Ip6InReceives", Print::Always, "", " total packets received"),
    counter("Ip6InTooBigErrors", Print::NotZero, "", " with packets too big"),
    counter("Ip6InTruncatedPkts", Print::NotZero, "", " with truncated packets"),
    counter("Ip6InUnknownProtos", Print::NotZero, "", " with unknown protocol"),
    counter("Ip6OutDiscards", Print::NotZero, "", " outgoing packets dropped"),
    counter("Ip6OutForwDatagrams", Print::Always, "", " forwarded"),
    counter("Ip6OutMcastPkts", Print::NotZero, "", " outgoing multicast packets"),
    counter("Ip6OutNoRoutes", Print::NotZero, "", " dropped because of missing route"),
    counter("Ip6OutRequests", Print::Always, "", " requests sent out"),
    counter("Ip6ReasmFails", Print::NotZero, "", " packet reassemblies failed"),
    counter("Ip6ReasmOKs", Print::NotZero, "", " packets reassembled ok"),
    counter("Ip6ReasmReqds", Print::NotZero, "", " reassemblies required"),
    counter("Ip6ReasmTimeout", Print::NotZero, "", " fragments dropped after timeout"),
];

/// `Icmp:`
const ICMP: &[Counter] = &[
    counter("InAddrMaskReps", Print::IcmpIn, "address mask replies: ", ""),
    counter("InAddrMasks", Print::IcmpIn, "address mask request: ", ""),
    counter("InDestUnreachs", Print::IcmpIn, "destination unreachable: ", ""),
    counter("InEchoReps", Print::IcmpIn, "echo replies: ", ""),
    counter("InEchos", Print::IcmpIn, "echo requests: ", ""),
    counter("InErrors", Print::Always, "", " input ICMP message failed"),
    counter("InMsgs", Print::Always, "", " ICMP messages received"),
    counter("InParmProbs", Print::IcmpIn, "wrong parameters: ", ""),
    counter("InRedirects", Print::IcmpIn, "redirects: ", ""),
    counter("InSrcQuenchs", Print::IcmpIn, "source quenches: ", ""),
    counter("InTimeExcds", Print::IcmpIn, "timeout in transit: ", ""),
    counter("InTimestampReps", Print::IcmpIn, "timestamp reply: ", ""),
    counter("InTimestamps", Print::IcmpIn, "timestamp request: ", ""),
    counter("OutAddrMaskReps", Print::IcmpOut, "address mask replies: ", ""),
    counter("OutAddrMasks", Print::IcmpOut, "address mask requests: ", ""),
    counter("OutDestUnreachs", Print::IcmpOut, "destination unreachable: ", ""),
    counter("OutEchoReps", Print::IcmpOut, "echo replies: ", ""),
    counter("OutEchos", Print::IcmpOut, "echo requests: ", ""),
    counter("OutErrors", Print::Always, "", " ICMP messages failed"),
    counter("OutMsgs", Print::Always, "", " ICMP messages sent"),
    counter("OutParmProbs", Print::IcmpOut, "wrong parameters: ", ""),
    counter("OutRedirects", Print::IcmpOut, "redirect: ", ""),
    counter("OutSrcQuenchs", Print::IcmpOut, "source quench: ", ""),
    counter("OutTimeExcds", Print::IcmpOut, "time exceeded: ", ""),
    counter("OutTimestampReps", Print::IcmpOut, "timestamp replies: ", ""),
    counter("OutTimestamps", Print::IcmpOut, "timestamp requests: ", ""),
];

/// `Icmp6:`
const ICMP6: &[Counter] = &[
    counter("Icmp6InDestUnreachs", Print::IcmpIn, "destination unreachable: ", ""),
    counter("Icmp6InEchoReplies", Print::IcmpIn, "echo replies: ", ""),
    counter("Icmp6InEchos", Print::IcmpIn, "echo requests: ", ""),
    counter("Icmp6InErrors", Print::Always, "", " input ICMP message failed"),
    counter("Icmp6InGroupMembQueries", Print::IcmpIn, "group member queries: ", ""),
    counter("Icmp6InGroupMembReductions", Print::IcmpIn, "group member reductions: ", ""),
    counter("Icmp6InGroupMembResponses", Print::IcmpIn, "group member responses: ", ""),
    counter("Icmp6InMsgs", Print::Always, "", " ICMP messages received"),
    counter("Icmp6InNeighborAdvertisements", Print::IcmpIn, "neighbour advertisement: ", ""),
    counter("Icmp6InNeighborSolicits", Print::IcmpIn, "neighbour solicits: ", ""),
    counter("Icmp6InParmProblems", Print::IcmpIn, "parameter problem: ", ""),
    counter("Icmp6InPktTooBigs", Print::IcmpIn, "packets too big: ", ""),
    counter("Icmp6InRedirects", Print::IcmpIn, "redirects: ", ""),
    counter("Icmp6InRouterAdvertisements", Print::IcmpIn, "router advertisement: ", ""),
    counter("Icmp6InRouterSolicits", Print::IcmpIn, "router solicits: ", ""),
    counter("Icmp6InTimeExcds", Print::IcmpIn, "received ICMPv6 time exceeded: ", ""),
    counter("Icmp6OutDestUnreachs", Print::IcmpOut, "destination unreachable: ", ""),
    counter("Icmp6OutEchoReplies", Print::IcmpOut, "echo replies: ", ""),
    counter("Icmp6OutEchos", Print::IcmpOut, "echo requests: ", ""),
    counter("Icmp6OutGroupMembQueries", Print::IcmpOut, "group member queries: ", ""),
    counter("Icmp6OutGroupMembReductions", Print::IcmpOut, "group member reductions: ", ""),
    counter("Icmp6OutGroupMembResponses", Print::IcmpOut, "group member responses: ", ""),
    counter("Icmp6OutMsgs", Print::Always, "", " ICMP messages sent"),
    counter("Icmp6OutNeighborAdvertisements", Print::IcmpOut, "neighbor advertisements: ", ""),
    counter("Icmp6OutNeighborSolicits", Print::IcmpOut, "neighbor solicits: ", ""),
    counter("Icmp6OutParmProblems", Print::IcmpOut, "parameter problem: ", ""),
    counter("Icmp6OutPktTooBigs", Print::IcmpOut, "packets too big: ", ""),
    counter("Icmp6OutRedirects", Print::IcmpOut, "redirects: ", ""),
    counter("Icmp6OutRouterSolicits", Print::IcmpOut, "router solicits: ", ""),
    counter("Icmp6OutTimeExcds", Print::IcmpOut, "sent ICMPv6 time exceeded: ", ""),
];

/// `Tcp:`
const TCP: &[Counter] = &[
    counter("ActiveOpens", Print::Always, "", " active connection openings"),
    counter("AttemptFails", Print::Always, "", " failed connection attempts"),
    counter("CurrEstab", Print::Always, "", " connections established"),
    counter("EstabResets", Print::Always, "", " connection resets received"),
    counter("InErrs", Print::Always, "", " bad segments received"),
    counter("InSegs", Print::Always, "", " segments received"),
    hidden("MaxConn"),
    counter("OutRsts", Print::Always, "", " resets sent"),
    counter("OutSegs", Print::Always, "", " segments sent out"),
    counter("PassiveOpens", Print::Always, "", " passive connection openings"),
    counter("RetransSegs", Print::Always, "", " segments retransmitted"),
    hidden("RtoAlgorithm"),
    hidden("RtoMax"),
    hidden("RtoMin"),
];

/// `Udp:`
const UDP: &[Counter] = &[
    counter("InDatagrams", Print::Always, "", " packets received"),
    counter("InErrors", Print::Always, "", " packet receive errors"),
    counter("NoPorts", Print::Always, "", " packets to unknown port received"),
    counter("OutDatagrams", Print::Always, "", " packets sent"),
    counter("RcvbufErrors", Print::Always, "", " receive buffer errors"),
    counter("SndbufErrors", Print::Always, "", " send buffer errors"),
];

/// `Udp6:`
const UDP6: &[Counter] = &[
    counter("Udp6InDatagrams", Print::Always, "", " packets received"),
    counter("Udp6InErrors", Print::Always, "", " packet receive errors"),
    counter("Udp6NoPorts", Print::Always, "", " packets to unknown port received"),
    counter("Udp6OutDatagrams", Print::Always, "", " packets sent"),
];

/// `TcpExt:`
const TCP_EXT: &[Counter] = &[
    counter("DelayedACKLocked", Print::NotZero, "", " delayed acks further delayed because of locked socket"),
    counter("DelayedACKLost", Print::NotZero, "Quick ack mode was activated ", " times"),
    counter("DelayedACKs", Print::NotZero, "", " delayed acks sent"),
    counter("EmbryonicRsts", Print::NotZero, "", " resets received for embryonic SYN_RECV sockets"),
    counter("ListenDrops", Print::NotZero, "", " SYNs to LISTEN sockets dropped"),
    counter("ListenOverflows", Print::NotZero, "", " times the listen queue of a socket overflowed"),
    counter("LockDroppedIcmps", Print::NotZero, "", " ICMP packets dropped because socket was locked"),
    counter(
        "OfoPruned",
        Print::NotZero,
        "",
        " packets dropped from out-of-order queue because of socket buffer overrun",
    ),
    counter("OutOfWindowIcmps", Print::NotZero, "", " ICMP packets dropped because they were out-of-window"),
    counter("PAWSActive", Print::NotZero, "", " active connections rejected because of time stamp"),
    counter("PAWSEstab", Print::NotZero, "", " packets rejected in established connections because of timestamp"),
    counter("PAWSPassive", Print::NotZero, "", " passive connections rejected because of time stamp"),
    counter("PruneCalled", Print::NotZero, "", " packets pruned from receive queue because of socket buffer overrun"),
    counter("RcvPruned", Print::NotZero, "", " packets pruned from receive queue"),
    counter("SockMallocOOM", Print::NotZero, "Ran ", " times out of system memory during packet sending"),
    counter("SyncookiesFailed", Print::NotZero, "", " invalid SYN cookies received"),
    counter("SyncookiesRecv", Print::NotZero, "", " SYN cookies received"),
    counter("SyncookiesSent", Print::NotZero, "", " SYN cookies sent"),
    counter("TCPAbortFailed", Print::NotZero, "", " times unable to send RST due to no memory"),
    counter("TCPAbortOnClose", Print::NotZero, "", " connections reset due to early user close"),
    counter("TCPAbortOnData", Print::NotZero, "", " connections reset due to unexpected data"),
    counter("TCPAbortOnLinger", Print::NotZero, "", " connections aborted after user close in linger timeout"),
    counter("TCPAbortOnMemory", Print::NotZero, "", " connections aborted due to memory pressure"),
    counter("TCPAbortOnSyn", Print::NotZero, "", " connections reset due to unexpected SYN"),
    counter("TCPAbortOnTimeout", Print::NotZero, "", " connections aborted due to timeout"),
    counter("TCPDirectCopyFromBacklog", Print::NotZero, "", " bytes directly in process context from backlog"),
    counter("TCPFACKReorder", Print::NotZero, "Detected reordering ", " times using FACK"),
    counter("TCPFastRetrans", Print::NotZero, "", " fast retransmits"),
    counter("TCPForwardRetrans", Print::NotZero, "", " forward retransmits"),
    counter("TCPFullUndo", Print::NotZero, "", " congestion windows fully recovered without slow start"),
    counter("TCPHPAcks", Print::NotZero, "", " predicted acknowledgments"),
    counter("TCPHPHits", Print::Always, "", " packet headers predicted"),
    counter("TCPHPHitsToUser", Print::NotZero, "", " packet headers predicted and directly queued to user"),
    counter("TCPLossFailures", Print::NotZero, "", " timeouts in loss state"),
    counter("TCPLossUndo", Print::NotZero, "", " congestion windows recovered without slow start after partial ack"),
    counter("TCPLostRetransmits", Print::NotZero, "", " retransmits lost"),
    counter("TCPMemoryPressures", Print::NotZero, "TCP ran low on memory ", " times"),
    counter("TCPPartialUndo", Print::NotZero, "", " congestion windows partially recovered using Hoe heuristic"),
    counter("TCPPrequeued", Print::NotZero, "", " packets directly queued to recvmsg prequeue"),
    counter("TCPPureAcks", Print::NotZero, "", " acknowledgments not containing data payload received"),
    counter("TCPRcvCollapsed", Print::NotZero, "", " packets collapsed in receive queue due to low socket buffer"),
    counter("TCPRenoFailures", Print::NotZero, "", " timeouts after reno fast retransmit"),
    counter("TCPRenoRecovery", Print::NotZero, "", " times recovered from packet loss due to fast retransmit"),
    counter("TCPRenoReorder", Print::NotZero, "Detected reordering ", " times using reno fast retransmit"),
    counter("TCPSACKReorder", Print::NotZero, "Detected reordering ", " times using SACK"),
    counter("TCPSchedulerFailed", Print::NotZero, "", " times receiver scheduled too late for direct processing"),
    counter("TCPSlowStartRetrans", Print::NotZero, "", " retransmits in slow start"),
    counter("TCPTSReorder", Print::NotZero, "Detected reordering ", " times using time stamp"),
    counter("TW", Print::NotZero, "", " TCP sockets finished time wait in fast timer"),
    counter("TWRecycled", Print::NotZero, "", " time wait sockets recycled by time stamp"),
];

/// `Sctp:`
const SCTP: &[Counter] = &[
    counter("SctpAborteds", Print::Always, "", " Number of Aborteds "),
    counter("SctpActiveEstabs", Print::Always, "", " Active Associations"),
    counter("SctpChecksumErrors", Print::Always, "", " Number of Packets with invalid Checksum"),
    counter("SctpCurrEstab", Print::Always, "", " Current Associations"),
    counter("SctpFragUsrMsgs", Print::Always, "", " Number of messages fragmented"),
    counter("SctpInCtrlChunks", Print::Always, "", " Number of control chunks received"),
    counter("SctpInOrderChunks", Print::Always, "", " Number of ordered chunks received"),
    counter("SctpInSCTPPacks", Print::Always, "", " Number of SCTP packets received"),
    counter("SctpInUnorderChunks", Print::Always, "", " Number of Unordered chunks received"),
    counter("SctpOutCtrlChunks", Print::Always, "", " Number of control chunks sent"),
    counter("SctpOutOfBlues", Print::Always, "", " Number of Out of Blue packets"),
    counter("SctpOutOrderChunks", Print::Always, "", " Number of ordered chunks sent"),
    counter("SctpOutSCTPPacks", Print::Always, "", " Number of SCTP packets sent"),
    counter("SctpOutUnorderChunks", Print::Always, "", " Number of Unordered chunks sent"),
    counter("SctpPassiveEstabs", Print::Always, "", " Passive Associations"),
    counter("SctpReasmUsrMsgs", Print::Always, "", " Number of messages reassembled "),
    counter("SctpShutdowns", Print::Always, "", " Number of Graceful Terminations"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_in_order() {
        for block in BLOCKS.iter().chain(BLOCKS6) {
            assert!(block.counters.is_sorted_by(|a, b| a.name < b.name), "{}", block.heading);
            for counter in block.counters {
                assert_eq!(block.counter(counter.name.as_bytes()).map(|c| c.name), Some(counter.name));
            }
        }
    }
}
