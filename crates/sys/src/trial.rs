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
    pub fn from_errno(errno: Errno) -> Missing {
        match errno {
            errno if errno.is_denied() => Missing::Right,
            errno if errno.is_unsupported() => Missing::KernelOption,
            _ => Missing::Other,
        }
    }
}

/// The result of trying a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// The reason why it does not work; `None` if it works.
    pub missing: Option<Missing>,
    /// How it works, or why it does not: lower case, no full stop.
    pub words: String,
}

impl Trial {
    /// It works, in the way that `words` describes.
    pub fn new_working(words: impl Into<String>) -> Trial {
        Trial { missing: None, words: words.into() }
    }

    /// It does not work.
    pub fn new_missing(missing: Missing, words: impl Into<String>) -> Trial {
        Trial { missing: Some(missing), words: words.into() }
    }

    /// It does not work because of this kernel error, or for a different reason if `None`.
    pub fn new_refused(errno: Option<Errno>, words: impl Into<String>) -> Trial {
        Trial::new_missing(errno.map_or(Missing::Other, Missing::from_errno), words)
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
        assert_eq!(Missing::from_errno(Errno::PERM), Missing::Right);
        assert_eq!(Missing::from_errno(Errno::ACCES), Missing::Right);
        assert_eq!(Missing::from_errno(Errno::NOENT), Missing::KernelOption);
        assert_eq!(Missing::from_errno(Errno::NOBUFS), Missing::Other);
        assert_eq!(Trial::new_refused(None, "x").missing, Some(Missing::Other));
        assert!(Trial::new_working("x").is_working());
    }
}
