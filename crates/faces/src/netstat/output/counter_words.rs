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

/// Counters that are printed under the same condition: the kernel's names, and the words with `#` for the number.
type CounterGroup = (Print, &'static [(&'static str, &'static str)]);

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

/// A block of counters: its heading, the switch that requests it, and its counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) heading: &'static str,
    pub(super) switch: BlockSwitch,
    counters: &'static [CounterGroup],
}

impl Block {
    /// Returns when the counter called `name` is printed, and its words, if netstat knows it.
    pub(super) fn counter(&self, name: &[u8]) -> Option<(Print, &'static str)> {
        self.counters.iter().find_map(|(print, counters)| {
            counters.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, words)| (*print, *words))
        })
    }
}

/// Blocks of /proc/net/snmp, /proc/net/netstat and /proc/net/sctp/snmp. Any other block is always printed.
pub(super) const BLOCKS: &[Block] = &[
    Block { heading: "Ip", switch: BlockSwitch::Raw, counters: IP },
    Block { heading: "Icmp", switch: BlockSwitch::Raw, counters: ICMP },
    Block { heading: "Tcp", switch: BlockSwitch::Tcp, counters: TCP },
    Block { heading: "Udp", switch: BlockSwitch::Udp, counters: UDP },
    Block { heading: "Sctp", switch: BlockSwitch::Sctp, counters: SCTP },
    Block { heading: "TcpExt", switch: BlockSwitch::Tcp, counters: TCP_EXT },
];

/// Blocks of /proc/net/snmp6.
pub(super) const BLOCKS6: &[Block] = &[
    Block { heading: "Ip6", switch: BlockSwitch::Raw, counters: IP6 },
    Block { heading: "Icmp6", switch: BlockSwitch::Raw, counters: ICMP6 },
    Block { heading: "Udp6", switch: BlockSwitch::Udp, counters: UDP6 },
    Block { heading: "Tcp6", switch: BlockSwitch::Tcp, counters: TCP },
];

/// `Ip:`
#[rustfmt::skip]
const IP: &[CounterGroup] = &[
    (Print::Always, &[
        ("ForwDatagrams", "# forwarded"), ("InDelivers", "# incoming packets delivered"),
        ("InDiscards", "# incoming packets discarded"), ("InReceives", "# total packets received"),
        ("OutRequests", "# requests sent out"),
    ]),
    (Print::NotZero, &[
        ("FragCreates", "# fragments created"), ("FragFails", "# outgoing packets failed fragmentation"),
        ("FragOKs", "# outgoing packets fragmented ok"), ("InAddrErrors", "# with invalid addresses"),
        ("InHdrErrors", "# with invalid headers"), ("InUnknownProtos", "# with unknown protocol"),
        ("OutDiscards", "# outgoing packets dropped"), ("OutNoRoutes", "# dropped because of missing route"),
        ("ReasmFails", "# packet reassemblies failed"), ("ReasmOKs", "# packets reassembled ok"),
        ("ReasmReqds", "# reassemblies required"), ("ReasmTimeout", "# fragments dropped after timeout"),
    ]),
    (Print::Never, &[
        ("DefaultTTL", ""),
    ]),
];

