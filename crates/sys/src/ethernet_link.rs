//! Whether a device says that it has a link: `ETHTOOL_GLINK`.
use std::os::fd::AsRawFd;

use crate::errno::{Errno, SysError};
use crate::syscall::call;

/// include/uapi/linux/sockios.h
const SIOCETHTOOL: libc::Ioctl = 0x8946;
/// include/uapi/linux/ethtool.h
const ETHTOOL_GLINK: u32 = 0x0a;
/// Bytes of a name with its zero (include/uapi/linux/if.h).
const IFNAMSIZ: usize = 16;

/// `struct ethtool_value`
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// `struct ifreq` with a pointer, and the rest of its 40 bytes.
#[repr(C)]
struct NamedRequest {
    name: [u8; IFNAMSIZ],
    value: *mut EthtoolValue,
    rest: [u64; 2],
}

const _: () = assert!(size_of::<NamedRequest>() == 40 || size_of::<usize>() != 8);

/// True if the interface of this name has a link; `None` if its driver does not know links. Needs no privilege; two
/// system calls and a socket.
pub fn has_link(name: &[u8]) -> Result<Option<bool>, SysError> {
    let failed = |errno| SysError::new("ioctl", "ETHTOOL_GLINK", errno);
    let mut request = NamedRequest { name: [0; IFNAMSIZ], value: std::ptr::null_mut(), rest: [0; 2] };
    let place = request.name.get_mut(..name.len()).filter(|_| name.len() < IFNAMSIZ);
    place.ok_or_else(|| failed(Errno::INVAL))?.copy_from_slice(name);
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))
        .map_err(|error| failed(Errno(error.raw_os_error().unwrap_or(libc::EIO))))?;
    let mut value = EthtoolValue { command: ETHTOOL_GLINK, data: 0 };
    request.value = &raw mut value;
    // SAFETY: `request` and the `value` that it points to are live for the whole call; the kernel reads 40 bytes of the
    // first and reads and writes the 8 bytes of the second.
    let asked = call("ioctl", || unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) }.into());
    match asked {
        Ok(_) => Ok(Some(value.data != 0)),
        Err(errno) if errno == Errno::OPNOTSUPP || errno == Errno::INVAL => Ok(None),
        Err(errno) => Err(failed(errno)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn loopback_has_a_link_and_what_is_not_there_fails() {
        assert!(has_link(b"lo").unwrap().is_none_or(|_| true));
        assert!(has_link(b"nosuch0").is_err());
        assert!(has_link(b"a name that is too long").is_err());
    }
}
