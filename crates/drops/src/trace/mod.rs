//! Reads drops from the kernel's own trace (tracefs), if BPF is unavailable. Knows nothing of rows.

mod format;
mod instance;
mod page;

pub(crate) use instance::{TraceInstance, is_there};
pub(crate) use page::TracedDrop;

/// Reads any bytes as a page of the trace, for the fuzzer.
pub(crate) fn fuzz(data: &[u8]) {
    let mut drops = 0_u64;
    let format =
        format::TraceFormat { id: 7, location: 16, protocol: 32, reason: Some(36), ..format::TraceFormat::default() };
    page::read(data, &format, &mut |drop| drops = drops.wrapping_add(drop.place));
    std::hint::black_box((drops, std::str::from_utf8(data).ok().and_then(format::parse)));
}
