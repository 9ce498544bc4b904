//! What became of trying whether something can be used here: for `netwren support`.

use crate::errno::Errno;

/// What is missing for something to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// A right of this process.
    Right,
    /// The kernel was built without it, or is too old.
    KernelOption,
    /// A module of the kernel that has it is not loaded, or it is not known whether it is; asking would load it.
    Module,
    /// This program was built without it.
    Build,
    /// Something else.
    Other,
}

impl Missing {
    /// What this error of the kernel says.
    pub fn of(errno: Errno) -> Missing {
        match errno {
            errno if errno.is_denied() => Missing::Right,
            errno if errno.is_unsupported() => Missing::KernelOption,
            _ => Missing::Other,
        }
    }
}

/// What became of trying something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// What is missing; `None` if it works.
    pub missing: Option<Missing>,
    /// How it works, or why it does not: lower case, no full stop.
    pub words: String,
}

impl Tried {
    /// It works, in this way.
    pub fn works(words: impl Into<String>) -> Tried {
        Tried { missing: None, words: words.into() }
    }

    /// It does not work.
    pub fn fails(missing: Missing, words: impl Into<String>) -> Tried {
        Tried { missing: Some(missing), words: words.into() }
    }

    /// It does not work because of this error of the kernel; `None`: of another one.
    pub fn refused(errno: Option<Errno>, words: impl Into<String>) -> Tried {
        Tried::fails(errno.map_or(Missing::Other, Missing::of), words)
    }

    /// True if it works.
    pub fn is_working(&self) -> bool {
        self.missing.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_is_missing() {
        assert_eq!(Missing::of(Errno::PERM), Missing::Right);
        assert_eq!(Missing::of(Errno::ACCES), Missing::Right);
        assert_eq!(Missing::of(Errno::NOENT), Missing::KernelOption);
        assert_eq!(Missing::of(Errno::NOBUFS), Missing::Other);
        assert_eq!(Tried::refused(None, "x").missing, Some(Missing::Other));
        assert!(Tried::works("x").is_working());
    }
}
