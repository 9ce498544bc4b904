//! Looks up containers by id in the runtimes' state files. Each file is read once, on first use.
//!
//! The runtimes' configuration gives the directories of the files (`config`).
//!
//! The layouts were taken from the runtimes themselves; `fixtures/containers/<runtime>-<version>/HOW` describes how.
//! The files belong to root, but users choose the names in them.
use hashbrown::{HashMap, HashSet};
use serde_json::Value as Json;
use sys::Host;

use super::config::Roots;
use super::trusted::read_trusted;

/// Maximum number of bytes kept of a name.
const NAME_BYTES_MAX: usize = 253;

/// Maximum number of containerd tasks listed.
///
/// Bound: tasks of containerd. Beyond: further containers have no name. By: root.
const TASKS_MAX: usize = 100_000;

type Map<V> = HashMap<Box<[u8]>, V, foldhash::fast::FixedState>;

/// Folder of the running tasks below containerd's state: one folder per namespace, and in it one per container.
const TASKS: &str = "io.containerd.runtime.v2.task";

/// Whether a runtime has a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StateAnswer {
    /// It has the container, perhaps with a name.
    Here(Option<Box<[u8]>>),
    /// It does not have the container.
    NotHere,
    /// The runtime's state cannot be read, or is missing.
    Unknown,
}

impl StateAnswer {
    /// The answer of another runtime, if this one does not have the container.
    pub(super) fn or_else(self, other: impl FnOnce() -> StateAnswer) -> StateAnswer {
        match (self, other) {
            (StateAnswer::Here(name), _) => StateAnswer::Here(name),
            (StateAnswer::NotHere, other) => other(),
            (StateAnswer::Unknown, other) => match other() {
                StateAnswer::NotHere => StateAnswer::Unknown,
                known => known,
            },
        }
    }
}

/// State of a Kubernetes container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cri {
    /// Name of the container in its pod; `None` for the pod's sandbox.
    pub(super) name: Option<Box<[u8]>>,
    /// Namespace and name of the pod.
    pub(super) pod: Option<Box<[u8]>>,
}

/// The state files of one host.
pub(super) struct States<'h> {
    host: &'h Host,
    root: &'h str,
    roots: Option<Roots>,
    docker: Option<Option<Set>>,
    podman: Option<Option<ContainerNames>>,
    tasks: Option<Option<Set>>,
}

/// Id → name, if the container has one.
type ContainerNames = Map<Option<Box<[u8]>>>;

type Set = HashSet<Box<[u8]>, foldhash::fast::FixedState>;

