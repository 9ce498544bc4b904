use super::*;
use crate::testing::{Numbers, cell_text};
use std::collections::BTreeMap;

const NAMES: [&str; 3] = ["tcp", "udp", "unix"];

#[test]
fn counts_and_folds_as_a_plain_map_does() {
    let mut numbers = Numbers(5);
    let mut grouper = Grouper::new(vec![KeyPart::Whole; 2], vec![Fold::Sum, Fold::Max, Fold::Avg], GroupBound::NONE);
    let mut naive: BTreeMap<String, (u64, Vec<u64>)> = BTreeMap::new();
    for _ in 0..20_000 {
        let text = numbers.next_below(40).to_string();
        let name = NAMES[numbers.next_below(3) as usize];
        let first = if numbers.next_below(10) == 0 { Value::Null } else { Value::Bytes(text.as_bytes()) };
        let amount = (numbers.next_below(4) > 0).then(|| numbers.next_below(1_000));
        let cell = amount.map_or(Value::Null, Value::U64);
        grouper.add(&[first, Value::Name(name), cell, cell, cell]);
        let group = naive.entry(format!("{} {name}", cell_text(&first))).or_default();
        group.0 += 1;
        group.1.extend(amount);
    }
    let mut got = BTreeMap::new();
    grouper.finish(|cells| {
        let texts: Vec<String> = cells.iter().map(cell_text).collect();
        got.insert(texts[..2].join(" "), texts[2..].join(" "));
    });
    let expected: BTreeMap<String, String> = naive
        .into_iter()
        .map(|(key, (count, amounts))| {
            let sum: u64 = amounts.iter().sum();
            let average = (sum as f64 / amounts.len() as f64).round();
            (key, format!("{count} {sum} {} {average}", amounts.iter().max().unwrap_or(&0)))
        })
        .collect();
    assert_eq!(got, expected);
}

#[test]
fn keys_that_look_alike_stay_apart() {
    let mut grouper = Grouper::new(vec![KeyPart::Whole; 2], vec![], GroupBound::NONE);
    let rows = [
        [Value::Bytes(b"ab"), Value::Bytes(b"c")],
        [Value::Bytes(b"a"), Value::Bytes(b"bc")],
        [Value::Null, Value::Bytes(b"")],
        [Value::Bytes(b""), Value::Null],
        [Value::U64(0), Value::Null],
        [Value::Bool(false), Value::Null],
    ];
    rows.iter().for_each(|row| grouper.add(row));
    let mut groups = Vec::new();
    grouper.finish(|cells| groups.push(cells.iter().map(cell_text).collect::<Vec<_>>().join("|")));
    assert_eq!(groups, ["ab|c|1", "a|bc|1", "-||1", "|-|1", "0|-|1", "false|-|1"]);
}

#[test]
fn sums_stay_at_the_largest_number() {
    let mut grouper = Grouper::new(vec![KeyPart::Whole; 0], vec![Fold::Sum, Fold::Avg], GroupBound::OF_STREAMS);
    grouper.add(&[Value::U64(u64::MAX), Value::U64(2)]);
    grouper.add(&[Value::U64(5), Value::U64(3)]);
    grouper.add(&[Value::I64(-1), Value::Null]);
    grouper.finish(|cells| assert_eq!(cells, [Value::U64(3), Value::U64(u64::MAX), Value::U64(3)]));
}

/// The lines of a grouper by their first key, with count and folds, and the largest number of groups.
struct Bounded {
    grouper: Grouper,
    most: usize,
    most_bytes: usize,
}

impl Bounded {
    fn new(folds: Vec<Fold>) -> Bounded {
        let bound = GroupBound { groups: 1000, bytes: 40_000 };
        Bounded { grouper: Grouper::new(vec![KeyPart::Whole; 1], folds, bound), most: 0, most_bytes: 0 }
    }

