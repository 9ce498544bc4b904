//! Local ports: used up, or shared by two programs.

use super::Incident;

pub(super) const INCIDENTS: &[Incident] = &[];
