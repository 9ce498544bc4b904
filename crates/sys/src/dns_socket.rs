//! A packet socket that receives DNS messages over UDP only, so that other packets cost a few comparisons.
use crate::errno::{Errno, SysError};
use crate::fd::Fd;
use crate::packet_ring::{Instruction, attach_filter, without_own_echo};
use crate::socket::{AF_PACKET, SO_RCVBUF, SOCK_DGRAM, SOL_SOCKET, bind_bytes, open, set_number};
use crate::syscall::call;

const WHAT: &str = "packet socket for DNS";

// include/uapi/linux/if_ether.h
const ETH_P_ALL: u16 = 0x0003;
const ETH_P_IP: u32 = 0x0800;
const ETH_P_IPV6: u32 = 0x86dd;
/// `PACKET_OTHERHOST`, include/uapi/linux/if_packet.h.
const OTHER_HOST: u32 = 3;
const UDP: u32 = 17;
const DNS: u32 = 53;
/// The bits of a fragment's offset in the IPv4 header.
const FRAGMENT: u32 = 0x1fff;

/// Size of the largest IPv4 header, a UDP header and a DNS header: more of a message is never copied.
pub const DNS_HEAD_BYTES: usize = 60 + 8 + 12;

/// Bytes of messages that wait until they are read.
const BUFFER_BYTES: i32 = 4 << 20;

/// `BPF_LD | BPF_W | BPF_ABS`, `BPF_H`, `BPF_B`; `BPF_LD | BPF_H | BPF_IND`; `BPF_LDX | BPF_B | BPF_MSH`; `BPF_JMP |
/// BPF_JEQ | BPF_K`, `BPF_JSET`; `BPF_RET | BPF_K`
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF_FROM_HEADER: u16 = 0x48;
const LOAD_HEADER_LENGTH: u16 = 0xb1;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;
/// `SKF_AD_OFF + SKF_AD_PROTOCOL`, `SKF_AD_OFF + SKF_AD_PKTTYPE`
const PROTOCOL: u32 = (-0x1000_i32) as u32;
const PACKET_TYPE: u32 = (-0x1000_i32 + 4) as u32;

/// A socket that receives DNS messages.
#[derive(Debug)]
pub struct DnsSocket {
    fd: Fd,
}

impl DnsSocket {
    /// Opens a socket in the calling thread's network namespace. It receives, from all interfaces and in both
    /// directions, UDP packets from or to port 53 without IPv6 extension headers. Needs CAP_NET_RAW.
    ///
    /// While it exists, each packet of the namespace costs some 50 ns, and a sent one twice as much.
    pub fn open() -> Result<DnsSocket, SysError> {
        // Protocol 0: nothing is received until the filter is attached.
        let fd = open(AF_PACKET, SOCK_DGRAM, 0).map_err(|error| SysError::new("socket", WHAT, error.errno))?;
        // A packet of the loopback interface is received once.
        attach_filter(&fd, &without_own_echo(&program()))?;
        // Only CAP_NET_ADMIN permits more than net.core.rmem_max.
        set_number(&fd, SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER_BYTES)
            .or_else(|_| set_number(&fd, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES))?;
        let mut address = [0; 20];
        address[..2].copy_from_slice(&(AF_PACKET as u16).to_ne_bytes());
        address[2..4].copy_from_slice(&ETH_P_ALL.to_be_bytes());
        bind_bytes(&fd, &address).map_err(|errno| SysError::new("bind", WHAT, errno))?;
        Ok(DnsSocket { fd })
    }

    /// Copies the head of the next message, from the IP header on. Returns its length; `None` if none is
    /// waiting. Does not wait itself.
    pub fn receive(&self, into: &mut [u8; DNS_HEAD_BYTES]) -> Result<Option<usize>, SysError> {
        let (to, size) = (into.as_mut_ptr().cast(), into.len());
        let received = call("recv", || {
            // SAFETY: the pointer is to a live array of this size, to which the kernel writes only during the call.
            let bytes = unsafe { libc::recv(self.fd.raw(), to, size, libc::MSG_DONTWAIT) };
            bytes as i64
        });
        match received {
            Ok(bytes) => Ok(Some(usize::try_from(bytes).unwrap_or(0).min(size))),
            Err(Errno::AGAIN) => Ok(None),
            Err(errno) => Err(SysError::new("recv", WHAT, errno)),
        }
    }
}

/// A filter for UDP packets from or to port 53 that are for this host, or that it sends.
fn program() -> [Instruction; 22] {
    let plain = |code, k| Instruction { code, jump_true: 0, jump_false: 0, k };
    let jump = |code, k, jump_true, jump_false| Instruction { code, jump_true, jump_false, k };
    [
        plain(LOAD_WORD, PACKET_TYPE),
        jump(JUMP_EQUAL, OTHER_HOST, 19, 0),
        plain(LOAD_HALF, PROTOCOL),
        jump(JUMP_EQUAL, ETH_P_IP, 0, 9),
        plain(LOAD_BYTE, 9),
        jump(JUMP_EQUAL, UDP, 0, 15),
        plain(LOAD_HALF, 6),
        jump(JUMP_ANY_BIT, FRAGMENT, 13, 0),
        plain(LOAD_HEADER_LENGTH, 0),
        plain(LOAD_HALF_FROM_HEADER, 0),
        jump(JUMP_EQUAL, DNS, 9, 0),
        plain(LOAD_HALF_FROM_HEADER, 2),
        jump(JUMP_EQUAL, DNS, 7, 8),
        jump(JUMP_EQUAL, ETH_P_IPV6, 0, 7),
        plain(LOAD_BYTE, 6),
        jump(JUMP_EQUAL, UDP, 0, 5),
        plain(LOAD_HALF, 40),
        jump(JUMP_EQUAL, DNS, 2, 0),
        plain(LOAD_HALF, 42),
        jump(JUMP_EQUAL, DNS, 0, 1),
        plain(RETURN, DNS_HEAD_BYTES as u32),
        plain(RETURN, 0),
    ]
}
