//! Fault injection for tests: a table that makes named system calls fail or transfer fewer bytes.
//!
//! Compiled only with the cargo feature `faults` (and in this crate's own tests); in the product every query of the
//! table is a constant. The table belongs to the thread that fills it, so concurrent tests do not disturb each other.
//! A child process gets faults from NETWREN_FAULTS, e.g. `recvmsg:2:1:105,read:0:5:short7` (call:skip:times:errno,
//! short bytes, or `gives` with a result).
#[cfg(any(test, feature = "faults"))]
pub use armed::{Fault, arm, disarm_all};

#[cfg(any(test, feature = "faults"))]
mod armed {
    use std::cell::RefCell;

    use crate::errno::Errno;

    /// The effect of a fault.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Fault {
        /// The call fails with this errno, without reaching the kernel.
        Fails(Errno),
        /// The call may transfer at most this many bytes.
        Short(usize),
        /// The call succeeds with this result, without reaching the kernel.
        Gives(i64),
    }

    struct ArmedFault {
        call: String,
        skip: u32,
        times: u32,
        fault: Fault,
    }

    thread_local! {
        static TABLE: RefCell<Vec<ArmedFault>> = RefCell::new(from_environment());
    }

    /// Makes `times` calls named `call` fail, after skipping the first `skip` calls, on this thread.
    pub fn arm(call: &'static str, skip: u32, times: u32, fault: Fault) {
        TABLE.with_borrow_mut(|table| table.push(ArmedFault { call: call.into(), skip, times, fault }));
    }

    /// Removes all faults of this thread.
    pub fn disarm_all() {
        TABLE.with_borrow_mut(Vec::clear);
    }

    fn from_environment() -> Vec<ArmedFault> {
        let written = std::env::var("NETWREN_FAULTS").unwrap_or_default();
        written.split(',').filter_map(parse).collect()
    }

    fn parse(written: &str) -> Option<ArmedFault> {
        let mut parts = written.split(':');
        let (call, skip, times) = (parts.next()?.into(), parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let last = parts.next()?;
        let fault = match (last.strip_prefix("short"), last.strip_prefix("gives")) {
            (Some(bytes), _) => Fault::Short(bytes.parse().ok()?),
            (_, Some(result)) => Fault::Gives(result.parse().ok()?),
            _ => Fault::Fails(Errno(last.parse().ok()?)),
        };
        Some(ArmedFault { call, skip, times, fault })
    }

    fn take(call: &str, wanted: impl Fn(Fault) -> bool) -> Option<Fault> {
        TABLE.with_borrow_mut(|table| {
            let armed = table.iter_mut().find(|armed| armed.call == call && armed.times > 0 && wanted(armed.fault))?;
            if armed.skip > 0 {
                armed.skip -= 1;
                return None;
            }
            armed.times -= 1;
            Some(armed.fault)
        })
    }

    /// The result of a call that must not reach the kernel; `None` if the call must be made.
    pub(crate) fn take_result(call: &'static str) -> Result<Option<i64>, Errno> {
        match take(call, |fault| matches!(fault, Fault::Fails(_) | Fault::Gives(_))) {
            Some(Fault::Fails(errno)) => Err(errno),
            Some(Fault::Gives(result)) => Ok(Some(result)),
            _ => Ok(None),
        }
    }

    pub(crate) fn shorten(call: &'static str, length: usize) -> usize {
        match take(call, |fault| matches!(fault, Fault::Short(_))) {
            Some(Fault::Short(most)) => length.min(most),
            _ => length,
        }
    }

    #[cfg(test)]
    mod tests {
        #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
        use super::*;

        #[test]
        fn written_faults() {
            let fault = |written| parse(written).map(|armed| (armed.call, armed.skip, armed.times, armed.fault));
            assert_eq!(fault("recvmsg:2:1:105"), Some(("recvmsg".into(), 2, 1, Fault::Fails(Errno::NOBUFS))));
            assert_eq!(fault("read:0:5:short7"), Some(("read".into(), 0, 5, Fault::Short(7))));
            assert_eq!(fault("recvmsg:1:9:gives0"), Some(("recvmsg".into(), 1, 9, Fault::Gives(0))));
            assert_eq!((fault(""), fault("read"), fault("read:x:1:1")), (None, None, None));
        }

        #[test]
        fn a_fault_comes_when_it_is_due() {
            arm("test call", 1, 2, Fault::Fails(Errno::IO));
            let seen: Vec<bool> = (0..5).map(|_| take_result("test call").is_err()).collect();
            disarm_all();
            assert_eq!(seen, [false, true, true, false, false]);
            assert_eq!(take_result("other call"), Ok(None));
        }
    }
}

#[cfg(any(test, feature = "faults"))]
pub(crate) use armed::{shorten, take_result};

#[cfg(not(any(test, feature = "faults")))]
mod never {
    use crate::errno::Errno;

    #[inline(always)]
    pub(crate) fn take_result(_call: &'static str) -> Result<Option<i64>, Errno> {
        Ok(None)
    }

    #[inline(always)]
    pub(crate) fn shorten(_call: &'static str, length: usize) -> usize {
        length
    }
}

#[cfg(not(any(test, feature = "faults")))]
pub(crate) use never::{shorten, take_result};
