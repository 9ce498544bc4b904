//! The dump state machine on arbitrary bytes, for the fuzzer.
use super::*;

/// Reads bytes as the answer to a dump, in blocks of up to `block` bytes. For the fuzzer: it must neither panic nor
/// loop forever.
pub fn fuzz_dump(data: &[u8], block: usize) {
    let mut blocks = Pieces { chunks: data.chunks(block.max(1)) };
    let request = Request::dump(20);
    let each = |part: &AnswerMessage<'_>| {
        crate::attr::fuzz_attrs(part.payload);
        ControlFlow::Continue(())
    };
    let request = request.bytes().unwrap_or_default();
    let mut reading = DumpReader { what: "fuzzed bytes", request, seq: None, end: DumpEnd::default(), each };
    if let Err(error) = reading.run(&mut blocks) {
        assert!(!error.to_string().is_empty());
    }
}

struct Pieces<'d> {
    chunks: std::slice::Chunks<'d, u8>,
}

impl Blocks for Pieces<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        Ok(self.chunks.next())
    }
}
