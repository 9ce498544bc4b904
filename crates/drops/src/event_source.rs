//! Single drops as blocks: the backend's events, and the names that occur in them.
use std::collections::HashSet;

use sys::{EventProgram, Host, RingBlocks, SysError, clock};

use crate::backend::{DropScope, TellsDrops};
use crate::error::DropsError;
use crate::event_block::{
    ALL_NETNS, BY_NET_DM, BY_TRACE, EVENT_BYTES, EventHeader, FRAME_EVENT_BYTES, HEADER_BYTES, NAMES_HIDDEN,
    SNAPLEN_MAX, STACK_EVENT_BYTES, WITH_FRAMES, addresses, reason,
};
use crate::functions::FunctionNames;
use crate::names::{FUNCTION, REASON, put_name};
use crate::net_dm_backend::NetDmEvents;
use crate::reasons;
use crate::trace_backend::TraceEvents;
use crate::via::DropsVia;

/// Optional parts of an event, besides its key, addresses and ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventParts {
    /// No optional parts.
    Plain,
    /// The stack.
    Stack,
    /// This number of bytes of the packet.
    Frame(u32),
}

impl EventParts {
    /// Size of an event in bytes.
    fn bytes(self) -> usize {
        match self {
            EventParts::Plain => EVENT_BYTES,
            EventParts::Stack => STACK_EVENT_BYTES,
            EventParts::Frame(snaplen) => {
                FRAME_EVENT_BYTES + usize::try_from(snaplen).unwrap_or(SNAPLEN_MAX).min(SNAPLEN_MAX)
            }
        }
    }

    /// Bytes of each packet; `None` without packets.
    fn snaplen(self) -> Option<u32> {
        match self {
            EventParts::Frame(snaplen) => Some(snaplen),
            EventParts::Plain | EventParts::Stack => None,
        }
    }
}

/// The opened backend.
pub(crate) struct EventSource<'h> {
    host: &'h Host,
    backend: Box<dyn TellsDrops>,
    event_bytes: usize,
    symbols: FunctionNames,
    /// Names that an earlier block contains.
    told: HashSet<(u8, u64)>,
    header: EventHeader,
    /// Buffer, reused for each block.
    names: Vec<u8>,
}

impl<'h> EventSource<'h> {
    /// Follows drops from now on, with BPF, otherwise with the kernel's trace, otherwise with its drop monitor; or with
    /// `via` only.
    pub(crate) fn open(
        host: &'h Host,
        scope: DropScope,
        parts: EventParts,
        via: Option<DropsVia>,
        stop: &'h dyn Fn() -> bool,
    ) -> Result<RingBlocks<'h, EventSource<'h>>, DropsError> {
        let by_trace = || match parts {
            EventParts::Frame(_) => Err(DropsError::NoTrace("it has no bytes of packets".into())),
            _ => Ok(Box::new(TraceEvents::open(host)?) as _),
        };
        let by_net_dm = || Ok(Box::new(NetDmEvents::open(host, parts.snaplen())?) as _);
        let backend = crate::choose::by(via, || by_bpf(host, scope, parts), by_trace, by_net_dm)?;
        let mut header = EventHeader::default();
        let (event_bytes, is_all) = match backend.via() {
            DropsVia::Bpf => (parts.bytes(), scope == DropScope::AllNetns),
            DropsVia::NetDm => {
                header.flags |= BY_NET_DM;
                (if parts.snaplen().is_some() { parts.bytes() } else { EVENT_BYTES }, true)
            }
            DropsVia::Tracefs | DropsVia::Counters => {
                header.flags |= BY_TRACE;
                (EVENT_BYTES, true)
            }
        };
        header.flags |= if is_all { ALL_NETNS } else { 0 };
        header.flags |= if event_bytes >= FRAME_EVENT_BYTES && parts != EventParts::Stack { WITH_FRAMES } else { 0 };
        let (symbols, told, names) = Default::default();
        Ok(RingBlocks::new(EventSource { host, backend, event_bytes, symbols, told, header, names }, stop))
    }

