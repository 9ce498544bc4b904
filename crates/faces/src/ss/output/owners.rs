//! The owners of a socket: processes, threads, security contexts.

use super::options::{Context, Options, Tasks, show};
use crate::pieces::{Outside, put};
use crate::quoted::put_quoted;
use record::rows::Socket;
use record::{Comm, Key, LookupId, Lookups, Owner, Value};

/// Printed for an unknown context.
const UNAVAILABLE: &[u8] = b"unavailable";

/// Appends `␠users:(("NAME",pid=N,fd=N),…)`, the newest process first, in the order in which ss finds them; nothing
/// without owners. If an owner has no descriptor of the socket, `fd` is its io_uring or its unix socket; ss itself
/// finds no such owners.
pub(super) fn put(
    out: &mut Vec<u8>,
    row: &Socket<'_>,
    lookups: &Lookups<'_>,
    sorted: &mut Vec<Owner>,
    options: &Options,
    tasks: Option<&dyn Tasks>,
) {
    let key = if row.inode == 0 { Key::None } else { Key::Id(row.inode.into()) };
    let is_found = |owner: &&Owner| !options.bug_compatible || owner.descriptor().is_some();
    sorted.clear();
    sorted.extend(lookups.owners(key).iter().filter(is_found));
    if sorted.is_empty() {
        return;
    }
    sorted.sort_unstable_by_key(|o| std::cmp::Reverse((o.pid, o.fd)));
    put!(out, " users:(");
    let start = out.len();
    for of_process in sorted.chunk_by(|a, b| a.pid == b.pid) {
        put_process(out, row.inode, of_process, options, lookups, tasks);
    }
    // Each entry ends in a comma.
    if out.len() > start {
        out.pop();
    }
    put!(out, ")");
}

/// Appends the entries of one process: first its threads that have the socket open, the newest first, then the process
/// itself.
fn put_process(
    out: &mut Vec<u8>,
    inode: u32,
    owners: &[Owner],
    options: &Options,
    lookups: &Lookups<'_>,
    tasks: Option<&dyn Tasks>,
) {
    let Some(pid) = owners.first().map(|owner| owner.pid) else { return };
    let threads = tasks.filter(|_| options.has(show::THREADS));
    if let Some(tasks) = threads {
        let mut threads: Vec<Task> = Vec::new();
        tasks.threads(pid, inode, &mut |tid, name, fd| threads.push(Task { pid, tid, name, fd }));
        threads.iter().rev().for_each(|task| task.put(out, options, Some(tasks)));
    }
    // A process's owners include descriptors in its threads' separate tables, if the kernel listed them.
    let of_thread = |owner: &Owner| {
        let key = Key::Pair(u64::from(inode) << 32 | u64::from(pid), owner.fd);
        matches!(lookups.value(LookupId::Owners, key), Value::U64(thread) if thread != u64::from(pid) && thread != 0)
    };
    for owner in owners {
        if threads.is_some() && of_thread(owner) {
            continue;
        }
        Task { pid, tid: pid, name: owner.process, fd: owner.reached_through() }.put(out, options, tasks);
    }
}

/// A thread that has the socket open, with one descriptor.
struct Task {
    pid: u32,
    tid: u32,
    name: Comm,
    fd: u32,
}

impl Task {
    fn put(&self, out: &mut Vec<u8>, options: &Options, tasks: Option<&dyn Tasks>) {
        put!(out, "(\"");
        put_name(out, self.name.as_bytes(), options.bug_compatible);
        put!(out, "\",pid=", self.pid, options.has(show::THREADS).then_some((",tid=", self.tid)));
        if options.context != Context::None {
            put!(out, ",proc_ctx=");
            put_context(out, options, |out| tasks.is_some_and(|tasks| tasks.put_context(self.tid, out)));
        }
        put!(out, ",fd=", self.fd);
        if options.context == Context::Socket {
            put!(out, ",sock_ctx=");
            let fd = self.fd;
            put_context(out, options, |out| tasks.is_some_and(|tasks| tasks.put_socket_context(self.tid, fd, out)));
        }
        put!(out, "),");
    }
}

/// Appends a context, which is also text from outside.
fn put_context(out: &mut Vec<u8>, options: &Options, put: impl FnOnce(&mut Vec<u8>) -> bool) {
    let mut context = Vec::new();
    let is_known = put(&mut context);
    put!(out, Outside(if is_known { &context } else { UNAVAILABLE }, options.bug_compatible));
}

