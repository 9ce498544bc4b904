//! The link state that a device reports: `ETHTOOL_GLINK`.
use std::os::fd::AsRawFd;

use crate::errno::{Errno, SysError};
use crate::ethtool::{self, SIOCETHTOOL};

/// include/uapi/linux/ethtool.h
const ETHTOOL_GLINK: u32 = 0x0a;
/// `struct ethtool_value`
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// True if the interface of this name has a link; `None` if its driver does not report links. Needs no privilege; two
/// system calls and a socket.
pub fn has_link(name: &[u8]) -> Result<Option<bool>, SysError> {
    let failed = |errno| SysError::new("ioctl", "ETHTOOL_GLINK", errno);
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))
        .map_err(|error| failed(Errno(error.raw_os_error().unwrap_or(libc::EIO))))?;
    let mut value = EthtoolValue { command: ETHTOOL_GLINK, data: 0 };
    // SAFETY: `value` is borrowed exclusively; the kernel reads and writes its 8 bytes.
    let asked = unsafe { ethtool::query(socket.as_raw_fd(), SIOCETHTOOL, name, (&raw mut value).cast()) };
    match asked {
        Ok(()) => Ok(Some(value.data != 0)),
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
