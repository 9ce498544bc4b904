//! Ordinary sockets with options that the standard library does not offer.
//!
//! For tests and load generators (a backlog of 1, v6-only, marks, devices, raw and packet sockets). The result
//! converts into the standard library's types: `OwnedFd::from(socket)`.
use std::mem::size_of;
use std::net::SocketAddr;

use crate::errno::{Errno, SysError};
use crate::fd::Fd;
use crate::syscall::{call, retry};

pub use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_UNIX, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_UDPLITE,
    IPV6_V6ONLY, SO_BINDTODEVICE, SO_KEEPALIVE, SO_MARK, SO_RCVBUF, SO_RCVLOWAT, SO_REUSEADDR, SO_REUSEPORT, SO_SNDBUF,
    SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_STREAM, SOL_SOCKET, TCP_CONGESTION, TCP_KEEPIDLE,
};

const OBJECT: &str = "socket";

/// Opens a socket (close-on-exec) in the calling thread's network namespace.
pub fn open(family: i32, kind: i32, protocol: i32) -> Result<Fd, SysError> {
    // SAFETY: socket takes three integers.
    let fd = call("socket", || unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) }.into())
        .map_err(|errno| SysError::new("socket", OBJECT, errno))?;
    // SAFETY: socket just returned this descriptor to us alone.
    Ok(unsafe { Fd::take(fd) })
}

/// Sets an option that is a number.
pub fn set_number(socket: &Fd, level: i32, option: i32, value: i32) -> Result<(), SysError> {
    set_bytes(socket, level, option, &value.to_ne_bytes())
}

/// Sets an option that is text or a struct (`SO_BINDTODEVICE`, `TCP_CONGESTION`).
pub fn set_bytes(socket: &Fd, level: i32, option: i32, value: &[u8]) -> Result<(), SysError> {
    let (from, size) = (value.as_ptr().cast(), value.len() as libc::socklen_t);
    // SAFETY: `from` points to `size` borrowed bytes.
    call("setsockopt", || unsafe { libc::setsockopt(socket.raw(), level, option, from, size) }.into())
        .map_err(|errno| SysError::new("setsockopt", OBJECT, errno))?;
    Ok(())
}

/// Reads an option into `into`; returns its size in bytes.
pub fn get_bytes(socket: &Fd, level: i32, option: i32, into: &mut [u8]) -> Result<usize, Errno> {
    let (to, mut size) = (into.as_mut_ptr().cast(), into.len() as libc::socklen_t);
    // SAFETY: `to` points to `size` bytes that are borrowed for writing, and `size` is ours.
    call("getsockopt", || unsafe { libc::getsockopt(socket.raw(), level, option, to, &raw mut size).into() })?;
    Ok(size as usize)
}

/// Binds to an address.
pub fn bind(socket: &Fd, address: &SocketAddr) -> Result<(), SysError> {
    bind_bytes(socket, &address_bytes(address)).map_err(|errno| SysError::new("bind", address.to_string(), errno))
}

/// Binds to an address given as the kernel's own struct (sockaddr_un, sockaddr_ll, …).
pub fn bind_bytes(socket: &Fd, address: &[u8]) -> Result<(), Errno> {
    let size = address.len() as libc::socklen_t;
    // SAFETY: the pointer is to `size` borrowed bytes; the kernel copies and checks them.
    call("bind", || unsafe { libc::bind(socket.raw(), address.as_ptr().cast(), size) }.into())?;
    Ok(())
}

/// Connects; waits until it is done unless the socket is non-blocking.
pub fn connect(socket: &Fd, address: &SocketAddr) -> Result<(), SysError> {
    let bytes = address_bytes(address);
    let size = bytes.len() as libc::socklen_t;
    // SAFETY: the pointer is to `size` borrowed bytes; the kernel copies and checks them.
    retry("connect", || unsafe { libc::connect(socket.raw(), bytes.as_ptr().cast(), size) }.into())
        .map_err(|errno| SysError::new("connect", address.to_string(), errno))?;
    Ok(())
}

/// Connects to an address given as the kernel's own struct (sockaddr_nl, …).
pub fn connect_bytes(socket: &Fd, address: &[u8]) -> Result<(), Errno> {
    let size = address.len() as libc::socklen_t;
    // SAFETY: the pointer is to `size` borrowed bytes; the kernel copies and checks them.
    retry("connect", || unsafe { libc::connect(socket.raw(), address.as_ptr().cast(), size) }.into())?;
    Ok(())
}

/// Listens with room for `backlog` connections that have not been accepted.
pub fn listen(socket: &Fd, backlog: i32) -> Result<(), SysError> {
    // SAFETY: listen takes two integers.
    call("listen", || unsafe { libc::listen(socket.raw(), backlog) }.into())
        .map_err(|errno| SysError::new("listen", OBJECT, errno))?;
    Ok(())
}

/// sockaddr_in (16 bytes) or sockaddr_in6 (28 bytes), as declared in include/uapi/linux/in{,6}.h.
pub fn address_bytes(address: &SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of::<libc::sockaddr_in6>());
    match address {
        SocketAddr::V4(v4) => {
            bytes.extend_from_slice(&(AF_INET as u16).to_ne_bytes());
            bytes.extend_from_slice(&v4.port().to_be_bytes());
            bytes.extend_from_slice(&v4.ip().octets());
            bytes.extend_from_slice(&[0; 8]);
        }
        SocketAddr::V6(v6) => {
            bytes.extend_from_slice(&(AF_INET6 as u16).to_ne_bytes());
            bytes.extend_from_slice(&v6.port().to_be_bytes());
            bytes.extend_from_slice(&v6.flowinfo().to_be_bytes());
            bytes.extend_from_slice(&v6.ip().octets());
            bytes.extend_from_slice(&v6.scope_id().to_ne_bytes());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::os::fd::OwnedFd;

    #[test]
    fn a_listener_with_options() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let any: SocketAddr = any.parse().unwrap();
            let family = if any.is_ipv4() { AF_INET } else { AF_INET6 };
            let socket = open(family, SOCK_STREAM, 0).unwrap();
            set_number(&socket, SOL_SOCKET, SO_REUSEADDR, 1).unwrap();
            set_bytes(&socket, IPPROTO_TCP, TCP_CONGESTION, b"reno").unwrap();
            match bind(&socket, &any) {
                Err(_) if any.is_ipv6() => {
                    eprintln!("skipped: no IPv6 here");
                    continue;
                }
                bound => bound.unwrap(),
            }
            listen(&socket, 3).unwrap();
            let listener = std::net::TcpListener::from(OwnedFd::from(socket));
            let there = listener.local_addr().unwrap();
            assert_eq!(there.ip(), any.ip());
            let client = open(family, SOCK_STREAM, 0).unwrap();
            connect(&client, &there).unwrap();
            let client = std::net::TcpStream::from(OwnedFd::from(client));
            assert_eq!(listener.accept().unwrap().1, client.local_addr().unwrap());
        }
    }

    #[test]
    fn errors_name_the_address() {
        let socket = open(AF_INET, SOCK_STREAM, 0).unwrap();
        let error = bind(&socket, &"192.0.2.77:80".parse().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "cannot bind to 192.0.2.77:80: cannot assign requested address");
        assert_eq!(bind_bytes(&socket, &[1]).unwrap_err(), Errno::INVAL);
    }
}
