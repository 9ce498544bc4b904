//! Names in the place of numbers, for runs without `-n`: of hosts, ports, Ethernet addresses.

use std::fmt::Debug;

/// Looks names up while lines are written. Names may hold any bytes: the lines escape them.
pub trait PacketNames: Debug {
    /// The next packet has this time: an implementation may decide by it how long to wait for a name.
    fn begin_packet(&mut self, time_ns: u64);

    /// The name of the host with an address of 4 or 16 bytes, if it is known.
    fn host(&mut self, address: &[u8]) -> Option<&[u8]>;

    /// The name of an Ethernet address.
    fn ethernet(&mut self, address: [u8; 6]) -> Option<&[u8]>;

    /// The name of a port of TCP (6) or UDP (17).
    fn port(&mut self, proto: u8, port: u16) -> Option<&[u8]>;
}
