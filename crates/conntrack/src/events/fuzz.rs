//! Entry points for the fuzzer: a recording may hold any block.
use std::hint::black_box;

use record::rows::{NatEvent, NatEvents};
use record::{Lookups, Next, StreamState, Table};
use sys::{Blocks, SysError};

use crate::events::bpf::blocks::BpfEvents;
use crate::events::netlink::messages::{NetlinkEvents, event_ns};
use netlink::datagrams::{BatchHeader, DatagramFrame, FRAME};

/// One block, then the end.
struct OneBlock(Option<Vec<u8>>, Vec<u8>);

impl Blocks for OneBlock {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        let Some(block) = self.0.take() else { return Ok(None) };
        self.1 = block;
        Ok(Some(&self.1))
    }
}

fn one(block: Vec<u8>) -> Box<OneBlock> {
    Box::new(OneBlock(Some(block), Vec::new()))
}

fn walk(row: &NatEvent<'_>) {
    for field in NatEvents::FIELDS {
        black_box(field.cell(row, &Lookups::empty()));
    }
}

/// Reads the bytes as a block of received messages, as the messages in one, and as a block of new entries.
pub(crate) fn fuzz(data: &[u8]) {
    let mut framed = BatchHeader::default().bytes().to_vec();
    let mut head = [0; FRAME];
    DatagramFrame::put(&mut head, 1, 2, None, data.len());
    framed.extend(head.iter().chain(data));
    for block in [data.to_vec(), framed] {
        let mut events = NetlinkEvents::from_blocks(one(block));
        let mut each = |told: &super::EventMessage<'_>, entry: &record::rows::Conntrack<'_>| {
            black_box(event_ns(told));
            walk(&NatEvent { kind: told.kind, portid: told.portid, entry, ..NatEvent::EMPTY });
            Next::More
        };
        while matches!(events.next_entries(&mut each), Ok(StreamState::Open)) {}
        black_box(events.close());
    }
    let mut events = BpfEvents::new(one(data.to_vec()), 1);
    let mut each = |_, entry: &record::rows::Conntrack<'_>| {
        walk(&NatEvent { entry, ..NatEvent::EMPTY });
        Next::More
    };
    while matches!(events.next(&mut each), Ok(StreamState::Open)) {}
    black_box(events.close());
}
