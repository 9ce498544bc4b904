//! Pings that this host does not answer because of its own setting.

use record::rows::CounterSource::Snmp;
use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Sample};

/// Fewest pings for a finding.
const SOME: u64 = 2;
const SETTING: &str = "ipv4/icmp_echo_ignore_all";

pub(super) const CHECK: Check = Check {
    id: "ping-ignored",
    needs: &[],
    area: "services",
    about: "This host receives pings and answers none, because a setting says so.",
    rule: "At least 2 echo requests arrived within the window, no reply was sent, and net.ipv4.icmp_echo_ignore_all is \
           1. It is a hint: some administrators want that, but monitors then report the host as down.",
    sources: "/proc/net/snmp: IcmpInEchos, IcmpOutEchoReps; net.ipv4.icmp_echo_ignore_all",
    refuted_by: "`ping ADDRESS` from another host that gets answers.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let (asked, answered) = (sample.grown(Snmp, "IcmpInEchos"), sample.grown(Snmp, "IcmpOutEchoReps"));
    if asked < SOME || answered > 0 || sample.setting(SETTING, 0) != Some(1) {
        return;
    }
    let name = format!("net.{}", SETTING.replace('/', "."));
    found
        .add(Severity::Hint, Confidence::Certain, format!("this host answers no pings: {name} is 1"))
        .object(name.clone())
        .proof(sample.evidence(Snmp, "IcmpInEchos", None))
        .proof([state(name.clone(), 1, None)])
        .lost(asked, "pings not answered")
        .remedy(format!("sysctl -w {name}=0"), "answers pings", "hosts that search the network find this one");
}
