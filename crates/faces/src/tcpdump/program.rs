//! `-d`, `-dd`, `-ddd`: prints the program for the expression instead of packets.

use super::filter::PacketFilter;
use super::live::{self, broadcast_mask, own_network};
use super::switches::TcpdumpRun;
use super::{FileOfRun, say};
use pcapfilter::{LinkType, PacketOrigin, Program};

/// The text of the program, for the file, the interface, or Ethernet.
pub(super) fn print(run: &TcpdumpRun) -> Result<String, String> {
    let (link, origin, netmask) = if let Some(path) = run.files()?.next() {
        let file = FileOfRun::open(&path)?;
        file.say_begin(true);
        (file.link_type, PacketOrigin::File { is_swapped: file.file.is_swapped() }, 0)
    } else if run.live.iface.is_some() {
        let (device, name) = live::device(run)?;
        let mask = broadcast_mask(run, own_network(run, &device, &name)?);
        (live::link_type(run, &device)?.0.into(), PacketOrigin::Live { vlan_beside: true }, mask)
    } else {
        if run.rare.link.is_none() {
            say("Warning: assuming Ethernet");
        }
        (run.rare.link.unwrap_or(LinkType::Ethernet).number(), PacketOrigin::File { is_swapped: false }, 0)
    };
    let filter = PacketFilter::new(run, link, origin, run.live.snaplen, netmask)?;
    let Some(filter) = filter.0 else {
        let all = pcapfilter::Instruction { code: 0x06, jt: 0, jf: 0, k: run.live.snaplen };
        return Ok(text(run.rare.program_form, &Program { instructions: vec![all] }));
    };
    let mut printed = text(run.rare.program_form, &filter.kernel);
    if let (Some(rest), 1) = (&filter.rest, run.rare.program_form) {
        printed.push_str("packets that pass the kernel's program are then tested with\n");
        printed.push_str(&text(1, rest));
    }
    Ok(printed)
}

fn text(form: u8, program: &Program) -> String {
    match form {
        1 => program.to_assembly(),
        2 => program.to_c(),
        _ => program.to_numbers(),
    }
}
