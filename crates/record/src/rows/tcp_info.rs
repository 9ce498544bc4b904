//! `struct tcp_info` as the kernel sent it: a prefix of any length, decoded field by field.
//!
//! New kernels extend the struct. A field beyond the end is absent (`None`), not zero; bytes after the fields known
//! here are ignored. Layout: include/uapi/linux/tcp.h (6.18 sends 280 bytes).

/// A borrowed `tcp_info`. Reading a field is one bounds check and one load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo<'b>(&'b [u8]);

impl<'b> TcpInfo<'b> {
    /// Wraps the payload of INET_DIAG_INFO.
    pub fn new(bytes: &'b [u8]) -> TcpInfo<'b> {
        TcpInfo(bytes)
    }

    /// The bytes as sent.
    pub fn as_bytes(&self) -> &'b [u8] {
        self.0
    }

    pub(super) fn u8_at(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    pub(super) fn u16_at(&self, at: usize) -> Option<u16> {
        self.0.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
    }

    pub(super) fn u32_at(&self, at: usize) -> Option<u32> {
        self.0.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
    }

    pub(super) fn u64_at(&self, at: usize) -> Option<u64> {
        self.0.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
    }

    /// Window scale announced by the peer (`tcpi_snd_wscale`, low 4 bits of byte 6).
    pub fn snd_wscale(&self) -> Option<u8> {
        self.u8_at(6).map(|b| b & 0x0f)
    }

    /// Window scale announced by the local side (`tcpi_rcv_wscale`).
    pub fn rcv_wscale(&self) -> Option<u8> {
        self.u8_at(6).map(|b| b >> 4)
    }

    /// Whether the application limited the last delivery rate sample (bit 0 of byte 7).
    pub fn delivery_rate_app_limited(&self) -> Option<bool> {
        self.u8_at(7).map(|b| b & 1 != 0)
    }

    /// Why TCP Fast Open failed on the client (bits 1–2 of byte 7).
    pub fn fastopen_client_fail(&self) -> Option<u8> {
        self.u8_at(7).map(|b| b >> 1 & 3)
    }
}
