//! Containers, pods and systemd units of processes, from the paths of their cgroups and the runtimes' state files.
//!
//! docker, podman, containerd (also for Kubernetes) and LXC, each by what it really wrote (`fixtures/containers`).
//!
//! A name is believed where only root (or the caller) may have made the cgroup of that name (`makers`), and where the
//! runtime's state, if it can be read, has such a container (`state`). Of anything else only the cgroup's path is
//! shown. Start reading at [`Containers::read`].
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

/// Digits of an id that are shown where there is no name, as the runtimes do.
const SHORT_ID: usize = 12;

/// Answers under a pid or, for sockets that nobody holds, under the id of a cgroup.
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

/// Where processes run.
#[derive(Debug, Default)]
pub struct Containers {
    names: Placed,
    pods: Placed,
    units: Placed,
    unchecked: u32,
}

impl Containers {
    /// Takes the cgroup files of processes and the paths of all cgroups apart, and asks the runtimes' state files for
    /// names: one file a container. A state file that is missing or makes no sense costs a name: then the id is shown.
    /// Each directory above a name is looked at once, about 1 µs.
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

    /// A line for the end of a run, if directories of cgroups could not be looked at: what is named in them is not
    /// shown.
    pub fn missing(&self) -> Option<String> {
        missing(self.unchecked)
    }

    /// Names of containers; the beginning of the id where there is no name.
    pub fn names(&self) -> &Placed {
        &self.names
    }

    /// Pods as namespace/name; the uid where they have no name.
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
    let text = "containers, pods and units are not shown where nothing tells who made their cgroups: directories of \
                cgroups that are out of reach here, or not in the recording";
    (unchecked > 0).then(|| format!("{text}: {unchecked}"))
}

/// Tells by a process's cgroup file whether it runs in a container of one name.
pub(crate) struct ContainerSearch<'h> {
    finder: Finder<'h>,
    wanted: Box<[u8]>,
}

impl<'h> ContainerSearch<'h> {
    /// Searches containers of this name. Reads nothing yet.
    pub(crate) fn new(host: &'h Host, wanted: &[u8]) -> ContainerSearch<'h> {
        ContainerSearch::by(States::new(host, ""), Makers::new(host), wanted)
    }

    fn by(states: States<'h>, makers: Makers<'h>, wanted: &[u8]) -> ContainerSearch<'h> {
        let finder = Finder { states, makers, known: HashMap::default() };
        ContainerSearch { finder, wanted: wanted.into() }
    }

    /// The id of the container of the process with this cgroup file, if it has the name, or an id that begins so.
    pub(crate) fn id_of(&mut self, file: &[u8]) -> Option<Box<[u8]>> {
        let ShownPlace { container: Some(name), id: Some(id), .. } = self.finder.of_file(file) else { return None };
        let is_id = self.wanted.len() >= SHORT_ID && id.starts_with(&self.wanted);
        (name == self.wanted || is_id).then_some(id)
    }

    /// As [`Containers::missing`].
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
        // Beyond 4 GiB of names there are none.
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

/// What is shown of a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ShownPlace {
    container: Option<Box<[u8]>>,
    /// The whole id of the container; what tells it from others of its name.
    id: Option<Box<[u8]>>,
    pod: Option<Box<[u8]>>,
    unit: Option<Box<[u8]>>,
}

/// Finds by path or by file, each once: many processes share one.
struct Finder<'h> {
    states: States<'h>,
    makers: Makers<'h>,
    known: HashMap<Box<[u8]>, ShownPlace, foldhash::fast::FixedState>,
}

impl Finder<'_> {
    /// Of a file /proc/PID/cgroup: the first path that tells.
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
        // As in the file, where no number stands before it.
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
        // From the outside in: the root of a container may make groups with the names of others in its own, and a
        // runtime in it makes names of which this host knows nothing.
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

    /// The id of a container, and what its runtime knows of it.
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

/// Takes any bytes as a file /proc/PID/cgroup. For the fuzzer: it must neither panic nor fail to end.
pub fn fuzz_cgroup(data: &[u8]) {
    for (_, path, _) in paths(data) {
        let found = place(path, &mut |above| above.len() < 9);
        assert!(found.pod_uid.is_none_or(|uid| (32..=36).contains(&uid.len())));
        assert!(found.unit.is_none_or(|unit| unit.len() <= path.len()));
    }
}

#[cfg(test)]
mod tests;
