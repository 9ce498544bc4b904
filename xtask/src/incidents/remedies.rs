//! Runs the commands that the first finding proposes on the host for which it proposes them, and lets `doctor` look
//! again.

use anyhow::Result;
use std::fmt;

/// Seconds that a command may take which only shows something.
const SHOWS_S: &str = "3";

/// How often `doctor` looks again: a stuck connection retransmits only every few seconds.
const LOOKS: usize = 8;

/// A finding of `doctor`.
#[derive(Default)]
pub(super) struct Found {
    pub(super) id: String,
    pub(super) severity: String,
    pub(super) title: String,
    pub(super) object: String,
    /// Packets or connections lost.
    pub(super) lost: u64,
    pub(super) remedies: Vec<Proposed>,
}

/// A command that a finding proposes.
pub(super) struct Proposed {
    /// The command; empty for advice.
    pub(super) command: String,
    /// The place where it must be run; empty for the host of the finding.
    pub(super) place: String,
}

/// The result of the commands of a finding.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) enum Tried {
    /// A command mended the fault: the finding is gone, or less is lost.
    Mends,
    /// As `Mends`, where the finding said: in the first network namespace.
    MendsElsewhere,
    /// The finding says where the command must be run, and the test cannot undo it there.
    SaysWhere,
    /// Advice, and commands that only show something.
    #[default]
    ForAPerson,
    /// A tool is not installed.
    Missing(String),
    /// A command failed, or did not mend the fault.
    Fails(String),
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tried::Mends => f.write_str("mends"),
            Tried::MendsElsewhere => f.write_str("mends, in the first namespace"),
            Tried::SaysWhere => f.write_str("for the first namespace"),
            Tried::ForAPerson => f.write_str("for a person"),
            Tried::Missing(tool) => write!(f, "not tried: no {tool}"),
            Tried::Fails(command) => write!(f, "**fails**: `{command}`"),
        }
    }
}

/// The host on which commands are tried.
pub(super) trait Patient {
    /// Runs a line of shell on the host, or on the machine that it runs on; returns its exit code.
    fn run(&self, line: &str, is_elsewhere: bool) -> Result<i32>;

    /// True if the test restores this file of the machine.
    fn restores(&self, path: &str) -> bool;

    /// True if the host of the finding is the machine itself.
    fn is_machine(&self) -> bool;

    /// The findings now.
    fn findings(&self) -> Result<Vec<Found>>;
}

/// Tries the commands of a finding: all that show something, and those that change something until one mends the fault.
pub(super) fn try_all(first: &Found, patient: &dyn Patient) -> Result<Tried> {
    let mut tried = Tried::ForAPerson;
    for Proposed { command, place } in first.remedies.iter().filter(|one| !one.command.is_empty()) {
        if has_gap(command) {
            return Ok(Tried::Fails(command.clone()));
        }
        if !is_change(command) {
            // Without a row, an answer or a tool.
            let is_fine = [0, 1, 3, 124, 127].contains(&patient.run(&format!("timeout {SHOWS_S} {command}"), false)?);
            if !is_fine {
                return Ok(Tried::Fails(command.clone()));
            }
            continue;
        }
        if tried == Tried::Mends || tried == Tried::MendsElsewhere {
            continue;
        }
        tried = change(first, command, !place.is_empty(), patient)?;
    }
    Ok(tried)
}

/// Runs a command that changes something, and looks again.
fn change(first: &Found, command: &str, is_elsewhere: bool, patient: &dyn Patient) -> Result<Tried> {
    if (is_elsewhere || patient.is_machine()) && !settings(command).iter().all(|path| patient.restores(path)) {
        return Ok(Tried::SaysWhere);
    }
    // A tap takes the place of a card here, but it cannot negotiate.
    if command.starts_with("ethtool -s tap") {
        return Ok(Tried::Missing("other end that negotiates".to_owned()));
    }
    match patient.run(command, is_elsewhere)? {
        0 => {}
        127 => return Ok(Tried::Missing(command.split(' ').next().unwrap_or_default().to_owned())),
        _ => return Ok(Tried::Fails(command.to_owned())),
    }
    for _ in 0..LOOKS {
        let found = patient.findings()?;
        let same = found.iter().find(|one| one.id == first.id && one.object == first.object);
        let is_less = |one: &Found| first.lost > 0 && one.lost.saturating_mul(2) < first.lost;
        if same.is_none_or(is_less) {
            return Ok(if is_elsewhere { Tried::MendsElsewhere } else { Tried::Mends });
        }
    }
    Ok(Tried::Fails(command.to_owned()))
}

