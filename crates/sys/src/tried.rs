//! The result of trying a feature on this host, for `netwren support`.

use crate::errno::Errno;

/// The reason why a feature does not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// This process lacks a right.
    Right,
    /// The kernel was built without it, or is too old.
    KernelOption,
    /// The kernel module that contains it is not loaded, or may not be loaded; a request would load it.
    Module,
    /// This program was built without it.
    Build,
    /// Something else.
    Other,
}

impl Missing {
    /// The reason that this kernel error indicates.
    pub fn of(errno: Errno) -> Missing {
        match errno {
            errno if errno.is_denied() => Missing::Right,
            errno if errno.is_unsupported() => Missing::KernelOption,
            _ => Missing::Other,
        }
    }
}

/// The result of trying a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// The reason why it does not work; `None` if it works.
    pub missing: Option<Missing>,
    /// How it works, or why it does not: lower case, no full stop.
    pub words: String,
}

impl Tried {
    /// It works, in the way that `words` describes.
    pub fn works(words: impl Into<String>) -> Tried {
        Tried { missing: None, words: words.into() }
    }

    /// It does not work.
    pub fn fails(missing: Missing, words: impl Into<String>) -> Tried {
        Tried { missing: Some(missing), words: words.into() }
    }

    /// It does not work because of this kernel error, or for a different reason if `None`.
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
