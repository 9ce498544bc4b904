//! An interface described in a file.

use super::options::{BlockOptions, Order};
use super::resolution::Resolution;

/// Bound: bytes of an interface name in a file. Beyond: the name is cut. By: the author of the file.
const NAME_MAX: usize = 256;
/// Options of an interface (draft-ietf-opsawg-pcapng).
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
/// Snapshot lengths that stand for whole packets: 0 (unlimited), and libpcap's default.
const USUAL_SNAPLENS: [u32; 2] = [0, 256 << 10];

/// An interface described in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileIface {
    /// Its name; empty if the file does not contain it, as always in pcap.
    pub name: Box<[u8]>,
    /// `LINKTYPE_…`
    pub link_type: u32,
    /// Maximum number of captured bytes per packet; 0 for all.
    pub snaplen: u32,
    /// The upper bits of the link type field in a pcap header: the length of the frame check sequence. `None` in
    /// pcapng.
    pub pcap_bits: Option<u32>,
    /// True if the description has more than name, link type and times: a snapshot length, an address, a filter …
    pub has_more: bool,
    /// The unit of its time stamps.
    pub(super) resolution: Resolution,
}

impl FileIface {
    /// Decodes the body of an interface description block; `None` if it is incomplete.
    pub(super) fn of_block(body: &[u8], read: Order) -> Option<FileIface> {
        let mut iface = FileIface {
            name: Box::default(),
            link_type: read.u16(body, 0)?.into(),
            snaplen: read.u32(body, 4)?,
            pcap_bits: None,
            has_more: false,
            resolution: Resolution::MICROSECONDS,
        };
        iface.has_more = !USUAL_SNAPLENS.contains(&iface.snaplen);
        let mut offset_s = 0;
        for (code, value) in BlockOptions::new(body.get(8..).unwrap_or_default(), read) {
            match code {
                IF_NAME => {
                    // Some writers end the name with a zero byte.
                    let name = value.split(|byte| *byte == 0).next().unwrap_or_default();
                    iface.name = name.get(..NAME_MAX).unwrap_or(name).into();
                }
                IF_TSRESOL => iface.resolution = value.first().map_or(iface.resolution, |byte| Resolution::of(*byte)),
                IF_TSOFFSET => offset_s = read.u64(value, 0).map_or(0, |offset| offset as i64),
                _ => iface.has_more = true,
            }
        }
        iface.resolution.offset_s = offset_s;
        Some(iface)
    }
}
