//! Local ports in use, and sockets that share one.

use std::collections::BTreeMap;

use super::ends::{Holder, NameOwner};

/// Local ports in use, whatever their destination.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortsTaken {
    /// A bit for each port; empty until there is one.
    bits: Vec<u64>,
    /// Number of sockets with these ports.
    pub sockets: u32,
    /// Number of sockets in TIME_WAIT.
    pub time_wait: u32,
    /// Owners of some of these sockets, with the number of sockets of each.
    pub owners: BTreeMap<Holder, u32>,
}

/// The owners of this number of sockets are looked up, and then one in [`OWNERS_EVERY`].
const OWNERS_FIRST: u32 = 16;
const OWNERS_EVERY: u32 = 64;

impl PortsTaken {
    /// Adds a socket. The owners of all sockets are too expensive: those of a part show who has most.
    pub fn add(&mut self, port: u16, is_time_wait: bool, owner: &mut NameOwner<'_>) {
        self.bits.resize(1024, 0);
        if let Some(word) = self.bits.get_mut(usize::from(port / 64)) {
            *word |= 1 << (port % 64);
        }
        if !is_time_wait && (self.sockets < OWNERS_FIRST || self.sockets % OWNERS_EVERY == 0) {
            let holder = owner();
            if holder.is_known() {
                *self.owners.entry(holder).or_default() += 1;
            }
        }
        self.sockets += 1;
        self.time_wait += u32::from(is_time_wait);
    }

    /// True if a socket has this port.
    pub fn has(&self, port: u16) -> bool {
        self.bits.get(usize::from(port / 64)).is_some_and(|word| word >> (port % 64) & 1 == 1)
    }
}

/// Sockets that are bound to one port and address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sharers {
    /// Inode of the first.
    pub first: u32,
    /// Inodes of the others, at most [`SHARERS_MAX`].
    pub others: Vec<u32>,
}

/// Bound: sockets on one UDP port whose processes `doctor` compares. Beyond: further ones are not compared. By: a
/// program with as many sockets on one port.
pub const SHARERS_MAX: usize = 64;
