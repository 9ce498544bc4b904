//! `netwren nat top [FIELDS] [FILTER]`: entries counted by some fields, with each group's share of all that were counted.
//!
//! Sugar over `--by`: the plan is that of a table with groups. Only the share needs a total, which is known when the last
//! group has come; so the first rows are held back, as many as are shown.

use super::super::Outcome;
use super::super::table;
use super::held_cells::{HeldCell, LIMIT};
use super::list::prepare;
use super::port_use;
use crate::exit::Exit;
use crate::flags::NatList;
use crate::messages::refused;
use record::rows::Nat;
use record::{Accounting, Column, Columns, Kind, Next, Round, Sink, SinkError, Value, field_index};
use std::ffi::OsString;

/// Words for fields, as people ask for them.
const ALIASES: &[(&str, &str)] = &[
    ("client", "orig_src"),
    ("clients", "orig_src"),
    ("source", "orig_src"),
    ("sources", "orig_src"),
    ("destination", "orig_dst"),
    ("destinations", "orig_dst"),
    ("port", "orig_dport"),
    ("ports", "orig_dport"),
    ("states", "state"),
    ("backends", "backend"),
    ("owner", "process"),
    ("owners", "process"),
    ("zones", "zone"),
];

/// Runs the command with the words behind `nat top`.
pub(super) fn run(args: impl Iterator<Item = OsString>) -> Outcome {
    let words: Vec<OsString> = args.collect();
    let is_of_ports = words.first().is_some_and(|word| word == port_use::WORD);
    let (by, taken) = if is_of_ports { (String::new(), 1) } else { fields(&words) };
    let list = match NatList::parse_top(&by, words.into_iter().skip(taken)) {
        Ok(list) => list,
        Err(error) => return refused(&error).into(),
    };
    if is_of_ports {
        return port_use::run(list);
    }
    let NatList { mut request, table } = list;
    let keys = by.split(',').count();
    // The share is of everything, so the engine hands over every group.
    let limit = request.shown.limit.take().unwrap_or(LIMIT);
    match prepare(&request, table) {
        Ok((plan, reading)) => table::run_through(&request, &plan, &reading, |_, sink, rounds| {
            let mut share = Share { inner: sink, keys, limit, total: 0, held: Vec::new(), cut: 0 };
            let mut run = rounds(&mut share)?;
            if share.cut > 0 {
                run.stats.add_reason(0, format!("{} more groups are not shown (--limit)", share.cut));
            }
            Ok(run)
        }),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    }
}

/// The fields and how many words named them: one if the first word is a list of fields; by source otherwise.
fn fields(words: &[OsString]) -> (String, usize) {
    let word = |place: usize| words.get(place).and_then(|word| word.to_str()).unwrap_or("");
    let name = |word: &str| {
        let alias = ALIASES.iter().find(|(alias, _)| *alias == word).map(|(_, field)| *field);
        alias.or_else(|| field_index::<Nat>(word).and(Some(word))).map(str::to_owned)
    };
    let named: Option<Vec<String>> = word(0).split(',').map(name).collect();
    match named {
        // `state = established` is a filter, not the field.
        Some(fields) if !is_operator(word(1)) => (fields.join(","), 1),
        _ => ("orig_src".to_owned(), 0),
    }
}

fn is_operator(word: &str) -> bool {
    word.starts_with(['=', '!', '<', '>', '~']) || matches!(word, "in" | "not")
}

/// The sink between: adds the share.
struct Share {
    inner: Box<dyn Sink>,
    /// Cells before the count.
    keys: usize,
    limit: u64,
    /// Entries of all groups of this round.
    total: u64,
    held: Vec<Vec<HeldCell>>,
    /// Groups that are not shown.
    cut: u64,
}

impl Share {
    fn count(&self, cells: &[Value<'_>]) -> u64 {
        match cells.get(self.keys) {
            Some(Value::U64(count)) => *count,
            _ => 0,
        }
    }
}

impl Sink for Share {
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        let mut columns = columns.clone();
        let place = columns.0.len().min(self.keys + 1);
        columns.0.insert(place, Column { name: "share_percent".into(), kind: Kind::Count });
        (self.total, self.cut) = (0, 0);
        self.held.clear();
        self.inner.begin(&columns, round)
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        self.total += self.count(cells);
        if (self.held.len() as u64) < self.limit {
            self.held.push(cells.iter().map(HeldCell::of).collect());
        } else {
            self.cut += 1;
        }
        Ok(Next::More)
    }

    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError> {
        for row in std::mem::take(&mut self.held) {
            let mut cells: Vec<Value<'_>> = row.iter().map(HeldCell::value).collect();
            let share = percent(self.count(&cells), self.total);
            cells.insert(cells.len().min(self.keys + 1), share);
            if self.inner.row(&cells)? == Next::Stop {
                break;
            }
        }
        self.inner.end(totals)
    }
}

/// Rounded to whole percents.
fn percent(part: u64, total: u64) -> Value<'static> {
    match total {
        0 => Value::Null,
        total => {
            let hundredfold = u128::from(part) * 100 + u128::from(total) / 2;
            Value::U64(u64::try_from(hundredfold / u128::from(total)).unwrap_or(100))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(line: &str) -> (String, usize) {
        fields(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn fields_or_a_filter() {
        assert_eq!(of(""), ("orig_src".into(), 0));
        assert_eq!(of("state"), ("state".into(), 1));
        assert_eq!(of("source,port nat = dnat"), ("orig_src,orig_dport".into(), 1));
        assert_eq!(of("client"), ("orig_src".into(), 1), "addresses, not an address and port each");
        assert_eq!(of("client = 10.0.0.1"), ("orig_src".into(), 0));
        assert_eq!(of("state = established"), ("orig_src".into(), 0));
        assert_eq!(of("state in (established)"), ("orig_src".into(), 0));
        assert_eq!(of("--limit 3 state"), ("orig_src".into(), 0));
        assert_eq!(of("state,nonsense"), ("orig_src".into(), 0));
        assert!(ALIASES.iter().all(|(_, field)| field_index::<Nat>(field).is_some()));
    }

    #[test]
    fn percents_are_rounded() {
        assert_eq!(percent(1, 3), Value::U64(33));
        assert_eq!(percent(2, 3), Value::U64(67));
        assert_eq!(percent(u64::MAX, u64::MAX), Value::U64(100));
        assert_eq!(percent(0, 0), Value::Null);
    }
}
