//! Explains why listening sockets have no visible owner.

use record::Accounting;
use sys::Host;

/// `PROC_PID_INIT_INO` of include/linux/proc_ns.h: the initial pid namespace.
const INIT_PID_NS: &[u8] = b"pid:[4026531836]";

/// Lists the places that can hold a socket without any process having a descriptor for it.
const WITHOUT_DESCRIPTOR: &str =
    "the kernel's own, in an io_uring's fixed files, in flight over a unix socket (SCM_RIGHTS)";

/// Adds a message on `count` listening sockets without an owner to the end of the run; `partial` if some processes
/// could not be read. If processes are invisible because of the pid namespace, the result is incomplete.
pub(super) fn report(host: &Host, count: u64, partial: bool, stats: &mut Accounting) {
    if count == 0 {
        return;
    }
    let sockets = if count == 1 { "1 listening socket has" } else { &format!("{count} listening sockets have") };
    let mut link = Vec::new();
    let is_initial = host.read_link("/proc/self/ns/pid", &mut link).is_err() || link == INIT_PID_NS;
    stats.incomplete |= !is_initial;
    let why = match (is_initial, partial) {
        (false, _) => "those of processes outside this pid namespace",
        (true, true) => "those of processes that could not be read",
        (true, false) => "opened after the processes were read",
    };
    stats.add_reason(0, format!("{sockets} no process that can be seen: {WITHOUT_DESCRIPTOR}, or {why}"));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn issue_10_one_line_says_how_many_and_why() {
        // The link can be that of the initial pid namespace or of another one, or missing, as in an old recording.
        let said = |link: Option<&str>, count, partial| {
            let tmp = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(tmp.path().join("self/ns")).unwrap();
            let place = tmp.path().join("self/ns/pid");
            link.iter().for_each(|link| std::os::unix::fs::symlink(link, &place).unwrap());
            let host = Host::with_roots(tmp.path().into(), "/sys".into(), "/etc".into());
            let mut stats = Accounting::default();
            report(&host, count, partial, &mut stats);
            (stats.why.first().map(|why| why.text.to_string()), stats.incomplete)
        };
        let first = Some("pid:[4026531836]");
        assert_eq!(said(first, 0, true), (None, false));
        let one = format!("1 listening socket has no process that can be seen: {WITHOUT_DESCRIPTOR}, or ");
        let many = format!("2 listening sockets have no process that can be seen: {WITHOUT_DESCRIPTOR}, or ");
        for (link, count, partial, text, incomplete) in [
            (first, 1, false, format!("{one}opened after the processes were read"), false),
            (None, 1, false, format!("{one}opened after the processes were read"), false),
            (first, 2, true, format!("{many}those of processes that could not be read"), false),
            (Some("pid:[7]"), 2, true, format!("{many}those of processes outside this pid namespace"), true),
        ] {
            assert_eq!(said(link, count, partial), (Some(text), incomplete));
        }
    }
}
