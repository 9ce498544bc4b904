//! BPF programs that stay loaded from one reading to the next, and the reasons for not using them.
use std::cell::{Ref, RefCell};
use std::error::Error;
use std::fmt;

use crate::SysError;
use crate::caps::{self, CapSet};

/// The reason why a BPF program did not read a table completely.
#[derive(Debug)]
pub enum WalkError {
    /// The program could not be loaded, or its table was not found: no rows were read.
    Unavailable(Box<dyn Error + Send + Sync>),
    /// The reading was interrupted by an error.
    Broken(SysError),
}

impl WalkError {
    /// The walk is unavailable because of `cause`.
    pub fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> WalkError {
        WalkError::Unavailable(cause.into())
    }
}

impl From<SysError> for WalkError {
    fn from(error: SysError) -> WalkError {
        WalkError::Broken(error)
    }
}

impl fmt::Display for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WalkError::Unavailable(error) => error.fmt(f),
            WalkError::Broken(error) => error.fmt(f),
        }
    }
}

/// One kind of program, loaded on first use and then kept, or the reason why the kernel refused it.
///
/// A program that was refused once is not loaded again.
#[derive(Debug)]
pub struct ProgramCache<P> {
    program: RefCell<Option<P>>,
    refused: RefCell<Option<Box<str>>>,
}

impl<P> Default for ProgramCache<P> {
    fn default() -> ProgramCache<P> {
        ProgramCache { program: RefCell::new(None), refused: RefCell::new(None) }
    }
}

impl<P> ProgramCache<P> {
    /// A cache that loads nothing, as if the kernel had refused the program for the reason `why`. For tests.
    pub fn new_refused(why: &str) -> ProgramCache<P> {
        ProgramCache { program: RefCell::new(None), refused: RefCell::new(Some(why.into())) }
    }

    /// The reason why the program was refused, if loading it was tried.
    pub fn refusal(&self) -> Option<Box<str>> {
        self.refused.borrow().clone()
    }

    /// True if loading the program was tried and failed.
    pub fn was_refused(&self) -> bool {
        self.refused.borrow().is_some()
    }

    /// True if a program is loaded and `covers` holds for it.
    pub fn has_program(&self, covers: impl FnOnce(&P) -> bool) -> bool {
        self.program.borrow().as_ref().is_some_and(covers)
    }

    /// The cached program if `covers` holds for it; otherwise loads one with `load`.
    ///
    /// Fails with [`WalkError::Unavailable`] if the program is refused now or was refused before.
    pub fn get<E>(
        &self,
        covers: impl FnOnce(&P) -> bool,
        load: impl FnOnce() -> Result<P, E>,
    ) -> Result<Ref<'_, P>, WalkError>
    where
        E: Error + Send + Sync + 'static,
    {
        if !self.has_program(covers) {
            if let Some(why) = self.refusal() {
                return Err(WalkError::unavailable(why.into_string()));
            }
            match load() {
                Ok(program) => *self.program.borrow_mut() = Some(program),
                Err(error) => {
                    *self.refused.borrow_mut() = Some(error.to_string().into());
                    return Err(WalkError::unavailable(error));
                }
            }
        }
        Ref::filter_map(self.program.borrow(), Option::as_ref).map_err(|_| WalkError::unavailable("no program"))
    }
}

/// Why the calling thread may not load tracing programs, as text; `None` if it may. One system call.
pub fn lacks_bpf_rights() -> Option<&'static str> {
    let may = caps::effective().is_ok_and(CapSet::may_trace);
    (!may).then_some("bpf needs CAP_BPF and CAP_PERFMON")
}

/// The reason that a build without BPF gives for not using it.
pub const WITHOUT_BPF: &str = "this netwren was built without BPF";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Errno;

    #[test]
    fn what_covers_is_kept_and_what_is_refused_is_not_tried_again() {
        let cache = ProgramCache::default();
        let load = |n: u32| move || Ok::<u32, SysError>(n);
        let refuse = || Err::<u32, _>(SysError::new("bpf", "a program", Errno::PERM));
        assert_eq!(*cache.get(|_| true, load(1)).unwrap(), 1);
        assert_eq!(*cache.get(|n| *n == 1, refuse).unwrap(), 1, "it is there");
        assert_eq!(*cache.get(|n| *n == 2, load(2)).unwrap(), 2, "another one is needed");
        let why = cache.get(|_| false, refuse).unwrap_err().to_string();
        assert_eq!(cache.get(|_| false, load(3)).unwrap_err().to_string(), why);
        assert!(cache.was_refused() && cache.has_program(|n| *n == 2));
        assert!(ProgramCache::<u32>::new_refused("no").get(|_| true, load(1)).is_err());
    }
}
