#![allow(clippy::unwrap_used)]
use super::*;
use crate::testing::{Numbers, cell_text};
use std::cmp::Ordering;

/// The rule spelled out value by value: absent last, otherwise by the type's own order.
fn naive(a: &Value<'_>, b: &Value<'_>, descending: bool) -> Ordering {
    let turned = |o: Ordering| if descending { o.reverse() } else { o };
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        (Value::U64(a), Value::U64(b)) => turned(a.cmp(b)),
        (Value::I64(a), Value::I64(b)) => turned(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => turned(a.cmp(b)),
        (Value::Addr(a), Value::Addr(b)) => turned(a.cmp(b)),
        (Value::Bytes(a), Value::Bytes(b)) => turned(a.cmp(b)),
        (Value::Name(a), Value::Name(b)) => turned(a.cmp(b)),
        (Value::Owners(a), Value::Owners(b)) => turned(a.cmp(b)),
        (a, b) => unreachable!("{a:?} with {b:?}"),
    }
}

const TEXTS: [&[u8]; 7] = [b"", b"\0", b"a", b"a\0", b"a\0b", b"ab", b"\xff\xff"];

fn any_row(numbers: &mut Numbers) -> [Value<'static>; 6] {
    let mut pick = |value: fn(u64) -> Value<'static>| match numbers.next_below(8) {
        0 => Value::Null,
        _ => value(numbers.next_below(7)),
    };
    [
        pick(|n| Value::U64([0, 1, 255, 256, 65_535, 65_536, u64::MAX][n as usize])),
        pick(|n| Value::I64([i64::MIN, -256, -1, 0, 1, 256, i64::MAX][n as usize])),
        pick(|n| Value::Bytes(TEXTS[n as usize])),
        pick(|n| Value::Name(["tcp", "udp", "unix", "close", "close_wait", "x", ""][n as usize])),
        pick(|n| Value::Addr(if n < 4 { Addr::V4([10, 0, 0, n as u8]) } else { Addr::V6([n as u8; 16]) })),
        pick(|n| Value::Bool(n > 3)),
    ]
}

fn by(keys: &[(usize, bool)]) -> RowOrder {
    RowOrder::new(keys.to_vec(), TieOrder::Columns)
}

