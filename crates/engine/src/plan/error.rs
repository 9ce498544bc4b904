//! Errors in a request, found before anything is read.

use crate::nearest::find_nearest;
use crate::predicate::BadPattern;
use std::fmt;

/// The reason why a request cannot become a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// `option` names a column that does not exist.
    UnknownField {
        /// The option: `--by`.
        option: &'static str,
        /// The user's text.
        name: Box<str>,
        /// The name that was probably meant.
        hint: Option<Box<str>>,
    },
    /// `option` cannot work on this field.
    Unfit {
        /// The option: `--sum`.
        option: &'static str,
        /// The field.
        name: Box<str>,
        /// The kind of the field, and what to do instead.
        why: &'static str,
    },
    /// A regular expression that does not compile.
    Pattern(BadPattern),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::UnknownField { option, name, hint } => {
                write!(f, "unknown field `{}` in {option}", name.escape_debug())?;
                match hint {
                    Some(hint) => write!(f, "; did you mean `{hint}`?"),
                    None => f.write_str("; `--columns help` lists the fields"),
                }
            }
            PlanError::Unfit { option, name, why } => write!(f, "{option} cannot use `{name}`: {why}"),
            PlanError::Pattern(bad) => bad.fmt(f),
        }
    }
}

impl std::error::Error for PlanError {}

impl PlanError {
    /// The error for a name that is not among `known`. The hint also corrects a wrong direction after the name
    /// (`pid:down` becomes `pid:desc`).
    pub(super) fn unknown_name<'n>(
        option: &'static str,
        name: &str,
        known: impl Iterator<Item = &'n str>,
    ) -> PlanError {
        let (word, direction) = name.split_once(':').map_or((name, ""), |(word, _)| (word, ":desc"));
        let hint = find_nearest(word, known).map(|near| format!("{near}{direction}").into());
        PlanError::UnknownField { option, name: name.into(), hint }
    }
}
