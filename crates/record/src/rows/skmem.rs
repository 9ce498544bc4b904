//! Socket memory: INET_DIAG_SKMEMINFO, nine numbers (include/uapi/linux/sock_diag.h, `SK_MEMINFO_*`).

/// The nine numbers; `None` for those that an older kernel did not send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SkMem<'b>(&'b [u8]);

impl<'b> SkMem<'b> {
    /// Wraps the payload of INET_DIAG_SKMEMINFO or UNIX_DIAG_MEMINFO.
    pub fn new(bytes: &'b [u8]) -> SkMem<'b> {
        SkMem(bytes)
    }

    /// The number at `index` (0 rmem_alloc, 1 rcvbuf, 2 wmem_alloc, 3 sndbuf, 4 fwd_alloc, 5 wmem_queued, 6 optmem, 7
    /// backlog, 8 drops). All except the last are bytes.
    pub fn get(&self, index: usize) -> Option<u32> {
        self.0.get(index * 4..index * 4 + 4)?.try_into().ok().map(u32::from_ne_bytes)
    }
}
