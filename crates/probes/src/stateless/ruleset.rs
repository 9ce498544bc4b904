//! The plan as a rule set for nft(8).

use super::plan::{Plan, Rewrite};
use record::Addr;
use std::fmt::Write;

/// The only table that netwren touches.
pub const TABLE: &str = "inet netwren_stateless";

/// Priority at which incoming packets are rewritten: after other rules at `raw` that drop packets to a container's
/// address from outside (Docker's do), and before connection tracking at -200.
pub(super) const PRIORITY: i32 = -290;

/// The direction of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Client to backend.
    In,
    /// Backend to client.
    Out,
}

/// Returns the name of the counter for one direction of a rewrite: `tcp_8080_in`, with the rewrite's index if a port
/// is published on several addresses.
pub fn counter_name(plan: &Plan, at: usize, direction: Direction) -> Option<String> {
    let rewrite = plan.rewrites.get(at)?;
    let way = match direction {
        Direction::In => "in",
        Direction::Out => "out",
    };
    let same = |other: &&Rewrite| (other.transport, other.port) == (rewrite.transport, rewrite.port);
    let base = format!("{}_{}", rewrite.transport.name(), rewrite.port);
    Some(match plan.rewrites.iter().filter(same).count() {
        1 => format!("{base}_{way}"),
        _ => format!("{base}_{at}_{way}"),
    })
}

impl Plan {
    /// Returns the whole rule set, which replaces an older one of ours in one transaction.
    ///
    /// Before connection tracking (priority raw + 10 = -290, tracking is -200), packets of both directions are marked
    /// as untracked, and packets to the public address get the backend's address. Answers get the public address back
    /// when they leave, after the routing decision: a packet that comes in with an address of this host as its source
    /// is a martian and would be dropped.
    pub fn ruleset(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "add table {TABLE}\ndelete table {TABLE}\ntable {TABLE} {{");
        for at in 0..self.rewrites.len() {
            for direction in [Direction::In, Direction::Out] {
                if let Some(name) = counter_name(self, at, direction) {
                    let _ = writeln!(text, "\tcounter {name} {{\n\t}}");
                }
            }
        }
        let every = |each: &dyn Fn(&Sides, &mut String)| {
            (0..self.rewrites.len()).filter_map(|at| Sides::of(self, at)).fold(String::new(), |mut rules, sides| {
                each(&sides, &mut rules);
                rules
            })
        };
        let to_backend = every(&|sides, rules| sides.to_backend(rules));
        let untracked = every(&|sides, rules| sides.untracked(rules));
        let to_client = every(&|sides, rules| sides.to_client(rules));
        let clamped = every(&|sides, rules| sides.clamped(rules));
        chain(&mut text, "from_outside", "filter hook prerouting priority raw + 10", &[&to_backend, &untracked]);
        chain(&mut text, "from_this_host", "route hook output priority raw", &[&to_backend]);
        chain(&mut text, "to_this_host", "filter hook input priority mangle", &[&to_client]);
        chain(&mut text, "to_outside", "filter hook postrouting priority srcnat", &[&clamped, &to_client]);
        text.push_str("}\n");
        text
    }
}

fn chain(text: &mut String, name: &str, place: &str, rules: &[&str]) {
    let _ = writeln!(text, "\tchain {name} {{\n\t\ttype {place}; policy accept;");
    rules.iter().for_each(|rules| text.push_str(rules));
    text.push_str("\t}\n");
}

/// One rewrite in nft's words.
struct Sides {
    ip: &'static str,
    proto: &'static str,
    rewrite: Rewrite,
    counter_in: String,
    counter_out: String,
}

impl Sides {
    fn of(plan: &Plan, at: usize) -> Option<Sides> {
        let rewrite = *plan.rewrites.get(at)?;
        Some(Sides {
            ip: if matches!(rewrite.public, Addr::V4(_)) { "ip" } else { "ip6" },
            proto: rewrite.transport.name(),
            rewrite,
            counter_in: counter_name(plan, at, Direction::In)?,
            counter_out: counter_name(plan, at, Direction::Out)?,
        })
    }

