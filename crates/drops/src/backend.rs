//! The backends' traits: count drops, or report each drop.
use std::fmt;

use sys::SysError;

use crate::block::{KEY_BYTES, SAMPLE_BYTES};
use crate::error::DropsError;
use crate::via::DropsVia;

/// The namespaces whose packets are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropScope {
    /// The network namespace with this inode.
    Netns(u32),
    /// Every namespace.
    AllNetns,
}

/// The kernel's names for reasons; their numbers differ between kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReasonNames {
    /// Number and name. Empty before 5.17.
    pub(crate) reasons: Vec<(u32, Box<str>)>,
    /// Subsystems by number, which is the upper 16 bits of their reasons (6.4).
    pub(crate) subsystems: Vec<(u32, Box<str>)>,
}

/// Packets missing in the counts, or in the count that they belong to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BackendLosses {
    /// Packets counted by reason and place only.
    pub(crate) merged: u64,
    /// Packets without room in the table.
    pub(crate) lost: u64,
    /// Drops in an interrupt of the program itself.
    pub(crate) missed: u64,
}

/// A backend that counts drops.
pub(crate) trait CountsDrops: fmt::Debug {
    /// The interface of this backend.
    fn via(&self) -> DropsVia;

    /// The kernel's names for reasons.
    fn reasons(&self) -> &ReasonNames;

    /// True if the kernel gives no reasons.
    fn lacks_reasons(&self) -> bool {
        self.reasons().reasons.is_empty()
    }

    /// The name of the function at an address, if this backend knows it.
    fn function(&self, _address: u64) -> Option<&[u8]> {
        None
    }

    /// Calls back with each key, and its packets and bytes since the start.
    fn each(&mut self, each: &mut dyn FnMut(&[u8; KEY_BYTES], u64, u64)) -> Result<(), DropsError>;

    /// Reads the sample taken from the first packet of a key.
    fn sample(&self, key: &[u8; KEY_BYTES], sample: &mut [u8; SAMPLE_BYTES]) -> Result<(), DropsError>;

    /// Reads the counts of lost packets.
    fn losses(&mut self) -> Result<BackendLosses, DropsError>;

    /// Takes waiting drops out of the kernel's buffer, to make room; a no-op if the kernel counts.
    fn drain(&mut self) -> Result<(), DropsError> {
        Ok(())
    }
}

/// A backend that reports each drop.
pub(crate) trait TellsDrops {
    /// The interface of this backend.
    fn via(&self) -> DropsVia;

    /// The kernel's names for reasons.
    fn reasons(&self) -> &ReasonNames;

    /// The name of the function at an address, if this backend knows it.
    fn function(&self, _address: u64) -> Option<&[u8]> {
        None
    }

    /// Calls back with every waiting event, in the format of the BPF program.
    fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), SysError>;

    /// Waits for events, at most `timeout_ms`.
    fn wait(&self, timeout_ms: i32) -> Result<(), SysError>;

    /// Reads the counts of lost packets.
    fn losses(&mut self) -> Result<BackendLosses, DropsError>;
}
