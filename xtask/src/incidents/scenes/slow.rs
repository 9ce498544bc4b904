//! Connections that are slow although nothing is lost.

use super::Incident;

pub(super) const INCIDENTS: &[Incident] = &[];
