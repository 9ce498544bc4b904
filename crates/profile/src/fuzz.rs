//! Targets for the fuzzer: any bytes as blocks of a recording.
use crate::path::StageBlock;
use crate::softirq::{ClassifiedBlock, SampleBlock};

/// Decodes `data` as samples and reads every row.
pub fn fuzz_samples(data: &[u8]) {
    let Ok(block) = SampleBlock::decode(data) else { return };
    let judged = ClassifiedBlock::new(&block);
    judged.groups(true, |row| {
        std::hint::black_box((row.percent, row.function.len()));
        true
    });
    judged.chains(|row| {
        std::hint::black_box(row.stack.len());
        true
    });
}

/// Decodes `data` as stages.
pub fn fuzz_stages(data: &[u8]) {
    if let Ok(block) = StageBlock::decode(data) {
        std::hint::black_box(block.rows.len());
    }
}