    /// Appends the names that occur in these events for the first time.
    fn put_names(&mut self, events: &[u8], into: &mut Vec<u8>) {
        let mut new = Vec::new();
        for event in events.chunks_exact(self.event_bytes) {
            let names = addresses(event).map(|at| (FUNCTION, at)).chain([(REASON, u64::from(reason(event)))]);
            new.extend(names.filter(|name| self.told.insert(*name)));
        }
        let functions = new.iter().filter(|(kind, _)| *kind == FUNCTION).map(|(_, address)| *address);
        self.symbols.find(self.host, functions.filter(|address| self.backend.function(*address).is_none()));
        if self.symbols.are_hidden() {
            self.header.flags |= NAMES_HIDDEN;
        }
        let names = self.backend.reasons();
        for (kind, number) in new {
            if kind == FUNCTION {
                let name = self.backend.function(number).unwrap_or_else(|| self.symbols.name(number));
                if !name.is_empty() {
                    put_name(into, kind, number, name);
                }
            } else if !names.reasons.is_empty() {
                let name = reasons::name(names, u32::try_from(number).unwrap_or(u32::MAX));
                put_name(into, kind, number, name.as_bytes());
            }
        }
    }
}

#[cfg(feature = "bpf")]
fn by_bpf(host: &Host, scope: DropScope, parts: EventParts) -> Result<Box<dyn TellsDrops>, DropsError> {
    use bpf::DropEventParts;
    /// Ring for events that wait while names of functions are looked up: room for 43,000 drops, or for 72,000 with 128
    /// bytes of each packet.
    ///
    /// Bound: bytes of ring buffer for `drops --events`: 43,000 drops
    /// (`drops::root_events_that_find_the_ring_full_are_counted`). Beyond: further drops are lost and counted (exit
    /// code 3). This also affects other users; without `--events` they are counted as drops. By: anyone whose packets
    /// are dropped faster than they are shown.
    const RING_BYTES: u32 = 4 << 20;
    /// Bound: bytes of ring buffer for `drops -w`: 72,000 drops of 128 bytes, 3,900 of 4,096 bytes. Beyond: further
    /// drops are lost and counted (exit code 3). This also affects other users. By: anyone whose packets are dropped
    /// faster than they are written.
    const FRAME_RING_BYTES: u32 = 16 << 20;
    let (parts, ring_bytes) = match parts {
        EventParts::Plain => (DropEventParts::Plain, RING_BYTES),
        EventParts::Stack => (DropEventParts::Stack, RING_BYTES),
        EventParts::Frame(snaplen) => (DropEventParts::Frame(snaplen), FRAME_RING_BYTES),
    };
    Ok(Box::new(crate::bpf_backend::BpfEvents::open(host, scope, parts, ring_bytes)?))
}

#[cfg(not(feature = "bpf"))]
fn by_bpf(_: &Host, _: DropScope, _: EventParts) -> Result<Box<dyn TellsDrops>, DropsError> {
    Err(DropsError::WithoutBpf)
}

impl EventProgram for EventSource<'_> {
    const HEADER: usize = HEADER_BYTES;

    fn take(&mut self, block: &mut Vec<u8>) -> Result<bool, SysError> {
        let bytes = self.event_bytes;
        self.backend.take(&mut |event| block.extend_from_slice(event.get(..bytes).unwrap_or_default()))?;
        let events = block.get(HEADER_BYTES..).unwrap_or_default();
        self.header.events = events.len() as u64;
        let mut names = std::mem::take(&mut self.names);
        names.clear();
        self.put_names(events, &mut names);
        block.extend_from_slice(&names);
        self.names = names;
        Ok(self.header.events > 0)
    }

    fn write_header(&mut self, header: &mut [u8]) {
        // Reading the counters costs system calls. If it fails, the block keeps the previous numbers.
        if let Ok(losses) = self.backend.losses() {
            (self.header.lost, self.header.missed) = (losses.lost, losses.missed);
        }
        self.header.epoch_ns = clock::wall_ns().wrapping_sub(clock::monotonic_ns());
        self.header.event = self.event_bytes as u64;
        self.header.put(header);
    }

    fn wait(&self, timeout_ms: i32) -> Result<(), SysError> {
        self.backend.wait(timeout_ms)
    }
}
