//! Cells of raw, packet, netlink and MPTCP sockets.

use super::item::{HexItem, Item, line_break};
use super::options::{Layout, Processes};
use crate::pieces::{Hex, HexWide, Outside, put, when, word_of};
use record::rows::{MptcpPart, NetlinkProtocol, PacketPart, PacketRing};

/// Words of iproute2 for EtherTypes (include/uapi/linux/if_ether.h, `ETH_P_*`).
#[rustfmt::skip]
const ETHERTYPES: &[(u16, &str)] = &[
    (0x0001, "802_3"), (0x0002, "ax25"), (0x0004, "802_2"), (0x0005, "snap"), (0x0006, "ddcmp"), (0x0007, "wan_ppp"),
    (0x0008, "ppp_mp"), (0x0009, "localtalk"), (0x000c, "can"), (0x0010, "ppptalk"), (0x0011, "tr_802_2"),
    (0x0015, "mobitex"), (0x0016, "control"), (0x0017, "irda"), (0x0018, "econet"), (0x0060, "loop"), (0x0200, "pup"),
    (0x0201, "pupat"), (0x0800, "ip"), (0x0805, "x25"), (0x0806, "arp"), (0x08ff, "bpq"), (0x0a00, "ieeepup"),
    (0x0a01, "ieeepupat"), (0x6000, "dec"), (0x6001, "dna_dl"), (0x6002, "dna_rc"), (0x6003, "dna_rt"), (0x6004, "lat"),
    (0x6005, "diag"), (0x6006, "cust"), (0x6007, "sca"), (0x6558, "teb"), (0x8035, "rarp"), (0x809b, "atalk"),
    (0x80f3, "aarp"), (0x8100, "802.1Q"), (0x8137, "ipx"), (0x86dd, "ipv6"), (0x8847, "mpls_uc"), (0x8848, "mpls_mc"),
    (0x884c, "atmmpoa"), (0x8863, "ppp_disc"), (0x8864, "ppp_ses"), (0x8884, "atmfate"), (0x8892, "profinet"),
    (0x88a2, "aoe"), (0x88a4, "ethercat"), (0x88a8, "802.1ad"), (0x88ca, "tipc"), (0x88cc, "LLDP"), (0x8902, "cfm"),
];

/// Returns the EtherType for a word, in any case.
pub fn ethertype_of(word: &[u8]) -> Option<u16> {
    let known = |(_, name): &&(u16, &str)| name.as_bytes().eq_ignore_ascii_case(word);
    match word.to_ascii_lowercase().as_slice() {
        b"all" => Some(ETH_P_ALL),
        b"ipv4" => Some(0x0800),
        _ => ETHERTYPES.iter().find(known).map(|(number, _)| *number),
    }
}

/// Returns the number of a netlink protocol for a word.
pub fn netlink_protocol_of(word: &[u8]) -> Option<u8> {
    let at = PROTOCOLS.iter().position(|name| !name.is_empty() && name.as_bytes() == word)?;
    u8::try_from(at).ok()
}

/// All protocols.
const ETH_P_ALL: u16 = 3;

/// Appends the protocol of a packet socket: `*` for all, a word, or the number in brackets.
pub(super) fn put_ethertype(out: &mut Vec<u8>, ethertype: u16, numeric: bool) {
    match word_of(ETHERTYPES, ethertype).filter(|_| !numeric) {
        _ if ethertype == ETH_P_ALL => put!(out, "*"),
        Some(word) => put!(out, word),
        None => put!(out, "[", ethertype, "]"),
    }
}

/// Words of iproute2 by number, "" without a word.
#[rustfmt::skip]
const PROTOCOLS: [&str; 22] = [
    "rtnl", "unused", "usersock", "fw", "tcpdiag", "nflog", "xfrm", "selinux", "iscsi", "audit", "fiblookup",
    "connector", "nft", "ip6fw", "dec-rt", "uevent", "genl", "", "scsi-trans", "ecryptfs", "rdma", "crypto",
];

/// Appends the protocol of a netlink socket.
pub(super) fn put_protocol(out: &mut Vec<u8>, protocol: NetlinkProtocol, numeric: bool) {
    let word = PROTOCOLS.get(usize::from(protocol.0)).copied().filter(|word| !numeric && !word.is_empty());
    put!(out, word.ok_or(protocol.0));
}

/// Appends a netlink address: `kernel`, `NAME/PID` if it is the pid of a process, or the number; `*` for the highest.
pub(super) fn put_portid(out: &mut Vec<u8>, portid: u32, processes: Option<Processes<'_>>, bug_compatible: bool) {
    let Some(processes) = processes else { return put_signed(out, portid) };
    match portid {
        u32::MAX => put!(out, "*"),
        0 => put!(out, "kernel"),
        pid => {
            let mut name = Vec::new();
            // Larger numbers are chosen by the kernel, for a second socket of a process.
            if i32::try_from(pid).is_ok() && processes(pid, &mut name) {
                let seen = if bug_compatible { name.split(|&b| b == b')').next().unwrap_or_default() } else { &name };
                put!(out, Outside(seen, bug_compatible), "/");
            }
            put_signed(out, pid);
        }
    }
}

