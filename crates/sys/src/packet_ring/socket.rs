//! The packet socket, its options and its counters.
use std::os::fd::{AsFd, BorrowedFd};

use super::blocks::BlockReader;
use super::frame::{Frame, SimilarFrames, TAG_BYTES};
use super::mapping::{Mapping, word};
use super::program::{self, Instruction, PROGRAM_MAX};
use super::slots::Slots;
use super::stamps::{self, StampClock};
use super::whole::WholePackets;
use crate::errno::{Errno, SysError};
use crate::fd::Fd;
use crate::kernel::page_bytes;
use crate::socket::{AF_PACKET, SOCK_RAW, SOL_SOCKET, bind_bytes, get_bytes, open, set_bytes, set_number};
use crate::syscall::call;

// include/uapi/linux/if_packet.h
const SOL_PACKET: i32 = 263;
const PACKET_ADD_MEMBERSHIP: i32 = 1;
const PACKET_RX_RING: i32 = 5;
const PACKET_STATISTICS: i32 = 6;
const PACKET_COPY_THRESH: i32 = 7;
const PACKET_VERSION: i32 = 10;
const PACKET_RESERVE: i32 = 12;
const PACKET_TIMESTAMP: i32 = 17;
const PACKET_IGNORE_OUTGOING: i32 = 23;
const PACKET_MR_PROMISC: u16 = 1;
const TPACKET_V2: i32 = 1;
const TPACKET_V3: i32 = 2;
const ETH_P_ALL: u16 = 3;

/// Minimum size of a ring in bytes: the last attempt if memory is short.
const RING_BYTES_MIN: usize = 256 << 10;
/// Block size in bytes, if the ring is large enough.
const BLOCK_BYTES: usize = 1 << 20;
/// The size of a slot is a multiple of this value (`TPACKET_ALIGNMENT`), and divides a page.
const SLOT_BYTES_MIN: usize = 256;
const WHAT: &str = "packet socket";

/// The layout of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingKind {
    /// One slot per packet, delivered immediately.
    Slots {
        /// Size of a slot in bytes: a power of two.
        slot_bytes: usize,
        /// Maximum number of bytes captured of packets that do not fit into a slot, at a cost of one system call each.
        /// `None` truncates them to the slot.
        whole: Option<u32>,
    },
    /// Blocks of packets of any length, delivered when they are full or their timeout expires.
    Blocks {
        /// The timeout in milliseconds, at least 1.
        retire_ms: u32,
    },
}

/// Parameters of a capture.
#[derive(Debug, Clone, Copy)]
pub struct RingRequest<'r> {
    /// Index of the interface; 0 for all interfaces of the namespace, including later ones.
    pub ifindex: u32,
    /// Layout of the ring.
    pub kind: RingKind,
    /// Size of the ring in bytes, rounded to a power of two; smaller if the kernel lacks memory
    /// ([`PacketRing::bytes`]).
    pub ring_bytes: usize,
    /// Selects packets, and the number of bytes copied of each. A program that accepts everything is not attached,
    /// because the kernel accepts everything without one, and every packet of the host would pay for the call.
    pub program: &'r [Instruction],
    /// True to also see packets addressed to other hosts, if they reach the interface.
    pub promiscuous: bool,
    /// True to ignore packets that this host sends (since Linux 4.20).
    pub ignore_outgoing: bool,
}

/// Counters of a socket since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingStatistics {
    /// Packets that the program accepted, including those dropped for lack of space.
    pub packets: u64,
    /// The accepted packets that were dropped for lack of space.
    pub drops: u64,
    /// How often a ring of blocks was full.
    pub freezes: u64,
}

#[derive(Debug)]
enum RingReader {
    Slots(Slots),
    Blocks(BlockReader),
}

/// A packet socket with its ring.
#[derive(Debug)]
pub struct PacketRing {
    fd: Fd,
    map: Mapping,
    reader: RingReader,
    bytes: usize,
    statistics: RingStatistics,
}

