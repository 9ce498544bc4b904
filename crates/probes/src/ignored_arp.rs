//! ARP requests for addresses of this host that its settings leave unanswered.

use doctor::seen::{ArpSetting, IgnoredArp};
use host::Links;
use host::arp_claims::{ArpRequest, parse_requests};
use record::rows::LinkAddr;
use record::{Addr, Prefix};

use crate::probe::InNetns;

/// Fewest requests of one host within the window: a kernel that gets an answer does not ask again.
const SOME: u32 = 2;

/// Returns the repeated requests that the settings of the interfaces leave unanswered.
pub(crate) fn read(netns: &InNetns<'_>, links: &Links, heard: &[ArpRequest]) -> Vec<IgnoredArp> {
    let mut bytes = Vec::new();
    let recorded = netns.host().bytes(&format!("arp requests@{}", netns.netns_id), "", &mut bytes, |into| {
        heard.iter().filter(|one| one.count >= SOME).for_each(|one| one.put(into));
        Ok(())
    });
    // Recordings of earlier versions do not contain them.
    if recorded.is_err() {
        return Vec::new();
    }
    parse_requests(&bytes).iter().filter_map(|request| ignored(netns, links, request)).collect()
}

fn ignored(netns: &InNetns<'_>, links: &Links, request: &ArpRequest) -> Option<IgnoredArp> {
    let link = links.links.iter().find(|link| link.index == request.ifindex)?;
    let iface = std::str::from_utf8(&link.name).ok()?;
    // The kernel uses the larger of both (include/linux/inetdevice.h, `IN_DEV_MAXCONF`).
    let value = |file| {
        let number =
            |dev: &str| netns.text(&format!("/proc/sys/net/ipv4/conf/{dev}/{file}"))?.trim().parse::<u32>().ok();
        Some(number("all")?.max(number(iface)?))
    };
    let kinds = [(ArpSetting::Ignore, value("arp_ignore")?), (ArpSetting::Filter, value("arp_filter")?)];
    let (setting, value) = kinds.into_iter().find(|(kind, value)| leaves_out(*kind, *value, request, &links.addrs))?;
    let holder = links.addrs.iter().find(|addr| addr.local == request.addr)?;
    let holder = links.links.iter().find(|link| link.index == holder.index)?;
    Some(IgnoredArp {
        addr: Addr::V4(request.addr),
        iface: iface.to_owned(),
        holder: String::from_utf8_lossy(&holder.name).into_owned(),
        sender: Addr::V4(request.sender),
        count: request.count,
        setting,
        value,
    })
}

/// True if the kernel does not answer the request (net/ipv4/arp.c, `arp_ignore` and `arp_filter`).
fn leaves_out(kind: ArpSetting, value: u32, request: &ArpRequest, addrs: &[LinkAddr]) -> bool {
    let ArpRequest { ifindex, addr, sender, .. } = *request;
    let has_sender = |own: &LinkAddr| {
        Prefix::new(Addr::V4(own.local), own.prefix_len).is_some_and(|prefix| prefix.contains(Addr::V4(sender)))
    };
    let mut here = addrs.iter().filter(|own| (own.index, own.local) == (ifindex, addr));
    match (kind, value) {
        (ArpSetting::Ignore, 1) => here.next().is_none(),
        (ArpSetting::Ignore, 2) => !here.any(has_sender),
        (ArpSetting::Ignore, 8) => true,
        // The way to the sender leads through another interface.
        (ArpSetting::Filter, 1..) => addrs.iter().any(|own| own.index != ifindex && has_sender(own)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_settings_leave_unanswered() {
        let own = |index, last, prefix_len| LinkAddr {
            index,
            label: Box::default(),
            local: [192, 0, 2, last],
            peer: [192, 0, 2, last],
            broadcast: [0; 4],
            prefix_len,
        };
        let addrs = [own(2, 1, 24), own(3, 2, 24), own(1, 9, 32)];
        let left = |kind, value, ifindex, last| {
            let request = ArpRequest { ifindex, addr: [192, 0, 2, last], sender: [192, 0, 2, 77], count: 3 };
            leaves_out(kind, value, &request, &addrs)
        };
        let by_ignore = [0, 1, 2, 8].map(|value| left(ArpSetting::Ignore, value, 2, 9));
        assert_eq!(by_ignore, [false, true, true, true]);
        let on_its_own = [0, 1, 2, 8].map(|value| left(ArpSetting::Ignore, value, 2, 1));
        assert_eq!(on_its_own, [false, false, false, true]);
        assert_eq!([0, 1].map(|value| left(ArpSetting::Filter, value, 2, 1)), [false, true]);
    }
}
