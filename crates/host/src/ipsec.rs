//! IPsec policies and states of a network namespace, from dumps of NETLINK_XFRM.

use netlink::{AnswerMessage, Attrs, Query, Request, prefix};
use record::Addr;
use sys::Host;

use crate::{HostError, bounded_dump};

/// NETLINK_XFRM, include/uapi/linux/netlink.h.
const PROTOCOL: i32 = 6;

// include/uapi/linux/xfrm.h
const XFRM_MSG_NEWSA: u16 = 0x10;
const XFRM_MSG_GETSA: u16 = 0x12;
const XFRM_MSG_NEWPOLICY: u16 = 0x13;
const XFRM_MSG_GETPOLICY: u16 = 0x15;
const XFRMA_TMPL: u16 = 5;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
/// Size of `struct xfrm_userpolicy_info`; attributes follow.
const POLICY: usize = 168;

/// Bound: IPsec policies, and states, that `doctor` reads of a namespace. Beyond: further ones are not checked, counted
/// (exit code 3). By: anyone who may add policies there.
pub const IPSEC_MAX: usize = 65_536;

/// An IPsec policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpsecPolicy {
    /// Packets from this prefix.
    pub from: (Addr, u8),
    /// Packets to this prefix.
    pub to: (Addr, u8),
    /// The transport protocol (`IPPROTO_…`); 0 for all.
    pub proto: u8,
    /// The destination port; 0 for all.
    pub dport: u16,
    /// The kernel's number of it.
    pub index: u32,
    /// Rules are tried in ascending order of this number.
    pub priority: u32,
    /// `XFRM_POLICY_…`: 0 for received packets, 1 for packets to send, 2 for forwarded ones.
    pub direction: u8,
    /// True if it drops its packets.
    pub blocks: bool,
    /// How it protects packets; `None` if it lets them pass as they are.
    pub template: Option<IpsecTemplate>,
}

/// The protection that a policy demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpsecTemplate {
    /// The sending end; 0 for any.
    pub from: Addr,
    /// The receiving end; 0 for any.
    pub to: Addr,
    /// `IPPROTO_ESP`, `IPPROTO_AH` or `IPPROTO_COMP`.
    pub proto: u8,
    /// 0 for transport, 1 for tunnel.
    pub mode: u8,
    /// Joins policies and states; 0 for any.
    pub reqid: u32,
}

/// A state (SA) that protects packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpsecState {
    /// The sending end.
    pub from: Addr,
    /// The receiving end.
    pub to: Addr,
    /// `IPPROTO_ESP`, `IPPROTO_AH` or `IPPROTO_COMP`.
    pub proto: u8,
    /// True if it can protect packets; false if the key manager was only asked for it.
    pub is_established: bool,
    /// Joins policies and states.
    pub reqid: u32,
}

impl IpsecTemplate {
    /// True if the state protects packets as the template demands.
    pub fn is_met_by(&self, state: &IpsecState) -> bool {
        let is = |wanted: Addr, end: Addr| wanted.is_unspecified() || wanted == end;
        self.proto == state.proto
            && is(self.from, state.from)
            && is(self.to, state.to)
            && (self.reqid == 0 || self.reqid == state.reqid)
    }
}

/// Reads the policies of the calling thread's namespace, whose inode is `netns`. Returns them, and the number of
/// policies beyond the maximum. Needs CAP_NET_ADMIN there. One dump.
pub fn policies(host: &Host, netns: u64) -> Result<(Vec<IpsecPolicy>, u64), HostError> {
    let request = Request::dump(XFRM_MSG_GETPOLICY);
    let key = format!("ipsec policies@{netns}");
    let ask = Query { what: "IPsec policies", protocol: PROTOCOL, request: &request, key: &key, note: "", netns: None };
    bounded_dump::read(host, &ask, IPSEC_MAX, policy)
}

/// Reads the states of the calling thread's namespace, whose inode is `netns`. Returns them, and the number of states
/// beyond the maximum. Needs CAP_NET_ADMIN there. One dump.
pub fn states(host: &Host, netns: u64) -> Result<(Vec<IpsecState>, u64), HostError> {
    let request = Request::dump(XFRM_MSG_GETSA);
    let key = format!("ipsec states@{netns}");
    let ask = Query { what: "IPsec states", protocol: PROTOCOL, request: &request, key: &key, note: "", netns: None };
    bounded_dump::read(host, &ask, IPSEC_MAX, state)
}

/// An `xfrm_address_t`.
fn address(bytes: &[u8], at: usize, family: u16) -> Option<Addr> {
    match family {
        AF_INET => prefix::array_at(bytes, at).map(Addr::V4),
        AF_INET6 => prefix::array_at(bytes, at).map(Addr::V6),
        _ => None,
    }
}

