//! Explains why listening sockets have no visible owner.

use ::owners::OwnerlessCount;
use record::rows::Sockets;
use record::{Accounting, Demand, Expr, Key, Lookups, Next, Op, Operand, Owner, Source, Test, field_index};
use sys::{Host, escape_bytes};

/// `PROC_PID_INIT_INO` of include/linux/proc_ns.h: the initial pid namespace.
const INIT_PID_NS: &[u8] = b"pid:[4026531836]";

/// Lists the places that can hold a socket without any process that leads there.
const WITHOUT_DESCRIPTOR: &str =
    "used by the kernel itself, in an io_uring that could not be read, in flight over a unix socket (SCM_RIGHTS)";

/// Unix sockets that are looked at for descriptors in flight: 5 µs each.
///
/// Bound: unix sockets that are searched for descriptors in flight if owners are read from /proc. Beyond: the message
/// names no process that has some to receive in further ones. By: a user with as many unix sockets.
const LOOKS_MAX: u32 = 4096;

/// Receivers that are named.
const NAMED_MAX: usize = 3;

/// A process with the number of descriptors that it has not received yet.
pub type Receiver = (Owner, u64);

/// True if owners were read from /proc, where sockets in flight have no owner.
pub fn are_read_from_proc(stats: &Accounting) -> bool {
    stats.via.iter().any(|via| via.starts_with(host::OwnersBackend::Proc.stream()))
}

/// Adds the lines on listening sockets without an owner, and on those in flight, to the end of the run; `partial` if
/// some processes could not be read. If processes outside this pid namespace may hold them, the result is incomplete.
///
/// `receivers` finds processes with descriptors in flight; it is called only if a socket has no owner.
pub fn report(
    host: &Host,
    count: OwnerlessCount,
    partial: bool,
    receivers: &dyn Fn() -> Vec<Receiver>,
    stats: &mut Accounting,
) {
    if count.in_flight > 0 {
        let sockets = listening_sockets(count.in_flight, "is", "are");
        let text = "in flight over a unix socket (SCM_RIGHTS): the process that will receive it is shown as its owner";
        stats.add_reason(0, format!("{sockets} {text}"));
    }
    if count.unknown == 0 {
        return;
    }
    let mut link = Vec::new();
    let is_initial = host.read_link("/proc/self/ns/pid", &mut link).is_err() || link == INIT_PID_NS;
    stats.incomplete |= !is_initial;
    let why = match (is_initial, partial) {
        (false, _) => "owned by processes outside this PID namespace",
        (true, true) => "owned by processes that could not be read",
        (true, false) => "opened after the processes were read",
    };
    let causes = format!("{WITHOUT_DESCRIPTOR}, or {why}");
    let sockets = listening_sockets(count.unknown, "has", "have");
    let text = match in_flight(&receivers()) {
        None => format!("{sockets} no visible process: {causes}"),
        Some(in_flight) => format!("{sockets} no visible process: {in_flight}; other causes: {causes}"),
    };
    stats.add_reason(0, text);
}

fn listening_sockets(count: u64, one: &str, several: &str) -> String {
    if count == 1 { format!("1 listening socket {one}") } else { format!("{count} listening sockets {several}") }
}

/// Says who has not received how many descriptors; `None` without receivers.
fn in_flight(receivers: &[Receiver]) -> Option<String> {
    let named = receivers.iter().take(NAMED_MAX).map(|(owner, count)| {
        let descriptors = if *count == 1 { "descriptor" } else { "descriptors" };
        format!("{} ({}) has {count} {descriptors}", escape_bytes(owner.process.as_bytes()), owner.pid)
    });
    let mut parts: Vec<String> = named.collect();
    if receivers.len() > NAMED_MAX {
        parts.push("others have more".into());
    }
    (!parts.is_empty()).then(|| format!("{} to receive over unix sockets (SCM_RIGHTS)", parts.join(", ")))
}

/// Returns the processes with descriptors in flight to one of their unix sockets. Costs a dump of the unix sockets and
/// 5 µs for each that has data to receive.
pub fn receivers(host: &Host, source: &dyn Source<Sockets>, lookups: &Lookups<'_>) -> Vec<Receiver> {
    let (mut found, mut text, mut looks): (Vec<Receiver>, _, _) = (Vec::new(), Vec::new(), 0);
    let Some(demand) = unix_sockets() else { return found };
    let read = source.prepare(&demand).run(&mut |row| {
        let owner = lookups.owners(Key::Id(row.inode.into())).first();
        let Some((owner, fd)) = owner.and_then(|owner| Some((owner, owner.descriptor()?))) else { return Next::More };
        if row.inode == 0 || (row.wqueue.is_some() && row.rqueue == 0) {
            return Next::More;
        }
        looks += 1;
        if host.read_file(&format!("/proc/{}/fdinfo/{fd}", owner.pid), &mut text).is_ok() {
            match (descriptors_in_flight(&text), found.iter_mut().find(|(known, _)| known.pid == owner.pid)) {
                (0, _) => {}
                (count, Some((_, sum))) => *sum += count,
                (count, None) => found.push((*owner, count)),
            }
        }
        if looks < LOOKS_MAX { Next::More } else { Next::Stop }
    });
    // If the table cannot be read, the sentence still lists the possible causes.
    read.map_or_else(|_| Vec::new(), |_| found)
}

