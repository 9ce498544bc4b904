//! The sockets at the ends of a packet: part of the rows of `capture`.

use crate::{Owner, Proto, State, Value};
use std::rc::Rc;

/// The socket of this host at one end of a packet, and who holds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketSocket {
    /// Its inode; 0 where an event told of it.
    pub inode: u32,
    /// Its protocol: TCP or UDP.
    pub proto: Proto,
    /// Its state when it was last looked at.
    pub state: State,
    /// User id that it belongs to; of a connection that an event reported that of the process.
    pub uid: Option<u32>,
    /// Every holder; empty where none is known.
    pub owners: Box<[Owner]>,
    /// Words about the first holder.
    pub words: Rc<HolderWords>,
}

/// Words about the holder of a socket; each is empty where it is unknown or not needed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct HolderWords {
    /// The user that the socket belongs to.
    pub user: Box<[u8]>,
    /// Container: its name, else the start of its id.
    pub container: Box<[u8]>,
    /// Kubernetes pod as namespace/name.
    pub pod: Box<[u8]>,
    /// Innermost systemd unit.
    pub unit: Box<[u8]>,
    /// Command line, its words joined by blanks.
    pub cmdline: Box<[u8]>,
}

impl PacketSocket {
    /// The name of the first holder.
    pub(super) fn process(&self) -> Value<'_> {
        self.owners.first().map_or(Value::Null, |owner| Value::Bytes(owner.process.as_bytes()))
    }

    /// The number of the first holder.
    pub(super) fn pid(&self) -> Value<'_> {
        self.owners.first().map_or(Value::Null, |owner| Value::U64(owner.pid.into()))
    }

    /// Every holder.
    pub(super) fn owners(&self) -> Value<'_> {
        if self.owners.is_empty() { Value::Null } else { Value::Owners(&self.owners) }
    }

    /// The user id.
    pub(super) fn uid(&self) -> Value<'_> {
        Value::number(self.uid)
    }

    /// The word of the state.
    pub(super) fn state(&self) -> Value<'_> {
        Value::Name(self.state.name(self.proto))
    }
}
