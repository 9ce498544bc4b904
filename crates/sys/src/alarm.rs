//! A timer that one thread sets while another thread waits for it. Setting it does not wake the waiting thread.
use std::os::fd::AsRawFd;
use std::time::Duration;

use crate::errno::SysError;
use crate::fd::Fd;
use crate::syscall::{call, retry};

/// A timerfd on CLOCK_MONOTONIC (timerfd_create(2)).
#[derive(Debug)]
pub struct Alarm(Fd);

impl Alarm {
    /// A timer that is not set.
    pub fn new() -> Result<Alarm, SysError> {
        // SAFETY: timerfd_create takes two integers.
        let make = || unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) }.into();
        let fd = call("timerfd_create", make).map_err(|errno| SysError::new("timerfd_create", "timer", errno))?;
        // SAFETY: the kernel just made this descriptor, and no other code has it.
        Ok(Alarm(unsafe { Fd::take(fd) }))
    }

    /// Sets the timer to expire once, `after` this time, and cancels the previous setting. A duration of zero only
    /// cancels. One system call.
    pub fn set(&self, after: Duration) {
        let value = libc::timespec {
            tv_sec: after.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: after.subsec_nanos().into(),
        };
        let once = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        let (fd, from) = (self.0.as_raw_fd(), &raw const once);
        // SAFETY: `from` points to an itimerspec that is ours; the old setting is not requested.
        let set = || unsafe { libc::timerfd_settime(fd, 0, from, std::ptr::null_mut()) }.into();
        // It fails only for invalid arguments.
        let _ = call("timerfd_settime", set);
    }

    /// Waits until the timer has expired since this function last returned.
    pub fn wait(&self) {
        let mut times = [0u8; 8];
        let (fd, to) = (self.0.as_raw_fd(), times.as_mut_ptr().cast());
        // SAFETY: `to` points to eight bytes that are ours; the kernel writes no more.
        let _ = retry("read", || unsafe { libc::read(fd, to, times.len()) } as i64);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::Arc;
    use std::time::Instant;

    #[test]
    fn it_goes_off_where_it_is_waited_for() {
        let alarm = Arc::new(Alarm::new().unwrap());
        let (waiting, begin) = (Arc::clone(&alarm), Instant::now());
        let thread = std::thread::spawn(move || waiting.wait());
        alarm.set(Duration::from_secs(3600));
        alarm.set(Duration::ZERO);
        alarm.set(Duration::from_millis(20));
        thread.join().unwrap();
        assert!(begin.elapsed() >= Duration::from_millis(20), "{:?}", begin.elapsed());
    }
}
