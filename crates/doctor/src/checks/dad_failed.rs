//! IPv6 addresses that another host also has.

use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "dad-failed",
    needs: &[Probe::Links],
    area: "addresses",
    about: "Another host uses an IPv6 address of this host: the kernel does not use the address.",
    rule: "An address has the flag dadfailed at the second reading.",
    sources: "/proc/net/if_inet6: flags",
    refuted_by: "`ip -6 addr show` without dadfailed.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for (iface, addr) in &sample.around.duplicates {
        let name = super::words::argument(iface, "IFACE");
        found
            .add(
                Severity::Critical,
                Confidence::Certain,
                format!("another host uses the address {addr} of {iface}: this host cannot use it"),
            )
            .object(addr.to_string())
            .proof([state(format!("dadfailed of {addr}"), 1, None)])
            .cost("the address is not reachable on this host; connections to it reach the other host")
            .remedy(
                // `ip addr del` needs the length of the prefix.
                format!("ip -6 addr flush dev {name} to {addr}"),
                "removes the address; then assign a free one",
                "services bound to it fail",
            );
    }
}