fn sorted(rows: &[[Value<'static>; 6]], keys: &[(usize, bool)], limit: Option<usize>) -> Vec<String> {
    let mut sorter = Sorter::new(&by(keys), 6, 6, limit);
    rows.iter().for_each(|row| sorter.add(row));
    let mut out = Vec::new();
    sorter.finish(|cells| {
        out.push(cells.iter().map(cell_text).collect::<Vec<_>>().join("|"));
        Next::More
    });
    out
}

#[test]
fn orders_as_the_naive_rule_does() {
    let mut numbers = Numbers(1);
    for round in 0..30 {
        let rows: Vec<_> = (0..400).map(|_| any_row(&mut numbers)).collect();
        let keys = [(round % 6, round % 2 == 0), ((round + 3) % 6, round % 3 == 0)];
        let mut expected = rows.clone();
        expected.sort_by(|a, b| {
            let asked = keys.iter().map(|&(i, down)| naive(&a[i], &b[i], down)).find(|o| o.is_ne());
            asked.unwrap_or_else(|| {
                (0..6).map(|i| naive(&a[i], &b[i], false)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
            })
        });
        let expected: Vec<String> =
            expected.iter().map(|row| row.iter().map(cell_text).collect::<Vec<_>>().join("|")).collect();
        assert_eq!(sorted(&rows, &keys, None), expected, "{keys:?}");
        for limit in [1, 7, 399, 400, 5_000] {
            assert_eq!(sorted(&rows, &keys, Some(limit)), expected[..limit.min(400)], "{keys:?} limit {limit}");
        }
    }
}

#[test]
fn a_limit_bounds_memory_and_keeps_the_first() {
    let mut sorter = Sorter::new(&by(&[(0, true)]), 2, 2, Some(10));
    let mut numbers = Numbers(3);
    let mut most = 0;
    let mut all = Vec::new();
    for _ in 0..100_000 {
        let n = numbers.next_below(1 << 40);
        all.push(n);
        sorter.add(&[Value::U64(n), Value::Bytes(b"some text to fill the arena")]);
        most = most.max(sorter.memory_bytes());
    }
    assert!(most < 200_000, "{most} bytes");
    all.sort_unstable_by(|a, b| b.cmp(a));
    let mut got = Vec::new();
    sorter.finish(|cells| {
        got.push(cell_text(&cells[0]));
        Next::More
    });
    assert_eq!(got, all[..10].iter().map(u64::to_string).collect::<Vec<_>>());
}

#[test]
fn a_limit_of_nothing_keeps_nothing() {
    let mut sorter = Sorter::new(&by(&[(0, false)]), 1, 1, Some(0));
    (0..5_000).for_each(|n| sorter.add(&[Value::U64(n)]));
    sorter.finish(|_| unreachable!("no row may come"));
}

#[test]
fn a_reader_that_has_enough_is_left_alone() {
    let mut sorter = Sorter::new(&by(&[(0, false)]), 1, 1, None);
    (0..5).for_each(|n| sorter.add(&[Value::U64(n)]));
    let mut rows = 0;
    sorter.finish(|_| {
        rows += 1;
        if rows == 2 { Next::Stop } else { Next::More }
    });
    assert_eq!(rows, 2);
}

#[test]
fn lists_order_by_their_owners() {
    use crate::testing::owner;
    let lists = [vec![owner(2, "b")], vec![owner(1, "z"), owner(9, "a")], vec![owner(1, "z")], vec![owner(1, "a")]];
    let mut sorter = Sorter::new(&by(&[]), 1, 1, None);
    lists.iter().for_each(|list| sorter.add(&[Value::Owners(list)]));
    let mut got = Vec::new();
    sorter.finish(|cells| {
        if let Value::Owners(list) = cells[0] {
            got.push(list.to_vec());
        }
        Next::More
    });
    assert_eq!(got, [lists[3].clone(), lists[2].clone(), lists[1].clone(), lists[0].clone()]);
}

#[test]
fn rows_that_are_certainly_cut_are_known_by_their_keys() {
    let rows: Vec<[Value<'_>; 2]> = (0..5_000).map(|n| [Value::U64(n % 7), Value::U64(n)]).collect();
    for ties in [TieOrder::Columns, TieOrder::Arrival] {
        let how = RowOrder::new(vec![(0, true)], ties);
        let (mut all, mut few) = (Sorter::new(&how, 2, 2, Some(10)), Sorter::new(&how, 2, 2, Some(10)));
        let mut read = 0;
        for row in &rows {
            all.add(row);
            if !few.is_surely_cut(|place| row[place]) {
                read += 1;
                few.add(row);
            }
        }
        let rows_of = |sorter: Sorter| {
            let mut out = Vec::new();
            sorter.finish(|cells| {
                out.push(cells.iter().map(cell_text).collect::<Vec<_>>().join(" "));
                Next::More
            });
            out
        };
        let (all, few) = (rows_of(all), rows_of(few));
        assert_eq!(all, few, "{ties:?}");
        assert_eq!(all, (0..10).map(|n| format!("6 {}", 6 + n * 7)).collect::<Vec<_>>(), "{ties:?}");
        let most = if ties == TieOrder::Arrival { 60 } else { 3_000 };
        assert!(read <= most, "{ties:?}: {read}");
    }
}

#[test]
fn rows_with_equal_keys_stay_as_they_come_where_arrival_decides() {
    let how = RowOrder::new(vec![(0, true)], TieOrder::Arrival);
    let mut sorter = Sorter::new(&how, 2, 2, None);
    for (rate, name) in [(0, "b"), (5, "a"), (0, "a"), (5, "0")] {
        sorter.add(&[Value::U64(rate), Value::Name(name)]);
    }
    sorter.add(&[Value::Null, Value::Name("null")]);
    let mut out = Vec::new();
    sorter.finish(|cells| {
        out.push(cell_text(&cells[1]));
        Next::More
    });
    assert_eq!(out, ["a", "0", "b", "a", "null"]);
}
