//! Entry points for the fuzzer: every decoder reads arbitrary bytes. None may panic or loop forever.
use std::hint::black_box;

use netlink::Messages;
use record::rows::{Conntrack, Nat};
use record::{Lookups, Table};

use crate::backends::bpf::rows::{EntryBytes, decode_block, header};
use crate::backends::netlink::ctnetlink::CtDecoder;
use crate::backends::netlink::expect::ExpectDecoder;
use crate::backends::proc::line::parse_proc_line;
use crate::backends::seen::RowKeys;
use crate::labels::LabelNames;

// Reads every cell of the row.
fn walk(row: &Conntrack<'_>) {
    for field in Nat::FIELDS {
        black_box(field.cell(row, &Lookups::empty()));
    }
    let mut words = Vec::new();
    LabelNames::default().put_words(&mut words, row.labels.unwrap_or_default());
    black_box((words, RowKeys::new().is_double(row)));
}

/// Reads the bytes as receive buffers of ctnetlink, as messages and as one payload, about entries and expectations, and
/// as blocks of events.
pub fn fuzz_ctnetlink(data: &[u8]) {
    let payloads = Messages::new(data).map_while(Result::ok).map(|message| message.payload);
    for payload in payloads.chain([data]) {
        if let Ok(row) = CtDecoder::new(1).decode(payload) {
            walk(&row);
        }
        // The form in which NFULA_CT of a packet carries an entry.
        if let Ok(row) = CtDecoder::new(1).decode_attrs(2, payload) {
            walk(&row);
        }
        black_box(ExpectDecoder::new(1).decode(payload).ok());
    }
    crate::events::fuzz(data);
}

/// Reads the bytes as lines of /proc/net/nf_conntrack, and as the file of label names.
pub fn fuzz_conntrack_line(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        if let Ok(row) = parse_proc_line(line, 1, Some(1 << 60)) {
            walk(&row);
        }
    }
    LabelNames::parse(data).put_words(&mut Vec::new(), data.get(..16).unwrap_or(data));
}

/// Reads the bytes as a block of the walk, and as rows after headers with any parts.
pub fn fuzz_conntrack_walk(data: &[u8]) {
    let mut each = |row: Result<(&Conntrack<'_>, EntryBytes<'_>), _>| {
        if let Ok((row, _)) = row {
            walk(row);
        }
        std::ops::ControlFlow::Continue(())
    };
    let _ = decode_block(data, 1, true, &mut each);
    for parts in 0..128u32 {
        let _ = decode_block(&[&header(parts)[..], data].concat(), 1, false, &mut each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WORD: &str = "(src|dst|sport|dport|type|id|zone|use|mark|packets|srckey)?=?[0-9a-fx.:]{0,9}";

    fn inner_attributes() -> impl Strategy<Value = Vec<(u16, Vec<u8>)>> {
        prop::collection::vec((0u16..12, prop::collection::vec(any::<u8>(), 0..20)), 0..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        #[test]
        fn any_bytes(data in prop::collection::vec(any::<u8>(), 0..400)) {
            fuzz_ctnetlink(&data);
            fuzz_conntrack_line(&data);
            fuzz_conntrack_walk(&data);
        }

        /// Attributes whose lengths fit, nested in each other.
        #[test]
        fn any_attributes(parts in prop::collection::vec((0u16..30, inner_attributes()), 0..12)) {
            let attr = |kind: u16, payload: &[u8]| {
                let mut bytes = [&(payload.len() as u16 + 4).to_ne_bytes()[..], &kind.to_ne_bytes(), payload].concat();
                bytes.resize(bytes.len().next_multiple_of(4), 0);
                bytes
            };
            let inner = |parts: &[(u16, Vec<u8>)]| {
                parts.iter().flat_map(|(kind, bytes)| attr(*kind, bytes)).collect::<Vec<u8>>()
            };
            let data: Vec<u8> = parts.iter().flat_map(|(kind, parts)| attr(*kind, &inner(parts))).collect();
            fuzz_ctnetlink(&[&[2, 0, 0, 0][..], &data].concat());
        }

        #[test]
        fn any_words(words in prop::collection::vec(WORD, 0..20)) {
            fuzz_conntrack_line(format!("ipv4 2 tcp 6 100 NONE {}", words.join(" ")).as_bytes());
        }
    }
}
