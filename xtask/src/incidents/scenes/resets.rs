//! Connections that are reset or aborted.

use super::Incident;

pub(super) const INCIDENTS: &[Incident] = &[];
