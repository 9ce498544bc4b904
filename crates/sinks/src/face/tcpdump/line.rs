//! The line that a packet becomes: what its printers append to and what they know of the run.

use super::bytes::{Cut, Printed};
use super::names::PacketNames;
use super::options::TcpdumpOptions;
use super::pieces::{Put, Shown};
use super::protocol_names::protocol_name;
use super::sequences::Sequences;
use super::vendor_names::vendor_name;
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
    /// Names in the place of numbers; `None` with `-n`.
    pub(super) names: Option<&'l mut (dyn PacketNames + 'static)>,
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

    /// An IPv4 address, or the name of its host.
    #[inline]
    pub(super) fn v4(&mut self, address: [u8; 4]) {
        if self.names.is_none() || !self.put_host_name(&address) {
            text::put_v4(self.out, address);
        }
    }

    /// An IPv6 address, or the name of its host.
    #[inline]
    pub(super) fn v6(&mut self, address: [u8; 16]) {
        if self.names.is_none() || !self.put_host_name(&address) {
            text::put_v6(self.out, address);
        }
    }

    /// The name of a host, with `-N` only its first label; false if it has none.
    fn put_host_name(&mut self, address: &[u8]) -> bool {
        let Some(name) = self.names.as_mut().and_then(|names| names.host(address)) else { return false };
        let first = name.split(|byte| *byte == b'.').next().unwrap_or(name);
        Shown(if self.options.short_names { first } else { name }).put(self.out);
        true
    }

    /// A port of TCP or UDP, or its name.
    #[inline]
    pub(super) fn port(&mut self, proto: u8, port: u16) {
        match self.names.as_mut().and_then(|names| names.port(proto, port)) {
            Some(name) => Shown(name).put(self.out),
            None => text::put_u64(self.out, port.into()),
        }
    }

    /// The name of an IP protocol behind a blank, its number with `-n` or without a name.
    pub(super) fn ip_protocol(&mut self, proto: u8) {
        match protocol_name(proto).filter(|_| self.names.is_some()) {
            Some(name) => {
                self.byte(b' ');
                self.put(name);
            }
            None => self.item(" ip-proto-", proto),
        }
    }

    /// An Ethernet address, or its name; without `-n` the organisation that gave it follows.
    pub(super) fn ethernet(&mut self, address: &[u8]) {
        let (Some(names), Ok(six)) = (&mut self.names, <[u8; 6]>::try_from(address)) else { return self.mac(address) };
        if let Some(name) = names.ethernet(six) {
            return Shown(name).put(self.out);
        }
        if six == [0xff; 6] {
            return self.put("Broadcast");
        }
        self.mac(address);
        self.put(" (oui ");
        let [a, b, c, ..] = six;
        self.put(vendor_name(u32::from_be_bytes([0, a, b, c])));
        self.byte(b')');
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
        Shown(text).put(self.out);
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
