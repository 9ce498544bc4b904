//! The userspace side of the BPF program: loads and attaches it, and empties its ring into blocks.
use bpf::{BpfError, EventProgram, KernelTypes, Link, LoadSpec, LoadedObject, Ring, load_with};
use sys::{Host, SysError, clock, fs};

use super::{HEADER_BYTES, Head};
use crate::events::Follow;
use crate::expected;

/// Built from crates/bpf/c/sockets_events.bpf.c.
pub(crate) static OBJECT: &[u8] = include_bytes!("../../../../bpf/objects/sockets_events.o");

/// The mandatory programs.
const NEEDED: [&str; 2] = ["on_state", "stamp"];
/// Programs that see an accept(2) which requests the peer's name: they need CAP_NET_ADMIN and cgroup v2. While they are
/// attached, programs without BPF_F_ALLOW_MULTI cannot attach to the root cgroup's getpeername.
const NAMES: [&str; 2] = ["on_name4", "on_name6"];
/// Programs that see the first use of a socket: kernel 6.3.
const USES: [&str; 2] = ["on_send", "on_receive"];

/// Limits of [`slots`].
const SLOTS_MIN: u32 = 1 << 14;
/// Bound: recent connections that `--follow` keeps in its table. Beyond: further connections use the storage of their
/// sockets: 0.5 µs more each. A socket without room for it (`optmem_max`) has no owner and is counted (exit code 3).
/// By: a local user, for that user's sockets.
const SLOTS_MAX: u32 = 1 << 16;

/// Bound: connections older than a `--follow` whose owners it knows. Beyond: they have no owner and are counted (exit
/// code 3). By: local users.
const OLDER_MAX: u32 = 1 << 20;
const OLDER_MIN: u32 = 1 << 10;

/// Bound: bytes of ring buffer for connections. Beyond: events are lost and counted (exit code 3), which also affects
/// other users. By: a local user who makes connections faster than they are read.
const RING_BYTES: u32 = 4 << 20;

/// Why [`NAMES`] cannot be attached.
const NO_CGROUP: &str = "cgroup v2 is not mounted here (`ip netns exec` hides it, --netns does not)";

/// Mount points of cgroup v2: alone, or next to v1.
const CGROUP_ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Time for which connections wait for the accepting process before the programs at their first use are attached.
const WAIT_NS: u64 = 250_000_000;

/// The attached programs and their ring.
pub(crate) struct EventPrograms {
    loaded: LoadedObject,
    links: Vec<Link>,
    uses: FirstUsePrograms,
    ring: Ring,
    last: Head,
}

impl EventPrograms {
    /// Attaches the programs; also returns the limitations on this kernel.
    pub(crate) fn open(host: &Host, follow: &Follow<'_>) -> Result<(EventPrograms, Vec<String>), BpfError> {
        let AttachedPrograms { loaded, links, uses, left_out, .. } = load_and_attach(
            host,
            only_netns(follow),
            if follow.hooks { AcceptHooks::Attached } else { AcceptHooks::LeftOut },
        )?;
        stamp(&loaded)?;
        let ring = loaded.map("events")?.ring()?;
        Ok((EventPrograms { loaded, links, uses, ring, last: Head::default() }, left_out))
    }

    /// The header of a block that ends now.
    fn head(&self) -> Result<Head, BpfError> {
        let count = |name| self.loaded.counter(name);
        Ok(Head {
            epoch_ns: clock::wall_ns().wrapping_sub(clock::monotonic_ns()),
            lost_ring: count("lost_ring")?,
            lost_map: count("lost_map")?,
            failed: count("failed")?,
            // Several CPUs count it up and down: for a moment it may be below zero.
            waiting: (count("waiting")? as i64).max(0).unsigned_abs(),
            missed: self.loaded.program("on_state")?.missed_runs()?,
        })
    }

    /// Attaches the programs at the first use of a socket once they are needed. Costs one or two calls until then.
    fn watch_uses(&mut self) -> Result<(), BpfError> {
        if self.uses.asleep.is_empty() {
            return Ok(());
        }
        let waiting = self.loaded.counter("waiting")? as i64;
        let unasked = self.loaded.counter("unasked")?;
        if self.uses.are_needed(waiting, unasked, clock::monotonic_ns()) {
            for name in std::mem::take(&mut self.uses.asleep) {
                self.links.push(self.loaded.program(name)?.attach()?);
            }
        }
        Ok(())
    }
}

impl EventProgram for EventPrograms {
    const HEADER: usize = HEADER_BYTES;

