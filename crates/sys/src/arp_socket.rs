//! A packet socket that receives ARP messages only, so that other packets have no cost.
use std::mem::size_of;

use crate::errno::{Errno, SysError};
use crate::fd::Fd;
use crate::packet_ring::{Instruction, PROGRAM_MAX, attach_filter};
use crate::socket::{AF_PACKET, SOCK_DGRAM, bind_bytes, open};
use crate::syscall::call;

/// include/uapi/linux/if_ether.h
const ETH_P_ARP: u16 = 0x0806;
const WHAT: &str = "packet socket for ARP";

/// Size of an ARP message for IPv4 over Ethernet in bytes (RFC 826).
const MESSAGE: usize = 28;
/// Offsets in a message: protocol type, lengths of both addresses, operation, the sender's hardware address, the
/// sender's address, the address that a request asks for.
const PROTOCOL_AT: u32 = 2;
const LENGTHS_AT: u32 = 4;
const OPERATION_AT: u32 = 6;
const SENDER_HARDWARE_AT: usize = 8;
const SENDER_AT: u32 = 14;
const TARGET_AT: u32 = 24;
/// The protocol type of IPv4; address lengths of six and four bytes.
const IPV4: u32 = 0x0800;
const LENGTHS: u32 = 0x0604;
/// `ARPOP_REQUEST`, include/uapi/linux/if_arp.h.
const REQUEST: u16 = 1;

/// `BPF_LD | BPF_H | BPF_ABS`, `BPF_LD | BPF_W | BPF_ABS`, `BPF_JMP | BPF_JEQ | BPF_K`, `BPF_RET | BPF_K`
const LOAD_HALF: u16 = 0x28;
const LOAD_WORD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Maximum number of addresses in a filter: each takes two instructions, in addition to eight others. Requests for
/// these addresses are only received if there is room for two more instructions each.
///
/// Bound: addresses of a namespace for which `doctor` receives ARP
/// (`arp_socket::a_filter_of_the_most_addresses_is_not_too_long`). Beyond: further addresses are counted (exit code 3).
/// By: anyone who may add addresses there.
pub const ARP_ADDRESSES_MAX: usize = (PROGRAM_MAX - 8) / 2;

/// Maximum number of addresses in a filter that also receives requests for them.
const REQUESTS_MAX: usize = (PROGRAM_MAX - 12) / 4;

/// An ARP message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArpSender {
    /// The interface on which the message arrived.
    pub ifindex: u32,
    /// The sender's hardware address in the message.
    pub hardware: [u8; 6],
    /// The sender's IPv4 address.
    pub addr: [u8; 4],
    /// The address that the sender asks for; `None` for other messages than requests.
    pub asks_for: Option<[u8; 4]>,
}

/// A socket that receives ARP messages from a set of addresses, and requests for them.
#[derive(Debug)]
pub struct ArpSocket {
    fd: Fd,
}

impl ArpSocket {
    /// Opens a socket in the calling thread's network namespace. It receives, from all interfaces, messages whose
    /// sender has one of these addresses, at most [`ARP_ADDRESSES_MAX`], and requests for one of them, if they are at
    /// most half as many. Needs CAP_NET_RAW.
    ///
    /// Only ARP messages have a cost: about 50 ns each, plus 2 ns per address.
    pub fn open(addresses: &[[u8; 4]]) -> Result<ArpSocket, SysError> {
        // Protocol 0: nothing is received until the filter is attached. Sockets for a single protocol do not see
        // packets that this host sends.
        let fd = open(AF_PACKET, SOCK_DGRAM, 0).map_err(|error| SysError::new("socket", WHAT, error.errno))?;
        attach_filter(&fd, &program(addresses))?;
        let mut address = [0; 20];
        address[..2].copy_from_slice(&(AF_PACKET as u16).to_ne_bytes());
        address[2..4].copy_from_slice(&ETH_P_ARP.to_be_bytes());
        bind_bytes(&fd, &address).map_err(|errno| SysError::new("bind", WHAT, errno))?;
        Ok(ArpSocket { fd })
    }

