//! Entry points of the fuzzer.

use crate::{FilterTarget, LinkType, NameFiles, Packet, PacketOrigin, compile, run};

/// Compiles any text for some link types, and runs the program on the same bytes. Neither may panic or hang.
pub fn fuzz_pcap_filter(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let names = NameFiles { services: "http 80/tcp\n", protocols: "tcp 6\n", ..NameFiles::default() };
    let origins = [PacketOrigin::Live { vlan_beside: true }, PacketOrigin::File { is_swapped: false }];
    for link in [LinkType::Ethernet, LinkType::Raw, LinkType::LinuxSll2] {
        for origin in origins {
            let target = FilterTarget { link, origin, snaplen: 262_144, netmask: Some(0xffff_ff00) };
            let Ok(filter) = compile(&text, &target, &names) else { continue };
            let packet = Packet { bytes: data, length: data.len() as u32, metadata: None };
            run(filter.rest.as_ref().unwrap_or(&filter.kernel), &packet, &mut |_| false);
        }
    }
}
