//! tcpdump's text: formats each packet as a line, byte for byte like tcpdump 4.99.
//!
//! The module does not handle files, interfaces, filters or the command line. Start reading at [`Tcpdump::print`],
//! then `link.rs`, `ethertype.rs`, `ip_proto.rs` and `ports.rs`, which lead from one protocol to the next; each
//! protocol has one file.
//!
//! Printers read with the functions of `bytes.rs`, which fail where the packet was cut. A printer of a cut packet
//! returns by `?`; the line so far stays and `[|protocol]` follows, like in tcpdump. Nothing is allocated for a
//! packet.

mod arp;
mod bytes;
mod checksum;
mod cooked;
mod dhcp;
mod dhcp6;
mod dns;
mod dump;
mod ethernet;
mod ethertype;
mod ethertype_names;
mod frame;
mod fuzz;
mod geneve;
mod gre;
mod http;
mod icmp;
mod icmp6;
mod igmp;
mod ip_proto;
mod ipsec;
mod ipv4;
mod ipv4_options;
mod ipv6;
mod ipv6_extensions;
mod line;
mod link;
mod llc;
mod lldp;
mod mptcp;
mod names;
mod network;
mod ntp;
mod options;
mod pieces;
mod ports;
mod protocol_names;
mod sctp;
mod sequences;
mod stamp;
mod stp;
mod tcp;
mod tcp_options;
mod udp;
mod undecoded;
mod vendor_names;
mod vxlan;

pub use frame::CapturedBytes;
pub use fuzz::{fuzz_tcpdump, fuzz_tcpdump_application, fuzz_tcpdump_frame, fuzz_tcpdump_protocol};
pub use names::PacketNames;
pub use options::{Dump, InterfaceName, PacketType, Stamp, TcpdumpOptions};

use line::Line;
use record::rows::LinkType;
use sequences::Sequences;
use stamp::Stamps;

/// Prints packets in tcpdump's format. Keeps the state that lines depend on: the first sequence numbers of connections
/// and the times of previous packets.
#[derive(Debug)]
pub struct Tcpdump {
    options: TcpdumpOptions,
    sequences: Sequences,
    stamps: Stamps,
    packets: u64,
    /// `None` with `-n`.
    names: Option<Box<dyn PacketNames>>,
}

impl Tcpdump {
    /// Returns a printer for one run, with numbers instead of names.
    pub fn new(options: TcpdumpOptions) -> Tcpdump {
        Tcpdump { options, sequences: Sequences::default(), stamps: Stamps::new(), packets: 0, names: None }
    }

    /// Returns the printer with the names that `names` knows, like without `-n`.
    #[must_use]
    pub fn named(self, names: Box<dyn PacketNames>) -> Tcpdump {
        Tcpdump { names: Some(names), ..self }
    }

    /// True if packets of this link type can be printed; tcpdump refuses the others.
    pub fn knows(link_type: LinkType) -> bool {
        link::knows(link_type)
    }

    /// Appends the line of a packet, and its line feed. `interface` returns the name of an interface by its number.
    ///
    /// Bytes of the packet that are not printable become `^X`, `M-X`.
    pub fn print(&mut self, frame: &CapturedBytes<'_>, interface: InterfaceName<'_>, out: &mut Vec<u8>) {
        self.packets += 1;
        if frame.bytes.is_empty() || frame.len == 0 || (frame.len as usize) < frame.bytes.len() {
            return put_impossible(out, frame);
        }
        if self.options.numbers {
            put_number(out, self.packets);
        }
        self.stamps.put(out, &self.options, frame);
        if let Some(names) = &mut self.names {
            names.begin_packet(frame.time_ns);
        }
        let mut line = Line {
            out,
            options: &self.options,
            sequences: &mut self.sequences,
            names: self.names.as_deref_mut(),
            protocol: "",
            depth: 0,
            inner: link::inner,
            link_header: 0,
        };
        if link::print(&mut line, frame, interface).is_err() {
            line.cut();
        }
        let link_header = line.link_header;
        let from = if self.options.dump_link_header { 0 } else { link_header };
        if let Some(bytes) = frame.bytes.get(from..).filter(|bytes| !bytes.is_empty()) {
            dump::put_dump(out, "\n\t", self.options.dump, bytes);
        }
        out.push(b'\n');
    }
}

/// Appends the number of a packet, five columns wide, and two blanks.
fn put_number(out: &mut Vec<u8>, number: u64) {
    for _ in record::text::u64_len(number)..5 {
        out.push(b' ');
    }
    record::text::put_u64(out, number);
    out.extend_from_slice(b"  ");
}

/// Appends the text for a record of a file with impossible lengths.
#[cold]
fn put_impossible(out: &mut Vec<u8>, frame: &CapturedBytes<'_>) {
    out.extend_from_slice(b"[Invalid header:");
    if frame.bytes.is_empty() {
        out.extend_from_slice(b" caplen==0");
    }
    if frame.len == 0 {
        out.extend_from_slice(if frame.bytes.is_empty() { b", len==0" } else { b" len==0" });
    } else if (frame.len as usize) < frame.bytes.len() {
        out.extend_from_slice(b" len(");
        record::text::put_u64(out, frame.len.into());
        out.extend_from_slice(b") < caplen(");
        record::text::put_u64(out, frame.bytes.len() as u64);
        out.push(b')');
    }
    out.extend_from_slice(b"]\n");
}
