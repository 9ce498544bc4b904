//! What the runtimes' state files tell of a container by its id. Files are read once each, when somebody needs them.
//!
//! Each layout was taken from the runtime itself; `fixtures/containers/<runtime>-<version>/HOW` tells how. The files
//! belong to root, but the names in them are whatever somebody called a container.
use std::path::Path;

use hashbrown::{HashMap, HashSet};
use serde_json::Value as Json;
use sys::{Errno, Host, SysError, fs};

/// State files are kilobytes; podman's list has half a kilobyte a container.
const FILE_BYTES_MAX: usize = 8 << 20;

/// Bytes kept of a name.
const NAME_BYTES_MAX: usize = 253;

/// Tasks of containerd that are listed at most.
const TASKS_MAX: usize = 100_000;

type Map<V> = HashMap<Box<[u8]>, V, foldhash::fast::FixedState>;

/// Where containerd has the running tasks: one directory a namespace, in it one a container.
const TASKS: &str = "/run/containerd/io.containerd.runtime.v2.task";

/// Where podman keeps what it has made; below it one directory a storage driver.
const STORAGE: &str = "/var/lib/containers/storage";

/// What is known of a container of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cri {
    /// Name of the container in its pod; none for the pod's sandbox.
    pub(super) name: Option<Box<[u8]>>,
    /// Namespace and name of the pod.
    pub(super) pod: Option<Box<[u8]>>,
}

/// The state files of one host.
pub(super) struct States<'h> {
    host: &'h Host,
    root: &'h str,
    podman: Option<Map<Box<[u8]>>>,
    tasks: Option<HashSet<Box<[u8]>, foldhash::fast::FixedState>>,
}

impl<'h> States<'h> {
    /// Of `host`, below `root`: empty but in tests.
    pub(super) fn new(host: &'h Host, root: &'h str) -> States<'h> {
        States { host, root, podman: None, tasks: None }
    }

    /// The name of a container of docker's; `id` is 64 hexadecimal digits.
    pub(super) fn docker(&self, id: &[u8]) -> Option<Box<[u8]>> {
        let file = self.json(&format!("/var/lib/docker/containers/{}/config.v2.json", hex(id)?))?;
        let name = file.get("Name")?.as_str()?;
        name_of(name.strip_prefix('/').unwrap_or(name))
    }

    /// The name of a container of podman's.
    pub(super) fn podman(&mut self, id: &[u8]) -> Option<Box<[u8]>> {
        if self.podman.is_none() {
            self.podman = Some(self.podman_names());
        }
        self.podman.as_ref()?.get(id).cloned()
    }

    fn podman_names(&self) -> Map<Box<[u8]>> {
        let mut names = Map::default();
        let mut drivers = Vec::new();
        if self.host.read_names(&format!("{}{STORAGE}", self.root), &mut drivers).is_err() {
            return names;
        }
        for driver in drivers.split(|&byte| byte == 0).filter(|name| name.ends_with(b"-containers")) {
            let Ok(driver) = std::str::from_utf8(driver) else { continue };
            let Some(file) = self.json(&format!("{STORAGE}/{driver}/containers.json")) else { continue };
            for container in file.as_array().into_iter().flatten() {
                let id = container.get("id").and_then(Json::as_str);
                let name = container.get("names").and_then(|names| names.get(0)).and_then(Json::as_str);
                if let (Some(id), Some(name)) = (id, name.and_then(name_of)) {
                    names.insert(id.as_bytes().into(), name);
                }
            }
        }
        names
    }

    /// What containerd was told of a container by the kubelet.
    pub(super) fn cri(&self, id: &[u8]) -> Option<Cri> {
        let file = self.json(&format!("{TASKS}/k8s.io/{}/config.json", hex(id)?))?;
        let notes = file.get("annotations")?;
        let note = |name: &str| notes.get(format!("io.kubernetes.cri.{name}")).and_then(Json::as_str);
        let pod = note("sandbox-name").map(|pod| match note("sandbox-namespace") {
            Some(namespace) => format!("{namespace}/{pod}"),
            None => pod.to_owned(),
        });
        Some(Cri { name: note("container-name").and_then(name_of), pod: pod.as_deref().and_then(name_of) })
    }

    /// True if containerd runs a container of this id in this namespace.
    pub(super) fn is_task(&mut self, namespace: &[u8], id: &[u8]) -> bool {
        if self.tasks.is_none() {
            self.tasks = Some(self.all_tasks());
        }
        let key = [namespace, b"/", id].concat();
        self.tasks.as_ref().is_some_and(|tasks| tasks.contains(&*key))
    }

    fn all_tasks(&self) -> HashSet<Box<[u8]>, foldhash::fast::FixedState> {
        let mut tasks = HashSet::default();
        let (mut namespaces, mut ids) = (Vec::new(), Vec::new());
        if self.host.read_names(&format!("{}{TASKS}", self.root), &mut namespaces).is_err() {
            return tasks;
        }
        let names = |list: &[u8]| -> Vec<Box<[u8]>> {
            let names = list.split(|&byte| byte == 0).filter(|name| !name.is_empty() && !name.starts_with(b"."));
            names.map(Box::from).collect()
        };
        for namespace in names(&namespaces) {
            let Ok(text) = std::str::from_utf8(&namespace) else { continue };
            // One that cannot be listed has no names.
            let _ = self.host.read_names(&format!("{}{TASKS}/{text}", self.root), &mut ids);
            for id in names(&ids).into_iter().take(TASKS_MAX.saturating_sub(tasks.len())) {
                tasks.insert([&*namespace, b"/", &id].concat().into());
            }
        }
        tasks
    }

    // A file that is missing, too large, or no JSON, tells nothing.
    fn json(&self, path: &str) -> Option<Json> {
        let path = format!("{}{path}", self.root);
        let mut text = Vec::new();
        self.host.bytes(&path, "", &mut text, |into| read_bounded(&self.host.real_path(&path), into)).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

// A name of the path that is made of it, so nothing but digits may be in it.
fn hex(id: &[u8]) -> Option<&str> {
    std::str::from_utf8(id).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn name_of(text: &str) -> Option<Box<[u8]>> {
    let bytes = text.as_bytes();
    let kept = bytes.get(..bytes.len().min(NAME_BYTES_MAX)).unwrap_or_default();
    (!kept.is_empty()).then(|| kept.into())
}

// Only a regular file: opening a pipe would wait for its writer.
fn read_bounded(path: &Path, into: &mut Vec<u8>) -> Result<(), SysError> {
    let failed = |errno| SysError::on_bytes("read", path.as_os_str().as_encoded_bytes(), errno);
    let stat = fs::stat(path)?;
    if !stat.is_file() {
        return Err(failed(Errno::INVAL));
    }
    if stat.size > FILE_BYTES_MAX as u64 {
        return Err(failed(Errno::FBIG));
    }
    let file = fs::open(path)?;
    while fs::read_append(&file, into, 64 << 10).map_err(failed)? > 0 {
        if into.len() > FILE_BYTES_MAX {
            return Err(failed(Errno::FBIG));
        }
    }
    Ok(())
}