/// `Ip6:`
#[rustfmt::skip]
const IP6: &[CounterGroup] = &[
    (Print::Always, &[
        ("Ip6InDelivers", "# incoming packets delivered"), ("Ip6InDiscards", "# incoming packets discarded"),
        ("Ip6InReceives", "# total packets received"), ("Ip6OutForwDatagrams", "# forwarded"),
        ("Ip6OutRequests", "# requests sent out"),
    ]),
    (Print::NotZero, &[
        ("Ip6FragCreates", "# fragments created"), ("Ip6FragFails", "# outgoing packets failed fragmentation"),
        ("Ip6FragOKs", "# outgoing packets fragmented ok"), ("Ip6InAddrErrors", "# with invalid addresses"),
        ("Ip6InHdrErrors", "# with invalid headers"), ("Ip6InMcastPkts", "# incoming multicast packets"),
        ("Ip6InNoRoutes", "# incoming packets with no route"), ("Ip6InTooBigErrors", "# with packets too big"),
        ("Ip6InTruncatedPkts", "# with truncated packets"), ("Ip6InUnknownProtos", "# with unknown protocol"),
        ("Ip6OutDiscards", "# outgoing packets dropped"), ("Ip6OutMcastPkts", "# outgoing multicast packets"),
        ("Ip6OutNoRoutes", "# dropped because of missing route"), ("Ip6ReasmFails", "# packet reassemblies failed"),
        ("Ip6ReasmOKs", "# packets reassembled ok"), ("Ip6ReasmReqds", "# reassemblies required"),
        ("Ip6ReasmTimeout", "# fragments dropped after timeout"),
    ]),
];

/// `Icmp:`
#[rustfmt::skip]
const ICMP: &[CounterGroup] = &[
    (Print::Always, &[
        ("InErrors", "# input ICMP message failed"), ("InMsgs", "# ICMP messages received"),
        ("OutErrors", "# ICMP messages failed"), ("OutMsgs", "# ICMP messages sent"),
    ]),
    (Print::IcmpIn, &[
        ("InAddrMaskReps", "address mask replies: #"), ("InAddrMasks", "address mask request: #"),
        ("InDestUnreachs", "destination unreachable: #"), ("InEchoReps", "echo replies: #"),
        ("InEchos", "echo requests: #"), ("InParmProbs", "wrong parameters: #"), ("InRedirects", "redirects: #"),
        ("InSrcQuenchs", "source quenches: #"), ("InTimeExcds", "timeout in transit: #"),
        ("InTimestampReps", "timestamp reply: #"), ("InTimestamps", "timestamp request: #"),
    ]),
    (Print::IcmpOut, &[
        ("OutAddrMaskReps", "address mask replies: #"), ("OutAddrMasks", "address mask requests: #"),
        ("OutDestUnreachs", "destination unreachable: #"), ("OutEchoReps", "echo replies: #"),
        ("OutEchos", "echo requests: #"), ("OutParmProbs", "wrong parameters: #"), ("OutRedirects", "redirect: #"),
        ("OutSrcQuenchs", "source quench: #"), ("OutTimeExcds", "time exceeded: #"),
        ("OutTimestampReps", "timestamp replies: #"), ("OutTimestamps", "timestamp requests: #"),
    ]),
];

/// `Icmp6:`
#[rustfmt::skip]
const ICMP6: &[CounterGroup] = &[
    (Print::Always, &[
        ("Icmp6InErrors", "# input ICMP message failed"), ("Icmp6InMsgs", "# ICMP messages received"),
        ("Icmp6OutMsgs", "# ICMP messages sent"),
    ]),
    (Print::IcmpIn, &[
        ("Icmp6InDestUnreachs", "destination unreachable: #"), ("Icmp6InEchoReplies", "echo replies: #"),
        ("Icmp6InEchos", "echo requests: #"), ("Icmp6InGroupMembQueries", "group member queries: #"),
        ("Icmp6InGroupMembReductions", "group member reductions: #"),
        ("Icmp6InGroupMembResponses", "group member responses: #"),
        ("Icmp6InNeighborAdvertisements", "neighbour advertisement: #"),
        ("Icmp6InNeighborSolicits", "neighbour solicits: #"), ("Icmp6InParmProblems", "parameter problem: #"),
        ("Icmp6InPktTooBigs", "packets too big: #"), ("Icmp6InRedirects", "redirects: #"),
        ("Icmp6InRouterAdvertisements", "router advertisement: #"), ("Icmp6InRouterSolicits", "router solicits: #"),
        ("Icmp6InTimeExcds", "received ICMPv6 time exceeded: #"),
    ]),
    (Print::IcmpOut, &[
        ("Icmp6OutDestUnreachs", "destination unreachable: #"), ("Icmp6OutEchoReplies", "echo replies: #"),
        ("Icmp6OutEchos", "echo requests: #"), ("Icmp6OutGroupMembQueries", "group member queries: #"),
        ("Icmp6OutGroupMembReductions", "group member reductions: #"),
        ("Icmp6OutGroupMembResponses", "group member responses: #"),
        ("Icmp6OutNeighborAdvertisements", "neighbor advertisements: #"),
        ("Icmp6OutNeighborSolicits", "neighbor solicits: #"), ("Icmp6OutParmProblems", "parameter problem: #"),
        ("Icmp6OutPktTooBigs", "packets too big: #"), ("Icmp6OutRedirects", "redirects: #"),
        ("Icmp6OutRouterSolicits", "router solicits: #"), ("Icmp6OutTimeExcds", "sent ICMPv6 time exceeded: #"),
    ]),
];

