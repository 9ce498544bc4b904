//! Machine-wide settings.

use crate::lock::{MachineLock, shared_dir};
use crate::tables::ExclusiveUse;
use std::fs;
use std::path::{Path, PathBuf};

/// Changes a file under /proc/sys or /sys until drop.
///
/// Machine-wide: while one exists, every other test that needs one waits. The old value is first saved to a file, so
/// that the next user can restore it after a test was killed.
#[derive(Debug)]
pub struct HostKnob {
    path: PathBuf,
    saved: PathBuf,
    /// Additional files, and the files with their old values.
    more: Vec<(PathBuf, PathBuf)>,
    // These are the last fields, so that they are released after the value is restored.
    _lock: MachineLock,
    _alone: Option<ExclusiveUse>,
}

impl HostKnob {
    /// Writes `value` to `path` and remembers the old value.
    ///
    /// # Panics
    /// If the file cannot be read or written.
    pub fn set(path: impl Into<PathBuf>, value: &str) -> HostKnob {
        HostKnob::set_in(&shared_dir().join("knobs"), path.into(), value)
    }

    fn set_in(store: &Path, path: PathBuf, value: &str) -> HostKnob {
        // The order is the same everywhere: first the table, then the setting.
        let alone = path.to_string_lossy().contains("nf_conntrack").then(ExclusiveUse::take);
        let lock = MachineLock::take("knob");
        fs::create_dir_all(store).unwrap_or_else(|e| panic!("cannot make {}: {e}", store.display()));
        restore_all(store);
        let saved = save_in(store, &path);
        let knob = HostKnob { path, saved, more: Vec::new(), _lock: lock, _alone: alone };
        fs::write(&knob.path, value).unwrap_or_else(|e| panic!("cannot write {}: {e}", knob.path.display()));
        knob
    }

    /// Also changes another file; the last one is restored first.
    ///
    /// # Panics
    /// Like [`HostKnob::set`].
    pub fn and(mut self, path: impl Into<PathBuf>, value: &str) -> HostKnob {
        let path = path.into();
        let saved = save_in(&shared_dir().join("knobs"), &path);
        self.more.push((path.clone(), saved));
        fs::write(&path, value).unwrap_or_else(|e| panic!("cannot write {}: {e}", path.display()));
        self
    }
}

impl Drop for HostKnob {
    fn drop(&mut self) {
        self.more.iter().rev().for_each(|(path, saved)| restore(path, saved));
        restore(&self.path, &self.saved);
    }
}

/// Saves the value of a file; returns the path of the copy.
fn save_in(store: &Path, path: &Path) -> PathBuf {
    let old = fs::read_to_string(path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
    let saved = store.join(path.to_string_lossy().replace('/', "%"));
    fs::write(&saved, &old).unwrap_or_else(|e| panic!("cannot write {}: {e}", saved.display()));
    saved
}

/// Restores changes that a killed test left behind. The caller holds the lock.
fn restore_all(store: &Path) {
    for found in fs::read_dir(store).into_iter().flatten().flatten() {
        let path = PathBuf::from(found.file_name().to_string_lossy().replace('%', "/"));
        eprintln!("testkit: an earlier test left {} changed; putting it back", path.display());
        restore(&path, &found.path());
    }
}

fn restore(path: &Path, saved: &Path) {
    // Must not panic, because it also runs during unwinding. The saved file stays for the next attempt.
    match fs::read_to_string(saved).and_then(|old| fs::write(path, old)) {
        Ok(()) => drop(fs::remove_file(saved)),
        Err(e) => eprintln!("testkit: cannot restore {}: {e}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_comes_back_after_drop_and_after_a_crash() {
        let dir = std::env::temp_dir().join(format!("netwren-knob-{}", std::process::id()));
        let store = dir.join("knobs");
        fs::create_dir_all(&dir).unwrap();
        let (one, two) = (dir.join("one"), dir.join("two"));
        fs::write(&one, "1\n").unwrap();
        fs::write(&two, "2\n").unwrap();

        let knob = HostKnob::set_in(&store, one.clone(), "7");
        assert_eq!(fs::read_to_string(&one).unwrap(), "7");
        drop(knob);
        assert_eq!(fs::read_to_string(&one).unwrap(), "1\n");

        // As after a crash: changed, with the old value in the store, and not restored.
        fs::write(store.join(one.to_string_lossy().replace('/', "%")), "1\n").unwrap();
        fs::write(&one, "9").unwrap();
        drop(HostKnob::set_in(&store, two.clone(), "8"));
        assert_eq!(fs::read_to_string(&one).unwrap(), "1\n");
        assert_eq!(fs::read_to_string(&two).unwrap(), "2\n");
        fs::remove_dir_all(&dir).unwrap();
    }
}
