//! The line that a packet becomes: what its printers append to and what they know of the run.

use super::bytes::{Cut, Printed};
use super::options::TcpdumpOptions;
use super::sequences::Sequences;
use record::text;

/// Packets within packets beyond these are not decoded: the line ends as if the packet did.
pub(super) const DEPTH_MAX: u8 = 16;

/// A packet that is carried by another one, by what it begins with.
#[derive(Clone, Copy)]
pub(super) enum Inner {
    /// An Ethernet frame.
    Ethernet,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// What an EtherType says.
    EtherType(u16),
}

/// Prints what another packet carries; false if it is not decoded.
pub(super) type InnerPrinter = fn(&mut Line<'_>, Inner, &[u8], usize) -> Printed<bool>;

/// One packet's line while it is written.
pub(super) struct Line<'l> {
    /// What was written so far, of earlier packets too. Append only.
    pub(super) out: &'l mut Vec<u8>,
    /// The switches.
    pub(super) options: &'l TcpdumpOptions,
    /// The first sequence numbers of the connections seen.
    pub(super) sequences: &'l mut Sequences,
    /// The protocol that is being printed: what `[|protocol]` names when the packet ends early.
    pub(super) protocol: &'static str,
    /// Packets within this one: what is nested too deeply is not decoded.
    pub(super) depth: u8,
    /// Prints what tunnels carry: their files cannot name the printers that lead to them.
    pub(super) inner: InnerPrinter,
    /// Bytes of the link-layer header, which `-x` leaves out.
    pub(super) link_header: usize,
}

impl Line<'_> {
    /// Text of ours.
    #[inline]
    pub(super) fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// One byte of ours.
    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    /// A number in decimal.
    #[inline]
    pub(super) fn dec(&mut self, n: impl Into<u64>) {
        text::put_u64(self.out, n.into());
    }

    /// A length or a count in decimal.
    #[inline]
    pub(super) fn len(&mut self, n: usize) {
        text::put_u64(self.out, n as u64);
    }

    /// Words and a number behind them.
    #[inline]
    pub(super) fn item(&mut self, words: &str, n: impl Into<u64>) {
        self.put(words);
        self.dec(n);
    }

    /// A number in hexadecimal without leading zeros.
    #[inline]
    pub(super) fn hex(&mut self, n: impl Into<u64>) {
        text::put_hex(self.out, n.into());
    }

    /// A number in hexadecimal of at least `digits` digits.
    pub(super) fn hex_padded(&mut self, n: impl Into<u64>, digits: u32) {
        let n = n.into();
        let needed = (67 - n.leading_zeros().min(63)) / 4;
        for _ in needed.max(1)..digits {
            self.byte(b'0');
        }
        self.hex(n);
    }

    /// Bytes in hexadecimal, nothing between them.
    pub(super) fn hex_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hex_padded(*byte, 2);
        }
    }

    /// An IPv4 address.
    #[inline]
    pub(super) fn v4(&mut self, address: [u8; 4]) {
        text::put_v4(self.out, address);
    }

    /// An IPv6 address.
    #[inline]
    pub(super) fn v6(&mut self, address: [u8; 16]) {
        text::put_v6(self.out, address);
    }

    /// Bytes as link-layer addresses are written: `02:00:00:00:00:01`.
    pub(super) fn mac(&mut self, address: &[u8]) {
        for (nth, byte) in address.iter().enumerate() {
            if nth > 0 {
                self.byte(b':');
            }
            self.hex_padded(*byte, 2);
        }
    }

    /// Text of a packet: what is not printable ASCII stands as `^X`, `M-X` and `M-^X`, so that it cannot talk to a
    /// terminal.
    pub(super) fn safe_text(&mut self, text: &[u8]) {
        for &byte in text {
            self.safe_byte(byte);
        }
    }

    /// One byte of a packet's text.
    pub(super) fn safe_byte(&mut self, byte: u8) {
        let low = byte & 0x7f;
        if byte >= 0x80 {
            self.put("M-");
        }
        if (0x20..0x7f).contains(&low) {
            self.byte(low);
        } else {
            self.byte(b'^');
            self.byte(low ^ 0x40);
        }
    }

    /// The names of the flags that are set, `between` between them; `none` if none is.
    pub(super) fn flags(&mut self, names: &[(u32, &str)], none: &str, between: &str, flags: u32) {
        let mut first = true;
        for (bit, name) in names {
            if flags & bit == *bit {
                if !first {
                    self.put(between);
                }
                self.put(name);
                first = false;
            }
        }
        if first {
            self.put(none);
        }
    }

    /// How often `-v` was given.
    #[inline]
    pub(super) fn verbose(&self) -> u8 {
        self.options.verbose
    }

    /// Prints a packet that this one carries; false if it is not decoded.
    pub(super) fn inner(&mut self, kind: Inner, bytes: &[u8], length: usize) -> Printed<bool> {
        self.enter()?;
        (self.inner)(self, kind, bytes, length)
    }

    /// Counts a packet within this one; fails where there are too many.
    pub(super) fn enter(&mut self) -> Printed {
        if self.depth >= DEPTH_MAX {
            return Err(Cut);
        }
        self.depth += 1;
        Ok(())
    }

    /// `[|protocol]`, behind a blank: the packet ends here.
    pub(super) fn cut(&mut self) {
        self.put(" [|");
        self.put(self.protocol);
        self.byte(b']');
    }

    /// ` (invalid)`: what a length or a version says cannot be.
    pub(super) fn invalid(&mut self) {
        self.put(" (invalid)");
    }

    /// Prints what may be cut, says `[|protocol]` if it is, and goes on.
    #[allow(dead_code, reason = "for the application protocols")]
    pub(super) fn or_cut(&mut self, print: impl FnOnce(&mut Self) -> Printed) {
        if print(self).is_err() {
            self.cut();
        }
    }
}