    fn take(&mut self, block: &mut Vec<u8>) -> Result<bool, SysError> {
        let events = self.ring.consume(&mut |event| block.extend_from_slice(event))?;
        // Without these programs owners become known later, but no event is lost.
        let _ = self.watch_uses();
        Ok(events > 0)
    }

    fn write_header(&mut self, header: &mut [u8]) {
        // Reading a counter costs a system call. If it fails, the block keeps the previous numbers.
        if let Ok(head) = self.head() {
            self.last = head;
        }
        header.copy_from_slice(&self.last.bytes());
    }

    fn wait(&self, timeout_ms: i32) -> Result<(), SysError> {
        self.ring.wait(timeout_ms).map(drop)
    }
}

/// The namespace that the programs watch; 0 for all.
pub(crate) fn only_netns(follow: &Follow<'_>) -> u32 {
    if follow.all_netns { 0 } else { u32::try_from(follow.netns_id).unwrap_or(0) }
}

/// Programs at the first use of a socket. Each costs every send and receive of the host a tenth of a microsecond, so
/// they are attached only if a process accepts without requesting the peer's name.
struct FirstUsePrograms {
    /// Loaded but not attached.
    asleep: Vec<&'static str>,
    /// Since when every check has found a waiting connection.
    waiting_since_ns: Option<u64>,
}

impl FirstUsePrograms {
    /// `unasked` is the number of connections whose process only became known at their close, which proves the need. A
    /// connection that waits for long is no proof, because it may just not be accepted, but then the programs cost
    /// little.
    fn are_needed(&mut self, waiting: i64, unasked: u64, now_ns: u64) -> bool {
        if waiting <= 0 {
            self.waiting_since_ns = None;
        }
        let since_ns = if waiting > 0 { *self.waiting_since_ns.get_or_insert(now_ns) } else { now_ns };
        unasked > 0 || now_ns.saturating_sub(since_ns) >= WAIT_NS
    }
}

/// The attached programs.
struct AttachedPrograms {
    loaded: LoadedObject,
    links: Vec<Link>,
    uses: FirstUsePrograms,
    /// True if the kernel accepts [`NAMES`], and a cgroup exists for them.
    takes_hooks: bool,
    /// The missing programs, and why.
    left_out: Vec<String>,
}

/// How [`NAMES`] are used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AcceptHooks {
    Attached,
    /// Only loaded, to check that the kernel accepts them without excluding other programs.
    Loaded,
    /// The user does not want them.
    LeftOut,
}

/// Loads and attaches the programs that this kernel and these privileges allow. State changes come first, so that
/// changes during the scan of older sockets are also seen.
fn load_and_attach(host: &Host, only_netns: u32, hooks: AcceptHooks) -> Result<AttachedPrograms, BpfError> {
    let (loaded, optional, mut left_out) = load(host, only_netns, hooks != AcceptHooks::LeftOut)?;
    let mut links = vec![loaded.program("on_state")?.attach()?];
    let root = cgroup_root(host);
    let takes_hooks = root.is_some() && optional.iter().any(|name| NAMES.contains(name));
    if hooks == AcceptHooks::Loaded && root.is_none() {
        left_out.push(missing_hooks_text(&NAMES, NO_CGROUP));
    }
    for name in optional.iter().filter(|name| hooks == AcceptHooks::Attached && NAMES.contains(name)) {
        let program = loaded.program(name)?;
        match root.as_ref().map(|root| program.attach_cgroup(root)) {
            Some(Ok(link)) => links.push(link),
            Some(Err(error)) => left_out.push(missing_hooks_text(&NAMES, &error.to_string())),
            None => left_out.push(missing_hooks_text(&NAMES, NO_CGROUP)),
        }
    }
    left_out.dedup();
    let asleep: Vec<&'static str> = optional.iter().copied().filter(|name| USES.contains(name)).collect();
    let mut uses = FirstUsePrograms { asleep, waiting_since_ns: None };
    if hooks != AcceptHooks::Loaded && links.len() < 1 + NAMES.len() {
        // Only these show which process accepted.
        for name in std::mem::take(&mut uses.asleep) {
            links.push(loaded.program(name)?.attach()?);
        }
    }
    Ok(AttachedPrograms { loaded, links, uses, takes_hooks, left_out })
}

/// Whether connections can be followed with BPF here: its limitations, and whether it would attach accept hooks.
pub(crate) fn try_loading(host: &Host) -> Result<(Vec<String>, bool), BpfError> {
    load_and_attach(host, 0, AcceptHooks::Loaded).map(|hooked| (hooked.left_out, hooked.takes_hooks))
}

