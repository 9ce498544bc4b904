//! IPsec (XFRM): Documentation/networking/xfrm/xfrm_proc.rst and net/xfrm/xfrm_proc.c.

use super::{CounterMeaning, c};

/// /proc/net/xfrm_stat
pub(super) const XFRM: &[CounterMeaning] = &[
    c("XfrmInError", "Received IPsec packets dropped for a reason that no other counter has."),
    c("XfrmInBufferError", "Received IPsec packets dropped because memory was short."),
    c("XfrmInHdrError", "Received IPsec packets dropped because their header is malformed."),
    c("XfrmInNoStates", "Received IPsec packets whose SPI, address or protocol matches no state (SA)."),
    c("XfrmInStateProtoError", "Received IPsec packets that failed authentication or decryption: a wrong key."),
    c("XfrmInStateModeError", "Received IPsec packets whose mode, tunnel or transport, does not fit their state."),
    c("XfrmInStateSeqError", "Received IPsec packets outside the replay window: repeated, or very late."),
    c("XfrmInStateExpired", "Received IPsec packets whose state (SA) has expired."),
    c("XfrmInStateMismatch", "Received IPsec packets whose encapsulation or interface does not fit their state."),
    c("XfrmInStateInvalid", "Received IPsec packets whose state (SA) is not established."),
    c(
        "XfrmInTmplMismatch",
        "Received packets that a policy wants protected, but that arrived unprotected or otherwise \
                             protected.",
    ),
    c("XfrmInNoPols", "Received packets that were protected, but that no policy allows."),
    c("XfrmInPolBlock", "Received packets dropped by a policy with the action block."),
    c("XfrmInPolError", "Received packets dropped because the policy could not be looked up."),
    c("XfrmOutError", "Packets to send dropped for a reason that no other counter has."),
    c("XfrmOutBundleGenError", "Packets to send dropped because no bundle of states could be made."),
    c("XfrmOutBundleCheckError", "Packets to send dropped because their bundle of states was no longer valid."),
    c("XfrmOutNoStates", "Packets to send that a policy wants protected, but that have no state (SA)."),
    c("XfrmOutStateProtoError", "Packets to send that could not be encrypted."),
    c("XfrmOutStateModeError", "Packets to send dropped by their state's mode, such as one that exceeds the MTU."),
    c("XfrmOutStateSeqError", "Packets to send dropped because the sequence numbers of their state are used up."),
    c("XfrmOutStateExpired", "Packets to send whose state (SA) has expired."),
    c("XfrmOutPolBlock", "Packets to send dropped by a policy with the action block."),
    c("XfrmOutPolDead", "Packets to send dropped because their policy was just removed."),
    c("XfrmOutPolError", "Packets to send dropped because the policy or its states could not be looked up."),
    c("XfrmFwdHdrError", "Forwarded packets dropped because their header is malformed."),
    c("XfrmOutStateInvalid", "Packets to send whose state (SA) is not established."),
    c("XfrmAcquireError", "States (SAs) that the key manager did not establish in time."),
    c("XfrmOutStateDirError", "Packets to send whose state (SA) is only for received packets."),
    c("XfrmInStateDirError", "Received IPsec packets whose state (SA) is only for sent packets."),
    c("XfrmInIptfsError", "Received IP-TFS packets (RFC 9347) dropped because they are malformed."),
    c("XfrmOutNoQueueSpace", "Packets to send dropped because the IP-TFS queue was full."),
];
