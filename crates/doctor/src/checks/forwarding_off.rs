//! Packets for other hosts that arrive here although this host does not forward.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Probe, Sample};

/// Fewest packets for a finding; a wrong broadcast or a stale neighbour entry elsewhere may cause fewer.
const SOME: u64 = 5;

pub(super) const CHECK: Check = Check {
    id: "forwarding-off",
    needs: &[Probe::Drops],
    area: "routing",
    about: "Packets for other hosts arrive here, but this host does not forward.",
    rule: "IpInAddrErrors or Ip6InAddrErrors grew by at least 5 while ip_forward (forwarding) is 0; not by broadcasts \
           of another subnet.",
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
        if lost < SOME || forwards != Some(0) {
            continue;
        }
        let name = setting.replace('/', ".");
        let risk = match source {
            Snmp => "the host then forwards all packets that its firewall accepts",
            _ => {
                "the host then forwards all packets that its firewall accepts, and ignores router advertisements \
                 unless accept_ra is 2"
            }
        };
        let title = format!("packets for other hosts are dropped: forwarding is off{}", dropped.example());
        found
            .add(Severity::Warning, Confidence::Likely, title)
            .object(format!("net.{name}"))
            .proof(sample.evidence(source, counter, None))
            .proof([super::words::state(format!("net.{name}"), 0, Some(1))])
            .proof(dropped.evidence())
            .lost(lost, "packets dropped")
            .remedy(format!("sysctl -w net.{name}=1"), "enables forwarding on this host", risk);
    }
}