/// Appends a process name in quotation marks. ss reads the name up to the first `)` and escapes nothing.
fn put_name(out: &mut Vec<u8>, name: &[u8], bug_compatible: bool) {
    if bug_compatible {
        return put!(out, Outside(name.split(|&b| b == b')').next().unwrap_or_default(), true));
    }
    put_quoted(out, name);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ss::output::Layout;
    use record::Lookup;

    struct Known([Owner; 3]);

    fn known() -> Known {
        let owner = |pid, fd, name: &[u8]| Owner { pid, fd, process: Comm::new(name), started: 0 };
        Known([owner(7, 3, b"one"), owner(7, 4, b"one"), owner(9, 3, b"two")])
    }

    impl Lookup for Known {
        fn value(&self, _: Key) -> Value<'_> {
            Value::Null
        }
        fn owners(&self, _: Key) -> &[Owner] {
            &self.0
        }
    }

    impl Tasks for Known {
        fn threads(&self, pid: u32, inode: u32, each: &mut dyn FnMut(u32, Comm, u32)) {
            if pid == 7 && inode == 5 {
                each(8, Comm::new(b"a\x1b"), 3);
                each(8, Comm::new(b"a\x1b"), 4);
                // A thread with a separate table.
                each(12, Comm::new(b"b\"c"), 9);
            }
        }
        fn put_context(&self, tid: u32, out: &mut Vec<u8>) -> bool {
            out.extend_from_slice(b"system_u:\n");
            tid == 7
        }
        fn put_socket_context(&self, _: u32, fd: u32, out: &mut Vec<u8>) -> bool {
            out.extend_from_slice(b"s0");
            fd == 4
        }
    }

    fn owners(threads: bool, context: Context) -> String {
        let shows = if threads { show::PROCESSES | show::THREADS } else { show::PROCESSES };
        let options = Options { context, ..Options::plain(Layout::V6_1).with(shows) };
        let known = known();
        let lookups = Lookups::empty().with_lookup(LookupId::Owners, &known);
        let row = Socket { inode: 5, ..Socket::EMPTY };
        let mut out = Vec::new();
        put(&mut out, &row, &lookups, &mut Vec::new(), &options, Some(&known));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn newest_first_threads_before_their_process() {
        assert_eq!(
            owners(false, Context::None),
            r#" users:(("two",pid=9,fd=3),("one",pid=7,fd=4),("one",pid=7,fd=3))"#
        );
        assert_eq!(
            owners(true, Context::None),
            concat!(
                r#" users:(("two",pid=9,tid=9,fd=3),("b\"c",pid=7,tid=12,fd=9),"#,
                r#"("a?",pid=7,tid=8,fd=4),("a?",pid=7,tid=8,fd=3),("one",pid=7,tid=7,fd=4),("one",pid=7,tid=7,fd=3))"#
            )
        );
    }

    #[test]
    fn contexts() {
        assert_eq!(
            owners(false, Context::Process),
            concat!(
                r#" users:(("two",pid=9,proc_ctx=unavailable,fd=3),("one",pid=7,proc_ctx=system_u:?,fd=4),"#,
                r#"("one",pid=7,proc_ctx=system_u:?,fd=3))"#
            )
        );
        let both = owners(false, Context::Socket);
        assert!(both.contains(r#"("one",pid=7,proc_ctx=system_u:?,fd=4,sock_ctx=s0),"#), "{both}");
        assert!(both.ends_with(r#"fd=3,sock_ctx=unavailable))"#), "{both}");
    }

    #[test]
    fn issue_10_process_names_are_whole_and_quoted_or_as_ss_cuts_them() {
        for (name, right, old) in [
            (&b"a\"b c)"[..], "a\\\"b c)", "a\"b c"),
            (b"x\x1b[1m", "x?[1m", "x\x1b[1m"),
            (b")", ")", ""),
            (b"\\\",pid=1,fd=3", r#"\\\",pid=1,fd=3"#, r#"\",pid=1,fd=3"#),
        ] {
            for (expected, bug) in [(right, false), (old, true)] {
                let mut out = Vec::new();
                put_name(&mut out, name, bug);
                assert_eq!(String::from_utf8(out).unwrap(), expected);
            }
        }
    }
}
