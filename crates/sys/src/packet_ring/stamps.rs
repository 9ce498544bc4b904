//! The clock that stamps packets: the host's or the network adapter's (Documentation/networking/timestamping.rst).
use std::os::fd::{AsFd, AsRawFd};

use crate::errno::{Errno, SysError};
use crate::ethtool::{self, SIOCETHTOOL};

/// include/uapi/linux/sockios.h
const SIOCSHWTSTAMP: libc::Ioctl = 0x89b0;
const SIOCGHWTSTAMP: libc::Ioctl = 0x89b1;
/// include/uapi/linux/ethtool.h
const ETHTOOL_GET_TS_INFO: u32 = 0x41;
/// include/uapi/linux/net_tstamp.h
pub(super) const SYS_HARDWARE: u32 = 1 << 5;
pub(super) const RAW_HARDWARE: u32 = 1 << 6;
const FILTER_ALL: i32 = 1;

/// The requested clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StampClock {
    /// The host's clock.
    #[default]
    Host,
    /// The adapter's clock, which its driver converts to the host's time.
    Adapter,
    /// The adapter's clock, unconverted.
    AdapterUnsynced,
}

impl StampClock {
    /// `SOF_TIMESTAMPING_…`
    pub(super) fn bits(self) -> u32 {
        match self {
            StampClock::Host => 0,
            StampClock::Adapter => SYS_HARDWARE,
            StampClock::AdapterUnsynced => RAW_HARDWARE,
        }
    }
}

/// `struct ethtool_ts_info`
#[repr(C)]
#[derive(Default)]
struct StampInfo {
    command: u32,
    stamps: u32,
    clock: i32,
    sent: u32,
    reserved: [u32; 3],
    filters: u32,
    reserved_too: [u32; 3],
}

const _: () = assert!(size_of::<StampInfo>() == 44);

/// `struct hwtstamp_config`
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct StampConfig {
    flags: i32,
    sent: i32,
    received: i32,
}

fn query<T>(socket: i32, command: libc::Ioctl, iface: &[u8], value: &mut T) -> Result<(), Errno> {
    // SAFETY: `value` is borrowed exclusively, and is the struct of this command (see the callers), of fixed size.
    unsafe { ethtool::query(socket, command, iface, std::ptr::from_mut(value).cast()) }
}

/// The clocks with which the driver of this interface can stamp all received packets. The socket must be in the
/// interface's namespace. Needs no privilege.
pub(super) fn clocks(socket: i32, iface: &[u8]) -> Result<Vec<StampClock>, Errno> {
    let mut info = StampInfo { command: ETHTOOL_GET_TS_INFO, ..StampInfo::default() };
    match query(socket, SIOCETHTOOL, iface, &mut info) {
        Err(Errno::OPNOTSUPP | Errno::INVAL) => return Ok(vec![StampClock::Host]),
        done => done?,
    }
    let takes_all = info.filters & 1 << FILTER_ALL != 0;
    let adapters = [StampClock::Adapter, StampClock::AdapterUnsynced].into_iter();
    let adapters = adapters.filter(|clock| takes_all && info.stamps & clock.bits() != 0);
    Ok(std::iter::once(StampClock::Host).chain(adapters).collect())
}

/// The clocks with which the driver of this interface, in the calling thread's namespace, can stamp all received
/// packets.
pub fn stamp_clocks(iface: &[u8]) -> Result<Vec<StampClock>, SysError> {
    let failed = |errno| SysError::new("ioctl", "ETHTOOL_GET_TS_INFO", errno);
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))
        .map_err(|error| failed(Errno(error.raw_os_error().unwrap_or(libc::EIO))))?;
    clocks(socket.as_fd().as_raw_fd(), iface).map_err(failed)
}

/// Makes the adapter stamp all received packets if it does not yet; the setting for sent packets is unchanged. Then it
/// needs CAP_NET_ADMIN, and the setting lasts until it is changed again.
pub(super) fn stamp_all(socket: i32, iface: &[u8]) -> Result<(), Errno> {
    let mut config = StampConfig::default();
    // Older drivers do not support the query.
    if query(socket, SIOCGHWTSTAMP, iface, &mut config).is_ok() && config.received == FILTER_ALL {
        return Ok(());
    }
    config.received = FILTER_ALL;
    query(socket, SIOCSHWTSTAMP, iface, &mut config)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn loopback_has_the_hosts_clock_and_what_is_not_there_fails() {
        assert_eq!(stamp_clocks(b"lo").unwrap(), [StampClock::Host]);
        for name in [&b"nosuch0"[..], b"a name that is too long"] {
            assert_eq!(stamp_clocks(name).unwrap_err().errno, Errno(libc::ENODEV));
        }
    }
}
