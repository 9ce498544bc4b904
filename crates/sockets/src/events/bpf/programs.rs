//! The BPF program's end in this process: loaded, attached, its ring emptied into blocks.
use bpf::{BpfError, EventProgram, KernelTypes, Link, Loaded, Ring, Spec, load_with};
use sys::{Host, SysError, clock, fs};

use super::{HEAD, Head};
use crate::events::Follow;
use crate::expected;

/// Built from crates/bpf/c/sockets_events.bpf.c.
pub(crate) static OBJECT: &[u8] = include_bytes!("../../../../bpf/objects/sockets_events.o");

/// What cannot be left out.
const NEEDED: [&str; 2] = ["on_state", "stamp"];
/// accept(2) that asks for the peer's name: needs CAP_NET_ADMIN and cgroup v2. Attached, they keep programs without
/// BPF_F_ALLOW_MULTI from the root cgroup's getpeername.
const NAMES: [&str; 2] = ["on_name4", "on_name6"];
/// The first use of a socket: kernel 6.3.
const USES: [&str; 2] = ["on_send", "on_receive"];

/// Bounds of [`slots`].
const SLOTS_MIN: u32 = 1 << 14;
const SLOTS_MAX: u32 = 1 << 16;

/// Why [`NAMES`] cannot be attached.
const NO_CGROUP: &str = "cgroup v2 is not mounted where we run (`ip netns exec` hides it, --netns does not)";

/// Where cgroup v2 is mounted: alone, or beside v1.
const CGROUP_ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Connections wait this long for the process that accepts them; then the programs at their first use are attached.
const WAIT_NS: u64 = 250_000_000;

/// The attached programs and their ring.
pub(crate) struct EventPrograms {
    loaded: Loaded,
    links: Vec<Link>,
    uses: Uses,
    ring: Ring,
    last: Head,
}

impl EventPrograms {
    /// Attaches the programs; also says what they do without on this kernel.
    pub(crate) fn open(host: &Host, follow: &Follow<'_>) -> Result<(EventPrograms, Vec<String>), BpfError> {
        let Hooked { loaded, links, uses, left_out, .. } =
            hooked(host, only_netns(follow), if follow.hooks { AcceptHooks::Attached } else { AcceptHooks::LeftOut })?;
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

    /// Attaches the programs at the first use of a socket once they are needed. One or two calls while they are not.
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
    const HEADER: usize = HEAD;

    fn take(&mut self, block: &mut Vec<u8>) -> Result<bool, SysError> {
        let events = self.ring.consume(&mut |event| block.extend_from_slice(event))?;
        // Without these programs owners are known later, and no event is missing.
        let _ = self.watch_uses();
        Ok(events > 0)
    }

    fn write_header(&mut self, header: &mut [u8]) {
        // A counter costs a call: a block whose counters cannot be read has those of the block before.
        if let Ok(head) = self.head() {
            self.last = head;
        }
        header.copy_from_slice(&self.last.bytes());
    }

    fn wait(&self, timeout_ms: i32) -> Result<(), SysError> {
        self.ring.wait(timeout_ms).map(drop)
    }
}

/// The namespace that the programs look at; 0 is all.
pub(crate) fn only_netns(follow: &Follow<'_>) -> u32 {
    if follow.all_netns { 0 } else { u32::try_from(follow.netns_id).unwrap_or(0) }
}

/// Programs at the first use of a socket. Each costs every send and receive of the host a tenth of a microsecond, so
/// they are attached only when somebody accepts without asking for the peer's name.
struct Uses {
    /// Loaded, and not attached.
    asleep: Vec<&'static str>,
    /// Since when whenever we looked a connection was waiting.
    waiting_since_ns: Option<u64>,
}

impl Uses {
    /// `unasked`: how many were known only when they let go: that is proof. One that waits for long is none, it may
    /// just not be accepted, but then it costs little to look.
    fn are_needed(&mut self, waiting: i64, unasked: u64, now_ns: u64) -> bool {
        if waiting <= 0 {
            self.waiting_since_ns = None;
        }
        let since_ns = if waiting > 0 { *self.waiting_since_ns.get_or_insert(now_ns) } else { now_ns };
        unasked > 0 || now_ns.saturating_sub(since_ns) >= WAIT_NS
    }
}

/// What could be attached.
struct Hooked {
    loaded: Loaded,
    links: Vec<Link>,
    uses: Uses,
    /// True if the kernel takes [`NAMES`], and there is a cgroup for them.
    takes_hooks: bool,
    /// What could not, and why.
    left_out: Vec<String>,
}

/// What becomes of [`NAMES`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum AcceptHooks {
    Attached,
    /// To see that the kernel takes them, without keeping others out.
    Loaded,
    /// The user wants none.
    LeftOut,
}

