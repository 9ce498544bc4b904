//! The line of a packet, to which printers append text, and the state of the run.

use super::bytes::{Cut, Printed};
use super::names::PacketNames;
use super::options::TcpdumpOptions;
use super::pieces::{LineBuffer, Mac, PacketText, Put, put};
use super::protocol_names::protocol_name;
use super::sequences::Sequences;
use super::vendor_names::vendor_name;
use record::{Addr, text};

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

impl LineBuffer for Line<'_> {
    #[inline]
    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    #[inline]
    fn decimal(&mut self, number: u64) {
        text::put_u64(self.out, number);
    }

    #[inline]
    fn addr(&mut self, addr: Addr) {
        text::put_addr(self.out, addr);
    }

    #[inline]
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.out
    }
}

/// An address, or the name of its host.
pub(super) struct Host(pub(super) Addr);
/// An IPv4 address, or the name of its host.
pub(super) struct Host4(pub(super) [u8; 4]);
/// An IPv6 address, or the name of its host.
pub(super) struct Host6(pub(super) [u8; 16]);
/// A port of TCP (6) or UDP (17), or its name.
pub(super) struct Port(pub(super) u8, pub(super) u16);
/// An Ethernet address, or its name; without `-n` also the organisation that assigned it.
pub(super) struct Ethernet<'a>(pub(super) &'a [u8]);

impl Put<Line<'_>> for Host {
    #[inline]
    fn put(&self, line: &mut Line<'_>) {
        match self.0 {
            Addr::V4(address) => Host4(address).put(line),
            Addr::V6(address) => Host6(address).put(line),
        }
    }
}

impl Put<Line<'_>> for Host4 {
    #[inline]
    fn put(&self, line: &mut Line<'_>) {
        if line.names.is_none() || !line.put_host_name(&self.0) {
            text::put_v4(line.out, self.0);
        }
    }
}

impl Put<Line<'_>> for Host6 {
    #[inline]
    fn put(&self, line: &mut Line<'_>) {
        if line.names.is_none() || !line.put_host_name(&self.0) {
            text::put_v6(line.out, self.0);
        }
    }
}

impl Put<Line<'_>> for Port {
    #[inline]
    fn put(&self, line: &mut Line<'_>) {
        match line.names.as_mut().and_then(|names| names.port(self.0, self.1)) {
            Some(name) => PacketText(name).put(line.out),
            None => text::put_u64(line.out, self.1.into()),
        }
    }
}

impl Put<Line<'_>> for Ethernet<'_> {
    fn put(&self, line: &mut Line<'_>) {
        let Ethernet(address) = *self;
        let (Some(names), Ok(six)) = (&mut line.names, <[u8; 6]>::try_from(address)) else {
            return Mac(address).put(line);
        };
        if let Some(name) = names.ethernet(six) {
            return PacketText(name).put(line.out);
        }
        if six == [0xff; 6] {
            return put!(line, "Broadcast");
        }
        let [a, b, c, ..] = six;
        put!(line, Mac(address), " (oui ", vendor_name(u32::from_be_bytes([0, a, b, c])), ")");
    }
}

impl Line<'_> {
    /// Appends the name of a host, with `-N` only its first label; returns false if it does not have a name.
    fn put_host_name(&mut self, address: &[u8]) -> bool {
        let Some(name) = self.names.as_mut().and_then(|names| names.host(address)) else { return false };
        let first = name.split(|byte| *byte == b'.').next().unwrap_or(name);
        PacketText(if self.options.short_names { first } else { name }).put(self.out);
        true
    }

    /// Appends a blank and the name of an IP protocol; its number with `-n` or without a name.
    pub(super) fn ip_protocol(&mut self, proto: u8) {
        match protocol_name(proto).filter(|_| self.names.is_some()) {
            Some(name) => put!(self, " ", name),
            None => put!(self, " ip-proto-", proto),
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
        put!(self, " [|", self.protocol, "]");
    }

    /// Like [`Line::cut`], as the last step of a printer.
    pub(super) fn end_cut(&mut self) -> Printed {
        self.cut();
        Ok(())
    }

    /// Runs a printer of a part that may be cut. If it is cut, appends `[|protocol]` and continues.
    pub(super) fn or_cut(&mut self, print: impl FnOnce(&mut Self) -> Printed) {
        if print(self).is_err() {
            self.cut();
        }
    }
}
