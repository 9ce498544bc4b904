//! A packet file that was read: its summary, and the row made from it.

use capture::{FileError, FileFormat, FileSummary, IfaceCounts, IfaceSummary, UnreadFile};
use record::rows::{CaptureFile, CaptureFileIface};
use std::path::Path;

/// A packet file that was read.
pub struct ReadFile {
    /// Its name.
    pub(super) name: Vec<u8>,
    /// `None` if it could not be opened.
    pub(super) format: Option<FileFormat>,
    /// What was read, up to the first error.
    pub summary: FileSummary,
    link_types: Vec<String>,
    ifaces: Vec<CaptureFileIface>,
    dropped: IfaceCounts,
    broken: String,
}

impl ReadFile {
    /// Reads the file to its end, or to the first error; calls `tick` now and then.
    pub fn read(path: &Path, opened: Result<UnreadFile, FileError>, tick: &dyn Fn()) -> ReadFile {
        let summary = match opened.and_then(UnreadFile::read) {
            Ok(mut file) => FileSummary::read(&mut file, &|| {
                tick();
                false
            }),
            Err(fault) => FileSummary { fault: Some(fault), ..FileSummary::default() },
        };
        let all = || summary.ifaces.iter().chain(&summary.others);
        let mut link_types: Vec<String> = Vec::new();
        let mut dropped = IfaceCounts::default();
        for iface in all() {
            let words = link_type_words(iface.link_type);
            if !link_types.contains(&words) {
                link_types.push(words);
            }
            dropped.add(&iface.counts);
        }
        ReadFile {
            name: path.as_os_str().as_encoded_bytes().to_vec(),
            format: summary.format,
            ifaces: all().map(iface_of).collect(),
            broken: summary.fault.as_ref().map_or_else(String::new, |fault| fault.fault.to_string()),
            link_types,
            dropped,
            summary,
        }
    }

    /// The row of the file; None if it could not be opened.
    pub fn row(&self) -> Option<CaptureFile<'_>> {
        let summary = &self.summary;
        Some(CaptureFile {
            file: &self.name,
            format: format_word(self.format?),
            packed: summary.is_packed,
            file_bytes: summary.file_bytes,
            sections: summary.sections,
            link_types: &self.link_types,
            packets: summary.packets,
            bytes: summary.bytes,
            captured_bytes: summary.captured_bytes,
            times_ns: summary.times_ns,
            cut: summary.cut,
            untimed: summary.untimed,
            backwards: summary.backwards,
            backwards_max_ns: summary.backwards_max_ns,
            lengths: summary.lengths,
            commented: summary.commented,
            dropped_by_iface: self.dropped.dropped_by_iface,
            dropped_by_system: self.dropped.dropped_by_system,
            ifaces: &self.ifaces,
            broken: self.broken.as_bytes(),
            broken_offset: summary.fault.as_ref().map(|fault| fault.offset),
        })
    }
}

fn iface_of(iface: &IfaceSummary) -> CaptureFileIface {
    let counts = &iface.counts;
    CaptureFileIface {
        iface: iface.name.clone(),
        link_type: link_type_words(iface.link_type),
        snaplen: iface.snaplen,
        packets: iface.packets,
        bytes: iface.bytes,
        counts: [counts.received, counts.dropped_by_iface, counts.accepted, counts.dropped_by_system],
    }
}

pub(super) fn format_word(format: FileFormat) -> &'static str {
    match format {
        FileFormat::Pcap => "pcap",
        FileFormat::Pcapng => "pcapng",
    }
}

/// Words for a link type.
pub(super) fn link_type_words(number: u32) -> String {
    pcapfilter::LinkType::from_number(number).map_or_else(|| format!("link type {number}"), |known| known.to_string())
}