/// The text about missing optional hooks.
fn missing_hooks_text(hooks: &[&str], why: &str) -> String {
    let lost = if hooks.first() == NAMES.first() {
        "the accepting process is known at the connection's first use, not at accept"
    } else {
        "a process that accepts without requesting the peer's name is known at close"
    };
    format!("{lost}: {why}")
}

/// Loads as many programs as possible; returns the names of the optional ones among them, and texts about the others.
fn load(host: &Host, only_netns: u32, hooks: bool) -> Result<(LoadedObject, Vec<&'static str>, Vec<String>), BpfError> {
    let types = KernelTypes::read(host)?;
    let slots = slots(host);
    // Reporting no events with BPF is better than pids that belong to other processes.
    let pidns = sys::pidns::below_the_first()?.unwrap_or(0);
    let constants: [(&str, &[u8]); 3] =
        [("only_netns", &only_netns.to_ne_bytes()), ("pidns", &pidns.to_ne_bytes()), ("slots", &slots.to_ne_bytes())];
    let entries = [("recent_conns", slots), ("older_conns", older_slots(host)), ("events", RING_BYTES)];
    let mut left_out = Vec::new();
    let mut wanted: Vec<&[&'static str]> = vec![&USES, &NAMES];
    if !hooks {
        wanted.pop();
        left_out.push(missing_hooks_text(&NAMES, "--no-hooks"));
    }
    loop {
        let optional = wanted.concat();
        // The optional programs come first: missing ones are found before the large programs are verified.
        let programs = [&optional[..], &NEEDED].concat();
        let spec = LoadSpec { object: OBJECT, programs: &programs, constants: &constants, entries: &entries };
        let error = match load_with(&types, &spec) {
            Ok(loaded) => return Ok((loaded, optional, left_out)),
            Err(error) => error,
        };
        if !error.is_unavailable() {
            return Err(error);
        }
        // The first set that does not load alone is the cause; if each loads, the mandatory programs are at fault.
        let bad = wanted.iter().position(|programs| {
            let spec = LoadSpec { object: OBJECT, programs, constants: &constants, entries: &entries };
            load_with(&types, &spec).is_err()
        });
        let Some(bad) = bad else { return Err(error) };
        left_out.push(missing_hooks_text(wanted.remove(bad), &error.to_string()));
    }
}

/// Number of entries in `recent_conns`, 64 bytes each, in which the programs find the connections of this run quickly:
/// a power of two, an eighth of the host's TCP sockets without TIME_WAIT. Connections without an entry cost 0.8 µs
/// more.
pub(super) fn slots(host: &Host) -> u32 {
    let wanted = expected::tcp_sockets_of_host(host) / 8;
    u32::try_from(wanted).unwrap_or(SLOTS_MAX).clamp(SLOTS_MIN, SLOTS_MAX).next_power_of_two()
}

/// Most entries in `older_conns`: a power of two, twice the host's TCP sockets, because more of them may open until
/// they are read. An entry takes memory only once it is used.
fn older_slots(host: &Host) -> u32 {
    let wanted = expected::tcp_sockets_of_host(host).saturating_mul(2);
    u32::try_from(wanted).unwrap_or(OLDER_MAX).clamp(OLDER_MIN, OLDER_MAX).next_power_of_two()
}

fn cgroup_root(host: &Host) -> Option<sys::Fd> {
    let is_v2 = |path: &str| fs::stat(&host.real_path(path).join("cgroup.controllers")).is_ok();
    let path = CGROUP_ROOTS.iter().find(|path| is_v2(path))?;
    fs::open_dir(&host.real_path(path)).ok()
}

/// Records the owners of the sockets that are older than this run. The iterator writes no rows.
fn stamp(loaded: &LoadedObject) -> Result<(), BpfError> {
    let mut rows = loaded.program("stamp")?.attach()?.iterate()?;
    while rows.read(&mut [0; 64])? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_use_programs_are_attached_if_accept_lacks_the_peer() {
        let mut uses = FirstUsePrograms { asleep: Vec::new(), waiting_since_ns: None };
        let ms = 1_000_000;
        assert!(!uses.are_needed(0, 0, 0));
        assert!(!uses.are_needed(1, 0, 10 * ms), "just established");
        assert!(!uses.are_needed(0, 0, 200 * ms));
        assert!(!uses.are_needed(3, 0, 300 * ms), "others than before");
        assert!(!uses.are_needed(1, 0, 549 * ms));
        assert!(uses.are_needed(1, 0, 550 * ms));
        assert!(uses.are_needed(0, 1, 551 * ms), "accepted and let go of without a name");
    }
}
