//! Programs and peers that wait while nothing overflows yet.

use super::Incident;

pub(super) const INCIDENTS: &[Incident] = &[];
