//! Several runs in one process: the parts of an agent.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// What other threads may know of a part.
#[derive(Default)]
struct PartState {
    /// Its run, while it reports signs of life.
    run: Option<Arc<dyn GroupedRun>>,
    /// What it says about its outputs; only the crate that makes them knows the type.
    outputs: Option<Arc<dyn Any + Send + Sync>>,
    /// Why it does not run.
    trouble: Option<String>,
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

    /// Calls `each` with the name of each part, with what it says about its outputs, and why it does not run.
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

    /// Notes that `run` reports signs of life from now on; `None` ends that.
    pub fn set_run(&self, run: Option<Arc<dyn GroupedRun>>) {
        self.change(|part| part.run = run);
    }

    /// Notes what it says about its outputs, for [`RunGroup::parts`].
    pub fn set_outputs(&self, outputs: Arc<dyn Any + Send + Sync>) {
        self.change(|part| part.outputs = Some(outputs));
    }

    /// Notes why it does not run; `None` if it does.
    pub fn set_trouble(&self, trouble: Option<String>) {
        self.change(|part| part.trouble = trouble);
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
