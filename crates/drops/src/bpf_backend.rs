//! Backend that uses BPF programs.
use bpf::{DropEventParts, DropLosses, DropReasons, DropRoom, PacketDropEvents, PacketDrops};
use sys::{Host, SysError};

use crate::backend::{BackendLosses, CountsDrops, DropScope, ReasonNames, TellsDrops};
use crate::block::{KEY_BYTES, SAMPLE_BYTES};
use crate::error::DropsError;
use crate::via::DropsVia;

fn netns_of(scope: DropScope) -> Option<u32> {
    match scope {
        DropScope::Netns(inode) => Some(inode),
        DropScope::AllNetns => None,
    }
}

fn names(reasons: &DropReasons) -> ReasonNames {
    ReasonNames { reasons: reasons.reasons.clone(), subsystems: reasons.subsystems.clone() }
}

fn losses(losses: DropLosses) -> BackendLosses {
    BackendLosses { merged: losses.merged, lost: losses.lost, missed: losses.missed }
}

/// The program that counts.
#[derive(Debug)]
pub(crate) struct BpfCounts {
    program: PacketDrops,
    reasons: ReasonNames,
}

impl BpfCounts {
    /// Loads and attaches the program: 10 to 20 ms.
    pub(crate) fn open(host: &Host, scope: DropScope) -> Result<BpfCounts, DropsError> {
        let program = PacketDrops::open(host, netns_of(scope), DropRoom::USUAL)?;
        Ok(BpfCounts { reasons: names(program.reasons()), program })
    }
}

impl CountsDrops for BpfCounts {
    fn via(&self) -> DropsVia {
        DropsVia::Bpf
    }

    fn reasons(&self) -> &ReasonNames {
        &self.reasons
    }

    fn each(&mut self, each: &mut dyn FnMut(&[u8; KEY_BYTES], u64, u64)) -> Result<(), DropsError> {
        self.program.for_each(each).map_err(DropsError::from)
    }

    fn sample(&self, key: &[u8; KEY_BYTES], sample: &mut [u8; SAMPLE_BYTES]) -> Result<(), DropsError> {
        self.program.read_sample(key, sample).map(drop).map_err(DropsError::from)
    }

    fn losses(&mut self) -> Result<BackendLosses, DropsError> {
        Ok(losses(self.program.losses()?))
    }
}

/// The program that reports each drop.
pub(crate) struct BpfEvents {
    program: PacketDropEvents,
    reasons: ReasonNames,
}

impl BpfEvents {
    /// Loads and attaches the program, with a ring of `ring_bytes` bytes.
    pub(crate) fn open(
        host: &Host,
        scope: DropScope,
        parts: DropEventParts,
        ring_bytes: u32,
    ) -> Result<BpfEvents, DropsError> {
        let program = PacketDropEvents::open(host, netns_of(scope), parts, ring_bytes)?;
        Ok(BpfEvents { reasons: names(program.reasons()), program })
    }
}

impl TellsDrops for BpfEvents {
    fn via(&self) -> DropsVia {
        DropsVia::Bpf
    }

    fn reasons(&self) -> &ReasonNames {
        &self.reasons
    }

    fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), SysError> {
        self.program.take(each).map(drop)
    }

    fn wait(&self, timeout_ms: i32) -> Result<(), SysError> {
        self.program.wait(timeout_ms)
    }

    fn losses(&mut self) -> Result<BackendLosses, DropsError> {
        Ok(losses(self.program.losses()?))
    }
}