/// The unix sockets, with their inodes and queues.
fn unix_sockets() -> Option<Demand<Sockets>> {
    let fields = [field_index::<Sockets>("inode")?, field_index::<Sockets>("recv_q")?];
    let field = field_index::<Sockets>("proto")?;
    let is_unix = Test { field, op: Op::Eq, operand: Operand::Words(vec![b"unix".as_slice().into()]) };
    Some(Demand::new(&fields, vec![Expr::Test(is_unix)]))
}

/// Returns the number in the line `scm_fds:` of a unix socket's fdinfo; 0 without such a line.
fn descriptors_in_flight(text: &[u8]) -> u64 {
    let number = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"scm_fds:"));
    number.and_then(|number| std::str::from_utf8(number.trim_ascii()).ok()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::Comm;

    /// Returns the lines on these counts, and whether the result is incomplete. Without a link, as in an old recording,
    /// the pid namespace is unknown.
    fn report_of(
        link: Option<&str>,
        count: OwnerlessCount,
        partial: bool,
        receivers: &[Receiver],
    ) -> (Vec<String>, bool) {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tmp.path().join("self/ns")).unwrap();
        let place = tmp.path().join("self/ns/pid");
        link.iter().for_each(|link| std::os::unix::fs::symlink(link, &place).unwrap());
        let host = Host::with_roots(tmp.path().into(), "/sys".into(), "/etc".into());
        let mut stats = Accounting::default();
        report(&host, count, partial, &|| receivers.to_vec(), &mut stats);
        (stats.why.iter().map(|why| why.text.to_string()).collect(), stats.incomplete)
    }

    fn unknown(unknown: u64) -> OwnerlessCount {
        OwnerlessCount { unknown, ..OwnerlessCount::default() }
    }

    #[test]
    fn issue_10_one_line_says_how_many_and_why() {
        let first = Some("pid:[4026531836]");
        assert_eq!(report_of(first, unknown(0), true, &[]), (Vec::new(), false));
        let one = format!("1 listening socket has no visible process: {WITHOUT_DESCRIPTOR}, or ");
        let many = format!("2 listening sockets have no visible process: {WITHOUT_DESCRIPTOR}, or ");
        for (link, count, partial, text, incomplete) in [
            (first, 1, false, format!("{one}opened after the processes were read"), false),
            (None, 1, false, format!("{one}opened after the processes were read"), false),
            (first, 2, true, format!("{many}owned by processes that could not be read"), false),
            (Some("pid:[7]"), 2, true, format!("{many}owned by processes outside this PID namespace"), true),
        ] {
            assert_eq!(report_of(link, unknown(count), partial, &[]), (vec![text], incomplete));
        }
    }

    #[test]
    fn sockets_in_flight_have_a_line() {
        let (lines, incomplete) = report_of(None, OwnerlessCount { in_flight: 2, unknown: 0 }, false, &[]);
        assert_eq!((lines.len(), incomplete), (1, false));
        assert!(lines[0].starts_with("2 listening sockets are in flight over a unix socket"), "{lines:?}");
        let receiver = |pid, count| (Owner { pid, fd: 3, process: Comm::new(b"a\x1bb"), started: 0 }, count);
        let receivers = [receiver(7, 1), receiver(8, 2), receiver(9, 1), receiver(10, 1)];
        let (lines, _) = report_of(None, unknown(1), false, &receivers);
        let name = r"a\u{1b}b";
        let named =
            format!("{name} (7) has 1 descriptor, {name} (8) has 2 descriptors, {name} (9) has 1 descriptor, others");
        assert!(
            lines[0].contains(&named) && lines[0].contains("; other causes: used by the kernel itself, "),
            "{lines:?}"
        );
    }

    #[test]
    fn descriptors_of_a_unix_socket() {
        assert_eq!(descriptors_in_flight(b"pos:\t0\nino:\t8\nscm_fds: 12\n"), 12);
        assert_eq!(descriptors_in_flight(b"pos:\t0\nscm_fds: 0\n") + descriptors_in_flight(b"pos:\t0\n"), 0);
    }
}
