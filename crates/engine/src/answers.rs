//! Checks whether the backend can fill the fields of the plan. A field that it lacks is null in every row, and a
//! filter on such a field passes no row; neither may look like a result.

use crate::plan::Plan;
use record::{Accounting, BackendLacks, Field, Offer, Table};
use std::fmt;

/// A field that the request names although the forced backend lacks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnansweredField {
    /// The field.
    pub field: &'static str,
    /// The forced backend.
    pub backend: &'static str,
    /// Backends that can fill the field for the same rows.
    pub has_it: Vec<&'static str>,
}

impl fmt::Display for UnansweredField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnansweredField { field, backend, has_it } = self;
        write!(f, "`{field}` cannot be read by {backend}")?;
        match has_it.as_slice() {
            [] => f.write_str("; no other backend can read it either"),
            backends => write!(f, "; --via {} can, or leave --via out", backends.join(" or --via ")),
        }
    }
}

impl std::error::Error for UnansweredField {}

impl<T: Table> Plan<T> {
    /// Fails if the forced backend lacks a field that the request names.
    pub(crate) fn check(&self, offer: &Offer) -> Result<(), UnansweredField> {
        let Some((forced, others)) = offer.backends.split_first() else { return Ok(()) };
        let has = |backend: &BackendLacks, field: &Field<T>| field.need & backend.lacks == 0;
        let lacking = self.asked.iter().filter_map(|&index| T::FIELDS.get(index)).find(|field| !has(forced, field));
        lacking.map_or(Ok(()), |field| {
            let has_it = others.iter().filter(|other| has(other, field)).map(|other| other.backend).collect();
            Err(UnansweredField { field: field.name, backend: forced.backend, has_it })
        })
    }

    /// Returns a reason for the accounting if the filter tests a field that is unknown in some rows: rows may be
    /// missing.
    pub(crate) fn filter_gap(&self, offer: &Offer) -> Option<String> {
        let mut lacking = Vec::new();
        for part in &self.demand.conjuncts {
            part.for_each_test(&mut |test| {
                let field = T::FIELDS.get(test.field).filter(|field| field.need & offer.lacks != 0);
                lacking.extend(field.map(|field| field.name).filter(|name| !lacking.contains(name)));
            });
        }
        (!lacking.is_empty()).then(|| {
            let names = lacking.join("`, `");
            format!(
                "the filter tests `{names}`, which {} does not report for every row: rows may be missing",
                offer.backend
            )
        })
    }
}

/// Adds the reason from [`Plan::filter_gap`].
pub(crate) fn add_gap(gap: Option<&str>, stats: &mut Accounting) {
    if let Some(gap) = gap {
        stats.incomplete(0, gap.to_owned());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::plan::SortKey;
    use crate::testing::{field, plan, request};
    use record::rows::need;

    fn offer(lacks: u64) -> Offer {
        let backend = |backend, lacks| BackendLacks { backend, lacks };
        let backends = vec![backend("proc", lacks), backend("netlink", 0), backend("bpf", need::COOKIE)];
        Offer { backend: "proc", lacks, backends, ..Offer::default() }
    }

    #[test]
    fn issue_10_a_named_field_that_the_forced_backend_lacks_is_refused() {
        let lacking = offer(need::TCP_INFO | need::COOKIE);
        let says = |request| plan(request).check(&lacking).map_err(|error| error.to_string()).err();
        let refused = "`rtt_us` cannot be read by proc; --via netlink or --via bpf can, or leave --via out";
        assert_eq!(says(request(&["rtt_us"], "")).unwrap(), refused);
        assert_eq!(says(request(&["state"], "state = listen and not rtt_us > 5")).unwrap(), refused);
        let sorted = crate::PlanRequest { sort: SortKey::parse_list("rtt_us"), ..request(&["state"], "") };
        assert_eq!(says(sorted).unwrap(), refused);
        let grouped = crate::PlanRequest { by: vec!["rtt_us".into()], ..request(&[], "") };
        assert_eq!(says(grouped).unwrap(), refused);
        let cookie = "`cookie` cannot be read by proc; --via netlink can, or leave --via out";
        assert_eq!(says(request(&["cookie"], "")).unwrap(), cookie);
        // A usual column is empty instead, and fields that the backend has are not refused.
        let usual = crate::PlanRequest { usual: vec![field("rtt_us")], ..request(&["rtt_us", "state"], "") };
        assert_eq!(says(usual), None);
        assert_eq!(says(request(&["state"], "state = listen")), None);
        // The source chose the backend itself.
        let free = Offer { backends: Vec::new(), ..lacking };
        assert!(plan(request(&["rtt_us"], "")).check(&free).is_ok());
    }

    #[test]
    fn issue_10_a_filter_over_an_unknown_field_is_reported() {
        let gap = |filter| plan(request(&["rtt_us"], filter)).filter_gap(&offer(need::TCP_INFO));
        assert!(gap("rtt_us > 5 or rtt_us < 2").unwrap().starts_with("the filter tests `rtt_us`, which proc"));
        assert_eq!(gap("state = listen"), None);
        let mut stats = Accounting::default();
        add_gap(gap("rtt_us > 5").as_deref(), &mut stats);
        assert!(stats.is_partial());
    }
}
