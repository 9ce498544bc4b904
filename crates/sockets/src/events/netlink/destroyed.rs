//! Sockets that the kernel reports as destroyed: the multicast groups of sock_diag.
//!
//! Each message is an ordinary inet_diag message with `tcp_info`, sent when the last reference to a socket is dropped
//! (net/core/sock.c, `__sk_free`). A socket that becomes a time-wait socket is reported at that moment. Needs
//! CAP_NET_ADMIN on most kernels. Start reading at [`Destroyed::next`].
use netlink::{DecodeError, Messages, SocketBlocks};
use record::rows::Socket;
use record::{Accounting, Next, Proto, RowStats, State, StreamState};
use sys::{Blocks, Errno, Host, NetlinkSocket, SysError, clock};

use crate::backends::netlink::inet_diag::{InetDecoder, SOCK_DIAG_BY_FAMILY};
use crate::backends::netlink::request::NETLINK_SOCK_DIAG;

// `enum sknetlink_groups` (include/uapi/linux/sock_diag.h) as bits.
const TCP4: u32 = 1 << 0;
const UDP4: u32 = 1 << 1;
const TCP6: u32 = 1 << 2;
const UDP6: u32 = 1 << 3;

/// Receive buffer for messages that arrive while rows are written: some 12,000 messages of 330 bytes (700 with the
/// kernel's overhead).
///
/// Bound: bytes of events about closed sockets that wait. Beyond: events are lost and counted (exit code 3). This also
/// affects other users. By: a local user who makes connections faster than they are read.
const RECEIVE_BUFFER_BYTES: i32 = 8 << 20;
/// Interval between two calls of `stop`.
const CHECK_INTERVAL_MS: i32 = 50;
/// `INET_DIAG_PROTOCOL`: the protocol's number, a byte.
const INET_DIAG_PROTOCOL: u16 = 10;

/// A listener to the destruction of TCP and UDP sockets in the calling thread's namespace.
pub struct Destroyed<'h> {
    blocks: Box<dyn Blocks + 'h>,
    stats: RowStats,
    netns_id: u64,
    unknown_attrs: u64,
    wall_ns: u64,
}

impl<'h> Destroyed<'h> {
    /// Starts to receive messages; from now on no event is missed. With empty `protos` there are only ticks.
    ///
    /// [`Destroyed::next`] returns every `tick_ms` even without events, for a caller with periodic work; with 0 only
    /// when there are events. `stop` is called some twenty times per second.
    pub fn open(
        host: &'h Host,
        netns_id: u64,
        protos: &[Proto],
        tick_ms: u64,
        stop: &'h dyn Fn() -> bool,
    ) -> Result<Destroyed<'h>, SysError> {
        let groups = protos.iter().fold(0, |groups, proto| match proto {
            Proto::Tcp => groups | TCP4 | TCP6,
            Proto::Udp => groups | UDP4 | UDP6,
            // sock_diag has no group for other protocols: net/core/sock_diag.c.
            _ => groups,
        });
        let blocks = host.stream(&format!("sockets/destroyed@{netns_id}"), "", || {
            let socket = NetlinkSocket::open(NETLINK_SOCK_DIAG)?;
            socket.make_room(RECEIVE_BUFFER_BYTES);
            if groups != 0 {
                socket.join(groups)?;
            }
            let buffer = vec![0; HEADER_BYTES + SocketBlocks::BUFFER].into_boxed_slice();
            Ok(Box::new(LiveBlocks { socket, buffer, tick_ms, stop, after_stop: 0 }))
        })?;
        Ok(Destroyed { blocks, stats: RowStats::default(), netns_id, unknown_attrs: 0, wall_ns: 0 })
    }

    /// Waits for the next sockets, or a tick, and passes them to `each` in their last state.
    pub fn next(&mut self, each: &mut dyn FnMut(&Socket<'_>) -> Next) -> Result<StreamState, SysError> {
        let Some(block) = self.blocks.next()? else { return Ok(StreamState::Ended) };
        self.stats.add_backend("netlink");
        let Some((&[overrun, ref time @ ..], messages)) = block.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(StreamState::Open);
        };
        self.wall_ns = u64::from_le_bytes(*time);
        if overrun != 0 {
            // ENOBUFS reports that messages are missing, but not how many.
            let text = "the kernel reported more closed sockets than the netlink buffer could hold: some are missing";
            self.stats.incomplete(1, text);
        }
        for message in Messages::new(messages) {
            let payload = match message {
                Ok(message) if message.kind == SOCK_DIAG_BY_FAMILY => message.payload,
                Ok(_) => continue,
                Err(error) => {
                    self.stats.add_arrived(1);
                    let error = DecodeError::Short { what: "nlmsghdr", claims: error.claims, has: error.has };
                    self.stats.add_failed(error);
                    break;
                }
            };
            self.stats.add_arrived(1);
            let mut decoder = InetDecoder::new(proto_of(payload), self.netns_id);
            match &mut decoder.decode(payload) {
                Ok(row) => {
                    // In a dump this state would mean a socket that is only bound.
                    if row.state == State::BOUND_INACTIVE {
                        row.state = State::CLOSE;
                    }
                    self.stats.row();
                    if each(row) == Next::Stop {
                        return Ok(StreamState::Open);
                    }
                }
                Err(error) => self.stats.add_failed(*error),
            }
            self.unknown_attrs += decoder.unknown_attrs;
        }
        Ok(StreamState::Open)
    }

    /// Time at which the last block was received: nanoseconds since 1970, UTC.
    pub fn wall_ns(&self) -> u64 {
        self.wall_ns
    }

    /// The final accounting of all messages.
    pub fn close(self) -> Accounting {
        let mut stats = self.stats;
        stats.unknown_attrs(self.unknown_attrs);
        stats.close()
    }
}

