//! Fields of SCTP sockets.

use super::nested::{u16_at, u32_at, u64_at};
use crate::Addr;

/// State of an SCTP association, with the kernel's numbers (include/net/sctp/constants.h, `enum sctp_state`). An
/// endpoint has a TCP state instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SctpState(pub u8);

impl SctpState {
    /// Our words by number; the last one is for numbers without a word.
    pub const NAMES: &'static [&'static str] = &[
        "closed",
        "cookie_wait",
        "cookie_echoed",
        "established",
        "shutdown_pending",
        "shutdown_sent",
        "shutdown_received",
        "shutdown_ack_sent",
        "unknown",
    ];

    /// Our word for the state.
    pub fn name(self) -> &'static str {
        Self::NAMES.get(usize::from(self.0)).or(Self::NAMES.last()).copied().unwrap_or("unknown")
    }
}

/// Fields of SCTP sockets. The socket and each of its associations have separate rows with the same inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SctpPart<'b> {
    /// State of an association; `None` in the row of the socket itself.
    pub state: Option<SctpState>,
    /// `struct sctp_info`.
    pub numbers: Option<SctpNumbers<'b>>,
    /// Local addresses: an array of `struct sockaddr_storage`.
    pub locals: Option<&'b [u8]>,
    /// Peer addresses; only an association has them.
    pub peers: Option<&'b [u8]>,
    /// Local addresses as text: `192.0.2.1,2001:db8::1`.
    pub locals_text: &'b [u8],
    /// Peer addresses as text.
    pub peers_text: &'b [u8],
}

/// Size of a `struct sockaddr_storage` in bytes.
const SOCKADDR: usize = 128;

/// The addresses in an array of `struct sockaddr_storage`; other address families are skipped.
pub fn sctp_addrs(array: &[u8]) -> impl Iterator<Item = Addr> {
    array.chunks(SOCKADDR).filter_map(|sockaddr| match u16_at(sockaddr, 0)? {
        2 => Some(Addr::V4(*sockaddr.get(4..)?.first_chunk()?)),
        10 => Some(Addr::V6(*sockaddr.get(8..)?.first_chunk()?)),
        _ => None,
    })
}

/// `struct sctp_info` (include/uapi/linux/sctp.h) as the kernel sent it, possibly truncated. For a socket only the
/// last part is filled in, for an association everything except the last part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SctpNumbers<'b>(&'b [u8]);

macro_rules! members {
    ($($(#[$doc:meta])* $name:ident: $at:literal $width:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(&self) -> Option<u64> {
            members!($width, self.0, $at)
        }
    )*};
    (u8, $bytes:expr, $at:literal) => { $bytes.get($at).map(|&n| n.into()) };
    (u16, $bytes:expr, $at:literal) => { u16_at($bytes, $at).map(u64::from) };
    (u32, $bytes:expr, $at:literal) => { u32_at($bytes, $at).map(u64::from) };
    (u64, $bytes:expr, $at:literal) => { u64_at($bytes, $at) };
}

impl<'b> SctpNumbers<'b> {
    /// Wraps the payload of INET_DIAG_INFO of an SCTP socket.
    pub fn new(bytes: &'b [u8]) -> SctpNumbers<'b> {
        SctpNumbers(bytes)
    }

    members! {
        /// Verification tag that the peer sends.
        tag: 0 u32;
        /// State, as in [`SctpState`].
        state: 4 u32;
        /// Receive window.
        rwnd: 8 u32;
        /// Unacknowledged chunks.
        unackdata: 12 u16;
        /// Chunks waiting to be read.
        penddata: 14 u16;
        /// Inbound streams.
        instrms: 16 u16;
        /// Outbound streams.
        outstrms: 18 u16;
        /// Maximum fragment size.
        fragmentation_point: 20 u32;
        /// Chunks in the receive queue.
        inqueue: 24 u32;
        /// Chunks in the send queue.
        outqueue: 28 u32;
        /// Errors since the last sign of life from the peer.
        overall_error: 32 u32;
        /// Maximum number of packets in a burst.
        max_burst: 36 u32;
        /// Maximum segment size.
        maxseg: 40 u32;
        /// The peer's receive window.
        peer_rwnd: 44 u32;
        /// Verification tag that we send.
        peer_tag: 48 u32;
        /// The peer's capabilities, one bit each.
        peer_capable: 52 u8;
        /// Whether a SACK must be sent.
        peer_sack: 53 u8;
        /// Packets sent.
        opackets: 72 u64;
        /// Packets received.
        ipackets: 80 u64;
        /// Retransmitted chunks.
        rtxchunks: 88 u64;
        /// Congestion window of the primary path.
        primary_cwnd: 300 u32;
        /// Round-trip time of the primary path in milliseconds.
        primary_srtt: 304 u32;
        /// Retransmission timeout of the primary path in milliseconds.
        primary_rto: 308 u32;
        /// Seconds after which an idle association is closed.
        autoclose: 344 u32;
        /// Adaptation layer indication.
        adaptation_ind: 348 u32;
        /// Message size in bytes above which messages are delivered in parts.
        pd_point: 352 u32;
        /// SCTP_NODELAY.
        nodelay: 356 u8;
        /// SCTP_DISABLE_FRAGMENTS.
        disable_fragments: 357 u8;
        /// SCTP_I_WANT_MAPPED_V4_ADDR.
        v4mapped: 358 u8;
        /// SCTP_FRAGMENT_INTERLEAVE.
        frag_interleave: 359 u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_struct_knows_less() {
        let mut bytes = [0; 56];
        (bytes[0], bytes[16], bytes[52]) = (7, 10, 98);
        let numbers = SctpNumbers::new(&bytes);
        assert_eq!((numbers.tag(), numbers.instrms(), numbers.peer_capable()), (Some(7), Some(10), Some(98)));
        assert_eq!((numbers.opackets(), numbers.v4mapped()), (None, None));
    }

    #[test]
    fn addresses_one_after_the_other() {
        let mut array = [0; 2 * SOCKADDR + 7];
        array[..2].copy_from_slice(&2u16.to_ne_bytes());
        array[4..8].copy_from_slice(&[192, 0, 2, 1]);
        array[SOCKADDR..SOCKADDR + 2].copy_from_slice(&10u16.to_ne_bytes());
        array[SOCKADDR + 8 + 15] = 1;
        // A third, truncated one has an unknown address family.
        let found: Vec<Addr> = sctp_addrs(&array).collect();
        assert_eq!(found, [Addr::V4([192, 0, 2, 1]), Addr::V6([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])]);
        assert_eq!(sctp_addrs(&[2, 0, 0, 0, 1]).count(), 0);
    }

    #[test]
    fn states_in_words() {
        assert_eq!((SctpState(3).name(), SctpState(7).name()), ("established", "shutdown_ack_sent"));
        assert_eq!((SctpState(8).name(), SctpState(255).name()), ("unknown", "unknown"));
    }
}
