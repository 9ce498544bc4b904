//! Resets of TCP connections, as the kernel sends and receives them.
//!
//! The kernel counts resets only in total. A [`ResetWatch`] records each with its connection as long as it exists. It
//! leaves out resets without a socket, such as those that answer a port scan.
use netlink::prefix;
use record::rows::Endpoint;
use record::{Addr, State};
use sys::Host;

/// Size of a reset in a recording: `struct event` in crates/bpf/c/resets.bpf.c.
const EVENT: usize = 112;
/// Value of `direction` for a reset that this host received; 1 for one that it sent.
const RECEIVED: u8 = 2;
/// Address family of IPv4.
const AF_INET: u8 = 2;

/// A reset of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpReset {
    /// Inode of the network namespace.
    pub netns_id: u64,
    /// True if the peer sent it.
    pub is_received: bool,
    /// State of the socket: CLOSE if its program closed it with this reset, LISTEN if a segment that belongs to no
    /// connection reached a listener.
    pub state: State,
    /// The local end.
    pub local: Endpoint,
    /// The peer.
    pub peer: Endpoint,
    /// The process that sent it by closing the connection: pid and name; 0 and empty for others.
    pub pid: u32,
    /// Its name.
    pub process: Vec<u8>,
    /// Inode of the socket; 0 without one.
    pub inode: u32,
    /// Milliseconds since the last segment from the peer.
    pub heard_ms: u64,
    /// Consecutive retransmissions.
    pub retransmits: u8,
    /// Bytes sent and not acknowledged.
    pub unacked: u32,
    /// Bytes received and not read.
    pub unread: u32,
    /// Bytes received since the connection began.
    pub received: u64,
    /// Bytes acknowledged since the connection began; the SYN counts as one.
    pub acked: u64,
}

/// Records resets as long as it exists.
#[derive(Debug)]
pub struct ResetWatch {
    #[cfg(feature = "bpf")]
    resets: bpf::Resets,
}

impl ResetWatch {
    /// Records resets from now on, in the namespace with this inode or in all. Needs CAP_BPF and CAP_PERFMON. Costs
    /// about 10 ms; connections that end without a reset cost nothing.
    #[cfg(feature = "bpf")]
    pub fn open(host: &Host, only_netns: Option<u32>) -> Result<ResetWatch, String> {
        let resets = bpf::Resets::open(host, only_netns).map_err(|error| error.to_string())?;
        Ok(ResetWatch { resets })
    }

    /// Fails: only BPF can record them.
    #[cfg(not(feature = "bpf"))]
    pub fn open(_: &Host, _: Option<u32>) -> Result<ResetWatch, String> {
        Err(sys::WITHOUT_BPF.to_owned())
    }

    /// Appends the resets since the last call to `into`, in the format of [`parse`]. Returns the number of resets since
    /// the start that were lost because there was no room for them.
    #[cfg(feature = "bpf")]
    pub fn take(&mut self, into: &mut Vec<u8>) -> Result<u64, String> {
        self.resets.take(&mut |event| into.extend_from_slice(event)).map_err(|error| error.to_string())?;
        self.resets.lost().map_err(|error| error.to_string())
    }

    /// Appends nothing.
    #[cfg(not(feature = "bpf"))]
    pub fn take(&mut self, _: &mut Vec<u8>) -> Result<u64, String> {
        Ok(0)
    }
}

/// Decodes resets. Malformed ones are left out.
pub fn parse(bytes: &[u8]) -> impl Iterator<Item = TcpReset> {
    bytes.chunks_exact(EVENT).filter_map(reset)
}

fn reset(bytes: &[u8]) -> Option<TcpReset> {
    let (word, half) = (|at| prefix::u32_at(bytes, at), |at| prefix::u16_at(bytes, at));
    let (byte, wide) = (|at: usize| bytes.get(at).copied(), |at| prefix::u64_at(bytes, at));
    let family = byte(76)?;
    let addr = |at: usize| {
        Some(match family {
            AF_INET => Addr::V4(prefix::array_at(bytes, at)?),
            _ => Addr::V6(prefix::array_at(bytes, at)?).unmapped(),
        })
    };
    let (jiffies, hz) = (wide(8)?, sys::clock::jiffies_per_second(wide(8)?, wide(0)?).max(1));
    // The lowest bits of the time wrap.
    let ticks = (jiffies as u32).wrapping_sub(word(84)?);
    let name = bytes.get(96..)?;
    let process = name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
    Some(TcpReset {
        netns_id: word(32)?.into(),
        is_received: byte(77)? == RECEIVED,
        state: State(byte(78)?),
        local: Endpoint { addr: addr(40)?, port: half(72)? },
        peer: Endpoint { addr: addr(56)?, port: half(74)? },
        pid: word(36)?,
        process,
        inode: word(80)?,
        heard_ms: u64::from(ticks) * 1000 / u64::from(hz),
        retransmits: byte(79)?,
        unacked: word(88)?,
        unread: word(92)?,
        received: wide(16)?,
        acked: wide(24)?,
    })
}
