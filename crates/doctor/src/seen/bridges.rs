//! Bridges and their ports, as interfaces among others.

use super::links::LinkSeen;
use super::surroundings::Surroundings;

/// The state of a bridge port that forwards: `BR_STATE_FORWARDING` (include/uapi/linux/if_bridge.h).
const FORWARDING: u8 = 3;

impl Surroundings {
    /// Returns the ports of a bridge.
    pub(crate) fn ports_of(&self, bridge: &LinkSeen) -> impl Iterator<Item = &LinkSeen> {
        let index = bridge.index;
        self.links.iter().filter(move |link| link.master == index && link.port.is_some())
    }
}

impl LinkSeen {
    /// True if it is a port of a bridge that is up and may forward frames.
    pub(crate) fn is_forwarding(&self) -> bool {
        self.down().is_none() && self.port.is_some_and(|port| port.state == FORWARDING)
    }

    /// Describes the state of a port that is up and does not forward; `None` if it forwards, is down, or is not a port.
    pub(crate) fn held_back(&self) -> Option<&'static str> {
        let port = self.port.filter(|_| self.down().is_none())?;
        match port.state {
            0 => Some("disabled"),
            1 => Some("listening"),
            2 => Some("learning"),
            4 => Some("blocking"),
            _ => None,
        }
    }
}
