use super::*;
use crate::testing::{Numbers, cell_text};
use std::collections::BTreeMap;

const NAMES: [&str; 3] = ["tcp", "udp", "unix"];

#[test]
fn counts_and_folds_as_a_plain_map_does() {
    let mut numbers = Numbers(5);
    let mut grouper = Grouper::new(2, vec![Fold::Sum, Fold::Max, Fold::Avg]);
    let mut naive: BTreeMap<String, (u64, Vec<u64>)> = BTreeMap::new();
    for _ in 0..20_000 {
        let text = numbers.below(40).to_string();
        let name = NAMES[numbers.below(3) as usize];
        let first = if numbers.below(10) == 0 { Value::Null } else { Value::Bytes(text.as_bytes()) };
        let amount = (numbers.below(4) > 0).then(|| numbers.below(1_000));
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
    let mut grouper = Grouper::new(2, vec![]);
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
    let mut grouper = Grouper::new(0, vec![Fold::Sum, Fold::Avg]);
    grouper.add(&[Value::U64(u64::MAX), Value::U64(2)]);
    grouper.add(&[Value::U64(5), Value::U64(3)]);
    grouper.add(&[Value::I64(-1), Value::Null]);
    grouper.finish(|cells| assert_eq!(cells, [Value::U64(3), Value::U64(u64::MAX), Value::U64(3)]));
}
