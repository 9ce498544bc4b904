//! An open file descriptor that closes itself; the close is counted like every other call.
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use crate::syscall;

/// An owned file descriptor. `None` only while it is being taken apart.
#[derive(Debug)]
pub struct Fd(Option<OwnedFd>);

impl Fd {
    /// Takes over a descriptor that a system call just returned.
    ///
    /// # Safety
    /// `raw` is open and has no other owner.
    pub(crate) unsafe fn take(raw: i64) -> Fd {
        // The kernel's descriptors are ints; we widened them to i64.
        let raw = raw as RawFd;
        // SAFETY: the caller guarantees that `raw` is open and has no other owner.
        Fd(Some(unsafe { OwnedFd::from_raw_fd(raw) }))
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.0.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        if let Some(fd) = self.0.take() {
            syscall::count();
            drop(fd);
        }
    }
}

impl From<OwnedFd> for Fd {
    fn from(fd: OwnedFd) -> Fd {
        Fd(Some(fd))
    }
}

impl From<Fd> for OwnedFd {
    fn from(mut fd: Fd) -> OwnedFd {
        match fd.0.take() {
            Some(owned) => owned,
            // SAFETY: cannot happen: only `drop` and the two conversions take the descriptor
            // out, and each ends the Fd. 2 is open in every process that has not closed it itself.
            None => unsafe { OwnedFd::from_raw_fd(libc::STDERR_FILENO) },
        }
    }
}

impl From<std::fs::File> for Fd {
    fn from(file: std::fs::File) -> Fd {
        Fd(Some(file.into()))
    }
}

impl AsRawFd for Fd {
    fn as_raw_fd(&self) -> RawFd {
        self.raw()
    }
}

impl AsFd for Fd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as `self` lives, because only `drop` and
        // `into_raw_fd`, which both end `self`, take it out.
        unsafe { BorrowedFd::borrow_raw(self.raw()) }
    }
}

impl IntoRawFd for Fd {
    fn into_raw_fd(mut self) -> RawFd {
        self.0.take().map_or(-1, IntoRawFd::into_raw_fd)
    }
}
