//! xdp_diag: the request for AF_XDP sockets, and its answers.
//!
//! Layouts: include/uapi/linux/xdp_diag.h. A message is a fixed struct of 16 bytes and attributes; the kernel does not
//! filter.
use crate::address_families::AF_XDP;
use netlink::prefix::{u32_at, u64_at};
use netlink::{Attr, Attrs, DecodeError, Request};
use record::rows::{FamilyExtras, SkMem, Socket, XdpPart, XdpStats, XdpUmem, need};
use record::{Proto, State};

use crate::backends::netlink::inet_diag::SOCK_DIAG_BY_FAMILY;

/// `struct xdp_diag_req`: family, protocol, pad u16, ino u32, show u32, cookie u32[2].
const REQ: usize = 20;
/// `struct xdp_diag_msg`: family, type, pad u16, ino u32, cookie u32[2].
const MSG: usize = 16;
const _: () = assert!(REQ == 4 + 2 * 4 + 8 && MSG == 4 + 4 + 8);

// Attributes, `XDP_DIAG_…`.
const INFO: u16 = 1;
const UID: u16 = 2;
const RX_RING: u16 = 3;
const TX_RING: u16 = 4;
const UMEM: u16 = 5;
const UMEM_FILL_RING: u16 = 6;
const UMEM_COMPLETION_RING: u16 = 7;
const MEMINFO: u16 = 8;
const STATS: u16 = 9;

// Request bits, `XDP_SHOW_…`.
const SHOW_INFO: u32 = 1;
const SHOW_RING_CFG: u32 = 2;
const SHOW_UMEM: u32 = 4;
const SHOW_MEMINFO: u32 = 8;
const SHOW_STATS: u32 = 0x10;

/// The request bits that fetch the fields of these `need` bits. The uid comes with INFO.
pub(crate) fn show_of(demanded: u64) -> u32 {
    let bits = [
        (need::XDP | need::IFACE_MARK | need::UID, SHOW_INFO),
        (need::XDP, SHOW_RING_CFG | SHOW_UMEM | SHOW_STATS),
        (need::QUEUES | need::SKMEM, SHOW_MEMINFO),
    ];
    bits.iter().filter(|(need, _)| demanded & need != 0).fold(0, |show, (_, bit)| show | bit)
}

/// Requests all AF_XDP sockets.
pub(crate) fn request(show: u32) -> Request {
    let mut body = [0; REQ];
    body[0] = AF_XDP;
    body[8..12].copy_from_slice(&show.to_ne_bytes());
    let mut request = Request::dump(SOCK_DIAG_BY_FAMILY);
    request.append(&body);
    request
}

/// Decodes `xdp_diag_msg`s into rows. Allocates nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct XdpDecoder {
    netns_id: u64,
    /// Number of skipped attributes so far that only newer kernels define.
    pub unknown_attrs: u64,
}

impl XdpDecoder {
    /// A decoder for answers from namespace `netns_id`.
    pub fn new(netns_id: u64) -> XdpDecoder {
        XdpDecoder { netns_id, unknown_attrs: 0 }
    }

    /// Decodes one message's payload into a row that borrows it, with the additional fields of AF_XDP sockets in
    /// `extras`.
    ///
    /// Fails if the payload is shorter than the struct or an attribute does not fit.
    pub fn decode<'b>(
        &mut self,
        payload: &'b [u8],
        extras: &'b mut FamilyExtras<'b>,
    ) -> Result<Socket<'b>, DecodeError> {
        let Some((msg, attrs)) = payload.split_first_chunk::<MSG>() else {
            return Err(DecodeError::Short { what: "xdp_diag_msg", claims: MSG, has: payload.len() });
        };
        if msg[0] != AF_XDP {
            return Err(DecodeError::Family(msg[0]));
        }
        let u32_of = |at| u32_at(msg, at).unwrap_or(0);
        let mut row = Socket {
            proto: Proto::Xdp,
            family: AF_XDP,
            // It is never connected.
            state: State::CLOSE,
            inode: u32_of(4),
            cookie: u64::from(u32_of(8)) | u64::from(u32_of(12)) << 32,
            netns_id: self.netns_id,
            ..Socket::EMPTY
        };
        let mut part = XdpPart::default();
        for attr in Attrs::new(attrs) {
            if !attribute(&mut row, &mut part, &attr?)? {
                self.unknown_attrs += 1;
            }
        }
        *extras = FamilyExtras { xdp: Some(part), ..FamilyExtras::EMPTY };
        row.extras = Some(extras);
        Ok(row)
    }
}

// Returns false for an unknown attribute.
fn attribute<'b>(row: &mut Socket<'b>, part: &mut XdpPart, attr: &Attr<'b>) -> Result<bool, DecodeError> {
    match attr.kind {
        INFO => {
            let info = attr.array::<8>()?;
            row.ifindex = u32_at(&info, 0).unwrap_or(0);
            part.queue = u32_at(&info, 4);
        }
        UID => row.uid = Some(attr.u32()?),
        RX_RING => part.rx_ring = Some(attr.u32()?),
        TX_RING => part.tx_ring = Some(attr.u32()?),
        UMEM => part.umem = Some(umem(attr)?),
        UMEM_FILL_RING => part.fill_ring = Some(attr.u32()?),
        UMEM_COMPLETION_RING => part.completion_ring = Some(attr.u32()?),
        MEMINFO => {
            let memory = SkMem::new(attr.payload);
            (row.rqueue, row.wqueue) = (memory.get(0).unwrap_or(0), Some(0));
            row.skmem = Some(memory);
        }
        STATS => part.stats = Some(stats(attr)?),
        _ => return Ok(false),
    }
    Ok(true)
}

fn umem(attr: &Attr<'_>) -> Result<XdpUmem, DecodeError> {
    let bytes = attr.array::<40>()?;
    let u32_of = |at| u32_at(&bytes, at).unwrap_or(0);
    Ok(XdpUmem {
        size: u64_at(&bytes, 0).unwrap_or(0),
        id: u32_of(8),
        pages: u32_of(12),
        chunk_size: u32_of(16),
        headroom: u32_of(20),
        ifindex: u32_of(24),
        queue: u32_of(28),
        flags: u32_of(32),
        refs: u32_of(36),
    })
}

fn stats(attr: &Attr<'_>) -> Result<XdpStats, DecodeError> {
    let bytes = attr.array::<48>()?;
    let [rx_dropped, rx_invalid, rx_full, fill_empty, tx_invalid, tx_empty] =
        [0, 8, 16, 24, 32, 40].map(|at| u64_at(&bytes, at).unwrap_or(0));
    Ok(XdpStats { rx_dropped, rx_invalid, rx_full, fill_empty, tx_invalid, tx_empty })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_is_asked_for() {
        assert_eq!(show_of(0), 0);
        assert_eq!(show_of(need::IFACE_MARK), SHOW_INFO);
        assert_eq!(show_of(u64::MAX), 0x1f);
    }
}