    /// The next message that has arrived; `None` if there is none. Does not wait.
    pub fn receive(&self) -> Result<Option<ArpSender>, SysError> {
        let mut message = [0u8; MESSAGE];
        // `struct sockaddr_ll`: family u16, protocol u16, ifindex s32, and 12 more bytes.
        let mut from = [0u8; 20];
        let mut from_size = size_of::<[u8; 20]>() as libc::socklen_t;
        let (to, to_size, source) = (message.as_mut_ptr().cast(), MESSAGE, from.as_mut_ptr().cast());
        let received = call("recvfrom", || {
            // SAFETY: the pointers are to live arrays of the given sizes, to which the kernel writes only during the
            // call; `from_size` is ours.
            let bytes =
                unsafe { libc::recvfrom(self.fd.raw(), to, to_size, libc::MSG_DONTWAIT, source, &raw mut from_size) };
            bytes as i64
        });
        match received {
            // The filter rejects shorter messages.
            Ok(_) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(errno) => return Err(SysError::new("recvfrom", WHAT, errno)),
        }
        let ifindex = u32::from_ne_bytes([from[4], from[5], from[6], from[7]]);
        let mut sender = ArpSender { ifindex, hardware: [0; 6], addr: [0; 4], asks_for: None };
        let [operation_at, at, target_at] = [OPERATION_AT, SENDER_AT, TARGET_AT].map(|at| at as usize);
        sender.hardware.copy_from_slice(&message[SENDER_HARDWARE_AT..SENDER_HARDWARE_AT + 6]);
        sender.addr.copy_from_slice(&message[at..at + 4]);
        if message[operation_at..operation_at + 2] == REQUEST.to_be_bytes() {
            let mut target = [0; 4];
            target.copy_from_slice(&message[target_at..target_at + 4]);
            sender.asks_for = Some(target);
        }
        Ok(Some(sender))
    }
}

/// A filter for ARP messages for IPv4 over Ethernet whose sender has one of these addresses, or asks for one.
fn program(addresses: &[[u8; 4]]) -> Vec<Instruction> {
    let plain = |code, k| Instruction { code, jump_true: 0, jump_false: 0, k };
    // Returns 0 (reject) unless the loaded value equals `k`.
    let only = |k| [Instruction { code: JUMP_EQUAL, jump_true: 1, jump_false: 0, k }, plain(RETURN, 0)];
    let mut program = vec![plain(LOAD_HALF, PROTOCOL_AT)];
    program.extend(only(IPV4));
    program.push(plain(LOAD_HALF, LENGTHS_AT));
    program.extend(only(LENGTHS));
    let any = |address: &[u8; 4]| {
        let k = u32::from_be_bytes(*address);
        [Instruction { code: JUMP_EQUAL, jump_true: 0, jump_false: 1, k }, plain(RETURN, MESSAGE as u32)]
    };
    program.push(plain(LOAD_WORD, SENDER_AT));
    program.extend(addresses.iter().flat_map(any));
    if addresses.len() <= REQUESTS_MAX {
        program.push(plain(LOAD_HALF, OPERATION_AT));
        program.extend(only(REQUEST.into()));
        program.push(plain(LOAD_WORD, TARGET_AT));
        program.extend(addresses.iter().flat_map(any));
    }
    program.push(plain(RETURN, 0));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_of_the_most_addresses_is_not_too_long() {
        assert!(program(&vec![[192, 0, 2, 1]; ARP_ADDRESSES_MAX]).len() <= PROGRAM_MAX);
        assert!(program(&vec![[192, 0, 2, 1]; ARP_ADDRESSES_MAX + 1]).len() > PROGRAM_MAX);
        let with_requests = program(&vec![[192, 0, 2, 1]; REQUESTS_MAX]).len();
        assert!((PROGRAM_MAX - 4..=PROGRAM_MAX).contains(&with_requests), "{with_requests}");
    }
}