    fn add(&mut self, cells: &[Value<'_>]) {
        self.grouper.add(cells);
        self.most = self.most.max(self.grouper.groups.len());
        self.most_bytes = self.most_bytes.max(self.grouper.packed.len());
    }

    fn lines(&self) -> BTreeMap<String, Vec<String>> {
        let mut lines = BTreeMap::new();
        self.grouper.finish(|cells| {
            let texts: Vec<String> = cells.iter().map(cell_text).collect();
            assert!(lines.insert(texts[0].clone(), texts[1..].to_vec()).is_none(), "{texts:?} twice");
        });
        lines
    }
}

/// Returns the count in a group's lines.
fn count(lines: &BTreeMap<String, Vec<String>>, key: &str) -> u64 {
    lines.get(key).map_or(0, |cells| cells[0].parse().unwrap())
}

/// 200,000 senders with one row each; before them as many with several rows; a genuine sender with one row in 300.
#[test]
fn a_flood_of_groups_pushes_no_heavy_one_out() {
    let mut bounded = Bounded::new(vec![]);
    let mut rows = 0;
    let mut add = |bounded: &mut Bounded, key: u64| {
        bounded.add(&[Value::U64(key)]);
        rows += 1;
    };
    // The remaining groups once had many rows.
    for n in 0..500_000 {
        add(&mut bounded, 1_000_000 + n % 1000);
    }
    for n in 0..200_000 {
        add(&mut bounded, 2_000_000 + n);
        if n % 100 == 0 {
            // These rows come in bursts, after the flood began.
            (0..20).filter(|_| n > 50_000).for_each(|_| add(&mut bounded, 7));
        }
    }
    let lines = bounded.lines();
    assert!(bounded.most <= 1000 && lines.len() <= 1001, "{} groups", bounded.most);
    let (heavy, sent) = (count(&lines, "7"), 20 * 1499);
    assert!(heavy <= sent && heavy + 2 * rows / 1000 >= sent, "{heavy} of {sent}");
    assert!(lines.keys().any(|key| key.starts_with('2')), "some of the flood as well");
    let all: u64 = lines.keys().map(|key| count(&lines, key)).sum();
    assert_eq!(all, rows, "every row is in a line");
    let (folded, others) = (bounded.grouper.folded_rows(), count(&lines, "-"));
    assert!(folded > 180_000 && folded == others, "{folded} {others}");
}

#[test]
fn what_is_folded_keeps_sums_and_greatest() {
    let mut bounded = Bounded::new(vec![Fold::Sum, Fold::Max, Fold::Avg]);
    for n in 0..100_000_u64 {
        let amount = Value::U64(n);
        bounded.add(&[if n % 4 == 0 { Value::Null } else { Value::U64(n) }, amount, amount, amount]);
    }
    let lines = bounded.lines();
    let sum: u64 = lines.values().map(|cells| cells[1].parse::<u64>().unwrap()).sum();
    assert_eq!(sum, (0..100_000).sum::<u64>());
    let others = &lines["-"];
    assert!(others[0].parse::<u64>().unwrap() > 90_000, "one line, that of rows without keys: {others:?}");
    assert!(others[2].parse::<u64>().unwrap() > 98_000 && others[3].starts_with("49"), "{others:?}");
}

#[test]
fn long_keys_are_bounded_too() {
    let mut bounded = Bounded::new(vec![]);
    for n in 0..5000 {
        let text = format!("{n:01000}");
        bounded.add(&[Value::Bytes(text.as_bytes())]);
        bounded.add(&[Value::Bytes(b"short")]);
    }
    assert!(bounded.most_bytes <= 40_000 + 1010, "{}", bounded.most_bytes);
    let lines = bounded.lines();
    assert_eq!(
        (count(&lines, "short"), count(&lines, "short") + bounded.grouper.folded_rows() <= 10_000),
        (5000, true)
    );
    // A single key that is longer than the bound for all keys.
    bounded.add(&[Value::Bytes(&[b'x'; 100_000])]);
    bounded.add(&[Value::Bytes(b"short")]);
    assert_eq!(count(&bounded.lines(), "short"), 5001);
}
