//! Entry point for the fuzzer: every decoder reads arbitrary bytes. None may panic or loop forever.
use std::hint::black_box;

use netlink::Messages;
use netlink::datagrams::DatagramFrames;
use record::rows::{LogRecord, LogRecords};
use record::{Lookups, Table};

use crate::decode_record;
use crate::events::netlink::layout::RecordLayouts;

/// Reads the bytes as one payload, as messages, and as a block of datagrams, and reads every cell.
pub fn fuzz_nflog(data: &[u8]) {
    let framed = DatagramFrames::new(data).map_while(Result::ok).flat_map(|frame| Messages::new(frame.bytes));
    let payloads = Messages::new(data).chain(framed).map_while(Result::ok).map(|message| message.payload);
    let mut layouts = RecordLayouts::default();
    for payload in payloads.chain([data]) {
        // The second time with the layout of the first, if it is well-formed.
        for _ in 0..2 {
            let base = LogRecord::default();
            let mut row = layouts.begin_frame(&base);
            black_box(layouts.decode_into(payload, &base, &mut row, &mut 0).is_ok());
        }
        if let Ok(row) = decode_record(payload, 0, &mut 0) {
            for field in LogRecords::FIELDS {
                black_box(field.cell(&row, &Lookups::empty()));
            }
        }
    }
}