/// The protocol is an attribute after the fixed part.
fn proto_of(payload: &[u8]) -> Proto {
    const MSG: usize = 72;
    const IPPROTO_UDP: u8 = 17;
    let attrs = netlink::Attrs::new(payload.get(MSG..).unwrap_or_default());
    let number = attrs.flatten().find(|attr| attr.kind == INET_DIAG_PROTOCOL).and_then(|attr| attr.u8().ok());
    if number == Some(IPPROTO_UDP) { Proto::Udp } else { Proto::Tcp }
}

/// Header of a block: whether messages were lost before it (u8), the wall clock in ns (u64, LE).
const HEADER_BYTES: usize = 9;

/// Blocks of the live socket.
struct LiveBlocks<'h> {
    socket: NetlinkSocket,
    buffer: Box<[u8]>,
    tick_ms: u64,
    stop: &'h dyn Fn() -> bool,
    /// Number of blocks handed out since the end was requested.
    after_stop: u32,
}

/// Maximum number of blocks after the end was requested: pending messages are still delivered, but an endless stream
/// must stop.
///
/// Bound: blocks of events after the end of a run. Beyond: later events are not shown. By: a local user who closes
/// sockets without pause.
const BLOCKS_AFTER_STOP: u32 = 4096;

impl Blocks for LiveBlocks<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        let due = clock::monotonic_ns().saturating_add(self.tick_ms.saturating_mul(1_000_000));
        let mut overrun = 0;
        let stopped = (self.stop)();
        self.after_stop += u32::from(stopped);
        if self.after_stop > BLOCKS_AFTER_STOP {
            return Ok(None);
        }
        loop {
            let left_ms = due.saturating_sub(clock::monotonic_ns()) / 1_000_000;
            let patience = if self.tick_ms == 0 {
                CHECK_INTERVAL_MS
            } else {
                i32::try_from(left_ms).unwrap_or(0).min(CHECK_INTERVAL_MS)
            };
            if self.socket.wait(if stopped { 0 } else { patience })? {
                match self.socket.recv(self.buffer.get_mut(HEADER_BYTES..).unwrap_or_default()) {
                    Ok(got) => return Ok(self.block(overrun, got)),
                    Err(error) if error.errno == Errno::NOBUFS => overrun = 1,
                    Err(error) => return Err(error),
                }
                continue;
            }
            if (self.stop)() {
                return Ok(None);
            }
            if overrun != 0 || (self.tick_ms > 0 && left_ms == 0) {
                return Ok(self.block(overrun, 0));
            }
        }
    }
}

impl LiveBlocks<'_> {
    fn block(&mut self, overrun: u8, got: usize) -> Option<&[u8]> {
        let (head, _) = self.buffer.split_first_chunk_mut::<HEADER_BYTES>()?;
        let [lost, time @ ..] = head;
        (*lost, *time) = (overrun, clock::wall_ns().to_le_bytes());
        self.buffer.get(..HEADER_BYTES + got)
    }
}
