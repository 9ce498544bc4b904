//! `netwren doctor --explain`: explains how checks reach their findings.

use runtime::fold::fold;
use runtime::width;
use std::fmt::Write;

/// Explains the checks with these names or areas; explains all checks if the list is empty.
pub(super) fn text(chosen: &[&str]) -> String {
    let mut text = String::new();
    for check in super::chosen_checks(chosen) {
        let _ = writeln!(text, "{} ({})", check.id, check.area);
        let _ = writeln!(text, "  finds       {}", check.about);
        let _ = writeln!(text, "  if          {}", check.rule);
        let _ = writeln!(text, "  from        {}", check.sources);
        let _ = writeln!(text, "  refuted by  {}", check.refuted_by);
    }
    if chosen.is_empty() {
        text.push_str(
            "\nA window of 3 s misses slow faults: a resolver that times out after 5 s, a segment that is sent again \
             every 6 s. --for 30 shows more of them.\n",
        );
    }
    fold(&text, width::of_texts())
}

#[cfg(test)]
mod tests {
    use super::*;
    use doctor::checks::CHECKS;

    #[test]
    fn one_an_area_or_all() {
        assert!(text(&["ct-full"]).starts_with("ct-full (conntrack)\n  finds       The conntrack table is full"));
        assert_eq!(text(&[]).matches("refuted by").count(), CHECKS.len());
        let conntrack = CHECKS.iter().filter(|check| check.area == "conntrack").count();
        assert_eq!(text(&["conntrack"]).matches("refuted by").count(), conntrack);
        assert!(text(&[]).lines().all(|line| line.chars().count() <= width::of_texts()));
    }
}
