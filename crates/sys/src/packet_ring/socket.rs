//! The socket, its options and its counters.
use std::os::fd::{AsFd, BorrowedFd};

use super::blocks::Blocks;
use super::frame::{AlikeFrames, Frame, TAG_BYTES};
use super::mapping::{Mapping, word};
use super::program::{self, Instruction, PROGRAM_MAX};
use super::slots::Slots;
use super::stamps::{self, StampClock};
use super::whole::WholePackets;
use crate::errno::{Errno, SysError};
use crate::fd::Fd;
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
const PACKET_FANOUT: i32 = 18;
const PACKET_IGNORE_OUTGOING: i32 = 23;
const PACKET_MR_PROMISC: u16 = 1;
/// By flow: the packets of both directions go to one socket, in their order.
const PACKET_FANOUT_HASH: u32 = 0;
const PACKET_FANOUT_FLAG_UNIQUEID: u32 = 0x2000;
const PACKET_FANOUT_FLAG_IGNORE_OUTGOING: u32 = 0x4000;
const TPACKET_V2: i32 = 1;
const TPACKET_V3: i32 = 2;
const ETH_P_ALL: u16 = 3;

/// Least bytes of a ring: what is tried last where memory is short.
const RING_BYTES_MIN: usize = 256 << 10;
/// Bytes of a block, of a ring that is large enough.
const BLOCK_BYTES: usize = 1 << 20;
/// Slots are a multiple of it (`TPACKET_ALIGNMENT`), and of a page's part.
const SLOT_BYTES_MIN: usize = 256;
const WHAT: &str = "packet socket";

/// Which form the ring has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingKind {
    /// A slot for each packet, handed over at once.
    Slots {
        /// Bytes of a slot: a power of two.
        slot_bytes: usize,
        /// Bytes that are captured of packets that do not fit into a slot, for a system call each; `None`: they are
        /// cut to fit.
        whole: Option<u32>,
    },
    /// Blocks of packets of any length, handed over when they are full or that time is over.
    Blocks {
        /// Milliseconds, from 1 on.
        retire_ms: u32,
    },
}

/// What is captured.
#[derive(Debug, Clone, Copy)]
pub struct RingRequest<'r> {
    /// The interface; 0 for all of the namespace, those that come later, too.
    pub ifindex: u32,
    /// Form of the ring.
    pub kind: RingKind,
    /// Bytes of the ring, rounded to a power of two; less where the kernel has not so much ([`PacketRing::bytes`]).
    pub ring_bytes: usize,
    /// Chooses packets, and how much of each is copied. One that takes all of each is not attached: the kernel does
    /// that without, and each packet of the host pays for the call.
    pub program: &'r [Instruction],
    /// True to see the packets of other hosts, too, as far as they reach the interface.
    pub promiscuous: bool,
    /// True to leave out what this host sends (since Linux 4.20).
    pub ignore_outgoing: bool,
}

/// Counters of a socket since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingStatistics {
    /// Packets that the program let through, those included for which there was no room.
    pub packets: u64,
    /// Those of them for which there was no room.
    pub drops: u64,
    /// How often a ring of blocks was full.
    pub freezes: u64,
}

#[derive(Debug)]
enum RingReader {
    Slots(Slots),
    Blocks(Blocks),
}

/// A packet socket that is bound to nothing yet. Opening it needs CAP_NET_RAW; making a ring of it, later, needs no
/// right.
#[derive(Debug)]
pub struct PacketSocket(Fd);

impl PacketSocket {
    /// Opens a socket in the calling thread's network namespace. Needs CAP_NET_RAW.
    pub fn open() -> Result<PacketSocket, SysError> {
        // Protocol 0: nothing is received before `bind`, so no packet goes past the filter.
        let fd = open(AF_PACKET, SOCK_RAW, 0)
            .map_err(|error| SysError::new("socket", "packet socket (AF_PACKET)", error.errno))?;
        Ok(PacketSocket(fd))
    }

