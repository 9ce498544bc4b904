//! A lock shared by all test processes of this machine.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use sys::{Fd, FileLock};

/// Held until drop or the death of this process.
#[derive(Debug)]
pub struct MachineLock {
    _lock: FileLock<Fd>,
}

/// The folder for files shared by test processes. Each user has one; machine-wide resources (namespaces, settings)
/// belong to root anyway.
pub fn shared_dir() -> PathBuf {
    let user = fs::metadata("/proc/self").map_or(0, |meta| meta.uid());
    let dir = std::env::temp_dir().join(format!("netwren-testkit-{user}"));
    fs::create_dir_all(&dir).unwrap_or_else(|e| panic!("cannot make {}: {e}", dir.display()));
    dir
}

impl MachineLock {
    /// Waits until no other process on this machine holds the lock called `name`.
    ///
    /// # Panics
    /// If its file cannot be created.
    pub fn take(name: &str) -> MachineLock {
        MachineLock::open(name, FileLock::wait)
    }

    /// Waits until no process on this machine holds the lock called `name` exclusively; others may share it.
    ///
    /// # Panics
    /// If its file cannot be created.
    pub fn share(name: &str) -> MachineLock {
        MachineLock::open(name, FileLock::wait_shared)
    }

    fn open(name: &str, wait: impl FnOnce(Fd) -> Result<FileLock<Fd>, sys::SysError>) -> MachineLock {
        let path = shared_dir().join(format!("{name}.lock"));
        let made = OpenOptions::new().create(true).append(true).open(&path);
        drop(made.unwrap_or_else(|e| panic!("cannot make {}: {e}", path.display())));
        let file = sys::fs::open(&path).unwrap_or_else(|e| panic!("{e}"));
        MachineLock { _lock: wait(file).unwrap_or_else(|e| panic!("{}: {e}", path.display())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn one_at_a_time() {
        let inside = AtomicU32::new(0);
        let name = format!("one-at-a-time-{}", std::process::id());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let _lock = MachineLock::take(&name);
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        fs::remove_file(shared_dir().join(format!("{name}.lock"))).unwrap();
    }
}
