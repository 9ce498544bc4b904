//! Finds out which optional parts of the kernel are available, without triggering their loading.
//!
//! A request to a missing part makes the kernel load its module (request_module in net/core/sock_diag.c,
//! net/netlink/af_netlink.c, net/netfilter/nfnetlink.c). A read-only run must not change the host, so it first reads
//! the kernel's own lists: the loaded modules, and the names of the kernel's functions, which reveal built-in parts.
use std::cell::OnceCell;
use std::collections::HashSet;
use std::ops::ControlFlow;

use crate::blocks::Blocks;
use crate::errno::Errno;
use crate::fs;
use crate::host::Host;
use crate::lines::Lines;

/// Maximum number of bytes kept of a kallsyms line that spans two reads; a longer line cannot belong to a
/// [`KernelPart`]. The kernel's own limit for a name (KSYM_NAME_LEN) is 512 bytes.
const LINE_BYTES_MAX: usize = 1 << 10;

/// A part of the kernel that may be a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelPart {
    /// The module's name with underscores, as in /sys/module.
    pub module: &'static str,
    /// One of its functions whose address is taken, so that no compiler inlines or renames it: its dump callback. The
    /// name ends in `_dump` or `_dump_table`.
    pub function: &'static str,
}

/// Whether a part is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is loaded or built in, or no request can load it: a request changes nothing.
    There,
    /// It is missing; a request may make the kernel load it.
    NotLoaded,
    /// Unknown; a request may make the kernel load the module.
    Unknown,
}

/// The kernel's lists. The long one is read at most once.
#[derive(Debug)]
pub struct Modules<'h> {
    host: &'h Host,
    dumps: OnceCell<Option<HashSet<Box<[u8]>>>>,
}

impl<'h> Modules<'h> {
    /// Creates the lists without reading anything.
    pub fn new(host: &'h Host) -> Modules<'h> {
        Modules { host, dumps: OnceCell::new() }
    }

    /// Whether `part` is available. About ten system calls; the first part that is not a loaded module costs another
    /// 60 ms, for the names of 200,000 functions. On a kernel without module support it takes two calls.
    pub fn presence(&self, part: KernelPart) -> Presence {
        if self.lacks_module_support() || self.is_closed() {
            return Presence::There;
        }
        if fs::stat(&self.host.sys_path("module").join(part.module)).is_ok() {
            return Presence::There;
        }
        match self.dumps.get_or_init(|| self.read_dumps()) {
            Some(names) if names.contains(part.function.as_bytes()) => Presence::There,
            Some(_) => Presence::NotLoaded,
            None => Presence::Unknown,
        }
    }

    // True if the kernel supports no modules at all (CONFIG_MODULES): then it has no list of them. If all of /proc
    // except the processes is hidden (mount option subset=pid), a missing list proves nothing.
    fn lacks_module_support(&self) -> bool {
        let stat = |name: &str| fs::stat(&self.host.proc_path(name));
        stat("modules").is_err_and(|error| error.errno == Errno::NOENT) && stat("version").is_ok()
    }

    // True if the host has disabled module loading until the next boot.
    fn is_closed(&self) -> bool {
        let mut text = Vec::new();
        let read = fs::read_file(&self.host.proc_path("sys/kernel/modules_disabled"), &mut text);
        read.is_ok() && text.trim_ascii() == b"1"
    }

    // The functions of the running kernel and its modules that may belong to a part; `None` if the list is hidden or
    // empty.
    fn read_dumps(&self) -> Option<HashSet<Box<[u8]>>> {
        let mut file = fs::FileBlocks::open(&self.host.proc_path("kallsyms")).ok()?;
        let (mut names, mut lines) = (HashSet::new(), Lines::new(LINE_BYTES_MAX));
        let mut is_empty = true;
        while let Some(block) = file.next().ok()? {
            let _ = lines.split_lines(block, &mut |line| {
                names.extend(dump_of(line).map(Box::from));
                is_empty = false;
                ControlFlow::Continue(())
            });
        }
        (!is_empty).then_some(names)
    }
}

// The name on a line of kallsyms (`ffffffff82120450 t tcp_diag_dump [tcp_diag]`) if it may belong to a part.
fn dump_of(line: &[u8]) -> Option<&[u8]> {
    let name = line.split(|byte| byte.is_ascii_whitespace()).nth(2)?;
    (name.ends_with(b"_dump") || name.ends_with(b"_dump_table")).then_some(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::path::Path;

    const LOADED: KernelPart = KernelPart { module: "sctp_diag", function: "sctp_diag_dump" };
    const BUILT_IN: KernelPart = KernelPart { module: "tcp_diag", function: "tcp_diag_dump" };
    const ABSENT: KernelPart = KernelPart { module: "vsock_diag", function: "vsock_diag_handler_dump" };

    fn host(root: &Path) -> Host {
        for folder in ["proc/sys/kernel", "sys/module/sctp_diag"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        Host::with_roots(root.join("proc"), root.join("sys"), root.join("etc"))
    }

    #[test]
    fn a_part_is_loaded_built_in_absent_or_unknown() {
        let root = tempfile::tempdir().unwrap();
        let host = host(root.path());
        let ask = |part| Modules::new(&host).presence(part);
        // First /proc contains nothing at all, then everything except a module list: a kernel that cannot load
        // modules.
        assert_eq!(ask(ABSENT), Presence::Unknown);
        std::fs::write(root.path().join("proc/version"), "Linux version 6.18").unwrap();
        assert_eq!(ask(ABSENT), Presence::There);
        std::fs::write(root.path().join("proc/modules"), "sctp_diag 16384 0 - Live 0x0\n").unwrap();
        assert_eq!([ask(LOADED), ask(BUILT_IN), ask(ABSENT)], [Presence::There, Presence::Unknown, Presence::Unknown]);
        let long = "x".repeat(3 * LINE_BYTES_MAX);
        let names = format!(
            "0000000000000000 t {long} vsock_diag_handler_dump\n0000000000000000 t tcp_diag_dump\n\
             0000000000000000 t not_vsock_diag_handler_dump\t[m]\n0000000000000000 t raw_diag_dump\t[raw_diag]"
        );
        std::fs::write(root.path().join("proc/kallsyms"), names).unwrap();
        assert_eq!([ask(LOADED), ask(BUILT_IN), ask(ABSENT)], [Presence::There, Presence::There, Presence::NotLoaded]);
        std::fs::write(root.path().join("proc/sys/kernel/modules_disabled"), "1\n").unwrap();
        assert_eq!(ask(ABSENT), Presence::There);
    }

    /// The running kernel's list is readable and contains a function that every kernel running the tests has.
    #[test]
    fn the_running_kernel_has_tcp() {
        let host = Host::live();
        let names = Modules::new(&host).read_dumps();
        assert!(names.is_none_or(|names| names.iter().any(|name| name.ends_with(b"_dump"))));
    }
}