/// `Tcp:`
#[rustfmt::skip]
const TCP: &[CounterGroup] = &[
    (Print::Always, &[
        ("ActiveOpens", "# active connection openings"), ("AttemptFails", "# failed connection attempts"),
        ("CurrEstab", "# connections established"), ("EstabResets", "# connection resets received"),
        ("InErrs", "# bad segments received"), ("InSegs", "# segments received"), ("OutRsts", "# resets sent"),
        ("OutSegs", "# segments sent out"), ("PassiveOpens", "# passive connection openings"),
        ("RetransSegs", "# segments retransmitted"),
    ]),
    (Print::Never, &[
        ("MaxConn", ""), ("RtoAlgorithm", ""), ("RtoMax", ""), ("RtoMin", ""),
    ]),
];

/// `Udp:`
#[rustfmt::skip]
const UDP: &[CounterGroup] = &[
    (Print::Always, &[
        ("InDatagrams", "# packets received"), ("InErrors", "# packet receive errors"),
        ("NoPorts", "# packets to unknown port received"), ("OutDatagrams", "# packets sent"),
        ("RcvbufErrors", "# receive buffer errors"), ("SndbufErrors", "# send buffer errors"),
    ]),
];

/// `Udp6:`
#[rustfmt::skip]
const UDP6: &[CounterGroup] = &[
    (Print::Always, &[
        ("Udp6InDatagrams", "# packets received"), ("Udp6InErrors", "# packet receive errors"),
        ("Udp6NoPorts", "# packets to unknown port received"), ("Udp6OutDatagrams", "# packets sent"),
    ]),
];