impl PacketRing {
    /// Opens a ring in the calling thread's network namespace: it receives packets from now on. Needs CAP_NET_RAW.
    ///
    /// If memory is short, it creates a smaller ring.
    pub fn open(request: &RingRequest<'_>) -> Result<PacketRing, SysError> {
        // Protocol 0: nothing is received before `bind`, so no packet bypasses the filter.
        let fd = open(AF_PACKET, SOCK_RAW, 0)
            .map_err(|error| SysError::new("socket", "packet socket (AF_PACKET)", error.errno))?;
        let ring = PacketRing::of_socket(fd, request)?;
        ring.bind(request.ifindex)?;
        if request.promiscuous && request.ifindex != 0 {
            ring.see_all(request.ifindex)?;
        }
        Ok(ring)
    }

    /// Creates the ring of a socket and attaches the program; the socket is still unbound.
    fn of_socket(fd: Fd, request: &RingRequest<'_>) -> Result<PacketRing, SysError> {
        let version = if matches!(request.kind, RingKind::Slots { .. }) { TPACKET_V2 } else { TPACKET_V3 };
        set_number(&fd, SOL_PACKET, PACKET_VERSION, version)?;
        set_number(&fd, SOL_PACKET, PACKET_RESERVE, TAG_BYTES as i32)?;
        if version == TPACKET_V2 {
            // Packets are stamped when they are received, before any delay. Without this option they are stamped when
            // they are copied into the ring, about 0.5 µs later. It costs each packet of the host a clock reading, so
            // captures to files do not use it.
            let _ = set_number(&fd, SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
        }
        if request.ignore_outgoing {
            set_number(&fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        }
        let (reader, bytes) = make_ring(&fd, request)?;
        if matches!(request.kind, RingKind::Slots { whole: Some(_), .. }) {
            queue_whole_packets(&fd, bytes)?;
        }
        let map = Mapping::new(&fd, bytes).map_err(|errno| SysError::new("mmap", WHAT, errno))?;
        let ring = PacketRing { fd, map, reader, bytes, statistics: RingStatistics::default() };
        if !program::accepts_all_whole(request.program) {
            ring.attach(request.program)?;
        }
        Ok(ring)
    }

    /// Binds the socket to an interface; also after the interface was removed and another interface got its name.
    pub fn bind(&self, ifindex: u32) -> Result<(), SysError> {
        let mut address = [0; 20];
        address[..2].copy_from_slice(&(AF_PACKET as u16).to_ne_bytes());
        address[2..4].copy_from_slice(&ETH_P_ALL.to_be_bytes());
        address[4..8].copy_from_slice(&ifindex.to_ne_bytes());
        bind_bytes(&self.fd, &address).map_err(|errno| SysError::new("bind", WHAT, errno))
    }

    /// Enables reception of other hosts' packets on this interface. The kernel counts the users of this mode and
    /// removes ours when the socket is closed.
    pub fn see_all(&self, ifindex: u32) -> Result<(), SysError> {
        let mut request = [0; 16];
        request[..4].copy_from_slice(&ifindex.to_ne_bytes());
        request[4..6].copy_from_slice(&PACKET_MR_PROMISC.to_ne_bytes());
        set_bytes(&self.fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Requests time stamps from this clock: for the named interface, whose driver then creates them (needs
    /// CAP_NET_ADMIN unless it already does), or for all interfaces whose drivers create them. Each frame says which
    /// clock it was stamped by. Fails with EOPNOTSUPP if the driver has no such clock.
    pub fn stamp_by(&self, clock: StampClock, iface: Option<&[u8]>) -> Result<(), SysError> {
        let failed = |errno| SysError::new("ioctl", "time stamps of the adapter", errno);
        if let Some(iface) = iface.filter(|_| clock != StampClock::Host) {
            if !stamps::clocks(self.fd.raw(), iface).map_err(failed)?.contains(&clock) {
                return Err(failed(Errno::OPNOTSUPP));
            }
            stamps::stamp_all(self.fd.raw(), iface).map_err(failed)?;
        }
        set_number(&self.fd, SOL_PACKET, PACKET_TIMESTAMP, clock.bits() as i32)
    }

    /// Replaces the program. Packets already in the ring have passed the previous program.
    pub(super) fn attach(&self, program: &[Instruction]) -> Result<(), SysError> {
        attach_filter(&self.fd, program)
    }

    /// Accepts no further packets. Packets already in the ring stay there.
    pub fn reject_all(&self) -> Result<(), SysError> {
        self.attach(&program::reject_all())
    }

    /// The time stamp of the packet that [`PacketRing::take_many`] hands out next; `None` without a packet.
    #[inline]
    pub fn next_ns(&mut self) -> Option<u64> {
        match &mut self.reader {
            RingReader::Slots(slots) => {
                slots.release_slot(&self.map);
                slots.next_ns(&self.map)
            }
            RingReader::Blocks(blocks) => blocks.next_ns(&self.map),
        }
    }

    /// Passes available packets to `take`, at most `most` of them, until it returns false; returns their number, which
    /// is 0 without packets. Returns the previous packets to the kernel. Makes no system call, except one for each
    /// packet that is longer than its slot.
    #[inline]
    pub fn take_many(&mut self, most: u64, mut take: impl FnMut(&Frame<'_>) -> bool) -> u64 {
        match &mut self.reader {
            RingReader::Slots(slots) => {
                let mut taken = 0;
                while taken < most {
                    let Some(frame) = slots.take(&mut self.map, &self.fd) else { break };
                    taken += 1;
                    if !take(&frame) {
                        break;
                    }
                }
                taken
            }
            RingReader::Blocks(blocks) => blocks.take_many(&mut self.map, most, take),
        }
    }

    /// Works like [`PacketRing::take_many`], but for a run of similar packets, with the offset of each in their
    /// memory, so that the caller examines their common properties once. `None` without a packet, if the next packet's
    /// VLAN tag must be put back, and for slots, each of which is returned to the kernel before the next is read.
    #[inline]
    pub fn take_similar(&mut self, most: u64, each: impl FnMut(usize, &Frame<'_>)) -> Option<SimilarFrames<'_>> {
        match &mut self.reader {
            RingReader::Slots(_) => None,
            RingReader::Blocks(blocks) => blocks.take_similar(&self.map, most, each),
        }
    }

    /// Returns the space of the packets that were handed out to the kernel.
    pub fn release(&mut self) {
        match &mut self.reader {
            RingReader::Slots(slots) => slots.release_slot(&self.map),
            RingReader::Blocks(blocks) => blocks.release_block(&self.map),
        }
    }

    /// Size of the ring in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The counters. The kernel's are 32 bits wide and restart at each reading: call this at least once a minute.
    pub fn statistics(&mut self) -> Result<RingStatistics, SysError> {
        let mut now = [0; 12];
        get_bytes(&self.fd, SOL_PACKET, PACKET_STATISTICS, &mut now)
            .map_err(|errno| SysError::new("getsockopt", "PACKET_STATISTICS", errno))?;
        let all = &mut self.statistics;
        all.packets += u64::from(word(&now, 0));
        all.drops += u64::from(word(&now, 4));
        all.freezes += u64::from(word(&now, 8));
        Ok(*all)
    }

    /// Call this when a wait ended without a packet: packets queued on the socket would otherwise end every wait.
    pub fn keep_early(&mut self) {
        if let RingReader::Slots(slots) = &mut self.reader {
            slots.keep_early(&self.fd);
        }
    }

    /// The pending error of the socket: ENETDOWN if the interface went down or was removed. Without this call, poll
    /// would return immediately forever.
    pub fn take_error(&self) -> Option<Errno> {
        let mut error = [0; 4];
        get_bytes(&self.fd, SOL_SOCKET, libc::SO_ERROR, &mut error).ok()?;
        Some(Errno(i32::from_ne_bytes(error))).filter(|error| error.0 != 0)
    }
}

impl AsFd for PacketRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Attaches a program to a packet socket, replacing its previous one.
pub(crate) fn attach_filter(fd: &Fd, program: &[Instruction]) -> Result<(), SysError> {
    let failed = |errno| SysError::new("setsockopt", "packet filter (SO_ATTACH_FILTER)", errno);
    let instructions: Vec<[u8; 8]> = program.iter().map(|instruction| instruction.bytes()).collect();
    if instructions.len() > PROGRAM_MAX {
        return Err(failed(Errno::INVAL));
    }
    let filter = libc::sock_fprog { len: instructions.len() as u16, filter: instructions.as_ptr() as *mut _ };
    let (size, option) = (std::mem::size_of::<libc::sock_fprog>() as libc::socklen_t, libc::SO_ATTACH_FILTER);
    let (fd, from) = (fd.raw(), (&raw const filter).cast());
    // SAFETY: `filter` is live and `size` bytes long; its pointer is to `len` instructions of 8 bytes each (struct
    // sock_filter) that live until the call returns and that the kernel only reads.
    call("setsockopt", || unsafe { libc::setsockopt(fd, SOL_SOCKET, option, from, size) }.into()).map_err(failed)?;
    Ok(())
}

/// Also queues packets that are longer than a slot on the socket: up to about as many bytes as the ring has.
fn queue_whole_packets(fd: &Fd, bytes: usize) -> Result<(), SysError> {
    set_number(fd, SOL_PACKET, PACKET_COPY_THRESH, 1)?;
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    // Only CAP_NET_ADMIN permits more than net.core.rmem_max.
    set_number(fd, SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| set_number(fd, SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

/// Requests a ring from the kernel; if memory is short, half the size, and so on.
fn make_ring(fd: &Fd, request: &RingRequest<'_>) -> Result<(RingReader, usize), SysError> {
    // A block is a number of whole pages, and there are at least four of them.
    let least = (RING_BYTES_MIN / 4).max(4 * page_bytes());
    let mut bytes = request.ring_bytes.clamp(least, 1 << 31).next_power_of_two();
    loop {
        let (reader, fields) = plan(request.kind, bytes);
        let asked: Vec<u8> = fields.iter().flat_map(|field| field.to_ne_bytes()).collect();
        match set_bytes(fd, SOL_PACKET, PACKET_RX_RING, &asked) {
            Ok(()) => return Ok((reader, bytes)),
            Err(error) if error.errno == Errno::NOMEM && bytes > RING_BYTES_MIN => bytes /= 2,
            Err(error) => return Err(SysError::new("setsockopt", "packet ring (PACKET_RX_RING)", error.errno)),
        }
    }
}

/// The reader of a ring of `bytes` bytes, and its `struct tpacket_req` or `struct tpacket_req3`.
fn plan(kind: RingKind, bytes: usize) -> (RingReader, Vec<u32>) {
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    match kind {
        RingKind::Slots { slot_bytes, whole } => {
            let slot = slot_bytes.next_power_of_two().clamp(SLOT_BYTES_MIN, bytes);
            let block = BLOCK_BYTES.max(slot).min(bytes);
            let blocks = bytes / block;
            let fields = vec![small(block), small(blocks), small(slot), small(block / slot * blocks)];
            let whole = whole.map(|snaplen| WholePackets::new(snaplen as usize));
            (RingReader::Slots(Slots::new(slot, block, blocks, whole)), fields)
        }
        RingKind::Blocks { retire_ms } => {
            let block = BLOCK_BYTES.min(bytes / 4);
            let (blocks, frame) = (bytes / block, 2048);
            let frames = block / frame * blocks;
            let fields = [block, blocks, frame, frames].map(small);
            (RingReader::Blocks(BlockReader::new(block, blocks)), [&fields[..], &[retire_ms.max(1), 0, 0]].concat())
        }
    }
}
