//! A set of ports.

/// One bit for each port. Most lookups of sockets end here, because no socket has the port.
#[derive(Debug)]
pub(crate) struct PortSet(Box<[u64; 65_536 / 64]>);

impl Default for PortSet {
    fn default() -> PortSet {
        PortSet(Box::new([0; 65_536 / 64]))
    }
}

impl PortSet {
    pub(crate) fn add(&mut self, port: u16) {
        self.0[usize::from(port) / 64] |= 1 << (port % 64);
    }

    #[inline]
    pub(crate) fn has(&self, port: u16) -> bool {
        self.0[usize::from(port) / 64] >> (port % 64) & 1 == 1
    }
}
