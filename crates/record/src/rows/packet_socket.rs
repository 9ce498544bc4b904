//! The sockets at the ends of a packet: part of the rows of `capture`.

use crate::{Owner, Proto, State, Value};
use std::rc::Rc;

/// The local socket at one end of a packet, and its owners.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketSocket {
    /// Its inode; 0 if it is known only from an event.
    pub inode: u32,
    /// Its protocol: TCP or UDP.
    pub proto: Proto,
    /// Its state when it was last read.
    pub state: State,
    /// Its user id; for a connection that an event reported, the user id of the process.
    pub uid: Option<u32>,
    /// All its owners; empty if their processes are unknown.
    pub owners: Box<[Owner]>,
    /// Texts about the first owner.
    pub words: Rc<HolderWords>,
}

/// Texts about the owner of a socket; each is empty if unknown or not needed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct HolderWords {
    /// The user that the socket belongs to.
    pub user: Box<[u8]>,
    /// Container: its name, or else the start of its id.
    pub container: Box<[u8]>,
    /// Kubernetes pod as namespace/name.
    pub pod: Box<[u8]>,
    /// Innermost systemd unit.
    pub unit: Box<[u8]>,
    /// Command line, with its words separated by blanks.
    pub cmdline: Box<[u8]>,
}

impl PacketSocket {
    /// The name of the first owner.
    pub(super) fn process(&self) -> Value<'_> {
        self.owners.first().map_or(Value::Null, |owner| Value::Bytes(owner.process.as_bytes()))
    }

    /// The pid of the first owner.
    pub(super) fn pid(&self) -> Value<'_> {
        self.owners.first().map_or(Value::Null, |owner| Value::U64(owner.pid.into()))
    }

    /// The list of owners.
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
