//! `netwren nat top [FIELDS] [FILTER]`: counts entries by some fields, with each group's share of all counted entries.
//!
//! A shorthand for `--by`: the plan is a table with groups. Only the share needs a total, which is known after the
//! last group, so the first rows are held back, as many as are shown.

use super::super::table;
use super::LIMIT;
use super::list::table_of;
use super::port_use;
use crate::command::{Command, ParsedWords, Prepared, ready};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use record::rows::Nat;
use record::{Accounting, Column, Columns, Kind, Next, OwnedValue, Round, Schema, Sink, SinkError, Table, Value};
use tables::nat;

/// Everyday words for fields.
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

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "nat top",
    about: "Conntrack entries counted by fields, the most frequent first, with their share",
    examples: EXAMPLES,
    scope: Scope::OWNED_TABLE.and(Scope::CT_TABLE).without(Scope::COLUMNS).without(Scope::BY),
    refusals: &[
        ("by", "`nat top` has no --by: name the fields after `top`"),
        ("columns", "`nat top` has no --columns: name the fields after `top`"),
        ("follow", "`nat` has no --follow: `netwren nat events` shows events"),
    ],
    tables: &[Schema::from_table::<Nat>()],
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren nat top                                   the clients with the most entries
  netwren nat top state                             by state
  netwren nat top published                         by the address and port that clients connect to
  netwren nat top backend,state 'nat = dnat'        destination NAT only, by backend and state
  netwren nat top source --sum bytes_in --limit 3   by bytes
  netwren nat top source/24                         by network
  netwren nat top snat_port_use                     used and available source ports, by address and destination
  netwren nat top source --watch
";

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let (mut request, fields) = asked(words)?;
    if fields.is_none() {
        return port_use::prepare(request, table_of(words));
    }
    // The share refers to all entries, so the engine hands over every group.
    let limit = request.shown.limit.take().unwrap_or(LIMIT);
    let (plan, reading) = nat::prepare(&request.table(), table_of(words))?;
    ready(move || {
        table::show_through(&request, &plan, &reading, |_, sink, rounds| {
            let mut share = Share { inner: sink, count: 0, limit, total: 0, held: Vec::new(), cut: 0 };
            let mut run = rounds(&mut share)?;
            if share.cut > 0 {
                run.stats.add_reason(0, format!("{} more groups are not shown (--limit)", share.cut));
            }
            Ok(run)
        })
    })
}

/// The request with its fields; None if the use of ports is requested.
fn asked(words: &ParsedWords<'_>) -> Result<(Request, Option<String>), String> {
    let words_of_filter = words.values("filter");
    let is_of_ports = words_of_filter.first() == Some(&port_use::WORD);
    let (by, taken) = if is_of_ports { (String::new(), 1) } else { fields(&words_of_filter)? };
    let filter = words_of_filter.get(taken..).unwrap_or_default();
    let request = Request::grouped_by(words, Some(by.clone()), filter)?;
    Ok((request, (!is_of_ports).then_some(by)))
}

/// The fields, and the number of words that named them: one if the first word is a list of fields; otherwise zero,
/// with the source as the field. A list with an unknown name is an error.
fn fields(words: &[&str]) -> Result<(String, usize), String> {
    let word = |place: usize| words.get(place).copied().unwrap_or("");
    let name = |word: &str| {
        let (name, bits) = word.split_at(word.find('/').unwrap_or(word.len()));
        let alias = ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, field)| *field);
        let known =
            alias.or_else(|| (!engine::words::keys(Schema::from_table::<Nat>(), name).is_empty()).then_some(name));
        known.map(|known| format!("{known}{bits}"))
    };
    // `state = established` is a filter, not the field.
    if !is_list(word(0)) || is_operator(word(1)) {
        return Ok(("orig_src".to_owned(), 0));
    }
    let named = word(0).split(',').map(|word| name(word).ok_or(word)).collect::<Result<Vec<String>, &str>>();
    match named {
        Ok(fields) => Ok((fields.join(","), 1)),
        Err(unknown) => Err(format!(
            "entries cannot be counted by `{unknown}`; {}`netwren nat --columns help` lists the fields, and {} shows \
             the ports used by source NAT",
            near(unknown).map_or(String::new(), |near| format!("did you mean `{near}`? ")),
            port_use::WORD
        )),
    }
}

/// The word or field most similar to an unknown one.
fn near(unknown: &str) -> Option<&'static str> {
    let words = ALIASES.iter().map(|(alias, _)| *alias);
    engine::find_nearest(unknown, words.chain(Nat::FIELDS.iter().map(|field| field.name)))
}

/// True for comma-separated names. No filter begins with these unless an operator follows.
fn is_list(word: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    // `source/24` means the network of an address.
    let is_name = |name: &str| name.split('/').all(is_name);
    word != "not" && word.split(',').all(is_name)
}

