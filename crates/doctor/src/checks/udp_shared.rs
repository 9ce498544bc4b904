//! Programs that take datagrams from each other.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::words::state;
use super::{Check, Findings, Probe, Sample};

/// Most programs that a title names.
const NAMED_MAX: usize = 4;

pub(super) const CHECK: Check = Check {
    id: "udp-shared",
    needs: &[Probe::Sockets, Probe::SharedPorts],
    area: "udp",
    about: "Two programs have bound the same UDP port: the kernel gives each datagram to only one of them.",
    rule: "Sockets of different programs (executable files, or scripts of an interpreter) are bound to one UDP port \
           and address of one interface, as SO_REUSEADDR and SO_REUSEPORT allow. It is a hint if no datagram arrived \
           within the window, or if one is bound to an address and the other to all. It is no finding if several \
           sockets have joined a group, of which each receives a copy. Sockets bound to a group, and ports of DHCP, \
           mDNS and similar protocols, do not count.",
    sources: "UDP sockets via sock_diag; /proc/PID/exe, cmdline; /proc/net/igmp; /proc/net/snmp, snmp6: InDatagrams",
    refuted_by: "programs that share the port on purpose, with a BPF program that distributes the datagrams.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let came = sample.grown(Snmp, "UdpInDatagrams") + sample.grown(Snmp6, "Udp6InDatagrams");
    for shared in sample.around.shared_ports.iter().filter(|one| !one.may_be_group) {
        let names: Vec<String> = shared.programs.iter().take(NAMED_MAX).map(ToString::to_string).collect();
        let (all, name) = (names.join(" and "), &shared.name);
        let title = match names.split_first() {
            Some((first, others)) if shared.is_part => format!(
                "{first} is bound to UDP {name} and takes its datagrams from {}, bound to all addresses",
                others.join(" and ")
            ),
            _ => format!("{all} are bound to the same UDP port, {name}: each datagram reaches only one of them"),
        };
        let is_hurt = came > 0 && !shared.is_part;
        let reach = if is_hurt { Reach::part(1, 1) } else { Reach::Nobody };
        let count = i64::try_from(shared.programs.len()).unwrap_or(i64::MAX);
        found
            .add(Severity::Warning, Confidence::Likely, title)
            .object(format!("udp {name}"))
            .proof([state(format!("programs bound to UDP {name}"), count, None)])
            .proof(sample.evidence(Snmp, "UdpInDatagrams", None))
            .proof(sample.evidence(Snmp6, "Udp6InDatagrams", None))
            .cost(
                "with SO_REUSEADDR the socket bound last takes all datagrams, with SO_REUSEPORT each takes those of \
                 some senders",
            )
            .reach(reach, "")
            .remedy(
                format!("netwren sockets 'proto = udp and local_port = {}'", shared.port),
                "shows the sockets and their processes",
                "",
            )
            .remedy("", "stop one of the programs, or give it another port or address", "");
    }
}