impl<'h> States<'h> {
    /// State files of `host` below `root`, which is empty except in tests.
    pub(super) fn new(host: &'h Host, root: &'h str) -> States<'h> {
        States { host, root, roots: None, docker: None, podman: None, tasks: None }
    }

    /// The state directories of the runtimes on this host.
    fn roots(&mut self) -> Roots {
        let (host, root) = (self.host, self.root);
        self.roots.get_or_insert_with(|| Roots::read(host, root)).clone()
    }

    /// Looks up a docker container; `id` has 64 hexadecimal digits.
    pub(super) fn docker(&mut self, id: &[u8]) -> StateAnswer {
        let containers = format!("{}/containers", self.roots().docker);
        let Some(digits) = hex(id) else { return StateAnswer::NotHere };
        if let Some(file) = self.json(&format!("{containers}/{digits}/config.v2.json")) {
            let name = file.get("Name").and_then(Json::as_str);
            return StateAnswer::Here(name.and_then(|name| name_of(name.strip_prefix('/').unwrap_or(name))));
        }
        if self.docker.is_none() {
            self.docker = Some(self.names(&containers).map(|names| names.into_iter().collect()));
        }
        match &self.docker {
            Some(Some(ids)) if ids.contains(id) => StateAnswer::Here(None),
            Some(Some(_)) => StateAnswer::NotHere,
            _ => StateAnswer::Unknown,
        }
    }

    /// Looks up a podman container.
    pub(super) fn podman(&mut self, id: &[u8]) -> StateAnswer {
        if self.podman.is_none() {
            let roots = self.roots();
            self.podman = Some(self.podman_names(&roots.podman));
        }
        match self.podman.as_ref().and_then(Option::as_ref).map(|names| names.get(id)) {
            Some(Some(name)) => StateAnswer::Here(name.clone()),
            Some(None) => StateAnswer::NotHere,
            None => StateAnswer::Unknown,
        }
    }

    // `None` if no list of containers can be read. Containers that do not survive a reboot are in the second root.
    fn podman_names(&self, roots: &[Box<str>]) -> Option<ContainerNames> {
        let mut names: Option<ContainerNames> = None;
        for storage in roots {
            let drivers = self.names(storage).unwrap_or_default();
            for driver in drivers.iter().filter(|name| name.ends_with(b"-containers")) {
                let Ok(driver) = std::str::from_utf8(driver) else { continue };
                for list in ["containers.json", "volatile-containers.json"] {
                    let Some(file) = self.json(&format!("{storage}/{driver}/{list}")) else { continue };
                    let names = names.get_or_insert_with(Map::default);
                    for container in file.as_array().into_iter().flatten() {
                        let Some(id) = container.get("id").and_then(Json::as_str) else { continue };
                        let name = container.get("names").and_then(|names| names.get(0)).and_then(Json::as_str);
                        names.insert(id.as_bytes().into(), name.and_then(name_of));
                    }
                }
            }
        }
        names
    }

    /// The kubelet's data about a container in containerd's state.
    pub(super) fn cri(&mut self, id: &[u8]) -> Option<Cri> {
        let tasks = self.roots().containerd;
        let file = self.json(&format!("{tasks}/{TASKS}/k8s.io/{}/config.json", hex(id)?))?;
        let notes = file.get("annotations")?;
        let note = |name: &str| notes.get(format!("io.kubernetes.cri.{name}")).and_then(Json::as_str);
        let pod = note("sandbox-name").map(|pod| match note("sandbox-namespace") {
            Some(namespace) => format!("{namespace}/{pod}"),
            None => pod.to_owned(),
        });
        Some(Cri { name: note("container-name").and_then(name_of), pod: pod.as_deref().and_then(name_of) })
    }

    /// Whether containerd, or docker in its place, has a container of the kubelet.
    pub(super) fn is_cri(&mut self, id: &[u8]) -> StateAnswer {
        let by_containerd = match self.tasks() {
            Some(tasks) if tasks.contains(&*[b"k8s.io/", id].concat()) => StateAnswer::Here(None),
            // A containerd without that namespace does not serve a kubelet.
            Some(tasks) if tasks.iter().any(|task| task.starts_with(b"k8s.io/")) => StateAnswer::NotHere,
            _ => StateAnswer::Unknown,
        };
        by_containerd.or_else(|| self.docker(id))
    }

    /// True if containerd runs a container with this id in this namespace.
    pub(super) fn is_task(&mut self, namespace: &[u8], id: &[u8]) -> bool {
        let key = [namespace, b"/", id].concat();
        self.tasks().is_some_and(|tasks| tasks.contains(&*key))
    }

    fn tasks(&mut self) -> Option<&Set> {
        if self.tasks.is_none() {
            let tasks = format!("{}/{TASKS}", self.roots().containerd);
            self.tasks = Some(self.all_tasks(&tasks));
        }
        self.tasks.as_ref()?.as_ref()
    }

    fn all_tasks(&self, directory: &str) -> Option<Set> {
        let mut tasks = Set::default();
        for namespace in self.names(directory)? {
            let Ok(text) = std::str::from_utf8(&namespace) else { continue };
            // A folder that cannot be listed counts as empty.
            let ids = self.names(&format!("{directory}/{text}")).unwrap_or_default();
            for id in ids.into_iter().take(TASKS_MAX.saturating_sub(tasks.len())) {
                tasks.insert([&*namespace, b"/", &id].concat().into());
            }
        }
        Some(tasks)
    }

    // The names in a directory except hidden ones; `None` if it cannot be listed.
    fn names(&self, directory: &str) -> Option<Vec<Box<[u8]>>> {
        let mut list = Vec::new();
        self.host.read_names(&format!("{}{directory}", self.root), &mut list).ok()?;
        let names = list.split(|&byte| byte == 0).filter(|name| !name.is_empty() && !name.starts_with(b"."));
        Some(names.map(Box::from).collect())
    }

    // Reads a file; `None` if it is missing, too large, not owned by root or the caller, or not JSON.
    fn json(&self, path: &str) -> Option<Json> {
        let text = read_trusted(self.host, &format!("{}{path}", self.root))?;
        serde_json::from_slice(&text).ok()
    }
}

// The id becomes part of a path, so only digits are accepted.
fn hex(id: &[u8]) -> Option<&str> {
    std::str::from_utf8(id).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn name_of(text: &str) -> Option<Box<[u8]>> {
    let bytes = text.as_bytes();
    let kept = bytes.get(..bytes.len().min(NAME_BYTES_MAX)).unwrap_or_default();
    (!kept.is_empty()).then(|| kept.into())
}
