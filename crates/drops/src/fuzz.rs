//! Fuzz targets: any bytes as a reading or as the kernel's trace, any text as the kernel's symbols.
use crate::block::DropReading;
use crate::event_block::EventDecoder;
use crate::symbols::Search;

/// Decodes `data` as a reading and reads every row.
pub fn fuzz_block(data: &[u8]) {
    if let Ok(reading) = DropReading::decode(data) {
        reading.each(|row, _| {
            std::hint::black_box((row.place.len(), row.stack.len(), row.meaning.len()));
            true
        });
    }
}

/// Looks up addresses in `data` as lines of /proc/kallsyms.
pub fn fuzz_symbols(data: &[u8]) {
    let mut search = Search::new(vec![1, 0x1000, u64::MAX]);
    data.split(|byte| *byte == b'\n').for_each(|line| search.line(line));
    search.finish(|address, begin, name| {
        std::hint::black_box((address, begin, name.len()));
    });
}

/// Decodes `data` as a block of single drops and reads every row.
pub fn fuzz_events(data: &[u8]) {
    let _ = EventDecoder::default().decode(data, |row, _| {
        std::hint::black_box((row.packet.place.len(), row.packet.stack.len(), row.packet.meaning.len()));
        true
    });
}

/// Decodes `data` as each of the drop monitor's messages.
pub fn fuzz_net_dm(data: &[u8]) {
    crate::net_dm::fuzz(data);
}

/// Reads `data` as a page of the kernel's trace, and as the format of its events.
pub fn fuzz_trace(data: &[u8]) {
    crate::trace::fuzz(data);
}
