//! Flows that the BPF program sums up: of two maps, one is filled while the other is read.
use bpf::{BpfError, KernelTypes, Link, LoadSpec, LoadedObject, load_with};
use std::time::Duration;
use sys::{Blocks, Host, SysError, clock};

use super::programs::{OBJECT, only_netns, slots};
use super::{HEADER_BYTES, Head};
use crate::events::Follow;
use crate::events::flow_key::{KEY, SPAN, SUM};
use crate::events::flow_shares::{FREE, SHARED};

/// Bound: users and services with folded flows in an interval of `flows --follow`. Beyond: openings and closings are
/// not shown, counted (exit code 3), which also affects other users. By: a user with tens of thousands of subordinate
/// ids.
const ACCOUNTS_MAX: usize = 1 << 15;

/// The two maps; bit 0 of `active_map` selects one.
const MAPS: [&str; 2] = ["flows_even", "flows_odd"];
/// Time after which every program that read `active_map` before it changed has ended.
const SETTLE: Duration = Duration::from_millis(2);
/// Size of `struct flow_sum`: the sums, and the account's charge, which is not recorded.
const VALUE: usize = SUM + 8;
/// Interval between two calls of `stop`.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The attached program and its maps.
pub(crate) struct KernelSums<'h> {
    loaded: LoadedObject,
    _link: Link,
    interval_ns: u64,
    began_ns: u64,
    due_ns: u64,
    active: u64,
    block: Vec<u8>,
    keys: Vec<[u8; KEY]>,
    stop: &'h dyn Fn() -> bool,
    ended: bool,
}

impl<'h> KernelSums<'h> {
    pub(crate) fn open(host: &Host, follow: &Follow<'h>, interval: Duration) -> Result<KernelSums<'h>, BpfError> {
        let slots = slots(host);
        let constants: [(&str, &[u8]); 2] =
            [("only_netns", &only_netns(follow).to_ne_bytes()), ("slots", &slots.to_ne_bytes())];
        let flows = u32::try_from(FREE + SHARED + ACCOUNTS_MAX).unwrap_or(u32::MAX);
        let entries = [("recent_conns", slots), ("flows_even", flows), ("flows_odd", flows)];
        let spec = LoadSpec { object: OBJECT, programs: &["on_sums"], constants: &constants, entries: &entries };
        let loaded = load_with(&KernelTypes::read(host)?, &spec)?;
        let link = loaded.program("on_sums")?.attach()?;
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        let began_ns = clock::monotonic_ns();
        Ok(KernelSums {
            loaded,
            _link: link,
            interval_ns,
            began_ns,
            due_ns: began_ns.saturating_add(interval_ns),
            active: 0,
            block: Vec::new(),
            keys: Vec::new(),
            stop: follow.stop,
            ended: false,
        })
    }

    /// Switches the program to the other map, and takes all entries out of this one.
    fn take(&mut self) -> Result<(), BpfError> {
        let now_ns = clock::monotonic_ns();
        let span_ns = now_ns.saturating_sub(self.began_ns);
        (self.began_ns, self.due_ns) = (now_ns, self.due_ns.saturating_add(self.interval_ns).max(now_ns));
        let full = if self.active & 1 == 0 { MAPS[0] } else { MAPS[1] };
        // One number that includes the count at which the next map starts, so the program never sees one without the
        // other.
        self.active = self.loaded.counter("flows_made")? << 1 | (self.active & 1 ^ 1);
        self.loaded.map("active_map")?.put(&0u32.to_ne_bytes(), &self.active.to_ne_bytes())?;
        std::thread::sleep(SETTLE);
        let map = self.loaded.map(full)?;
        let (block, keys) = (&mut self.block, &mut self.keys);
        block.clear();
        block.resize(HEADER_BYTES + SPAN, 0);
        keys.clear();
        map.for_each(|key, sum| {
            let (Ok(key), Some(sums), VALUE) = (<[u8; KEY]>::try_from(key), sum.get(..SUM), sum.len()) else { return };
            keys.push(key);
            // An account without folded flows is not a row.
            if sums.iter().any(|&byte| byte != 0) {
                block.extend_from_slice(&key);
                block.extend_from_slice(sums);
            }
        })?;
        for key in keys {
            map.remove(key)?;
        }
        let count = |name| self.loaded.counter(name);
        let head = Head {
            // Rows only show a time, so this is the time itself instead of the offset of the clock.
            epoch_ns: clock::wall_ns(),
            lost_ring: count("lost_flows")?,
            lost_map: count("lost_map")?,
            failed: count("failed")?,
            waiting: 0,
            missed: self.loaded.program("on_sums")?.missed_runs()?,
        };
        let bytes = head.bytes().into_iter().chain(span_ns.to_ne_bytes());
        self.block.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        Ok(())
    }
}

impl Blocks for KernelSums<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        if self.ended {
            return Ok(None);
        }
        while clock::monotonic_ns() < self.due_ns {
            if (self.stop)() {
                // The sums since the last block are shown.
                self.ended = true;
                break;
            }
            let left = Duration::from_nanos(self.due_ns.saturating_sub(clock::monotonic_ns()));
            std::thread::sleep(left.min(CHECK_INTERVAL));
        }
        self.ended |= (self.stop)();
        self.take().map_err(|error| error.to_sys("connections via BPF"))?;
        Ok(Some(&self.block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_has_the_same_bounds() {
        let source = include_str!("../../../../bpf/c/sockets_events.bpf.c");
        for (name, bound) in [("FREE", FREE), ("SHARED", SHARED), ("ACCOUNTS", ACCOUNTS_MAX)] {
            let line = format!("#define FLOWS_{name} (1 << {})\n", bound.trailing_zeros());
            assert!(bound.is_power_of_two() && source.contains(&line), "{line}");
        }
    }
}
