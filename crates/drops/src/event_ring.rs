//! The ring of the program that tells each drop.
use std::collections::HashSet;

use bpf::{EventProgram, PacketDropEvents, RingBlocks};
use sys::{Host, SysError, clock};

use crate::counter::DropScope;
use crate::error::DropsError;
use crate::event_block::{
    ALL_NETNS, EVENT_BYTES, EventHeader, HEADER_BYTES, NAMES_HIDDEN, STACK_EVENT_BYTES, addresses, reason,
};
use crate::names::{FUNCTION, REASON, put_name};
use crate::reasons;
use crate::symbols::Symbols;

/// Room for events that wait: 43,000 drops, while names of functions are looked for.
const RING_BYTES: u32 = 4 << 20;

/// The program at work.
pub(crate) struct EventRing<'h> {
    host: &'h Host,
    program: PacketDropEvents,
    event_bytes: usize,
    symbols: Symbols,
    /// Names that a block before has.
    told: HashSet<(u8, u64)>,
    header: EventHeader,
    /// Used again for each block.
    names: Vec<u8>,
}

impl<'h> EventRing<'h> {
    /// Loads and attaches the program.
    pub(crate) fn open(
        host: &'h Host,
        scope: DropScope,
        with_stack: bool,
        stop: &'h dyn Fn() -> bool,
    ) -> Result<RingBlocks<'h, EventRing<'h>>, DropsError> {
        let netns = match scope {
            DropScope::Netns(inode) => Some(inode),
            DropScope::AllNetns => None,
        };
        let program = PacketDropEvents::open(host, netns, with_stack, RING_BYTES)?;
        let event_bytes = if with_stack { STACK_EVENT_BYTES } else { EVENT_BYTES };
        let (symbols, told, names) = Default::default();
        let flags = if scope == DropScope::AllNetns { ALL_NETNS } else { 0 };
        let header = EventHeader { flags, ..EventHeader::default() };
        Ok(RingBlocks::new(EventRing { host, program, event_bytes, symbols, told, header, names }, stop))
    }

    /// Appends the names that occur in these events for the first time.
    fn put_names(&mut self, events: &[u8], into: &mut Vec<u8>) {
        let mut new = Vec::new();
        for event in events.chunks_exact(self.event_bytes) {
            let names = addresses(event).map(|at| (FUNCTION, at)).chain([(REASON, u64::from(reason(event)))]);
            new.extend(names.filter(|name| self.told.insert(*name)));
        }
        let functions = new.iter().filter(|(kind, _)| *kind == FUNCTION).map(|(_, address)| *address);
        self.symbols.find(self.host, functions);
        if self.symbols.are_hidden() {
            self.header.flags |= NAMES_HIDDEN;
        }
        let names = self.program.reasons();
        for (kind, number) in new {
            if kind == FUNCTION {
                let name = self.symbols.name(number);
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

impl EventProgram for EventRing<'_> {
    const HEADER: usize = HEADER_BYTES;

    fn take(&mut self, block: &mut Vec<u8>) -> Result<bool, SysError> {
        let bytes = self.event_bytes;
        self.program.take(&mut |event| block.extend_from_slice(event.get(..bytes).unwrap_or_default()))?;
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
        // The counters cost calls: a block that cannot read them has those of the block before.
        if let Ok(losses) = self.program.losses() {
            (self.header.lost, self.header.missed) = (losses.lost, losses.missed);
        }
        self.header.epoch_ns = clock::wall_ns().wrapping_sub(clock::monotonic_ns());
        self.header.event = self.event_bytes as u64;
        self.header.put(header);
    }

    fn wait(&self, timeout_ms: i32) -> Result<(), SysError> {
        self.program.wait(timeout_ms)
    }
}
