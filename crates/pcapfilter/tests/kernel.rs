//! The kernel accepts our programs, and long lists stay small and fast.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use pcapfilter::{
    Filter, FilterTarget, INSTRUCTIONS_MAX, LinkType, NameFiles, Packet, PacketOrigin, Program, compile, run,
};
use std::time::{Duration, Instant};

fn filter(expression: &str, origin: PacketOrigin) -> Filter {
    let names = NameFiles {
        services: "http 80/tcp\nhttps 443/tcp\nssh 22/tcp\ndomain 53/udp\ndomain 53/tcp\n",
        protocols: "tcp 6\nudp 17\nicmp 1\n",
        ..NameFiles::default()
    };
    let target = FilterTarget { link: LinkType::Ethernet, origin, snaplen: 262_144, netmask: Some(0xffff_ff00) };
    compile(expression, &target, &names).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

const LIVE: PacketOrigin = PacketOrigin::Live { vlan_beside: true };

/// Attaches the program to an unused socket, so that the kernel checks it.
fn attach(program: &Program) -> Result<(), String> {
    let instructions = program.instructions.iter();
    let words: Vec<_> = instructions.map(|one| (one.code, one.jt, one.jf, one.k)).collect();
    testkit::try_filter(&words).map_err(|error| error.to_string())
}

#[test]
fn the_kernel_takes_every_program() {
    for expression in include_str!("expressions.txt").lines() {
        // Some expressions of the list are refused.
        let target = FilterTarget { link: LinkType::Ethernet, origin: LIVE, snaplen: 96, netmask: Some(0xff) };
        let names = NameFiles { services: "http 80/tcp\n", protocols: "tcp 6\n", ..NameFiles::default() };
        let Ok(filter) = compile(expression, &target, &names) else { continue };
        if let Err(error) = attach(&filter.kernel) {
            panic!("{expression}: {error}\n{}", filter.kernel.to_assembly());
        }
    }
}

fn address(number: u32) -> [u8; 4] {
    // Spread, so that neighbours do not form one range.
    (number.wrapping_mul(2_654_435_761) | 0x0100_0000).to_be_bytes()
}

fn text(address: [u8; 4]) -> String {
    std::net::Ipv4Addr::from(address).to_string()
}

fn ipv4_packet(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0; 60];
    packet[12] = 8;
    packet[14] = 0x45;
    packet[23] = 17;
    packet[26..30].copy_from_slice(&source);
    packet[30..34].copy_from_slice(&destination);
    packet
}

fn passes(filter: &Filter, bytes: &[u8]) -> bool {
    run(&filter.kernel, &Packet { bytes, length: bytes.len() as u32, metadata: None }, &mut |_| false) != 0
}

#[test]
fn a_thousand_hosts() {
    let hosts: Vec<String> = (0..1_000).map(|number| text(address(number))).collect();
    for origin in [LIVE, PacketOrigin::File { is_swapped: false }] {
        for expression in [
            format!("host {}", hosts.join(" or ")),
            format!("host {}", hosts.join(" or host ")),
            format!("tcp or udp and (src host {})", hosts.join(" or ")),
            format!("not (ip host {}) and not arp", hosts.join(" or ")),
        ] {
            let start = Instant::now();
            let filter = filter(&expression, origin);
            // The optimised build takes 50 ms (examples/compile.rs); this limit is for a busy machine and an
            // unoptimised build.
            assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
            assert!(filter.kernel.instructions.len() < INSTRUCTIONS_MAX);
            attach(&filter.kernel).unwrap();
        }
    }
    let filter = filter(&format!("host {}", hosts.join(" or ")), PacketOrigin::File { is_swapped: false });
    for number in (0..1_000).step_by(7) {
        assert!(passes(&filter, &ipv4_packet(address(number), [9, 9, 9, 9])));
        assert!(passes(&filter, &ipv4_packet([9, 9, 9, 9], address(number))));
        assert!(!passes(&filter, &ipv4_packet(address(number + 2_000), address(number + 3_000))));
        let mut arp = ipv4_packet([0; 4], [0; 4]);
        arp[12..14].copy_from_slice(&[8, 6]);
        arp[38..42].copy_from_slice(&address(number));
        assert!(passes(&filter, &arp));
    }
}

#[test]
fn a_thousand_of_other_things() {
    let join = |of: &dyn Fn(u32) -> String| (0..1_000).map(of).collect::<Vec<_>>().join(" or ");
    let prefix = |number: u32| number.wrapping_mul(2_654_435_761) & 0xffff_ff00 | 0x0100_0000;
    let net = |number: u32| format!("{}/24", std::net::Ipv4Addr::from(prefix(number)));
    for expression in [
        format!("port {}", join(&|number| (number * 61 + 3).to_string())),
        format!("net {}", join(&net)),
        format!("host {}", join(&|number| format!("2001:db8::{:x}:{number:x}", number * 7))),
    ] {
        let filter = filter(&expression, LIVE);
        attach(&filter.kernel)
            .unwrap_or_else(|error| panic!("{} instructions: {error}", filter.kernel.instructions.len()));
    }
    let ports = filter(&format!("tcp port {}", join(&|number| (number * 61 + 3).to_string())), LIVE);
    let mut packet = ipv4_packet([1; 4], [2; 4]);
    packet[23] = 6;
    for number in 0..3_000_u16 {
        packet[34..36].copy_from_slice(&number.to_be_bytes());
        assert_eq!(passes(&ports, &packet), number >= 3 && (number - 3) % 61 == 0, "{number}");
    }
}

#[test]
fn what_the_kernel_would_refuse_is_refused() {
    // Hosts whose halves all differ, so nothing can be shared.
    let host = |number: u64| {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("2001:{:x}:{:x}:{:x}::{number:x}", mixed & 0xffff, mixed >> 16 & 0xffff, mixed >> 32 & 0xffff)
    };
    let hosts = (0..2_500).map(host).collect::<Vec<_>>().join(" or ");
    let target = FilterTarget { link: LinkType::Ethernet, origin: LIVE, snaplen: 96, netmask: None };
    let error = compile(&format!("host {hosts}"), &target, &NameFiles::default()).unwrap_err();
    assert!(error.message.contains("instructions") || error.message.contains("longer than"), "{error}");
}

#[test]
fn printed_as_tcpdump_prints() {
    let filter = filter("tcp port 80 and ip[8] > 64", PacketOrigin::Live { vlan_beside: false });
    let numbers = filter.kernel.to_numbers();
    assert_eq!(Program::from_numbers(&numbers), Some(filter.kernel.clone()));
    assert_eq!(filter.kernel.to_c().lines().count() + 1, numbers.lines().count());
    let names = NameFiles::default();
    let target = FilterTarget { link: LinkType::Ethernet, origin: LIVE, snaplen: 262_144, netmask: None };
    let arp = compile("arp", &target, &names).unwrap().kernel;
    assert_eq!(
        arp.to_assembly(),
        "(000) ldh      [12]\n(001) jeq      #0x806           jt 2\tjf 3\n\
        (002) ret      #262144\n(003) ret      #0\n"
    );
    assert_eq!(
        arp.to_c(),
        "{ 0x28, 0, 0, 0x0000000c },\n{ 0x15, 0, 1, 0x00000806 },\n\
        { 0x6, 0, 0, 0x00040000 },\n{ 0x6, 0, 0, 0x00000000 },\n"
    );
}