/// Appends a number that ss prints as signed; `*` for the highest.
pub(super) fn put_signed(out: &mut Vec<u8>, n: u32) {
    put!(out, if n == u32::MAX { Err("*") } else { Ok(n as i32) });
}

/// Appends the protocol of a raw socket: its name, or `*` without one.
pub(super) fn put_ip_protocol(out: &mut Vec<u8>, protocol: u16, name: Option<&[u8]>) {
    match name {
        Some(name) => put!(out, Outside(name, false)),
        None if protocol == 0 => put!(out, "*"),
        None => put!(out, "ipproto-", protocol),
    }
}

/// Appends the first 32 groups as eight hexadecimal digits.
pub(super) fn put_groups(out: &mut Vec<u8>, bitmap: Option<&[u8]>) {
    let first = bitmap.and_then(|bits| bits.first_chunk::<8>()).map_or(0, |bits| u64::from_ne_bytes(*bits));
    put!(out, HexWide(first & u64::from(u32::MAX), 8));
}

/// Words of `PDI_*`, the lowest bit first.
const FLAGS: [&str; 5] = ["running", " auxdata", " origdev", " vnethdr", " loss"];

/// Appends version and flags, both rings and the fanout group, one per line.
pub(super) fn put_rings(out: &mut Vec<u8>, packet: &PacketPart<'_>, one_line: bool) {
    if let (Some(version), Some(flags)) = (packet.version, packet.flags) {
        put!(out, line_break(one_line), "ver:", version, " cpy_thresh:", packet.copy_thresh.unwrap_or(0), " flags( ");
        for (i, word) in FLAGS.iter().enumerate() {
            put!(out, when(flags >> i & 1 == 1, word));
        }
        put!(out, when(flags == 0, "0"), " )");
    }
    for (ring, word) in [(packet.rx_ring, "ring_rx("), (packet.tx_ring, "ring_tx(")] {
        if let Some(ring) = ring {
            put!(out, line_break(one_line), word);
            put_ring(out, &ring);
        }
    }
    if let Some(fanout) = packet.fanout {
        put!(out, line_break(one_line));
        put_fanout(out, fanout);
    }
}

fn put_ring(out: &mut Vec<u8>, ring: &PacketRing) {
    put!(out, "blk_size:", ring.block_size, ",blk_nr:", ring.blocks, ",frm_size:", ring.frame_size, ",frm_nr:");
    put!(out, ring.frames, ",tmo:", ring.retire_ms, ",features:0x", Hex(ring.features), ")");
}

/// Words of the fanout types that ss knows, by number.
const FANOUT: [&str; 6] = ["hash", "lb", "cpu", "roll", "random", "qm"];

fn put_fanout(out: &mut Vec<u8>, fanout: u32) {
    put!(out, "fanout(id:", fanout & 0xffff, ",type:");
    let kind = fanout >> 16;
    put!(out, usize::try_from(kind).ok().and_then(|kind| FANOUT.get(kind)).copied().ok_or(("0x", Hex(kind))), ")");
}

/// Appends the instructions of a classic BPF program (`struct sock_filter`: code, two jumps, constant).
pub(super) fn put_filter(out: &mut Vec<u8>, filter: Option<&[u8]>, one_line: bool) {
    let Some(filter) = filter else { return };
    put!(out, line_break(one_line), "bpf filter (", (filter.len() / 8) as u64, "): ");
    for instruction in filter.chunks_exact(8) {
        let &[c0, c1, jt, jf, k0, k1, k2, k3] = instruction else { return };
        let (code, constant) = (u16::from_ne_bytes([c0, c1]), u32::from_ne_bytes([k0, k1, k2, k3]));
        put!(out, " 0x", HexWide(code, 2), " ", jt, " ", jf, " ", constant, ",");
    }
}

/// Appends the members of `struct mptcp_info`, except zeros.
pub(super) fn put_mptcp(out: &mut Vec<u8>, info: &MptcpPart<'_>, layout: Layout) {
    let sequence = |words, n| if layout == Layout::V6_1 { Ok(HexItem(words, n)) } else { Err(Item(words, n)) };
    put!(out, Item(" subflows:", info.subflows()), Item(" add_addr_signal:", info.add_addr_signal()));
    put!(out, Item(" add_addr_accepted:", info.add_addr_accepted()), Item(" subflows_max:", info.subflows_max()));
    put!(out, Item(" add_addr_signal_max:", info.add_addr_signal_max()));
    put!(out, Item(" add_addr_accepted_max:", info.add_addr_accepted_max()));
    let flags = info.flags().unwrap_or(0);
    put!(out, when(flags & 1 != 0, " fallback"), when(flags & 2 != 0, " remote_key"), HexItem(" token:", info.token()));
    put!(out, sequence(" write_seq:", info.write_seq()), sequence(" snd_una:", info.snd_una()));
    put!(out, sequence(" rcv_nxt:", info.rcv_nxt()));
    if layout == Layout::V6_15 {
        put_newer(out, info);
    }
}

