//! Packets at points of netfilter's hooks: how many, and the time since the previous point (`c/path_stages.bpf.c`).
//!
//! Needs Linux 6.4, CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN; no BTF. Measuring ends when the value is dropped or the
//! process ends.
use sys::bpf::NetfilterPlace;

use crate::error::BpfError;
use crate::kernel_types::KernelTypes;
use crate::link::Link;
use crate::load::{LoadSpec, LoadedObject, load_variants};
use crate::object::{u32_at, u64_at};
use crate::time_parts::quantile;

const OBJECT: &[u8] = include_bytes!("../objects/path_stages.o");
const PROGRAM: &str = "on_packet";
const NOWHERE: u32 = u32::MAX;
/// `PARTS` of the program, and their offset in `struct arrivals`.
const TIME_PARTS: usize = 140;
const PARTS_AT: usize = 48;
const ARRIVALS_BYTES: usize = PARTS_AT + 4 * TIME_PARTS;
/// Number of priorities that are tried if one is taken.
const TRIES: i32 = 8;

/// The maximum number of places in one run: `max_entries` of the program's map.
///
/// Bound: places between the hooks of netfilter that `doctor path` measures. Beyond: further places are not measured.
/// By: anyone who may register hooks in the namespace.
pub const PLACES_MAX: usize = 80;

/// A requested place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathPlace {
    /// Family, hook and priority.
    pub at: NetfilterPlace,
    /// Whether to look for another priority below or above this one if it is taken.
    pub gives_way: MoveDirection,
    /// The places, by index in the list, that a packet can have come from; `None` if packets begin here.
    pub from: [Option<u32>; 2],
}

/// The direction in which a place may move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveDirection {
    /// To lower priorities.
    Down,
    /// To higher priorities.
    Up,
}

/// Packets that passed a place while the window was open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StageArrivals {
    /// Number of packets.
    pub packets: u64,
    /// Number of packets for which the time since the previous place is known.
    pub measured: u64,
    /// Number of packets that were not seen at a previous place, although packets do not begin here.
    pub strangers: u64,
    /// Sum of the times in ns.
    pub sum_ns: u64,
    /// Maximum time in ns.
    pub max_ns: u64,
    /// Time of the program itself for these packets, in ns.
    pub own_ns: u64,
    /// Histogram of the times.
    parts: Vec<u64>,
}

/// The attached programs, in the network namespace of the thread that opened them.
#[derive(Debug)]
pub struct PathStages {
    loaded: LoadedObject,
    places: Vec<NetfilterPlace>,
    links: Vec<Link>,
}

impl PathStages {
    /// Loads a program for each place and attaches it: 1 to 2 ms each. From here on packets pay for it. They are
    /// counted while the window is open; it is still closed.
    pub fn open(wanted: &[PathPlace]) -> Result<PathStages, BpfError> {
        let numbers: Vec<[[u8; 4]; 3]> = wanted
            .iter()
            .zip(0_u32..)
            .map(|(place, n)| {
                let [from, or_from] = place.from.map(|from| from.unwrap_or(NOWHERE));
                [n, from, or_from].map(u32::to_ne_bytes)
            })
            .collect();
        let constants: Vec<[(&str, &[u8]); 3]> = numbers
            .iter()
            .map(|[place, from, or_from]| [("place", &place[..]), ("from", &from[..]), ("or_from", &or_from[..])])
            .collect();
        let variants: Vec<&[(&str, &[u8])]> = constants.iter().map(<[_; 3]>::as_slice).collect();
        let spec = LoadSpec { object: OBJECT, programs: &[PROGRAM], constants: &[], entries: &[] };
        let loaded = load_variants(&KernelTypes::empty(), &spec, &variants)?;
        let (mut places, mut links) = (Vec::new(), Vec::new());
        for (program, place) in loaded.programs().iter().zip(wanted) {
            let (at, link) = attach(program, place)?;
            places.push(at);
            links.push(link);
        }
        Ok(PathStages { loaded, places, links })
    }

    /// Loads one program and unloads it again without attaching it.
    pub fn try_load() -> Result<(), BpfError> {
        let spec = LoadSpec { object: OBJECT, programs: &[PROGRAM], constants: &[], entries: &[] };
        load_variants(&KernelTypes::empty(), &spec, &[&[]]).map(drop)
    }

    /// The actual places: some may have given way to another program.
    pub fn actual_places(&self) -> &[NetfilterPlace] {
        &self.places
    }