fn is_operator(word: &str) -> bool {
    word.starts_with(['=', '!', '<', '>', '~']) || matches!(word, "in" | "not")
}

/// A sink that adds the share.
struct Share {
    inner: Box<dyn Sink>,
    /// Index of the column `count`. One word from the user can expand to several columns before it.
    count: usize,
    limit: u64,
    /// Number of entries in all groups of this round.
    total: u64,
    held: Vec<Vec<OwnedValue>>,
    /// Number of groups not shown.
    cut: u64,
}

impl Share {
    fn count(&self, cells: &[Value<'_>]) -> u64 {
        match cells.get(self.count) {
            Some(Value::U64(count)) => *count,
            _ => 0,
        }
    }
}

impl Sink for Share {
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        let mut columns = columns.clone();
        self.count = columns.0.iter().position(|column| &*column.name == "count").unwrap_or(columns.0.len());
        columns
            .0
            .insert(columns.0.len().min(self.count + 1), Column { name: "share_percent".into(), kind: Kind::Count });
        (self.total, self.cut) = (0, 0);
        self.held.clear();
        self.inner.begin(&columns, round)
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        self.total += self.count(cells);
        if (self.held.len() as u64) < self.limit {
            self.held.push(cells.iter().map(|cell| OwnedValue::from(*cell)).collect());
        } else {
            self.cut += 1;
        }
        Ok(Next::More)
    }

    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError> {
        for row in std::mem::take(&mut self.held) {
            let mut cells: Vec<Value<'_>> = row.iter().map(OwnedValue::value).collect();
            let share = percent(self.count(&cells), self.total);
            cells.insert(cells.len().min(self.count + 1), share);
            if self.inner.row(&cells)? == Next::Stop {
                break;
            }
        }
        self.inner.end(totals)
    }
}

/// A percentage, rounded to an integer.
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
    use crate::flags::parser;

    fn of(line: &str) -> (String, usize) {
        fields(&line.split_whitespace().collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn fields_or_a_filter() {
        assert_eq!(of(""), ("orig_src".into(), 0));
        assert_eq!(of("state"), ("state".into(), 1));
        assert_eq!(of("source,port nat = dnat"), ("orig_src,orig_dport".into(), 1));
        assert_eq!(of("client"), ("orig_src".into(), 1), "addresses, not an address and port each");
        assert_eq!(of("client/24,dst/16/48 state = listen"), ("orig_src/24,dst/16/48".into(), 1));
        assert_eq!(of("client = 10.0.0.1"), ("orig_src".into(), 0));
        assert_eq!(of("state = established"), ("orig_src".into(), 0));
        assert_eq!(of("state in (established)"), ("orig_src".into(), 0));
        assert_eq!(of("not state = established"), ("orig_src".into(), 0));
        assert!(ALIASES.iter().all(|(_, field)| record::field_index::<Nat>(field).is_some()));
    }

    #[test]
    fn issue_10_an_unknown_field_name_is_refused() {
        for (words, unknown) in [(&["state,nonsense"][..], "nonsense"), (&["procces", "nat = dnat"], "procces")] {
            let said = fields(words).unwrap_err();
            assert!(said.starts_with(&format!("entries cannot be counted by `{unknown}`")), "{said}");
        }
        assert_eq!(fields(&["nonsense = 3"]), Ok(("orig_src".into(), 0)), "the filter's error");
    }

    #[test]
    fn flags_stand_anywhere() {
        let parse = |line: &str| parser::parse_line(&COMMAND, line, asked);
        for line in ["state -o json --limit 3", "-o json --limit 3 state", "--limit 3 state -o json"] {
            let (request, fields) = parse(line).unwrap();
            assert_eq!((fields.as_deref(), request.shown.limit), (Some("state"), Some(3)), "{line}");
            assert_eq!((request.shown.by.as_deref(), request.shown.filter.as_str()), (Some("state"), ""), "{line}");
        }
        let (request, fields) = parse("--stats backend,state nat = dnat").unwrap();
        assert_eq!((fields.as_deref(), request.shown.filter.as_str()), (Some("backend,state"), "nat = dnat"));
        assert_eq!(parse("-H snat_port_use proto = tcp").unwrap().1, None);
        for line in ["state --columns a", "state --by a"] {
            assert!(parse(line).unwrap_err().to_string().contains("after `top`"), "{line}");
        }
        let top = parse("state --sum bytes_in").unwrap().0.shown;
        assert_eq!((top.by.as_deref(), top.aggregates[0].as_deref()), (Some("state"), Some("bytes_in")));
    }

    #[test]
    fn percents_are_rounded() {
        assert_eq!(percent(1, 3), Value::U64(33));
        assert_eq!(percent(2, 3), Value::U64(67));
        assert_eq!(percent(u64::MAX, u64::MAX), Value::U64(100));
        assert_eq!(percent(0, 0), Value::Null);
    }
}
