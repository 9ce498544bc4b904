//! Attaches programs to the hooks, sets their time window and reads their counts.

#[cfg(feature = "bpf")]
pub use with_bpf::StageProbe;
#[cfg(not(feature = "bpf"))]
pub use without_bpf::StageProbe;

#[cfg(feature = "bpf")]
mod with_bpf {
    use std::time::Duration;

    use bpf::{MoveDirection, PathPlace, PathStages, StageArrivals};
    use record::rows::{NetfilterHook, PathFamily, PathStage, StageName};
    use sys::bpf::NetfilterPlace;

    use crate::error::ProfileError;
    use crate::path::block::StageBlock;
    use crate::path::layout::{HOOKS, HookPlaces, LOWEST, hook_places};

    /// `NFPROTO_IPV4`, `NFPROTO_IPV6`
    const FAMILIES: [(PathFamily, u32); 2] = [(PathFamily::Ip, 2), (PathFamily::Ip6, 10)];
    /// Places from this priority on may move to higher ones. They are above connection tracking, which has lower
    /// priority numbers.
    const ABOVE_CONNTRACK: i32 = -199;
    /// After this time, packets that were in transit when the window closed have passed all places.
    const UNDER_WAY: Duration = Duration::from_millis(2);

    /// Places at every hook of a network namespace. They are removed when the value is dropped or the process ends.
    #[derive(Debug)]
    pub struct StageProbe {
        program: PathStages,
        wanted: Vec<PathPlace>,
        window: (u64, u64),
    }

    impl StageProbe {
        /// Attaches to the places at the hooks of the calling thread's namespace, which takes about 100 ms. From then
        /// on, each place costs every packet some time.
        pub fn open() -> Result<StageProbe, ProfileError> {
            let wanted: Vec<PathPlace> = FAMILIES.into_iter().zip(0..).flat_map(of_family).collect();
            let program = PathStages::open(&wanted)?;
            Ok(StageProbe { program, wanted, window: (0, 0) })
        }

        /// Counts the packets that reach their first place from now on and before `end_ns` of the monotonic clock.
        pub fn count_until(&mut self, end_ns: u64) -> Result<(), ProfileError> {
            self.window = (sys::clock::monotonic_ns(), end_ns);
            Ok(self.program.set_window(self.window.0, self.window.1)?)
        }

        /// Describes the places that are at a different priority than wanted.
        pub(crate) fn describe_moved(&self) -> Vec<String> {
            let moved = self.wanted.iter().zip(self.program.actual_places()).filter(|(wanted, had)| wanted.at != **had);
            moved
                .map(|(wanted, had)| {
                    let hook = HOOKS.iter().find(|hook| hook.number == had.hook).map_or("", |hook| hook.hook.name());
                    format!(
                        "priority {} of {hook} belongs to another BPF program: {} is used instead",
                        wanted.at.priority, had.priority
                    )
                })
                .collect()
        }

        /// Closes the window, waits for packets in transit, frees the places and appends the result to `into`.
        pub(crate) fn finish(mut self, netns_id: u64, into: &mut Vec<u8>) -> Result<(), ProfileError> {
            let (open_ns, end_ns) = self.window;
            let close_ns = end_ns.min(sys::clock::monotonic_ns());
            self.program.set_window(open_ns, close_ns)?;
            std::thread::sleep(UNDER_WAY);
            self.program.detach();
            let arrivals = self.program.read_arrivals()?;
            let window_ns = close_ns.saturating_sub(open_ns);
            let sum = |part: fn(&StageArrivals) -> u64| arrivals.iter().map(part).sum();
            let rows = FAMILIES.iter().zip(0..).flat_map(|((family, _), n)| {
                rows(
                    &arrivals,
                    self.program.actual_places(),
                    &hook_places(n * PLACES),
                    PathStage { netns_id, window_ns, ..empty(*family) },
                )
            });
            let block = StageBlock {
                netns_id,
                window_ns,
                strangers: sum(|one| one.strangers),
                places: arrivals.len() as u64,
                own_ns: sum(|one| one.own_ns),
                runs: sum(|one| one.packets),
                rows: rows.collect(),
            };
            block.encode(into);
            Ok(())
        }
    }

    /// The number of places per family.
    const PLACES: usize = 32;
    const _: () = assert!(FAMILIES.len() * PLACES <= bpf::PLACES_MAX);

    /// Returns the places of the `n`th family.
    fn of_family(((_, family), n): ((PathFamily, u32), usize)) -> Vec<PathPlace> {
        let all = hook_places(n * PLACES);
        let [prerouting, _, forward, output, _] = all.map(|hook| u32::try_from(hook.last).ok());
        let mut wanted = Vec::new();
        for (hook, at) in HOOKS.iter().zip(all) {
            let begin = match hook.hook {
                NetfilterHook::Input | NetfilterHook::Forward => [prerouting, None],
                NetfilterHook::Postrouting => [forward, output],
                _ => [None, None],
            };
            let priorities = [LOWEST].into_iter().chain(hook.stages.iter().map(|(_, priority)| *priority));
            for (place, priority) in (at.first..).zip(priorities) {
                let before = place.checked_sub(1).and_then(|before| u32::try_from(before).ok());
                let is_low = priority <= LOWEST + 1;
                wanted.push(PathPlace {
                    at: NetfilterPlace { family, hook: hook.number, priority },
                    gives_way: if is_low || priority == ABOVE_CONNTRACK {
                        MoveDirection::Up
                    } else {
                        MoveDirection::Down
                    },
                    from: if place == at.first { begin } else { [before, None] },
                });
            }
        }
        wanted
    }

