//! The expression of a run, and what tcpdump calls link types.

use super::switches::FilterText;
use capture::FilePacket;
use pcapfilter::{Filter, FilterTarget, LinkType, NameFiles, Origin, Packet, compile};

/// Bytes of a packet that tcpdump takes at most: what it says of files without a limit.
const SNAPLEN_MAX: u32 = 262_144;

/// Chooses packets of a file; without an expression all.
pub(super) struct FileFilter(Option<Filter>);

impl FileFilter {
    /// Compiles the expression for the file's link type; the error is libpcap's message.
    pub(super) fn new(text: &FilterText, link_type: u32, is_swapped: bool) -> Result<FileFilter, String> {
        let text = match text {
            FilterText::Words(words) => words.clone(),
            FilterText::File(path) => std::fs::read_to_string(path).map_err(|error| {
                format!("can't open {}: {error}", sys::escaped(path.as_os_str().as_encoded_bytes()))
            })?,
        };
        if text.trim().is_empty() {
            return Ok(FileFilter(None));
        }
        let link = LinkType::from_number(link_type)
            .ok_or_else(|| format!("filters are not there for link type {link_type}"))?;
        let target = FilterTarget { link, origin: Origin::File { is_swapped }, snaplen: SNAPLEN_MAX, netmask: None };
        let [services, protocols, networks, ethers, hosts] = ["services", "protocols", "networks", "ethers", "hosts"]
            .map(|name| {
                let bytes = std::fs::read(format!("/etc/{name}")).unwrap_or_default();
                String::from_utf8_lossy(&bytes).into_owned()
            });
        let names = NameFiles {
            services: &services,
            protocols: &protocols,
            networks: &networks,
            ethers: &ethers,
            hosts: &hosts,
        };
        compile(&text, &target, &names).map(|filter| FileFilter(Some(filter))).map_err(|error| error.message)
    }

    /// True if the packet passes.
    pub(super) fn takes(&self, packet: &FilePacket<'_>) -> bool {
        let Some(filter) = &self.0 else { return true };
        let seen = Packet { bytes: packet.bytes, length: packet.len, metadata: None };
        let passes = |program| pcapfilter::run(program, &seen, &mut |_| false) != 0;
        passes(&filter.kernel) && filter.rest.as_ref().is_none_or(passes)
    }
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

/// What the file says of its limit.
pub(super) fn shown_snaplen(snaplen: u32) -> u32 {
    if snaplen == 0 { SNAPLEN_MAX } else { snaplen.min(SNAPLEN_MAX) }
}