/// Loads and attaches what this kernel and these rights allow. Changes of state come first: what happens while older
/// sockets are looked up is seen, too.
fn hooked(host: &Host, only_netns: u32, hooks: AcceptHooks) -> Result<Hooked, BpfError> {
    let (loaded, optional, mut left_out) = load(host, only_netns, hooks != AcceptHooks::LeftOut)?;
    let mut links = vec![loaded.program("on_state")?.attach()?];
    let root = cgroup_root(host);
    let takes_hooks = root.is_some() && optional.iter().any(|name| NAMES.contains(name));
    if hooks == AcceptHooks::Loaded && root.is_none() {
        left_out.push(without(&NAMES, NO_CGROUP));
    }
    for name in optional.iter().filter(|name| hooks == AcceptHooks::Attached && NAMES.contains(name)) {
        let program = loaded.program(name)?;
        match root.as_ref().map(|root| program.attach_cgroup(root)) {
            Some(Ok(link)) => links.push(link),
            Some(Err(error)) => left_out.push(without(&NAMES, &error.to_string())),
            None => left_out.push(without(&NAMES, NO_CGROUP)),
        }
    }
    left_out.dedup();
    let asleep: Vec<&'static str> = optional.iter().copied().filter(|name| USES.contains(name)).collect();
    let mut uses = Uses { asleep, waiting_since_ns: None };
    if hooks != AcceptHooks::Loaded && links.len() < 1 + NAMES.len() {
        // Nothing else shows which process accepted.
        for name in std::mem::take(&mut uses.asleep) {
            links.push(loaded.program(name)?.attach()?);
        }
    }
    Ok(Hooked { loaded, links, uses, takes_hooks, left_out })
}

/// Whether connections can be followed by BPF here: what that does without, and whether it would attach accept hooks.
pub(crate) fn probe(host: &Host) -> Result<(Vec<String>, bool), BpfError> {
    hooked(host, 0, AcceptHooks::Loaded).map(|hooked| (hooked.left_out, hooked.takes_hooks))
}

/// What the optional hooks tell, if they are not there.
fn without(hooks: &[&str], why: &str) -> String {
    let lost = if hooks.first() == NAMES.first() {
        "who accepted a connection is known at its first use, not at accept"
    } else {
        "who accepted without asking for the peer's name is known at close"
    };
    format!("{lost}: {why}")
}

/// Loads what it can; the names of the optional programs among it, and words on the others.
fn load(host: &Host, only_netns: u32, hooks: bool) -> Result<(Loaded, Vec<&'static str>, Vec<String>), BpfError> {
    let types = KernelTypes::read(host)?;
    let slots = slots(host);
    // Better no events by BPF than numbers of other processes.
    let pidns = sys::pidns::below_the_first()?.unwrap_or(0);
    let constants: [(&str, &[u8]); 3] =
        [("only_netns", &only_netns.to_ne_bytes()), ("pidns", &pidns.to_ne_bytes()), ("slots", &slots.to_ne_bytes())];
    let entries = [("recent_conns", slots)];
    let mut left_out = Vec::new();
    let mut wanted: Vec<&[&'static str]> = vec![&USES, &NAMES];
    if !hooks {
        wanted.pop();
        left_out.push(without(&NAMES, "--no-hooks"));
    }
    loop {
        let optional = wanted.concat();
        // The optional ones first: what is missing is found before the large programs are verified.
        let programs = [&optional[..], &NEEDED].concat();
        let spec = Spec { object: OBJECT, programs: &programs, constants: &constants, entries: &entries };
        let error = match load_with(&types, &spec) {
            Ok(loaded) => return Ok((loaded, optional, left_out)),
            Err(error) => error,
        };
        if !error.is_unavailable() {
            return Err(error);
        }
        // The first set that does not load alone is the one; if all do, the needed programs are at fault.
        let bad = wanted.iter().position(|programs| {
            let spec = Spec { object: OBJECT, programs, constants: &constants, entries: &entries };
            load_with(&types, &spec).is_err()
        });
        let Some(bad) = bad else { return Err(error) };
        left_out.push(without(wanted.remove(bad), &error.to_string()));
    }
}

/// Entries of `recent_conns`, 64 bytes each, where the programs find the connections of this run fast: a power of two,
/// an eighth of the host's TCP sockets without TIME_WAIT. Connections without an entry there cost 0.8 µs more.
pub(super) fn slots(host: &Host) -> u32 {
    let wanted = expected::tcp_sockets_of_host(host) / 8;
    u32::try_from(wanted).unwrap_or(SLOTS_MAX).clamp(SLOTS_MIN, SLOTS_MAX).next_power_of_two()
}

fn cgroup_root(host: &Host) -> Option<sys::Fd> {
    let is_v2 = |path: &str| fs::stat(&host.real_path(path).join("cgroup.controllers")).is_ok();
    let path = CGROUP_ROOTS.iter().find(|path| is_v2(path))?;
    fs::open_dir(&host.real_path(path)).ok()
}

/// Notes the owners of the sockets that are older than this run. The iterator writes no rows.
fn stamp(loaded: &Loaded) -> Result<(), BpfError> {
    let mut rows = loaded.program("stamp")?.attach()?.iterate()?;
    while rows.read(&mut [0; 64])? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_looked_at_when_somebody_does_not_ask() {
        let mut uses = Uses { asleep: Vec::new(), waiting_since_ns: None };
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