/// `TcpExt:`
#[rustfmt::skip]
const TCP_EXT: &[CounterGroup] = &[
    (Print::Always, &[
        ("TCPHPHits", "# packet headers predicted"),
    ]),
    (Print::NotZero, &[
        ("DelayedACKLocked", "# delayed acks further delayed because of locked socket"),
        ("DelayedACKLost", "Quick ack mode was activated # times"), ("DelayedACKs", "# delayed acks sent"),
        ("EmbryonicRsts", "# resets received for embryonic SYN_RECV sockets"),
        ("ListenDrops", "# SYNs to LISTEN sockets dropped"),
        ("ListenOverflows", "# times the listen queue of a socket overflowed"),
        ("LockDroppedIcmps", "# ICMP packets dropped because socket was locked"),
        ("OfoPruned", "# packets dropped from out-of-order queue because of socket buffer overrun"),
        ("OutOfWindowIcmps", "# ICMP packets dropped because they were out-of-window"),
        ("PAWSActive", "# active connections rejected because of time stamp"),
        ("PAWSEstab", "# packets rejected in established connections because of timestamp"),
        ("PAWSPassive", "# passive connections rejected because of time stamp"),
        ("PruneCalled", "# packets pruned from receive queue because of socket buffer overrun"),
        ("RcvPruned", "# packets pruned from receive queue"),
        ("SockMallocOOM", "Ran # times out of system memory during packet sending"),
        ("SyncookiesFailed", "# invalid SYN cookies received"), ("SyncookiesRecv", "# SYN cookies received"),
        ("SyncookiesSent", "# SYN cookies sent"), ("TCPAbortFailed", "# times unable to send RST due to no memory"),
        ("TCPAbortOnClose", "# connections reset due to early user close"),
        ("TCPAbortOnData", "# connections reset due to unexpected data"),
        ("TCPAbortOnLinger", "# connections aborted after user close in linger timeout"),
        ("TCPAbortOnMemory", "# connections aborted due to memory pressure"),
        ("TCPAbortOnSyn", "# connections reset due to unexpected SYN"),
        ("TCPAbortOnTimeout", "# connections aborted due to timeout"),
        ("TCPDirectCopyFromBacklog", "# bytes directly in process context from backlog"),
        ("TCPFACKReorder", "Detected reordering # times using FACK"), ("TCPFastRetrans", "# fast retransmits"),
        ("TCPForwardRetrans", "# forward retransmits"),
        ("TCPFullUndo", "# congestion windows fully recovered without slow start"),
        ("TCPHPAcks", "# predicted acknowledgments"),
        ("TCPHPHitsToUser", "# packet headers predicted and directly queued to user"),
        ("TCPLossFailures", "# timeouts in loss state"),
        ("TCPLossUndo", "# congestion windows recovered without slow start after partial ack"),
        ("TCPLostRetransmits", "# retransmits lost"), ("TCPMemoryPressures", "TCP ran low on memory # times"),
        ("TCPPartialUndo", "# congestion windows partially recovered using Hoe heuristic"),
        ("TCPPrequeued", "# packets directly queued to recvmsg prequeue"),
        ("TCPPureAcks", "# acknowledgments not containing data payload received"),
        ("TCPRcvCollapsed", "# packets collapsed in receive queue due to low socket buffer"),
        ("TCPRenoFailures", "# timeouts after reno fast retransmit"),
        ("TCPRenoRecovery", "# times recovered from packet loss due to fast retransmit"),
        ("TCPRenoReorder", "Detected reordering # times using reno fast retransmit"),
        ("TCPSACKReorder", "Detected reordering # times using SACK"),
        ("TCPSchedulerFailed", "# times receiver scheduled too late for direct processing"),
        ("TCPSlowStartRetrans", "# retransmits in slow start"),
        ("TCPTSReorder", "Detected reordering # times using time stamp"),
        ("TW", "# TCP sockets finished time wait in fast timer"),
        ("TWRecycled", "# time wait sockets recycled by time stamp"),
    ]),
];

/// `Sctp:`
#[rustfmt::skip]
const SCTP: &[CounterGroup] = &[
    (Print::Always, &[
        ("SctpAborteds", "# Number of Aborteds "), ("SctpActiveEstabs", "# Active Associations"),
        ("SctpChecksumErrors", "# Number of Packets with invalid Checksum"),
        ("SctpCurrEstab", "# Current Associations"), ("SctpFragUsrMsgs", "# Number of messages fragmented"),
        ("SctpInCtrlChunks", "# Number of control chunks received"),
        ("SctpInOrderChunks", "# Number of ordered chunks received"),
        ("SctpInSCTPPacks", "# Number of SCTP packets received"),
        ("SctpInUnorderChunks", "# Number of Unordered chunks received"),
        ("SctpOutCtrlChunks", "# Number of control chunks sent"), ("SctpOutOfBlues", "# Number of Out of Blue packets"),
        ("SctpOutOrderChunks", "# Number of ordered chunks sent"),
        ("SctpOutSCTPPacks", "# Number of SCTP packets sent"),
        ("SctpOutUnorderChunks", "# Number of Unordered chunks sent"), ("SctpPassiveEstabs", "# Passive Associations"),
        ("SctpReasmUsrMsgs", "# Number of messages reassembled "),
        ("SctpShutdowns", "# Number of Graceful Terminations"),
    ]),
];
