//! Interfaces: their state, speed and duplex, and IPv6 addresses that another host also has.
//!
//! The MTU of the other end of a veth pair is read only if one of the ends dropped packets.

use doctor::seen::{AddressSeen, LinkSeen, ModeSeen, Sample, XdpSeen};
use host::HostError;
use host::Links;
use host::link_modes::{self, LINK_MODES_MAX, LinkMode};
use host::links::LINKS_MAX;
use record::rows::CounterSource::Iface;
use record::rows::Link;
use record::{Accounting, Addr};
use std::collections::BTreeMap;
use sys::Host;

use crate::probe::{InNetns, ProbeReader, note_error};

/// `IFA_F_DADFAILED`, include/uapi/linux/if_addr.h.
const DUPLICATE: u8 = 8;

/// `XDP_ATTACHED_SKB`, include/uapi/linux/if_link.h.
const XDP_GENERIC: u8 = 2;

/// Reads interfaces at the end of the window.
#[derive(Default)]
pub(crate) struct LinkReader {
    /// The BPF links of XDP programs, which are the same in all namespaces: read once one has an XDP program.
    xdp_links: Option<BTreeMap<u32, u32>>,
}

impl ProbeReader for LinkReader {
    fn second(&mut self, netns: &InNetns<'_>, sample: &mut Sample, stats: &mut Accounting) {
        let Some(links) = netns.links(stats) else { return };
        if links.over > 0 {
            stats.incomplete(
                links.over,
                format!("interfaces and addresses after the first {LINKS_MAX} are not checked"),
            );
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let modes = read_modes(netns, stats);
        let peer_mtus = read_peer_mtus(netns, sample, &links.links);
        let around = &mut sample.around;
        for link in &links.links {
            let is_veth = &*link.kind == b"veth";
            let has_v4 = links.addrs.iter().any(|addr| addr.index == link.index);
            let has_v6 = links.addrs6.iter().any(|addr| addr.iface == link.name && addr.scope == 0);
            around.links.push(LinkSeen {
                index: link.index,
                name: text(&link.name),
                flags: link.flags,
                mtu: link.mtu,
                has_address: has_v4 || has_v6,
                is_bridge: link.is_bridge,
                is_bridge_port: link.master != 0,
                master: link.master,
                lower: if is_veth || link.is_lower_elsewhere { 0 } else { link.lower },
                is_veth,
                peer_mtu: peer_mtus.get(&link.index).copied(),
                hop_limit: link.hop_limit,
                bridge: link.bridge,
                port: link.port,
                is_tun: *link.kind == *b"tun",
                is_overlay: [b"vxlan".as_slice(), b"geneve"].contains(&&*link.kind),
                // An interface on top of another reports the lower one's mode, which has its own finding.
                xdp: link.xdp.map(|xdp| XdpSeen {
                    program: xdp.program,
                    is_generic: xdp.mode == XDP_GENERIC,
                    link: self.xdp_links.get_or_insert_with(|| read_xdp_links(netns.host())).get(&xdp.program).copied(),
                }),
                mode: modes.get(&link.index).copied().filter(|_| link.lower == 0),
            });
        }
        let v4 = links.addrs.iter().map(|own| (own.index, Addr::V4(own.local), own.prefix_len));
        let index = |name: &[u8]| links.links.iter().find(|link| *link.name == *name).map_or(0, |link| link.index);
        let v6 = links.addrs6.iter().map(|own| (index(&own.iface), Addr::V6(own.addr), own.prefix_len));
        let seen = |(ifindex, addr, prefix_len)| AddressSeen { ifindex, addr, prefix_len };
        around.addresses = v4.chain(v6).map(seen).collect();
        let duplicates = links.addrs6.iter().filter(|addr| addr.flags & DUPLICATE != 0);
        around.duplicates = duplicates.map(|addr| (text(&addr.iface), Addr::V6(addr.addr))).collect();
    }
}

/// Reads the BPF links that hold XDP programs, by program. It is empty if this process may not list links
/// (CAP_SYS_ADMIN): the check says what to do then.
fn read_xdp_links(host: &Host) -> BTreeMap<u32, u32> {
    let mut bytes = Vec::new();
    let read = |into: &mut Vec<u8>| {
        let words = sys::bpf::xdp_links()?.into_iter().flat_map(|(program, link)| [program, link]);
        into.extend(words.flat_map(u32::to_le_bytes));
        Ok(())
    };
    if host.bytes("bpf links of xdp", "", &mut bytes, read).is_err() {
        return BTreeMap::new();
    }
    let word = |half: &[u8]| half.try_into().map_or(0, u32::from_le_bytes);
    let pair = |pair: &[u8]| pair.split_at_checked(4).map(|(program, link)| (word(program), word(link)));
    bytes.chunks_exact(8).filter_map(pair).collect()
}

/// Maximum number of veth pairs whose other end is read.
///
/// Bound: pairs of veth interfaces that dropped packets, whose MTUs `doctor` compares in a namespace. Beyond: further
/// pairs are not compared. By: a user who makes as many pairs that drop packets.
const PEERS_MAX: usize = 64;

/// Reads the MTU of the other ends of veth pairs that dropped packets within the window, by interface index. Ends that
/// this process may not see are left out.
fn read_peer_mtus(netns: &InNetns<'_>, sample: &Sample, links: &[Link]) -> BTreeMap<u32, u32> {
    let has_dropped = |link: &&Link| {
        let grown = |name| sample.objects(Iface, name).any(|(of, moved)| *of == *link.name && moved.grown() > 0);
        &*link.kind == b"veth" && (grown("rx_dropped") || grown("tx_dropped"))
    };
    let read = |link: &Link| Some((link.index, Links::read_peer_mtu(netns.host(), netns.netns_id, link).ok()??));
    links.iter().filter(has_dropped).take(PEERS_MAX).filter_map(read).collect()
}

/// Reads speed and duplex by interface index, of interfaces whose driver knows both.
fn read_modes(netns: &InNetns<'_>, stats: &mut Accounting) -> BTreeMap<u32, ModeSeen> {
    let read = link_modes::read(netns.host(), netns.netns_id, None);
    // Recordings of earlier versions do not contain them.
    let is_old = read.as_ref().is_err_and(HostError::is_not_recorded);
    let (modes, over) = if is_old { (Vec::new(), 0) } else { note_error(read, stats).unwrap_or_default() };
    if over > 0 {
        let text = format!("speed and duplex of interfaces after the first {LINK_MODES_MAX} are not checked");
        stats.incomplete(over, text);
    }
    let seen = |one: LinkMode| {
        let mode = ModeSeen {
            mbps: one.mbps?,
            is_half: !one.is_full?,
            is_negotiated: one.is_negotiated,
            supported_mbps: one.supported.best_full_mbps(),
            common_mbps: one.ours.and(one.theirs).best_full_mbps(),
        };
        Some((one.index, mode))
    };
    modes.into_iter().filter_map(seen).collect()
}
