//! The runs of an agent's parts, all in one process.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sys::service::StoredFile;

/// Turns of the thread that makes messages, and of the receiving one if it counts them.
pub type Turns = (u64, Option<u64>);

/// A run as the service manager's thread sees it.
pub trait GroupedRun: fmt::Debug + Send + Sync {
    /// The turns of its threads so far, as signs of life.
    fn turns(&self) -> Turns;

    /// True if all of these hangups have been handled.
    fn has_reloaded(&self, hangups: u64) -> bool;
}

/// The parts of an agent. Clones share them.
#[derive(Clone, Default)]
pub struct RunGroup(Arc<Mutex<BTreeMap<&'static str, PartState>>>);

/// The state of a part that other threads can read.
#[derive(Default)]
struct PartState {
    /// Its run, while it reports signs of life.
    run: Option<Arc<dyn GroupedRun>>,
    /// The view of its outputs, of a type that only the crate `shipping` knows.
    outputs: Option<Arc<dyn Any + Send + Sync>>,
    /// The reason why it is stopped.
    trouble: Option<String>,
    /// Descriptors that its next run continues with.
    files: Vec<StoredFile>,
}

impl RunGroup {
    /// Adds a part.
    pub fn add(&self, name: &'static str) -> Part {
        self.lock().insert(name, PartState::default());
        Part { name, group: self.clone() }
    }

    /// The runs that report signs of life.
    pub fn runs(&self) -> Vec<Arc<dyn GroupedRun>> {
        self.lock().values().filter_map(|part| part.run.clone()).collect()
    }

    /// Calls `each` with each part's name, the view of its outputs, and the reason why it is stopped.
    pub fn parts(&self, mut each: impl FnMut(&'static str, Option<&(dyn Any + Send + Sync)>, Option<&str>)) {
        for (name, part) in &*self.lock() {
            each(name, part.outputs.as_deref(), part.trouble.as_deref());
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, PartState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of an agent.
#[derive(Clone)]
pub struct Part {
    name: &'static str,
    group: RunGroup,
}

impl Part {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Sets the run that reports signs of life; `None` if it has ended.
    pub fn set_run(&self, run: Option<Arc<dyn GroupedRun>>) {
        self.change(|part| part.run = run);
    }

    /// Sets the view of its outputs for [`RunGroup::parts`].
    pub fn set_outputs(&self, outputs: Arc<dyn Any + Send + Sync>) {
        self.change(|part| part.outputs = Some(outputs));
    }

    /// Sets the reason why it is stopped; `None` if it runs.
    pub fn set_trouble(&self, trouble: Option<String>) {
        self.change(|part| part.trouble = trouble);
    }

    /// Keeps a descriptor for its next run, in place of one with the same name.
    pub fn keep_file(&self, file: StoredFile) {
        self.change(|part| {
            part.files.retain(|other| other.name != file.name);
            part.files.push(file);
        });
    }

    /// Takes the descriptors that an earlier run has kept.
    pub fn take_files(&self) -> Vec<StoredFile> {
        std::mem::take(&mut self.group.lock().entry(self.name).or_default().files)
    }

    fn change(&self, change: impl FnOnce(&mut PartState)) {
        change(self.group.lock().entry(self.name).or_default());
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("name", &self.name).finish_non_exhaustive()
    }
}
