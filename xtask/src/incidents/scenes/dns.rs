//! Name servers that do not answer.

use super::Incident;

pub(super) const INCIDENTS: &[Incident] = &[];
