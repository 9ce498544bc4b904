//! Containers, pods and systemd units of processes, from the paths of their cgroups and the runtimes' state files.
//!
//! Supports docker, podman, containerd (also for Kubernetes) and LXC, based on files that they really wrote
//! (`fixtures/containers`).
//!
//! A name is believed if only root or the caller can have created the cgroup with that name (`makers`), and if the
//! runtime's state, when readable, contains such a container (`state`). Otherwise only the cgroup's path is shown.
//! Start reading at [`Containers::read`].
mod config;
mod makers;
mod place;
mod state;
mod trusted;

use hashbrown::HashMap;
use record::{Key, Lookup, Value};
use sys::Host;

use crate::cgroups::Cgroups;
use crate::texts::Texts;
use makers::{Hierarchy, Makers, UNIFIED};
use place::{Container, Runtime, paths, place};
use state::{Cri, StateAnswer, States};

/// Number of digits shown of an id without a name, the same as in the runtimes.
const SHORT_ID: usize = 12;

/// Results by pid or, for sockets without an owner, by cgroup id.
#[derive(Debug, Default)]
pub struct Placed {
    by_pid: Texts<u32>,
    by_group: Texts<u64>,
}

impl Lookup for Placed {
    fn value(&self, key: Key) -> Value<'_> {
        Value::text(match key {
            Key::Id(pid) => u32::try_from(pid).ok().and_then(|pid| self.by_pid.get(pid)),
            Key::Pair(group, 0) => self.by_group.get(group),
            _ => None,
        })
    }
}

/// Containers, pods and units of processes.
#[derive(Debug, Default)]
pub struct Containers {
    names: Placed,
    pods: Placed,
    units: Placed,
    unchecked: u32,
}

impl Containers {
    /// Decodes the cgroup files of processes and the paths of all cgroups, and looks up names in the runtimes' state
    /// files: one file per container. If a state file is missing or malformed, the id is shown instead of a name. Each
    /// directory above a name is checked once, about 1 µs.
    pub fn read<'c>(host: &Host, files: impl Iterator<Item = (u32, &'c [u8])>, groups: Option<&Cgroups>) -> Containers {
        Containers::read_by(States::new(host, ""), Makers::new(host), files, groups)
    }

    fn read_by<'c>(
        states: States<'_>,
        makers: Makers<'_>,
        files: impl Iterator<Item = (u32, &'c [u8])>,
        groups: Option<&Cgroups>,
    ) -> Containers {
        let mut finder = Finder { states, makers, known: HashMap::default() };
        let mut by_pid = <[Gather<u32>; 3]>::default();
        let mut by_group = <[Gather<u64>; 3]>::default();
        for (pid, file) in files {
            gather(&mut by_pid, pid, &finder.of_file(file));
        }
        for (group, path) in groups.into_iter().flat_map(Cgroups::each) {
            gather(&mut by_group, group, &finder.of_path(UNIFIED, path));
        }
        let unchecked = finder.makers.unchecked;
        let [names, pods, units] = by_pid.map(Gather::finish);
        let [group_names, group_pods, group_units] = by_group.map(Gather::finish);
        Containers {
            names: Placed { by_pid: names, by_group: group_names },
            pods: Placed { by_pid: pods, by_group: group_pods },
            units: Placed { by_pid: units, by_group: group_units },
            unchecked,
        }
    }

    /// A line for the end of a run, if directories of cgroups could not be checked: names in them are not shown.
    pub fn missing(&self) -> Option<String> {
        missing(self.unchecked)
    }

    /// Names of containers, or the first digits of the id without a name.
    pub fn names(&self) -> &Placed {
        &self.names
    }

    /// Pods as namespace/name, or the uid without a name.
    pub fn pods(&self) -> &Placed {
        &self.pods
    }

    /// Innermost systemd units.
    pub fn units(&self) -> &Placed {
        &self.units
    }
}

/// See [`Containers::missing`].
fn missing(unchecked: u32) -> Option<String> {
    let text = "containers, pods and units are not shown for cgroups whose creator is unknown: their directories are \
                not accessible here, or not in the recording";
    (unchecked > 0).then(|| format!("{text}: {unchecked}"))
}

/// Finds out from a process's cgroup file whether the process runs in a container of a given name.
pub(crate) struct ContainerSearch<'h> {
    finder: Finder<'h>,
    wanted: Box<[u8]>,
}

impl<'h> ContainerSearch<'h> {
    /// Searches for containers with this name. Reads nothing yet.
    pub(crate) fn new(host: &'h Host, wanted: &[u8]) -> ContainerSearch<'h> {
        ContainerSearch::by(States::new(host, ""), Makers::new(host), wanted)
    }

    fn by(states: States<'h>, makers: Makers<'h>, wanted: &[u8]) -> ContainerSearch<'h> {
        let finder = Finder { states, makers, known: HashMap::default() };
        ContainerSearch { finder, wanted: wanted.into() }
    }

    /// The container id of the process with this cgroup file, if the container has the name, or an id with that prefix.
    pub(crate) fn id_of(&mut self, file: &[u8]) -> Option<Box<[u8]>> {
        let ShownPlace { container: Some(name), id: Some(id), .. } = self.finder.of_file(file) else { return None };
        let is_id = self.wanted.len() >= SHORT_ID && id.starts_with(&self.wanted);
        (name == self.wanted || is_id).then_some(id)
    }

    /// Like [`Containers::missing`].
    pub(crate) fn missing(&self) -> Option<String> {
        missing(self.finder.makers.unchecked)
    }
}