/// `struct xfrm_userpolicy_info`: selector, lifetimes, then priority at 152, index, direction and action. `None` for
/// other messages, policies of sockets, and messages that are too short.
fn policy(part: &AnswerMessage<'_>) -> Option<IpsecPolicy> {
    let bytes = part.payload;
    // `struct xfrm_selector`: destination, source (16 bytes each), ports at 32, family at 40.
    let family = prefix::u16_at(bytes, 40)?;
    let direction = prefix::u8_at(bytes, 160)?;
    if part.kind != XFRM_MSG_NEWPOLICY || direction > 2 {
        return None;
    }
    let mut attrs = Attrs::new(bytes.get(POLICY..)?).flatten();
    Some(IpsecPolicy {
        from: (address(bytes, 16, family)?, prefix::u8_at(bytes, 43)?),
        to: (address(bytes, 0, family)?, prefix::u8_at(bytes, 42)?),
        proto: prefix::u8_at(bytes, 44)?,
        dport: prefix::be16_at(bytes, 32)?,
        index: prefix::u32_at(bytes, 156)?,
        priority: prefix::u32_at(bytes, 152)?,
        direction,
        blocks: prefix::u8_at(bytes, 161)? == 1,
        template: attrs.find(|attr| attr.kind == XFRMA_TMPL).and_then(|attr| template(attr.payload)),
    })
}

/// `struct xfrm_user_tmpl`: destination, SPI, protocol, family at 24, source at 28, reqid, mode.
fn template(bytes: &[u8]) -> Option<IpsecTemplate> {
    let family = prefix::u16_at(bytes, 24)?;
    Some(IpsecTemplate {
        from: address(bytes, 28, family)?,
        to: address(bytes, 0, family)?,
        proto: prefix::u8_at(bytes, 20)?,
        mode: prefix::u8_at(bytes, 48)?,
        reqid: prefix::u32_at(bytes, 44)?,
    })
}

/// `struct xfrm_usersa_info`: a selector, then destination at 56, SPI, protocol, source at 80, reqid at 208, family.
/// `None` for other messages, and for those that are too short.
fn state(part: &AnswerMessage<'_>) -> Option<IpsecState> {
    let (bytes, family) = (part.payload, prefix::u16_at(part.payload, 212)?);
    if part.kind != XFRM_MSG_NEWSA {
        return None;
    }
    Some(IpsecState {
        from: address(bytes, 80, family)?,
        to: address(bytes, 56, family)?,
        proto: prefix::u8_at(bytes, 76)?,
        is_established: prefix::u32_at(bytes, 72)? != 0,
        reqid: prefix::u32_at(bytes, 208)?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn messages_that_end_early() {
        for end in [0, 41, 160, 167, 212] {
            let of = |kind| AnswerMessage { kind, flags: 0, payload: &[0; 300][..end], block: 0 };
            assert_eq!((policy(&of(XFRM_MSG_NEWPOLICY)), state(&of(XFRM_MSG_NEWSA))), (None, None));
        }
    }

    #[test]
    fn root_policies_as_ip_sets_them() {
        testkit::require_root!();
        let lab = testkit::netns::Lab::new("ipsec");
        if !std::path::Path::new("/proc/net/xfrm_stat").exists() {
            return;
        }
        lab.ip(&"xfrm policy add src 192.0.2.0/24 dst 198.51.100.7 proto tcp dport 80 dir out priority 9 tmpl src \
              192.0.2.1 dst 192.0.2.2 proto esp reqid 3 mode tunnel"
            .split_whitespace()
            .collect::<Vec<_>>());
        lab.ip(&"xfrm policy add src 2001:db8::/64 dst ::/0 dir in action block".split(' ').collect::<Vec<_>>());
        let (found, states) =
            lab.run_inside(|| (policies(&Host::live(), 0).unwrap().0, states(&Host::live(), 0).unwrap().0));
        let out = found.iter().find(|one| one.direction == 1).unwrap();
        assert_eq!((out.from, out.to.1, out.proto, out.dport), ((Addr::V4([192, 0, 2, 0]), 24), 32, 6, 80));
        let (from, to) = (Addr::V4([192, 0, 2, 1]), Addr::V4([192, 0, 2, 2]));
        let template = IpsecTemplate { from, to, proto: 50, mode: 1, reqid: 3 };
        assert_eq!((out.priority, out.blocks, out.template), (9, false, Some(template)));
        let block = found.iter().find(|one| one.direction == 0).unwrap();
        assert_eq!((block.blocks, block.from.1, block.to.1, block.template), (true, 64, 0, None));
        assert_eq!((found.len(), states), (2, Vec::new()));
        let met = |from, reqid| template.is_met_by(&IpsecState { from, to, proto: 50, is_established: true, reqid });
        assert_eq!([met(from, 3), met(to, 3), met(from, 4)], [true, false, false]);
    }
}
