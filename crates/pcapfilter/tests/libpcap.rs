//! Compares verdicts and errors with libpcap.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod corpus;
mod peer;
mod random;

use pcapfilter::{Filter, FilterTarget, LinkType, Metadata, Packet, PacketOrigin, Program, VlanTag, compile, run};
use peer::{NAMES, Said};

const NO_DEVICE: PacketOrigin = PacketOrigin::Live { vlan_beside: false };

fn target(link: LinkType, origin: PacketOrigin) -> FilterTarget {
    // tcpdump's mask without a device.
    FilterTarget { link, origin, snaplen: 262_144, netmask: Some(0) }
}

fn verdict(program: &Program, bytes: &[u8], metadata: Metadata) -> bool {
    let packet = Packet { bytes, length: bytes.len() as u32, metadata: Some(metadata) };
    run(program, &packet, &mut |_| false) != 0
}

/// Returns the difference as text; None if they agree.
fn difference(ours: &Filter, theirs: &Program, packets: &[Vec<u8>], metadata: &[Metadata]) -> Option<String> {
    let decides = ours.rest.as_ref().unwrap_or(&ours.kernel);
    for metadata in metadata {
        for bytes in packets {
            let (says, they_say) = (verdict(decides, bytes, *metadata), verdict(theirs, bytes, *metadata));
            if says != they_say {
                return Some(format!("libpcap says {they_say} of {} bytes {bytes:02x?} {metadata:?}", bytes.len()));
            }
            if says && !verdict(&ours.kernel, bytes, *metadata) {
                return Some(format!("the kernel's program drops {bytes:02x?}"));
            }
        }
    }
    None
}

/// Returns the difference between us and libpcap's result `said`; None if we agree.
fn compare(
    target: &FilterTarget,
    expression: &str,
    said: &Said,
    packets: &[Vec<u8>],
    metadata: &[Metadata],
) -> Option<String> {
    let wrong = match (compile(expression, target, &NAMES), said) {
        (Ok(ours), Said::Program(theirs)) => {
            let (has, they_have) = (ours.kernel.instructions.len(), theirs.instructions.len());
            // Loops are unrolled, and a tag in the metadata needs other instructions than libpcap's.
            let is_long = has > they_have + they_have / 4 + 4 && !expression.contains("protochain");
            let length = is_long.then(|| format!("{has} instructions, libpcap {they_have}"));
            difference(&ours, theirs, packets, metadata).or(length)
        }
        (Err(ours), Said::Refusal(theirs)) if ours.message == *theirs => None,
        (Err(ours), Said::Refusal(theirs)) => Some(format!("we say {ours}, libpcap {theirs}")),
        (Ok(_), Said::Refusal(theirs)) => Some(format!("libpcap refuses: {theirs}")),
        (Err(ours), Said::Program(_)) => Some(format!("refused: {ours}")),
    };
    wrong.map(|wrong| format!("{expression}: {wrong}"))
}

