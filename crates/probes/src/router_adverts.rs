//! Interfaces that receive router advertisements and ignore them because they forward.

use doctor::seen::{IgnoredAdverts, Sample};
use record::Accounting;
use record::rows::CounterSource::Snmp6;

use crate::probe::{InNetns, ProbeReader, keep_first};

/// Bound: interfaces whose settings are read. Beyond: further ones are counted (exit code 3). By: anyone who may make
/// interfaces there.
const INTERFACES_MAX: usize = 256;

/// Reads the settings and counters of interfaces, if IPv6 packets had no route.
pub(crate) struct RouterAdvertReader;

impl ProbeReader for RouterAdvertReader {
    /// Reads three small files for each interface.
    fn second(&mut self, netns: &InNetns<'_>, sample: &mut Sample, stats: &mut Accounting) {
        let unrouted = ["Ip6OutNoRoutes", "Ip6InNoRoutes"].iter().map(|name| sample.grown(Snmp6, name)).sum::<u64>();
        if unrouted == 0 {
            return;
        }
        let Some(links) = netns.links(stats) else { return };
        let names = links.links.iter().filter_map(|link| std::str::from_utf8(&link.name).ok());
        let mut names: Vec<&str> = names.collect();
        keep_first(&mut names, INTERFACES_MAX, "interfaces that may ignore router advertisements", stats);
        sample.around.ignored_adverts = names.into_iter().filter_map(|name| ignored(netns, name)).collect();
    }
}

/// Returns the interface if it ignores router advertisements: `accept_ra` is 1, which means "unless it forwards", and
/// it forwards (net/ipv6/ndisc.c, `ipv6_accept_ra`).
fn ignored(netns: &InNetns<'_>, iface: &str) -> Option<IgnoredAdverts> {
    let number = |file: &str| netns.text(&format!("/proc/sys/net/ipv6/conf/{iface}/{file}"))?.trim().parse().ok();
    let settings: (u32, u32) = (number("accept_ra")?, number("forwarding")?);
    if settings != (1, 1) {
        return None;
    }
    let text = netns.text(&format!("/proc/thread-self/net/dev_snmp6/{iface}"))?;
    let received = text.lines().find_map(received)?;
    (received > 0).then(|| IgnoredAdverts { iface: iface.to_owned(), received })
}

/// The number in the line `Icmp6InRouterAdvertisements 7`.
fn received(line: &str) -> Option<u64> {
    line.strip_prefix("Icmp6InRouterAdvertisements")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_dev_snmp6() {
        assert_eq!(received("Icmp6InRouterAdvertisements     \t7"), Some(7));
        assert_eq!(
            (received("Icmp6OutRouterAdvertisements \t7"), received("Icmp6InRouterAdvertisements")),
            (None, None)
        );
    }
}