    fn to_backend(&self, rules: &mut String) {
        let Sides { ip, proto, counter_in, .. } = self;
        let Rewrite { public, port, backend, backend_port, .. } = self.rewrite;
        let _ = writeln!(
            rules,
            "\t\t{ip} daddr {public} {proto} dport {port} counter name {counter_in} notrack {ip} daddr set {backend} \
             {proto} dport set {backend_port}"
        );
    }

    fn untracked(&self, rules: &mut String) {
        let Sides { ip, proto, .. } = self;
        let Rewrite { backend, backend_port, .. } = self.rewrite;
        let _ = writeln!(rules, "\t\t{ip} saddr {backend} {proto} sport {backend_port} notrack");
    }

    fn to_client(&self, rules: &mut String) {
        let Sides { ip, proto, counter_out, .. } = self;
        let Rewrite { public, port, backend, backend_port, .. } = self.rewrite;
        let _ = writeln!(
            rules,
            "\t\t{ip} saddr {backend} {proto} sport {backend_port} counter name {counter_out} {ip} saddr set {public} \
             {proto} sport set {port}"
        );
    }

    // ICMP errors about the path's MTU contain the public address and do not reach the backend. Therefore the segment
    // size is clamped to the routes that this host has.
    fn clamped(&self, rules: &mut String) {
        if self.proto != "tcp" {
            return;
        }
        let ip = self.ip;
        let Rewrite { backend, backend_port, .. } = self.rewrite;
        let clamp = "tcp flags & syn == syn tcp option maxseg size set rt mtu";
        let _ = writeln!(rules, "\t\t{ip} daddr {backend} tcp dport {backend_port} {clamp}");
        let _ = writeln!(rules, "\t\t{ip} saddr {backend} tcp sport {backend_port} {clamp}");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::stateless::{HostRoutes, Publish, plan};

    const HERE: &[Addr] = &[Addr::V4([192, 0, 2, 1])];

    fn planned(written: &[&str]) -> Plan {
        let publishes: Vec<Publish> = written.iter().map(|text| text.parse().unwrap()).collect();
        plan(&publishes, &HostRoutes { addresses: HERE, towards: &[], no_helper: false }).unwrap()
    }

    #[test]
    fn the_rules_of_one_port() {
        let rules = planned(&["8080:172.17.0.2:80"]).ruleset();
        let wanted = "\
add table inet netwren_stateless
delete table inet netwren_stateless
table inet netwren_stateless {
	counter tcp_8080_in {
	}
	counter tcp_8080_out {
	}
	chain from_outside {
		type filter hook prerouting priority raw + 10; policy accept;
		ip daddr 192.0.2.1 tcp dport 8080 counter name tcp_8080_in notrack ip daddr set 172.17.0.2 tcp dport set 80
		ip saddr 172.17.0.2 tcp sport 80 notrack
	}
	chain from_this_host {
		type route hook output priority raw; policy accept;
		ip daddr 192.0.2.1 tcp dport 8080 counter name tcp_8080_in notrack ip daddr set 172.17.0.2 tcp dport set 80
	}
	chain to_this_host {
		type filter hook input priority mangle; policy accept;
		ip saddr 172.17.0.2 tcp sport 80 counter name tcp_8080_out ip saddr set 192.0.2.1 tcp sport set 8080
	}
	chain to_outside {
		type filter hook postrouting priority srcnat; policy accept;
		ip daddr 172.17.0.2 tcp dport 80 tcp flags & syn == syn tcp option maxseg size set rt mtu
		ip saddr 172.17.0.2 tcp sport 80 tcp flags & syn == syn tcp option maxseg size set rt mtu
		ip saddr 172.17.0.2 tcp sport 80 counter name tcp_8080_out ip saddr set 192.0.2.1 tcp sport set 8080
	}
}
";
        assert_eq!(rules, wanted);
    }

    #[test]
    fn counters_have_distinct_names() {
        let plan =
            planned(&["192.0.2.1:53:172.17.0.2:53/udp", "192.0.2.2:53:172.17.0.3:53/udp", "53:172.17.0.2:53/tcp"]);
        let names: Vec<String> = (0..4).filter_map(|at| counter_name(&plan, at, Direction::Out)).collect();
        assert_eq!(names, ["udp_53_0_out", "udp_53_1_out", "tcp_53_out"]);
        assert!(names.iter().all(|name| plan.ruleset().contains(&format!("\tcounter {name} {{"))));
    }
}