/// True if a person must fill in a name first.
fn has_gap(command: &str) -> bool {
    let mut words = command.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| ["IFACE", "ADDRESS", "TABLE", "CHAIN", "PID"].contains(&word))
}

/// True if the command changes something: it does not only show it.
fn is_change(command: &str) -> bool {
    const CHANGES: &[&str] = &[
        "bpftool link detach",
        "ethtool -",
        "ip -6 addr flush",
        "ip addr ",
        "ip link set",
        "ip neigh del",
        "ip neigh replace",
        "ip route add",
        "ip -6 route flush",
        "ip route del",
        "ip route flush",
        "ip route replace",
        "ip rule del",
        "nft '",
        "nft add",
        "nft delete",
        "nft flush",
        "nft insert",
        "prlimit",
        "sysctl -w",
        "tc qdisc",
    ];
    // With this setting the kernel logs packets; it mends nothing.
    let is_log = command.contains("nf_conntrack_log_invalid");
    CHANGES.iter().any(|one| command.starts_with(one)) && !command.contains(" show") && !is_log
}

/// The files that a `sysctl -w` writes.
fn settings(command: &str) -> Vec<String> {
    let words = command.strip_prefix("sysctl -w ").into_iter().flat_map(str::split_whitespace);
    let names = words.filter_map(|word| Some(word.split_once('=')?.0.to_owned()));
    names.map(|name| format!("/proc/sys/{}", name.replace('.', "/"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A host whose finding is gone after a `sysctl -w`.
    struct Sick {
        is_well: Cell<bool>,
        restores: bool,
    }

    fn found(lost: u64, commands: &[(&str, &str)]) -> Found {
        let remedies = commands
            .iter()
            .map(|(command, place)| Proposed { command: (*command).to_owned(), place: (*place).to_owned() });
        Found { id: "a".into(), lost, remedies: remedies.collect(), ..Found::default() }
    }

    impl Patient for Sick {
        fn run(&self, line: &str, _: bool) -> Result<i32> {
            self.is_well.set(self.is_well.get() || line.starts_with("sysctl -w"));
            Ok(if line.starts_with("ethtool") { 127 } else { i32::from(line.contains("wrong")) * 2 })
        }

        fn restores(&self, path: &str) -> bool {
            self.restores && path == "/proc/sys/net/a"
        }

        fn is_machine(&self) -> bool {
            false
        }

        fn findings(&self) -> Result<Vec<Found>> {
            Ok(if self.is_well.get() { Vec::new() } else { vec![found(9, &[])] })
        }
    }

    #[test]
    fn each_result() {
        let tried = |commands: &[(&str, &str)], restores| {
            try_all(&found(9, commands), &Sick { is_well: Cell::default(), restores }).expect("the host answers")
        };
        let there = "the first network namespace";
        assert_eq!(tried(&[("", ""), ("ip neigh show", "")], false), Tried::ForAPerson);
        assert_eq!(tried(&[("nft -a list wrong", "")], false), Tried::Fails("nft -a list wrong".into()));
        assert_eq!(tried(&[("ip link set IFACE up", "")], false), Tried::Fails("ip link set IFACE up".into()));
        assert_eq!(tried(&[("ip link set c0 up", "")], false), Tried::Fails("ip link set c0 up".into()));
        assert_eq!(tried(&[("sysctl -w net.a=1", "")], false), Tried::Mends);
        assert_eq!(tried(&[("sysctl -w net.a=1", there)], false), Tried::SaysWhere);
        assert_eq!(tried(&[("sysctl -w net.a=1", there)], true), Tried::MendsElsewhere);
        assert_eq!(tried(&[("sysctl -w net.a=1 net.b=2", there)], true), Tried::SaysWhere);
        assert_eq!(tried(&[("ethtool -s c0 autoneg on", "")], false), Tried::Missing("ethtool".into()));
    }
}
