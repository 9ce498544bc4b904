//! `-d`, `-dd`, `-ddd`: prints the program of a filter in tcpdump's format.

use super::Capture;
use super::filter::live_target;
use pcapfilter::{LinkType, Program};

/// Returns the kernel's program for Ethernet packets, and the part that netwren tests.
pub(super) fn program(capture: &Capture, form: u8) -> Result<String, String> {
    let Some(filter) = &capture.filter else {
        return Err("-d prints the program of a pcap-filter expression: netwren tests fields outside the kernel".into());
    };
    let compiled = filter.compile(&live_target(LinkType::Ethernet, capture.live_snaplen()))?;
    let text = |program: &Program| match form {
        1 => program.to_assembly(),
        2 => program.to_c(),
        _ => program.to_numbers(),
    };
    let mut printed = text(&compiled.kernel);
    if let (Some(rest), 1) = (&compiled.rest, form) {
        printed.push_str("packets that pass the kernel's program are then tested with\n");
        printed.push_str(&text(rest));
    }
    Ok(printed)
}
