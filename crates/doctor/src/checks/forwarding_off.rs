//! Packets for other hosts that arrive here although this host does not forward.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::words::{iface_setting, state};
use super::{Check, Findings, Probe, Sample};

/// Fewest packets for a finding; a wrong broadcast or a stale neighbour entry elsewhere may cause fewer.
const SOME: u64 = 5;

pub(super) const CHECK: Check = Check {
    id: "forwarding-off",
    needs: &[Probe::Drops, Probe::Links],
    area: "routing",
    about: "Packets for other hosts arrive here, but this host does not forward.",
    rule: "IpInAddrErrors or Ip6InAddrErrors grew by at least 5 while ip_forward (forwarding) is 0; not by broadcasts \
           of another subnet. While ip_forward is 1, IpInAddrErrors shows that the setting of an interface is 0.",
    sources: "/proc/net/snmp: InAddrErrors; snmp6; net.ipv4.ip_forward, net.ipv6.conf.all.forwarding",
    refuted_by: "a neighbour that sends here by mistake, because of an outdated address.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for (source, counter, setting) in
        [(Snmp, "IpInAddrErrors", "ipv4/ip_forward"), (Snmp6, "Ip6InAddrErrors", "ipv6/conf/all/forwarding")]
    {
        let dropped = sample.around.dropped(CHECK.id);
        let lost = dropped.for_hosts(sample.grown(source, counter));
        let forwards = sample.setting(setting, 0);
        // IPv6 has no such setting for an interface.
        let iface = (source == Snmp && forwards == Some(1))
            .then(|| dropped.all.first().map_or(String::new(), |first| sample.around.iface(first.ifindex)));
        if lost < SOME || forwards != Some(0) && iface.is_none() {
            continue;
        }
        let name = match &iface {
            Some(iface) => iface_setting("ipv4", iface, "forwarding"),
            None => format!("net.{}", setting.replace('/', ".")),
        };
        let on = match iface.as_deref() {
            None => String::new(),
            Some("") => " on an interface".to_owned(),
            Some(iface) => format!(" on {iface}"),
        };
        let risk = match source {
            Snmp => "the host then forwards all packets that its firewall accepts",
            _ => {
                "the host then forwards all packets that its firewall accepts, and ignores router advertisements \
                 unless accept_ra is 2"
            }
        };
        let title = format!("packets for other hosts are dropped: forwarding is off{on}{}", dropped.example());
        found
            .add(Severity::Warning, Confidence::Likely, title)
            .object(name.clone())
            .proof(sample.evidence(source, counter, None))
            .proof([state(name.clone(), 0, Some(1))])
            .proof(dropped.evidence())
            .lost(lost, "packets dropped")
            .remedy(format!("sysctl -w {name}=1"), "enables forwarding on this host", risk);
    }
}
