//! The results from the emulated kernels, in the committed file docs/kernels.json.
//!
//! The file has a name for each attempt and whether it worked. It has no figures, because they differ from run to run.

use crate::root;
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The path of the file.
pub(crate) const FILE: &str = "docs/kernels.json";

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It worked and showed the expected rows.
    Works,
    /// The kernel does not have the feature, and netwren reported that.
    Absent,
    /// It showed something else than expected.
    Different,
}

impl Outcome {
    const ALL: [(Outcome, &'static str); 3] =
        [(Outcome::Works, "works"), (Outcome::Absent, "absent"), (Outcome::Different, "different")];

    fn word(self) -> &'static str {
        Outcome::ALL.into_iter().find(|(one, _)| *one == self).map_or("", |(_, word)| word)
    }

    fn of(word: &str) -> Option<Outcome> {
        Outcome::ALL.into_iter().find(|(_, of)| *of == word).map(|(one, _)| one)
    }
}

/// The attempts on one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The version as printed by uname.
    pub(crate) version: String,
    /// The outcomes by name.
    pub(crate) outcomes: BTreeMap<String, Outcome>,
}

/// The results of all kernels, by their names on the command line.
pub(crate) type SeenKernels = BTreeMap<String, Seen>;

/// Lines with figures or actions, which are not attempts.
const NO_TRIALS: &[&str] = &["cost", "nat cost", "nat advise", "end"];

/// Parses the lines of a guest.
pub(super) fn of_lines(version: &str, lines: &[String]) -> Seen {
    let outcomes = lines.iter().filter_map(|line| of_line(line)).collect();
    Seen { version: version.to_owned(), outcomes }
}

/// Parses one line; `None` for lines that continue another line.
fn of_line(line: &str) -> Option<(String, Outcome)> {
    if line.starts_with(' ') {
        return None;
    }
    if let Some(feature) = line.strip_prefix("support: ") {
        let mut cells = feature.split('\t');
        let (name, works) = (cells.next()?, cells.next()?);
        let outcome = match works {
            "yes" => Outcome::Works,
            "no" => Outcome::Absent,
            _ => return None,
        };
        return Some((format!("support: {name}"), outcome));
    }
    let (name, words) = line.split_once(": ")?;
    if NO_TRIALS.contains(&name) {
        return None;
    }
    let outcome = match words {
        words if words.contains("DIFFERENT") => Outcome::Different,
        words if words.starts_with("not here") || words.starts_with("nothing") => Outcome::Absent,
        _ => Outcome::Works,
    };
    Some((name.to_owned(), outcome))
}

/// Reads the committed file.
pub(crate) fn read() -> Result<SeenKernels> {
    let path = root::path().join(FILE);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    parse(&text).with_context(|| format!("{FILE} is not what `cargo xtask kernels` writes"))
}

fn parse(text: &str) -> Option<SeenKernels> {
    let of = |seen: &Value| {
        let outcomes = seen.get("outcomes")?.as_object()?.iter();
        let outcomes: Option<_> =
            outcomes.map(|(name, word)| Some((name.clone(), Outcome::of(word.as_str()?)?))).collect();
        Some(Seen { version: seen.get("version")?.as_str()?.to_owned(), outcomes: outcomes? })
    };
    let whole: Value = serde_json::from_str(text).ok()?;
    whole.as_object()?.iter().map(|(name, seen)| Some((name.clone(), of(seen)?))).collect()
}

/// Replaces the earlier results of a kernel.
pub(super) fn write(name: &str, seen: Seen) -> Result<()> {
    let mut all = read().unwrap_or_default();
    all.insert(name.to_owned(), seen);
    let path = root::path().join(FILE);
    std::fs::write(&path, text(&all)).with_context(|| path.display().to_string())
}

fn text(all: &SeenKernels) -> String {
    let of = |seen: &Seen| {
        let outcomes = seen.outcomes.iter().map(|(name, outcome)| (name.clone(), outcome.word().into()));
        json!({ "version": seen.version, "outcomes": outcomes.collect::<Map<_, _>>() })
    };
    let whole: Map<_, _> = all.iter().map(|(name, seen)| (name.clone(), of(seen))).collect();
    format!("{:#}\n", Value::Object(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_file_is_written_again_as_it_is() -> Result<()> {
        let all = read()?;
        assert!(all.len() >= 3, "{:?}", all.keys());
        assert_eq!(text(&all), std::fs::read_to_string(root::path().join(FILE))?);
        Ok(())
    }

    #[test]
    fn lines_of_a_guest() {
        let lines = [
            "support: kernel\t6.12\tuid 0",
            "support: bpf: long loops\tno\tneeds Linux 5.17",
            "support: log records\tyes\tby netlink",
            "sockets --via bpf: 12 rows, as by netlink",
            "nat --via bpf: not here: this kernel has no such program",
            "sockets: DIFFERENT from netlink: x",
            "  a line of it: more",
            "cost: 4 ms",
            "end",
        ];
        let seen = of_lines("6.12.1", &lines.map(str::to_owned));
        let found: Vec<_> = seen.outcomes.iter().map(|(name, outcome)| (name.as_str(), *outcome)).collect();
        assert_eq!(
            found,
            [
                ("nat --via bpf", Outcome::Absent),
                ("sockets", Outcome::Different),
                ("sockets --via bpf", Outcome::Works),
                ("support: bpf: long loops", Outcome::Absent),
                ("support: log records", Outcome::Works),
            ]
        );
        let all = SeenKernels::from([("6.12".to_owned(), seen)]);
        assert_eq!(parse(&text(&all)), Some(all));
        assert_eq!((parse("{\"6.1\": {}}"), parse("")), (None, None));
    }
}
