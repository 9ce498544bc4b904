//! Rows of the result table with their goals.

use super::super::report::Spread;
use serde_json::{Value, json};

/// The goal of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Goal {
    /// Our value divided by the peer's is at most this.
    RatioAtMost(f64),
    /// Our value divided by the peer's is at least this.
    RatioAtLeast(f64),
    /// Our value is at most this.
    AtMost(f64),
    /// Our value is at least this.
    AtLeast(f64),
    /// The value has no goal and is for information.
    None,
}

/// A task with our figures and a peer's, round by round.
pub(super) struct Row {
    pub(super) task: String,
    pub(super) unit: &'static str,
    pub(super) ours: (String, Vec<f64>),
    pub(super) peer: Option<(String, Vec<f64>)>,
    pub(super) goal: Goal,
    pub(super) note: String,
}

impl Row {
    /// Our value divided by the peer's, round by round.
    fn ratio(&self) -> Option<Spread> {
        let (_, theirs) = self.peer.as_ref()?;
        Some(Spread::of(self.ours.1.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect()))
    }

    fn is_reached(&self) -> Option<bool> {
        let ours = Spread::of(self.ours.1.clone()).median;
        match self.goal {
            Goal::RatioAtMost(most) => Some(self.ratio()?.median <= most),
            Goal::RatioAtLeast(least) => Some(self.ratio()?.median >= least),
            Goal::AtMost(most) => Some(ours <= most),
            Goal::AtLeast(least) => Some(ours >= least),
            Goal::None => None,
        }
    }

    fn wanted(&self) -> String {
        let (word, number, unit) = match self.goal {
            Goal::RatioAtMost(most) if most < 0.1 => ("≤ 1/", 1.0 / most, ""),
            Goal::RatioAtMost(most) => ("≤ ", most, "x"),
            Goal::RatioAtLeast(least) => ("≥ ", least, "x"),
            Goal::AtMost(most) => ("≤ ", most, ""),
            Goal::AtLeast(least) => ("≥ ", least, ""),
            Goal::None => return String::new(),
        };
        let reached = if self.is_reached() == Some(true) { "reached" } else { "**missed**" };
        format!("{word}{}{unit}: {reached}", (number * 100.0).round() / 100.0)
    }

    /// The row as a line of Markdown.
    pub(super) fn line(&self) -> String {
        let shown = |values: &[f64]| {
            let Spread { median, min, max } = Spread::of(values.to_vec());
            let digits = usize::from(max < 10.0) * 2;
            format!("{median:.digits$} ({min:.digits$}–{max:.digits$})")
        };
        let (peer, theirs) =
            self.peer.as_ref().map_or_else(Default::default, |(label, values)| (format!("`{label}`"), shown(values)));
        let ratio = self.ratio().map_or_else(String::new, |Spread { median, min, max }| {
            let digits = if median < 0.1 { 4 } else { 2 };
            format!("{median:.digits$}x ({min:.digits$}–{max:.digits$})")
        });
        format!(
            "| {} ({}) | `{}` | {peer} | {} | {theirs} | {ratio} | {} | {} |\n",
            self.task,
            self.unit,
            self.ours.0,
            shown(&self.ours.1),
            self.wanted(),
            self.note
        )
    }

    pub(super) fn json(&self) -> Value {
        let peer = self.peer.as_ref().map(|(label, values)| json!({"command": label, "rounds": values}));
        json!({
            "task": self.task, "unit": self.unit, "ours": {"command": self.ours.0, "rounds": self.ours.1},
            "peer": peer, "ratio": self.ratio().map(Spread::json), "wanted": format!("{:?}", self.goal),
            "reached": self.is_reached(), "note": self.note,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_judged_by_the_median_of_pairs() {
        let row = |goal| Row {
            task: "t".to_owned(),
            unit: "ns",
            ours: ("a".to_owned(), vec![1.0, 2.0, 3.0]),
            peer: Some(("b".to_owned(), vec![4.0, 4.0, 4.0])),
            goal,
            note: String::new(),
        };
        assert_eq!(row(Goal::RatioAtMost(0.5)).is_reached(), Some(true));
        assert_eq!(row(Goal::RatioAtMost(0.4)).is_reached(), Some(false));
        assert_eq!(row(Goal::RatioAtLeast(0.5)).is_reached(), Some(true));
        assert_eq!((row(Goal::AtMost(1.0)).is_reached(), row(Goal::None).is_reached()), (Some(false), None));
        assert!(row(Goal::RatioAtMost(1.0 / 200.0)).line().contains("≤ 1/200: **missed**"));
    }
}
