//! Compiles the filter expression for a file or an interface, and names link types like tcpdump.

use super::switches::{FilterText, TcpdumpRun};
use capture::SNAPLEN_MAX;
use pcapfilter::{Filter, FilterTarget, LinkType, Packet, PacketOrigin, compile};
use std::path::Path;
use sys::packet_ring::Instruction;

/// Selects packets; without an expression, all of them.
pub(super) struct PacketFilter(pub(super) Option<Filter>);

impl PacketFilter {
    /// Compiles the run's expression for the link type; the error is libpcap's message. `netmask` is the interface's
    /// mask, or 0 if it is unknown: `ip broadcast` then matches only 0.0.0.0 and 255.255.255.255.
    pub(super) fn new(
        run: &TcpdumpRun,
        link_type: u32,
        origin: PacketOrigin,
        snaplen: u32,
        netmask: u32,
    ) -> Result<PacketFilter, String> {
        let text = match &run.filter {
            FilterText::Words(words) => words.clone(),
            FilterText::File(path) => read(path)?,
        };
        if text.trim().is_empty() {
            return Ok(PacketFilter(None));
        }
        let link = LinkType::from_number(link_type)
            .ok_or_else(|| format!("filters are not supported for link type {link_type}"))?;
        let target = FilterTarget { link, origin, snaplen, netmask: Some(netmask) };
        let compiled = compile(&text, &target, &run.filter_names);
        compiled.map(|filter| PacketFilter(Some(filter))).map_err(|error| error.message)
    }

    /// The program for the kernel; None without an expression.
    pub(super) fn instructions(&self) -> Option<Vec<Instruction>> {
        let one = |one: &pcapfilter::Instruction| Instruction {
            code: one.code,
            jump_true: one.jt,
            jump_false: one.jf,
            k: one.k,
        };
        self.0.as_ref().map(|filter| filter.kernel.instructions.iter().map(one).collect())
    }

    /// True if the packet passes. The kernel may already have tested it.
    pub(super) fn takes(&self, packet: &Packet<'_>) -> bool {
        let Some(filter) = &self.0 else { return true };
        let passes = |program| pcapfilter::run(program, packet, &mut |_| false) != 0;
        passes(&filter.kernel) && filter.rest.as_ref().is_none_or(passes)
    }
}

/// Larger than any expression file: a valid expression has at most 64 KiB.
///
/// Bound: bytes of the file of `tcpdump -F`. Beyond: the file is refused. By: the author of the file.
const FILE_MAX: u64 = 1 << 20;

/// Reads the expression from the file given with `-F`.
fn read(path: &Path) -> Result<String, String> {
    let shown = sys::escape_bytes(path.as_os_str().as_encoded_bytes());
    let text = sys::infile::read(path, FILE_MAX);
    let text = text.map_err(|error| format!("can't open {shown}: {}", crate::strerror::strerror(&error)))?;
    String::from_utf8(text).map_err(|_| format!("can't open {shown}: it is not UTF-8 text"))
}

/// Name and description of a link type: `EN10MB (Ethernet)`.
pub(super) fn link_words(number: u32) -> String {
    let name = LinkType::from_number(number).map_or("", LinkType::name);
    match number {
        0 => format!("{name} (BSD loopback)"),
        1 => format!("{name} (Ethernet)"),
        12 | 14 | 101 => "RAW (Raw IP)".to_owned(),
        108 => format!("{name} (OpenBSD loopback)"),
        113 => format!("{name} (Linux cooked v1)"),
        228 => format!("{name} (Raw IPv4)"),
        229 => format!("{name} (Raw IPv6)"),
        276 => format!("{name} (Linux cooked v2)"),
        _ => number.to_string(),
    }
}

/// The snapshot length that is printed for a file.
pub(super) fn shown_snaplen(snaplen: u32) -> u32 {
    if snaplen == 0 { SNAPLEN_MAX } else { snaplen.min(SNAPLEN_MAX) }
}