    /// Counts packets that reach their first place from `open_ns` on and before `close_ns`, both on the monotonic
    /// clock. One system call.
    pub fn set_window(&self, open_ns: u64, close_ns: u64) -> Result<(), BpfError> {
        let window = [open_ns.to_ne_bytes(), close_ns.to_ne_bytes()].concat();
        self.loaded.map("window")?.put(&0_u32.to_ne_bytes(), &window)
    }

    /// Detaches the programs, so that packets no longer pay for them. The counts stay.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// The arrivals at each place. One system call per place.
    pub fn read_arrivals(&self) -> Result<Vec<StageArrivals>, BpfError> {
        let map = self.loaded.map("arrivals")?;
        let mut value = vec![0; map.value_bytes()];
        let mut all = Vec::new();
        for (place, _) in (0_u32..).zip(&self.places) {
            map.get(&place.to_ne_bytes(), &mut value)?;
            all.push(StageArrivals::from_value(&value));
        }
        Ok(all)
    }
}

/// Attaches a program at its place, or at the next free one.
fn attach(program: &crate::Program, place: &PathPlace) -> Result<(NetfilterPlace, Link), BpfError> {
    let mut taken = None;
    for step in 0..TRIES {
        let step = if place.gives_way == MoveDirection::Up { step } else { -step };
        let at = NetfilterPlace { priority: place.at.priority.saturating_add(step), ..place.at };
        match program.attach_netfilter(at) {
            Ok(link) => return Ok((at, link)),
            Err(error @ BpfError::Taken { .. }) => taken = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(taken.unwrap_or(BpfError::NoSuch { kind: "place", name: "netfilter".into() }))
}

impl StageArrivals {
    /// Adds up the numbers of all CPUs.
    fn from_value(value: &[u8]) -> StageArrivals {
        let mut all = StageArrivals { parts: vec![0; TIME_PARTS], ..StageArrivals::default() };
        for of_cpu in value.chunks_exact(ARRIVALS_BYTES) {
            let word = |n: usize| u64_at(of_cpu, n * 8).unwrap_or(0);
            all.packets += word(0);
            all.measured += word(1);
            all.strangers += word(2);
            all.sum_ns += word(3);
            all.max_ns = all.max_ns.max(word(4));
            all.own_ns += word(5);
            for (n, part) in all.parts.iter_mut().enumerate() {
                *part += u64::from(u32_at(of_cpu, PARTS_AT + n * 4).unwrap_or(0));
            }
        }
        all
    }

    /// Adds the arrivals at another place.
    pub fn add(&mut self, other: &StageArrivals) {
        self.packets += other.packets;
        self.measured += other.measured;
        self.strangers += other.strangers;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.own_ns += other.own_ns;
        self.parts.resize(TIME_PARTS.max(self.parts.len()), 0);
        self.parts.iter_mut().zip(&other.parts).for_each(|(part, other)| *part += other);
    }

    /// The time in ns that `hundredths` of 100 packets did not exceed, accurate to an eighth.
    pub fn quantile_ns(&self, hundredths: u64) -> Option<u64> {
        // The middle of a histogram part may exceed all times in it.
        Some(quantile(self.parts.iter().copied(), hundredths)?.min(self.max_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_cpus_are_added() {
        let mut value = vec![0; 2 * ARRIVALS_BYTES];
        for (cpu, numbers) in [[3_u64, 2, 1, 200, 150, 90], [1, 1, 0, 20, 20, 30]].into_iter().enumerate() {
            for (n, number) in numbers.into_iter().enumerate() {
                value[cpu * ARRIVALS_BYTES + n * 8..][..8].copy_from_slice(&number.to_ne_bytes());
            }
            value[cpu * ARRIVALS_BYTES + PARTS_AT + 4 * 20..][..4].copy_from_slice(&5_u32.to_ne_bytes());
        }
        let mut all = StageArrivals::from_value(&value);
        assert_eq!((all.packets, all.measured, all.strangers), (4, 3, 1));
        assert_eq!((all.sum_ns, all.max_ns, all.own_ns, all.parts[20]), (220, 150, 120, 10));
        assert_eq!(all.quantile_ns(50), Some(72));
        all.add(&all.clone());
        assert_eq!((all.packets, all.parts[20], all.max_ns), (8, 20, 150));
        assert_eq!(StageArrivals::default().quantile_ns(99), None);
    }
}
