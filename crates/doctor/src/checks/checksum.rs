//! Packets that were damaged on the way.

use record::rows::CounterSource::{Netstat, Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "checksum",
    needs: &[],
    area: "interfaces",
    about: "Packets arrive with a wrong checksum: they are damaged on the path.",
    rule: "InCsumErrors of TCP, UDP, ICMP or IP grew. Less than 1 % of the received packets is a hint.",
    sources: "/proc/net/snmp, netstat, snmp6: InCsumErrors",
    refuted_by: "a program that sends raw packets with wrong checksums, or a network card that checks wrongly.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let counters = [
        (Snmp, "TcpInCsumErrors"),
        (Snmp, "UdpInCsumErrors"),
        (Snmp, "IcmpInCsumErrors"),
        (Netstat, "IpExtInCsumErrors"),
        (Snmp6, "Udp6InCsumErrors"),
        (Snmp6, "Icmp6InCsumErrors"),
    ];
    let lost: u64 = counters.iter().map(|(source, name)| sample.grown(*source, name)).sum();
    if lost == 0 {
        return;
    }
    let proof = counters.map(|(source, name)| sample.evidence(source, name, None));
    found
        .add(Severity::Warning, Confidence::Certain, "packets arrive damaged: their checksum is wrong".to_owned())
        .proof(proof.into_iter().flatten())
        .lost(lost, "packets dropped")
        .reach(
            Reach::part(lost, sample.grown(Snmp, "IpInReceives") + sample.grown(Snmp6, "Ip6InReceives")),
            "received packets",
        )
        .remedy(
            "netwren counters 'source = iface and name ~ error and delta > 0'",
            "shows which interface has errors",
            "",
        )
        .remedy(
            "",
            "look for the place where they are damaged: memory or card of a switch or host, or a device that changes \
             packets without their checksum",
            "",
        );
}