    /// Makes the ring, which has the program and is bound to nothing yet: the request's interface and `promiscuous`
    /// are for [`PacketRing::bind`] and [`PacketRing::see_all`].
    ///
    /// Where memory is short a smaller ring is made.
    pub fn into_ring(self, request: &RingRequest<'_>) -> Result<PacketRing, SysError> {
        let PacketSocket(fd) = self;
        let version = if matches!(request.kind, RingKind::Slots { .. }) { TPACKET_V2 } else { TPACKET_V3 };
        set_number(&fd, SOL_PACKET, PACKET_VERSION, version)?;
        set_number(&fd, SOL_PACKET, PACKET_RESERVE, TAG_BYTES as i32)?;
        if version == TPACKET_V2 {
            // Packets are stamped when they are received, before any delay; without it when they are copied into the
            // ring, some 0.5 µs later. It costs each packet of the host a reading of the clock: not for files.
            let _ = set_number(&fd, SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
        }
        if request.ignore_outgoing {
            set_number(&fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        }
        let (reader, bytes) = make_ring(&fd, request)?;
        if matches!(request.kind, RingKind::Slots { whole: Some(_), .. }) {
            keep_whole_packets(&fd, bytes)?;
        }
        let map = Mapping::of(&fd, bytes).map_err(|errno| SysError::new("mmap", WHAT, errno))?;
        let ring = PacketRing { fd, map, reader, bytes, statistics: RingStatistics::default() };
        if !program::accepts_all_whole(request.program) {
            ring.attach(request.program)?;
        }
        Ok(ring)
    }

    /// Binds the socket to an interface: again, if that had gone and another one has its name.
    pub fn bind(&self, ifindex: u32) -> Result<(), SysError> {
        bind(&self.0, ifindex)
    }

    /// Sees packets of other hosts on this interface; the kernel counts who wants that, and forgets it with the socket.
    pub fn see_all(&self, ifindex: u32) -> Result<(), SysError> {
        see_all(&self.0, ifindex)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A bound packet socket with its ring.
#[derive(Debug)]
pub struct PacketRing {
    fd: Fd,
    map: Mapping,
    reader: RingReader,
    bytes: usize,
    statistics: RingStatistics,
}

impl PacketRing {
    /// Opens a ring in the calling thread's network namespace: packets from now on are in it. Needs CAP_NET_RAW.
    ///
    /// Where memory is short a smaller ring is made.
    pub fn open(request: &RingRequest<'_>) -> Result<PacketRing, SysError> {
        let ring = PacketSocket::open()?.into_ring(request)?;
        ring.bind(request.ifindex)?;
        if request.promiscuous && request.ifindex != 0 {
            ring.see_all(request.ifindex)?;
        }
        Ok(ring)
    }

    /// The same socket once more, to bind it while a thread reads the ring.
    pub fn socket(&self) -> Result<PacketSocket, std::io::Error> {
        self.fd.as_fd().try_clone_to_owned().map(|fd| PacketSocket(fd.into()))
    }

    /// Binds the socket to an interface: again, if that had gone and another one has its name.
    pub fn bind(&self, ifindex: u32) -> Result<(), SysError> {
        bind(&self.fd, ifindex)
    }

    /// Sees packets of other hosts on this interface; the kernel counts who wants that, and forgets it with the socket.
    pub fn see_all(&self, ifindex: u32) -> Result<(), SysError> {
        see_all(&self.fd, ifindex)
    }

    /// Asks for stamps of this clock: of the named interface, whose driver then makes them (CAP_NET_ADMIN, unless it
    /// does already), or of all whose drivers make them. Each frame says whose stamp it has. Fails with EOPNOTSUPP
    /// where the driver has no such clock.
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

    /// Shares the packets with other rings that are bound to the same: each flow goes to one of them. `None` begins a
    /// new group; returns its number, which is what the others join it by. A ring of a group cannot be bound again.
    /// To be called while the program lets nothing in: until then every ring has every packet. `ignore_outgoing`: as
    /// in the request.
    pub fn share(&self, group: Option<u16>, ignore_outgoing: bool) -> Result<u16, SysError> {
        let failed = |errno| SysError::new("setsockopt", "packet sockets that share packets (PACKET_FANOUT)", errno);
        let mut form = PACKET_FANOUT_HASH;
        form |= if group.is_none() { PACKET_FANOUT_FLAG_UNIQUEID } else { 0 };
        form |= if ignore_outgoing { PACKET_FANOUT_FLAG_IGNORE_OUTGOING } else { 0 };
        let value = u32::from(group.unwrap_or(0)) | form << 16;
        set_bytes(&self.fd, SOL_PACKET, PACKET_FANOUT, &value.to_ne_bytes()).map_err(|error| failed(error.errno))?;
        let mut own = [0; 4];
        get_bytes(&self.fd, SOL_PACKET, PACKET_FANOUT, &mut own).map_err(failed)?;
        // The number is in the lower half.
        Ok(u32::from_ne_bytes(own) as u16)
    }

    /// Replaces the program. What is in the ring has passed the one before.
    pub fn attach(&self, program: &[Instruction]) -> Result<(), SysError> {
        attach_filter(&self.fd, program)
    }

    /// Lets no further packet in. What is in the ring stays there.
    pub fn reject_all(&self) -> Result<(), SysError> {
        self.attach(&program::reject_all())
    }

    /// The stamp of the packet that [`PacketRing::take_many`] hands out next; `None` if there is none for now.
    #[inline]
    pub fn next_ns(&mut self) -> Option<u64> {
        match &mut self.reader {
            RingReader::Slots(slots) => {
                slots.give_back(&self.map);
                slots.next_ns(&self.map)
            }
            RingReader::Blocks(blocks) => blocks.next_ns(&self.map),
        }
    }

    /// Hands some of the packets that are there to `take`, at most `most` of them, until it returns false; returns how
    /// many: 0 if there is none for now. Gives those before back to the kernel. No system call, but one for each packet
    /// that is longer than its slot.
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

    /// As [`PacketRing::take_many`], but of packets that are alike, with the offset of each in their memory: the caller
    /// judges once what is the same for all. `None` if there is none for now, if the next one has a VLAN tag that is to
    /// be put back, and for slots, each of which is given back before the next is read.
    #[inline]
    pub fn take_alike(&mut self, most: u64, each: impl FnMut(usize, &Frame<'_>)) -> Option<AlikeFrames<'_>> {
        match &mut self.reader {
            RingReader::Slots(_) => None,
            RingReader::Blocks(blocks) => blocks.take_alike(&self.map, most, each),
        }
    }

    /// Gives the room of what was handed out back to the kernel.
    pub fn give_back(&mut self) {
        match &mut self.reader {
            RingReader::Slots(slots) => slots.give_back(&self.map),
            RingReader::Blocks(blocks) => blocks.give_back(&self.map),
        }
    }

    /// Bytes of the ring.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The counters. The kernel's are of 32 bits and begin anew with each reading: to be called once a minute at least.
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

    /// To be called when a wait ended although no packet is there: what waits at the socket would end each wait.
    pub fn keep_early(&mut self) {
        if let RingReader::Slots(slots) = &mut self.reader {
            slots.keep_early(&self.fd);
        }
    }

    /// The error that waits at the socket, if one does: ENETDOWN where the interface went down or away. Without
    /// this call, poll returns at once for ever.
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

fn bind(fd: &Fd, ifindex: u32) -> Result<(), SysError> {
    let mut address = [0; 20];
    address[..2].copy_from_slice(&(AF_PACKET as u16).to_ne_bytes());
    address[2..4].copy_from_slice(&ETH_P_ALL.to_be_bytes());
    address[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    bind_bytes(fd, &address).map_err(|errno| SysError::new("bind", WHAT, errno))
}

fn see_all(fd: &Fd, ifindex: u32) -> Result<(), SysError> {
    let mut request = [0; 16];
    request[..4].copy_from_slice(&ifindex.to_ne_bytes());
    request[4..6].copy_from_slice(&PACKET_MR_PROMISC.to_ne_bytes());
    set_bytes(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request)
}

/// Gives a packet socket its program, in place of the one that it has.
pub(crate) fn attach_filter(fd: &Fd, program: &[Instruction]) -> Result<(), SysError> {
    let failed = |errno| SysError::new("setsockopt", "packet filter (SO_ATTACH_FILTER)", errno);
    let instructions: Vec<[u8; 8]> = program.iter().map(|instruction| instruction.bytes()).collect();
    if instructions.len() > PROGRAM_MAX {
        return Err(failed(Errno::INVAL));
    }
    let filter = libc::sock_fprog { len: instructions.len() as u16, filter: instructions.as_ptr() as *mut _ };
    let (size, option) = (std::mem::size_of::<libc::sock_fprog>() as libc::socklen_t, libc::SO_ATTACH_FILTER);
    let (fd, from) = (fd.raw(), (&raw const filter).cast());
    // SAFETY: `filter` is live and of `size` bytes; its pointer is to `len` instructions of 8 bytes each (struct
    // sock_filter) that live until the call is over and that the kernel only reads.
    call("setsockopt", || unsafe { libc::setsockopt(fd, SOL_SOCKET, option, from, size) }.into()).map_err(failed)?;
    Ok(())
}

/// Lets packets that are longer than a slot wait at the socket, too: about as many bytes of them as the ring has.
fn keep_whole_packets(fd: &Fd, bytes: usize) -> Result<(), SysError> {
    set_number(fd, SOL_PACKET, PACKET_COPY_THRESH, 1)?;
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    // Beyond net.core.rmem_max with CAP_NET_ADMIN only.
    set_number(fd, SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| set_number(fd, SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

/// Asks the kernel for a ring, for half of it if there is no memory, and so on.
fn make_ring(fd: &Fd, request: &RingRequest<'_>) -> Result<(RingReader, usize), SysError> {
    let mut bytes = request.ring_bytes.clamp(RING_BYTES_MIN / 4, 1 << 31).next_power_of_two();
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

/// The reader of a ring of `bytes`, and `struct tpacket_req` or `struct tpacket_req3`.
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
            (RingReader::Blocks(Blocks::new(block, blocks)), [&fields[..], &[retire_ms.max(1), 0, 0]].concat())
        }
    }
}
