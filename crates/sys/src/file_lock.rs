//! Locks of whole files: flock(2).
use std::os::fd::AsRawFd;

use crate::errno::{Errno, SysError};
use crate::syscall::{call, retry};

/// An open file that has its lock. Dropping it unlocks the file, and then closes it.
///
/// Closing alone is not enough: the lock belongs to the open file, and a process that another thread has forked has a
/// copy of the descriptor until it executes its program.
#[derive(Debug)]
pub struct FileLock<F: AsRawFd>(F);

impl<F: AsRawFd> FileLock<F> {
    /// Takes the lock without waiting. If another open file has it, `file` is returned as the inner error.
    pub fn try_take(file: F) -> Result<Result<FileLock<F>, F>, SysError> {
        match flock(&file, libc::LOCK_EX | libc::LOCK_NB) {
            Ok(()) => Ok(Ok(FileLock(file))),
            Err(error) if error.errno == Errno::AGAIN => Ok(Err(file)),
            Err(error) => Err(error),
        }
    }

    /// Waits for the lock.
    pub fn wait(file: F) -> Result<FileLock<F>, SysError> {
        flock(&file, libc::LOCK_EX).map(|()| FileLock(file))
    }

    /// Waits until no open file has the lock exclusively; others may share it.
    pub fn wait_shared(file: F) -> Result<FileLock<F>, SysError> {
        flock(&file, libc::LOCK_SH).map(|()| FileLock(file))
    }

    /// The file that is locked.
    pub fn file(&self) -> &F {
        &self.0
    }
}

impl<F: AsRawFd> Drop for FileLock<F> {
    fn drop(&mut self) {
        // SAFETY: flock takes two integers. Closing the file unlocks it if this fails.
        let _ = call("flock", || unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) }.into());
    }
}

fn flock(file: &impl AsRawFd, how: i32) -> Result<(), SysError> {
    // SAFETY: flock takes two integers.
    retry("flock", || unsafe { libc::flock(file.as_raw_fd(), how) }.into())
        .map_err(|errno| SysError::new("flock", "lock file", errno))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::File;

    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("lock");
        let lock = FileLock::try_take(File::create(&path).unwrap()).unwrap().unwrap();
        let open = || File::open(&path).unwrap();
        assert!(FileLock::try_take(open()).unwrap().is_err());
        // A child has one between fork and exec.
        let _copy = lock.file().try_clone().unwrap();
        drop(lock);
        let shared = FileLock::wait_shared(open()).unwrap();
        assert!(FileLock::try_take(open()).unwrap().is_err());
        drop(shared);
        assert!(FileLock::wait(open()).is_ok());
    }

    #[test]
    fn a_lock_is_held_by_one() {
        let tmp = tempfile::NamedTempFile::new().unwrap();
        let path = tmp.path().to_path_buf();
        let first = FileLock::wait(File::open(&path).unwrap()).unwrap();
        let (done, wait) = std::sync::mpsc::channel();
        let second = std::thread::spawn(move || {
            let lock = FileLock::wait(File::open(&path).unwrap());
            done.send(()).unwrap();
            lock.unwrap();
        });
        assert!(wait.try_recv().is_err(), "it cannot have the lock while we do");
        drop(first);
        wait.recv().unwrap();
        second.join().unwrap();
    }
}
