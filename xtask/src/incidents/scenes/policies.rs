//! Policies: IPsec, policy routing, XDP, programs of cgroups, rules.

use super::Incident;

pub(super) const INCIDENTS: &[Incident] = &[];
