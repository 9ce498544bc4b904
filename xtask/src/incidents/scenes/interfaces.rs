//! Interfaces, bridges and groups.

use super::Incident;

pub(super) const INCIDENTS: &[Incident] = &[];
