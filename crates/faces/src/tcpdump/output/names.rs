//! Names of hosts, ports and Ethernet addresses, for runs without `-n`.

use std::fmt::Debug;

/// Looks names up while lines are written. Names may contain any bytes: the lines escape them.
pub trait PacketNames: Debug {
    /// Sets the time of the next packet, which may determine how long an implementation waits for a name.
    fn begin_packet(&mut self, time_ns: u64);

    /// Returns the name of the host with an address of 4 or 16 bytes, if it is known.
    fn host(&mut self, address: &[u8]) -> Option<&[u8]>;

    /// Returns the name of an Ethernet address.
    fn ethernet(&mut self, address: [u8; 6]) -> Option<&[u8]>;

    /// Returns the name of a port of TCP (6) or UDP (17).
    fn port(&mut self, proto: u8, port: u16) -> Option<&[u8]>;
}