/// Appends the items of versions after 6.1.
fn put_newer(out: &mut Vec<u8>, info: &MptcpPart<'_>) {
    put!(out, Item(" local_addr_used:", info.local_addr_used()), Item(" local_addr_max:", info.local_addr_max()));
    put!(out, Item(" csum_enabled:", info.csum_enabled()), Item(" retransmits:", info.retransmits()));
    put!(out, Item(" bytes_retrans:", info.bytes_retrans()), Item(" bytes_sent:", info.bytes_sent()));
    put!(out, Item(" bytes_received:", info.bytes_received()), Item(" bytes_acked:", info.bytes_acked()));
    put!(out, Item(" subflows_total:", info.subflows_total()), Item(" last_data_sent:", info.last_data_sent()));
    put!(out, Item(" last_data_recv:", info.last_data_recv()), Item(" last_ack_recv:", info.last_ack_recv()));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::rows::PacketType;

    fn text(put: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        put(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn protocols_by_word_and_number() {
        for (ethertype, words, numbers) in
            [(3, "*", "*"), (0x800, "ip", "[2048]"), (0x88cc, "LLDP", "[35020]"), (0x1234, "[4660]", "[4660]")]
        {
            assert_eq!(text(|out| put_ethertype(out, ethertype, false)), words);
            assert_eq!(text(|out| put_ethertype(out, ethertype, true)), numbers);
        }
        for (protocol, word) in [(0, "rtnl"), (4, "tcpdiag"), (17, "17"), (21, "crypto"), (22, "22"), (255, "255")] {
            assert_eq!(text(|out| put_protocol(out, NetlinkProtocol(protocol), false)), word);
        }
    }

    #[test]
    fn netlink_addresses() {
        let who = |pid: u32, out: &mut Vec<u8>| {
            out.extend_from_slice(b"a) b");
            pid == 7
        };
        for (portid, named, old) in [
            (0, "kernel", "kernel"),
            (7, "a) b/7", "a/7"),
            (8, "8", "8"),
            (4_294_963_120, "-4176", "-4176"),
            (u32::MAX, "*", "*"),
        ] {
            assert_eq!(text(|out| put_portid(out, portid, Some(&who), false)), named);
            assert_eq!(text(|out| put_portid(out, portid, Some(&who), true)), old);
        }
        assert_eq!(text(|out| put_portid(out, 0, None, false)), "0");
    }

    #[test]
    fn rings_and_filters() {
        let ring = PacketRing { block_size: 4096, blocks: 2, frame_size: 2048, frames: 4, ..PacketRing::default() };
        let packet = PacketPart {
            version: Some(2),
            flags: Some(0x11),
            tx_ring: Some(ring),
            fanout: Some(0x1001_0007),
            ..PacketPart::new(PacketType::RAW, 3)
        };
        let lines = "\n\tver:2 cpy_thresh:0 flags( running loss )\n\tring_tx(blk_size:4096,blk_nr:2,frm_size:2048,\
                     frm_nr:4,tmo:0,features:0x0)\n\tfanout(id:7,type:0x1001)";
        assert_eq!(text(|out| put_rings(out, &packet, false)), lines);
        assert_eq!(text(|out| put_rings(out, &packet, true)), lines.replace("\n\t", " "));
        let filter = [6, 0, 0, 1, 255, 255, 0, 0, 9];
        assert_eq!(text(|out| put_filter(out, Some(&filter), true)), " bpf filter (1):  0x06 0 1 65535,");
    }

    #[test]
    fn mptcp_without_zeros() {
        let mut bytes = [0; 96];
        (bytes[3], bytes[8], bytes[12], bytes[16], bytes[40], bytes[88]) = (2, 3, 0x7f, 255, 1, 9);
        let info = MptcpPart::new(&bytes);
        let common = " subflows_max:2 fallback remote_key token:7f write_seq:";
        assert_eq!(text(|out| put_mptcp(out, &info, Layout::V6_1)), format!("{common}ff"));
        let newer = format!("{common}255 local_addr_used:1 last_data_recv:9");
        assert_eq!(text(|out| put_mptcp(out, &info, Layout::V6_15)), newer);
    }

    #[test]
    fn groups_have_eight_digits() {
        assert_eq!(text(|out| put_groups(out, None)), "00000000");
        assert_eq!(text(|out| put_groups(out, Some(&0x11u64.to_ne_bytes()))), "00000011");
        assert_eq!(text(|out| put_groups(out, Some(&u64::MAX.to_ne_bytes()))), "ffffffff");
    }
}