fn gather<K: Copy>(into: &mut [Gather<K>; 3], key: K, found: &ShownPlace) {
    for (gather, text) in into.iter_mut().zip([&found.container, &found.pod, &found.unit]) {
        gather.add(key, text.as_deref());
    }
}

struct Gather<K> {
    arena: Vec<u8>,
    places: Vec<(K, u32, u32)>,
}

impl<K> Default for Gather<K> {
    fn default() -> Gather<K> {
        Gather { arena: Vec::new(), places: Vec::new() }
    }
}

impl<K: Copy> Gather<K> {
    fn add(&mut self, key: K, text: Option<&[u8]>) {
        let Some(text) = text else { return };
        let start = self.arena.len();
        // More than 4 GiB of names are dropped.
        let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(start + text.len())) else { return };
        self.arena.extend_from_slice(text);
        self.places.push((key, start, end));
    }
}

impl<K: Copy + Ord> Gather<K> {
    fn finish(self) -> Texts<K> {
        Texts::new(self.arena, self.places)
    }
}

/// The values shown for a cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ShownPlace {
    container: Option<Box<[u8]>>,
    /// The full id of the container, which distinguishes it from others with its name.
    id: Option<Box<[u8]>>,
    pod: Option<Box<[u8]>>,
    unit: Option<Box<[u8]>>,
}

/// Looks up each path or file once: many processes share one.
struct Finder<'h> {
    states: States<'h>,
    makers: Makers<'h>,
    known: HashMap<Box<[u8]>, ShownPlace, foldhash::fast::FixedState>,
}

impl Finder<'_> {
    /// The values for a file /proc/PID/cgroup, from the first path that has any.
    fn of_file(&mut self, file: &[u8]) -> ShownPlace {
        if let Some(found) = self.known.get(file) {
            return found.clone();
        }
        let mut found = ShownPlace::default();
        for (hierarchy, path, has_units) in paths(file) {
            let one = self.of_path(hierarchy, path);
            if found.container.is_none() {
                (found.container, found.id) = (one.container, one.id);
            }
            found.pod = found.pod.or(one.pod);
            found.unit = found.unit.or(one.unit.filter(|_| has_units));
        }
        self.known.insert(file.into(), found.clone());
        found
    }

    fn of_path(&mut self, hierarchy: Hierarchy<'_>, path: &[u8]) -> ShownPlace {
        // The line as in the file, without its number.
        let key = [hierarchy, b":", path].concat();
        if let Some(found) = self.known.get(&*key) {
            return found.clone();
        }
        let found = self.find(hierarchy, path);
        self.known.insert(key.into(), found.clone());
        found
    }

    fn find(&mut self, hierarchy: Hierarchy<'_>, path: &[u8]) -> ShownPlace {
        let makers = &mut self.makers;
        let place = place(path, &mut |above| makers.made(hierarchy, above));
        let mut found = ShownPlace { unit: place.unit.map(Box::from), ..ShownPlace::default() };
        // From the outside in: the root user of a container may create groups with the names of other containers inside
        // its own, and a runtime in it creates names that are unknown to this host.
        let mut unknown = None;
        for container in place.containers.iter().rev() {
            let mut pod = None;
            match self.known(container, &mut pod) {
                (_, StateAnswer::NotHere) => {}
                (id, StateAnswer::Unknown) => unknown = unknown.or(Some(id)),
                (id, StateAnswer::Here(name)) => {
                    (found.container, found.pod, found.id) = (name.or_else(|| short(id)), pod, Some(id.into()));
                    break;
                }
            }
        }
        if found.container.is_none() {
            (found.container, found.id) = (unknown.and_then(short), unknown.map(Box::from));
        }
        if found.pod.is_none() {
            found.pod = place.pod_uid.map(|uid| uid.iter().map(|&b| if b == b'_' { b'-' } else { b }).collect());
        }
        found
    }

    /// The id of a container, and the answer from its runtime's state.
    fn known<'p>(&mut self, container: &Container<'p>, pod: &mut Option<Box<[u8]>>) -> (&'p [u8], StateAnswer) {
        let states = &mut self.states;
        match *container {
            Container::Lxc(name) => (name, StateAnswer::Here(Some(name.into()))),
            Container::Perhaps(namespace, id) if states.is_task(namespace, id) => {
                (id, StateAnswer::Here(Some(id.into())))
            }
            Container::Perhaps(_, id) => (id, StateAnswer::NotHere),
            Container::Id(id, Runtime::Docker) => (id, states.docker(id)),
            Container::Id(id, Runtime::Podman) => (id, states.podman(id)),
            Container::Id(id, Runtime::Unknown) => (id, states.docker(id).or_else(|| states.podman(id))),
            Container::Id(id, Runtime::Cri) => {
                let Cri { name, pod: of } = states.cri(id).unwrap_or_default();
                *pod = of;
                (id, name.map_or_else(|| states.is_cri(id), |name| StateAnswer::Here(Some(name))))
            }
        }
    }
}

fn short(id: &[u8]) -> Option<Box<[u8]>> {
    id.get(..SHORT_ID).map(Box::from)
}

/// Decodes any bytes as a file /proc/PID/cgroup. For the fuzzer: it must neither panic nor loop forever.
pub fn fuzz_cgroup(data: &[u8]) {
    for (_, path, _) in paths(data) {
        let found = place(path, &mut |above| above.len() < 9);
        assert!(found.pod_uid.is_none_or(|uid| (32..=36).contains(&uid.len())));
        assert!(found.unit.is_none_or(|unit| unit.len() <= path.len()));
    }
}

#[cfg(test)]
mod tests;
