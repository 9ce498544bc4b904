//! Backend that uses the kernel's trace; its keys, counts and events have the format of the BPF backend.
use std::collections::HashMap;
use std::time::Duration;

use sys::{Host, SysError};

use crate::backend::{BackendLosses, CountsDrops, ReasonNames, TellsDrops};
use crate::block::{KEY_BYTES, SAMPLE_BYTES};
use crate::error::DropsError;
use crate::event_block::EVENT_BYTES;
use crate::trace::{TraceInstance, TracedDrop};
use crate::via::DropsVia;

/// Maximum number of counted combinations of reason, place and EtherType. The sender chooses the EtherType.
///
/// Bound: kinds of drops with tracefs. Beyond: drops of further kinds are counted as lost (exit code 3). This also
/// affects other users. By: a sender of packets with many EtherTypes.
const KINDS_MAX: usize = 4096;
/// Offsets of the EtherType in a key and in a sample.
const KEY_ETHERTYPE: usize = 20;
const SAMPLE_ETHERTYPE: usize = 36;

fn key_of(traced: &TracedDrop) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    let parts = [(0, &traced.place.to_ne_bytes()[..]), (8, &traced.reason.to_ne_bytes()[..])];
    for (at, bytes) in parts.into_iter().chain([(KEY_ETHERTYPE, &traced.ethertype.to_ne_bytes()[..])]) {
        key.iter_mut().skip(at).zip(bytes).for_each(|(place, byte)| *place = *byte);
    }
    key
}

/// Copies the EtherType of a key into a sample.
fn put_sample(key: &[u8; KEY_BYTES], sample: &mut [u8]) {
    let ethertype = key.iter().skip(KEY_ETHERTYPE).take(2);
    sample.iter_mut().skip(SAMPLE_ETHERTYPE).zip(ethertype).for_each(|(place, byte)| *place = *byte);
}

fn names(instance: &TraceInstance) -> ReasonNames {
    ReasonNames { reasons: instance.reasons().to_vec(), subsystems: Vec::new() }
}

/// Counts from the trace.
#[derive(Debug)]
pub(crate) struct TraceCounts {
    instance: TraceInstance,
    reasons: ReasonNames,
    counts: HashMap<[u8; KEY_BYTES], u64>,
    /// Packets of combinations beyond the maximum.
    unknown: u64,
}

impl TraceCounts {
    /// Starts to trace drops.
    pub(crate) fn open(host: &Host) -> Result<TraceCounts, DropsError> {
        let instance = TraceInstance::open(host)?;
        Ok(TraceCounts { reasons: names(&instance), instance, counts: HashMap::new(), unknown: 0 })
    }
}

impl CountsDrops for TraceCounts {
    fn via(&self) -> DropsVia {
        DropsVia::Tracefs
    }

    fn reasons(&self) -> &ReasonNames {
        &self.reasons
    }

    fn each(&mut self, each: &mut dyn FnMut(&[u8; KEY_BYTES], u64, u64)) -> Result<(), DropsError> {
        self.drain()?;
        self.counts.iter().for_each(|(key, packets)| each(key, *packets, 0));
        Ok(())
    }

    fn sample(&self, key: &[u8; KEY_BYTES], sample: &mut [u8; SAMPLE_BYTES]) -> Result<(), DropsError> {
        put_sample(key, sample);
        Ok(())
    }

    fn losses(&mut self) -> Result<BackendLosses, DropsError> {
        Ok(BackendLosses { lost: self.instance.lost()?.saturating_add(self.unknown), ..BackendLosses::default() })
    }

    fn drain(&mut self) -> Result<(), DropsError> {
        for traced in self.instance.take()? {
            let key = key_of(traced);
            if self.counts.len() >= KINDS_MAX && !self.counts.contains_key(&key) {
                self.unknown += 1;
                continue;
            }
            *self.counts.entry(key).or_default() += 1;
        }
        Ok(())
    }
}

/// Each drop in the trace.
pub(crate) struct TraceEvents {
    instance: TraceInstance,
    reasons: ReasonNames,
}

impl TraceEvents {
    /// Starts to trace drops.
    pub(crate) fn open(host: &Host) -> Result<TraceEvents, DropsError> {
        let instance = TraceInstance::open(host)?;
        Ok(TraceEvents { reasons: names(&instance), instance })
    }
}

impl TellsDrops for TraceEvents {
    fn via(&self) -> DropsVia {
        DropsVia::Tracefs
    }

    fn reasons(&self) -> &ReasonNames {
        &self.reasons
    }

    fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), SysError> {
        let mut event = [0; EVENT_BYTES];
        for traced in self.instance.take()? {
            let key = key_of(traced);
            let (time, rest) = event.split_at_mut(8);
            let (to, sample) = rest.split_at_mut(KEY_BYTES);
            time.copy_from_slice(&traced.ns.to_ne_bytes());
            to.copy_from_slice(&key);
            put_sample(&key, sample);
            each(&event);
        }
        Ok(())
    }

    fn wait(&self, timeout_ms: i32) -> Result<(), SysError> {
        std::thread::sleep(Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0)));
        Ok(())
    }

    fn losses(&mut self) -> Result<BackendLosses, DropsError> {
        Ok(BackendLosses { lost: self.instance.lost()?, ..BackendLosses::default() })
    }
}