fn check(link: LinkType) {
    let packets = corpus::packets(link);
    let recorded = peer::recorded(link);
    assert!(recorded.len() > 80, "{link}");
    let target = target(link, NO_DEVICE);
    let one =
        |(expression, said): &(String, Said)| compare(&target, expression, said, &packets, &[Metadata::default()]);
    let differences: Vec<String> = recorded.iter().filter_map(one).collect();
    assert!(differences.is_empty(), "{} differ for {link}:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn ethernet() {
    check(LinkType::Ethernet);
}

#[test]
fn raw_ip() {
    check(LinkType::Raw);
}

#[test]
fn cooked() {
    check(LinkType::LinuxSll);
    check(LinkType::LinuxSll2);
}

#[test]
fn loopback() {
    check(LinkType::Null);
    check(LinkType::Loop);
}

#[test]
fn ppp() {
    check(LinkType::Ppp);
}

#[test]
fn one_ip() {
    check(LinkType::Ipv4);
    check(LinkType::Ipv6);
}

/// Compares with the installed libpcap, of any version.
#[test]
fn today() {
    testkit::require_tool!("tcpdump");
    let packets = corpus::packets(LinkType::Ethernet);
    let target = target(LinkType::Ethernet, NO_DEVICE);
    let some = include_str!("expressions.txt").lines().step_by(17);
    let one = |expression: &str| {
        let said = peer::ask(&["-y", "EN10MB"], expression);
        compare(&target, expression, &said, &packets, &[Metadata::default()])
    };
    let differences: Vec<String> = some.filter_map(one).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// A file has no direction and no interface; its loopback packets may come from any operating system.
#[test]
fn files() {
    testkit::require_tool!("tcpdump");
    let folder = tempfile::tempdir().unwrap();
    for (link, expressions) in [
        (LinkType::Ethernet, &["vlan 77 and tcp", "inbound", "ifindex 3", "host 10.0.0.1"][..]),
        (LinkType::Null, &["ip6", "ip6 and tcp port 80", "ip", "outbound"][..]),
        (LinkType::LinuxSll2, &["inbound", "ifindex 3"][..]),
    ] {
        let packets = corpus::packets(link);
        let number = match link {
            LinkType::Ethernet => 1,
            LinkType::Null => 0,
            _ => 276,
        };
        let path = folder.path().join(link.name());
        std::fs::write(&path, corpus::file(number, &packets)).unwrap();
        let target = target(link, PacketOrigin::File { is_swapped: false });
        for expression in expressions {
            let said = peer::ask(&["-r", path.to_str().unwrap()], expression);
            assert_eq!(compare(&target, expression, &said, &packets, &[Metadata::default()]), None);
        }
    }
}

/// On a device, the kernel has the outer tag.
#[test]
fn root_tags_in_metadata() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump");
    let packets = corpus::packets(LinkType::Ethernet);
    let target = FilterTarget {
        netmask: Some(0xff00_0000),
        ..target(LinkType::Ethernet, PacketOrigin::Live { vlan_beside: true })
    };
    let tag = |control: Option<u16>| {
        let vlan_tag = control.map(|control| VlanTag { kind: 0x8100, control });
        Metadata { vlan_tag, packet_type: 0, ifindex: 3 }
    };
    let metadata = [tag(None), tag(Some(77)), tag(Some(0x6005)), Metadata { packet_type: 4, ..tag(Some(0)) }];
    for expression in [
        "vlan",
        "vlan 77",
        "vlan and ip",
        "vlan 77 and tcp port 80",
        "vlan 5 and host 10.0.0.1",
        "vlan 5 and vlan 77 and tcp",
        "ip or vlan",
        "vlan or ip",
        "not vlan and ip",
        "vlan and (host 10.0.0.1 or 10.0.0.2 or 1.2.3.4)",
        "vlan and ip[8] = 64",
        "vlan and pppoes and ip",
        "inbound",
        "outbound and tcp",
        "ifindex 3",
        "ip broadcast",
    ] {
        let said = peer::ask(&["-i", "lo"], expression);
        // libpcap also needs two instructions per load.
        assert_eq!(compare(&target, expression, &said, &packets, &metadata), None);
    }
}

/// The program for a packet with its tag in the metadata matches the plain program on the packet with the tag in place.
#[test]
fn a_tag_in_metadata_is_read_as_on_the_wire() {
    let corpus = corpus::packets(LinkType::Ethernet);
    let whole = corpus.iter().filter(|packet| packet.len() > 14);
    let tags = [[0x81, 0, 0, 77], [0x88, 0xa8, 0x60, 5], [0x91, 0, 0, 5]];
    let pairs =
        whole.zip(tags.into_iter().cycle()).map(|(bare, tag)| (bare, tag, [&bare[..12], &tag, &bare[12..]].concat()));
    let pairs: Vec<_> = pairs.collect();
    let own = ["ether[12:2] = 0x8100", "ether[10:4] = 0x02028100", "ether[13] & 0xa8 != 0", "ether[14:4] = 0x004d0800"];
    let (mut compiled, mut passed, mut refused) = (0, 0, Vec::new());
    for expression in include_str!("expressions.txt").lines().chain(own) {
        let Ok(plain) = compile(expression, &target(LinkType::Ethernet, NO_DEVICE), &NAMES) else { continue };
        let tagged = match compile(expression, &target(LinkType::Ethernet, PacketOrigin::LiveTagged), &NAMES) {
            Ok(tagged) => tagged,
            Err(refusal) => {
                refused.push(format!("{expression}: {refusal}"));
                continue;
            }
        };
        compiled += 1;
        for (bare, [high, low, tag @ ..], wire) in &pairs {
            let vlan_tag = VlanTag { kind: u16::from_be_bytes([*high, *low]), control: u16::from_be_bytes(*tag) };
            let metadata = Metadata { vlan_tag: Some(vlan_tag), ..Metadata::default() };
            let says = verdict(&tagged.kernel, bare, metadata);
            assert_eq!(says, verdict(&plain.kernel, wire, Metadata::default()), "{expression}: {wire:02x?}");
            passed += usize::from(says);
        }
    }
    assert!(compiled > 200 && passed > 1000, "{compiled} expressions, {passed} packets");
    assert!(refused.len() < compiled / 10, "{}", refused.join("\n"));
}
