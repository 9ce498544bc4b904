//! The line of a packet, to which printers append text, and the state of the run.

use super::bytes::{Cut, Printed};
use super::names::PacketNames;
use super::options::TcpdumpOptions;
use super::pieces::{Put, Shown};
use super::protocol_names::protocol_name;
use super::sequences::Sequences;
use super::vendor_names::vendor_name;
use record::text;

/// Most packets within each other; deeper ones are not decoded, and the line ends like at the end of a packet.
///
/// Bound: levels of packets within packets in tcpdump's text (`tunnels::depth_is_bounded`). Beyond: the line ends as
/// for a truncated packet. By: any sender of packets.
pub(super) const DEPTH_MAX: u8 = 16;

/// The first header of a packet that is carried by a packet.
#[derive(Clone, Copy)]
pub(super) enum Inner {
    /// An Ethernet frame.
    Ethernet,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// The protocol of an EtherType.
    EtherType(u16),
}

/// Prints the packet within a packet; returns false if it is not decoded.
pub(super) type InnerPrinter = fn(&mut Line<'_>, Inner, &[u8], usize) -> Printed<bool>;

/// One packet's line while it is written.
pub(super) struct Line<'l> {
    /// The text so far, including earlier packets. Append only.
    pub(super) out: &'l mut Vec<u8>,
    /// The switches.
    pub(super) options: &'l TcpdumpOptions,
    /// The first sequence numbers of the connections seen.
    pub(super) sequences: &'l mut Sequences,
    /// Names instead of numbers; `None` with `-n`.
    pub(super) names: Option<&'l mut (dyn PacketNames + 'static)>,
    /// The protocol that is being printed, which `[|protocol]` names when the packet ends early.
    pub(super) protocol: &'static str,
    /// Number of packets around this one. Packets that are nested too deeply are not decoded.
    pub(super) depth: u8,
    /// Prints the contents of tunnels. A function pointer, because the modules of tunnels cannot refer to the modules
    /// that lead to them.
    pub(super) inner: InnerPrinter,
    /// Length of the link-layer header, which `-x` omits.
    pub(super) link_header: usize,
}

impl Line<'_> {
    /// Appends trusted text.
    #[inline]
    pub(super) fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Appends one trusted byte.
    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    /// Appends a number in decimal.
    #[inline]
    pub(super) fn dec(&mut self, n: impl Into<u64>) {
        text::put_u64(self.out, n.into());
    }

    /// Appends a length or a count in decimal.
    #[inline]
    pub(super) fn len(&mut self, n: usize) {
        text::put_u64(self.out, n as u64);
    }

    /// Appends words and a number.
    #[inline]
    pub(super) fn item(&mut self, words: &str, n: impl Into<u64>) {
        self.put(words);
        self.dec(n);
    }

    /// Appends a number in hexadecimal without leading zeros.
    #[inline]
    pub(super) fn hex(&mut self, n: impl Into<u64>) {
        text::put_hex(self.out, n.into());
    }

    /// Appends a number in hexadecimal with at least `digits` digits.
    pub(super) fn hex_padded(&mut self, n: impl Into<u64>, digits: u32) {
        let n = n.into();
        let needed = (67 - n.leading_zeros().min(63)) / 4;
        for _ in needed.max(1)..digits {
            self.byte(b'0');
        }
        self.hex(n);
    }

    /// Appends bytes in hexadecimal without separators.
    pub(super) fn hex_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hex_padded(*byte, 2);
        }
    }

    /// Appends an IPv4 address, or the name of its host.
    #[inline]
    pub(super) fn v4(&mut self, address: [u8; 4]) {
        if self.names.is_none() || !self.put_host_name(&address) {
            text::put_v4(self.out, address);
        }
    }

    /// Appends an IPv6 address, or the name of its host.
    #[inline]
    pub(super) fn v6(&mut self, address: [u8; 16]) {
        if self.names.is_none() || !self.put_host_name(&address) {
            text::put_v6(self.out, address);
        }
    }

    /// Appends the name of a host, with `-N` only its first label; returns false if it does not have a name.
    fn put_host_name(&mut self, address: &[u8]) -> bool {
        let Some(name) = self.names.as_mut().and_then(|names| names.host(address)) else { return false };
        let first = name.split(|byte| *byte == b'.').next().unwrap_or(name);
        Shown(if self.options.short_names { first } else { name }).put(self.out);
        true
    }

    /// Appends a port of TCP or UDP, or its name.
    #[inline]
    pub(super) fn port(&mut self, proto: u8, port: u16) {
        match self.names.as_mut().and_then(|names| names.port(proto, port)) {
            Some(name) => Shown(name).put(self.out),
            None => text::put_u64(self.out, port.into()),
        }
    }

    /// Appends a blank and the name of an IP protocol; its number with `-n` or without a name.
    pub(super) fn ip_protocol(&mut self, proto: u8) {
        match protocol_name(proto).filter(|_| self.names.is_some()) {
            Some(name) => {
                self.byte(b' ');
                self.put(name);
            }
            None => self.item(" ip-proto-", proto),
        }
    }

    /// Appends an Ethernet address, or its name; without `-n` also the organisation that assigned it.
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

    /// Appends bytes in the format of link-layer addresses: `02:00:00:00:00:01`.
    pub(super) fn mac(&mut self, address: &[u8]) {
        for (nth, byte) in address.iter().enumerate() {
            if nth > 0 {
                self.byte(b':');
            }
            self.hex_padded(*byte, 2);
        }
    }

    /// Appends text from outside. Bytes that are not printable ASCII become `^X`, `M-X` and `M-^X`, so that the text
    /// cannot control a terminal.
    pub(super) fn safe_text(&mut self, text: &[u8]) {
        Shown(text).put(self.out);
    }

    /// Appends the names of the flags that are set, separated by `between`; `none` if no flag is set.
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

    /// Returns how often `-v` was given.
    #[inline]
    pub(super) fn verbose(&self) -> u8 {
        self.options.verbose
    }

    /// Prints a packet within this one; returns false if it is not decoded.
    pub(super) fn inner(&mut self, kind: Inner, bytes: &[u8], length: usize) -> Printed<bool> {
        self.enter()?;
        (self.inner)(self, kind, bytes, length)
    }

    /// Counts a packet within this one; fails if there are too many.
    pub(super) fn enter(&mut self) -> Printed {
        if self.depth >= DEPTH_MAX {
            return Err(Cut);
        }
        self.depth += 1;
        Ok(())
    }

    /// Appends a blank and `[|protocol]`: the packet ends here.
    pub(super) fn cut(&mut self) {
        self.put(" [|");
        self.put(self.protocol);
        self.byte(b']');
    }

    /// Appends ` (invalid)`: a length or a version is impossible.
    pub(super) fn invalid(&mut self) {
        self.put(" (invalid)");
    }

    /// Runs a printer of a part that may be cut. If it is cut, appends `[|protocol]` and continues.
    #[allow(dead_code, reason = "for the application protocols")]
    pub(super) fn or_cut(&mut self, print: impl FnOnce(&mut Self) -> Printed) {
        if print(self).is_err() {
            self.cut();
        }
    }
}