    /// Returns a row without numbers.
    fn empty(family: PathFamily) -> PathStage {
        PathStage {
            netns_id: 0,
            family,
            hook: NetfilterHook::Prerouting,
            stage: StageName::Routing,
            priorities: None,
            packets: 0,
            lost: 0,
            measured: 0,
            sum_ns: 0,
            median_ns: None,
            p99_ns: None,
            max_ns: None,
            window_ns: 0,
        }
    }

    /// Returns the rows of one family, in the order in which packets pass the stages.
    fn rows(
        all: &[StageArrivals],
        had: &[NetfilterPlace],
        hooks: &[HookPlaces; 5],
        empty: PathStage,
    ) -> Vec<PathStage> {
        let none = StageArrivals::default();
        let at = |place: usize| all.get(place).unwrap_or(&none);
        let priority = |place: usize| had.get(place).map_or(0, |place| place.priority);
        let [prerouting, input, forward, output, postrouting] = *hooks;
        let mut rows = Vec::new();
        for (hook, places) in HOOKS.iter().zip(hooks) {
            if hook.hook == NetfilterHook::Postrouting {
                let came = at(forward.last).packets + at(output.last).packets;
                rows.push(row(
                    came,
                    at(postrouting.first),
                    at(postrouting.first).packets,
                    PathStage { hook: hook.hook, ..empty },
                ));
            }
            for (place, (stage, _)) in (places.first..).zip(hook.stages) {
                let priorities = Some((priority(place).saturating_add(1), priority(place + 1).saturating_sub(1)))
                    .filter(|(first, last)| first <= last);
                let stage = PathStage { hook: hook.hook, stage: *stage, priorities, ..empty };
                rows.push(row(at(place).packets, at(place + 1), at(place + 1).packets, stage));
            }
            if hook.hook == NetfilterHook::Prerouting {
                let mut times = at(input.first).clone();
                times.add(at(forward.first));
                let stage = PathStage { hook: hook.hook, ..empty };
                rows.push(row(at(prerouting.last).packets, &times, times.packets, stage));
            }
        }
        rows
    }

    /// Returns the row of a stage that `came` packets entered and `left` packets left, with these times.
    fn row(came: u64, times: &StageArrivals, left: u64, stage: PathStage) -> PathStage {
        PathStage {
            packets: came,
            lost: came.saturating_sub(left),
            measured: times.measured,
            sum_ns: times.sum_ns,
            median_ns: times.quantile_ns(50),
            p99_ns: times.quantile_ns(99),
            max_ns: (times.measured > 0).then_some(times.max_ns),
            ..stage
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn packets_come_from_the_place_before() {
            let wanted: Vec<PathPlace> = FAMILIES.into_iter().zip(0..).flat_map(of_family).collect();
            assert_eq!(wanted.len(), 2 * PLACES);
            let (ip, ip6) = wanted.split_at(PLACES);
            let first_of = |hook: u32| ip.iter().position(|place| place.at.hook == hook).map_or(0, |at| at);
            assert_eq!((ip[0].from, ip[1].from), ([None, None], [Some(0), None]));
            assert_eq!(ip[first_of(1)].from, [Some(8), None], "input from prerouting");
            assert_eq!(ip[first_of(2)].from, [Some(8), None], "forward from prerouting");
            assert_eq!(ip[first_of(3)].from, [None, None], "output begins");
            let [_, _, forward, output, _] = hook_places(0);
            let both = [u32::try_from(forward.last).ok(), u32::try_from(output.last).ok()];
            assert_eq!(ip[first_of(4)].from, both);
            assert!(ip6.iter().all(|place| place.at.family == 10));
            assert_eq!(ip6[1].from, [Some(32), None]);
        }
    }
}

#[cfg(not(feature = "bpf"))]
mod without_bpf {
    use crate::error::ProfileError;

    /// A stub for builds without BPF.
    #[derive(Debug)]
    pub struct StageProbe(());

    impl StageProbe {
        /// Fails: netwren was built without BPF.
        pub fn open() -> Result<StageProbe, ProfileError> {
            Err(ProfileError::WithoutBpf)
        }

        /// Fails: netwren was built without BPF.
        pub fn count_until(&mut self, _: u64) -> Result<(), ProfileError> {
            Err(ProfileError::WithoutBpf)
        }

        pub(crate) fn describe_moved(&self) -> Vec<String> {
            Vec::new()
        }

        pub(crate) fn finish(self, _: u64, _: &mut Vec<u8>) -> Result<(), ProfileError> {
            Err(ProfileError::WithoutBpf)
        }
    }
}
