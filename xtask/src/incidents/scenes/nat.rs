//! NAT and connection tracking.

use super::Incident;

pub(super) const INCIDENTS: &[Incident] = &[];
