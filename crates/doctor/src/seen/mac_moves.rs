//! Hardware addresses that move between the ports of a bridge.

/// A hardware address that a bridge learned at one port after another within the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MacMoved {
    /// The hardware address.
    pub hardware: [u8; 6],
    /// Interface index of the bridge.
    pub bridge: u32,
    /// Interface indexes of the last two ports.
    pub ports: [u32; 2],
    /// Number of moves from one port to another.
    pub count: u32,
}
