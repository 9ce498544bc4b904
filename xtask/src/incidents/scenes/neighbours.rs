//! IPv6 and the neighbours of a link.

use super::Incident;

pub(super) const INCIDENTS: &[Incident] = &[];
