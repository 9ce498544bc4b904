//! Sources of drops: a program of ours in the kernel, or else the kernel's own trace.
use std::fmt;

use sys::SysError;

use crate::block::{KEY_BYTES, SAMPLE_BYTES};
use crate::error::DropsError;
use crate::via::DropsVia;

/// The namespaces whose packets are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropScope {
    /// Those of the network namespace with this inode.
    Netns(u32),
    /// Those of every namespace.
    AllNetns,
}

/// The kernel's names for reasons: a number means something else in the next kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReasonNames {
    /// Number and name. Empty before 5.17.
    pub(crate) reasons: Vec<(u32, Box<str>)>,
    /// Subsystems, whose number is the upper 16 bits of their reasons (6.4).
    pub(crate) subsystems: Vec<(u32, Box<str>)>,
}

/// Packets that are in no count, or not in the one that they belong to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BackendLosses {
    /// Counted by reason and place alone.
    pub(crate) merged: u64,
    /// Found no room.
    pub(crate) lost: u64,
    /// Drops in an interrupt of the program itself.
    pub(crate) missed: u64,
}

/// An interface that counts drops.
pub(crate) trait CountsDrops: fmt::Debug {
    /// The interface.
    fn via(&self) -> DropsVia;

    /// The kernel's names for reasons.
    fn reasons(&self) -> &ReasonNames;

    /// True if the kernel gives no reasons.
    fn lacks_reasons(&self) -> bool {
        self.reasons().reasons.is_empty()
    }

    /// The name of the function at an address, where this interface tells it.
    fn function(&self, _address: u64) -> Option<&[u8]> {
        None
    }

    /// Calls back with each key, and its packets and bytes since the beginning.
    fn each(&mut self, each: &mut dyn FnMut(&[u8; KEY_BYTES], u64, u64)) -> Result<(), DropsError>;

    /// Reads what the first packet of a key left.
    fn sample(&self, key: &[u8; KEY_BYTES], sample: &mut [u8; SAMPLE_BYTES]) -> Result<(), DropsError>;

    /// Reads the counts of lost packets.
    fn losses(&mut self) -> Result<BackendLosses, DropsError>;

    /// Takes what waits, so that it takes no room; nothing waits where the kernel counts.
    fn drain(&mut self) -> Result<(), DropsError> {
        Ok(())
    }
}

/// An interface that tells each drop.
pub(crate) trait TellsDrops {
    /// The interface.
    fn via(&self) -> DropsVia;

    /// The kernel's names for reasons.
    fn reasons(&self) -> &ReasonNames;

    /// The name of the function at an address, where this interface tells it.
    fn function(&self, _address: u64) -> Option<&[u8]> {
        None
    }

    /// Calls back with every event that waits, as the BPF program writes it.
    fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), SysError>;

    /// Waits for events, for `timeout_ms` at most.
    fn wait(&self, timeout_ms: i32) -> Result<(), SysError>;

    /// Reads the counts of lost packets.
    fn losses(&mut self) -> Result<BackendLosses, DropsError>;
}
