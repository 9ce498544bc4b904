//! Caches messages that differ only in numbers: builds the shared text once per second and inserts the numbers per
//! row.
//!
//! The cache learns from the rows which numbers vary. It finds their positions by making the same message again with
//! one number changed, so that it works with any writer, and verifies the result with another message in which all
//! numbers are changed. A packet of a flood then costs a copy of the text and a few numbers.

use super::row_writer::{RowWriter, Shipped};
use record::{Columns, Lookups, MESSAGE, NANOS, NUMBERS, RowCells, RowShape, ShapeColumn, Value};
use sinks::syslog::SEQUENCE_ID_MAX;
use sinks::{Hole, HoleForm, HoledText, find_holes};

/// Number of cached shapes.
///
/// Bound: shapes of messages that log records share. Beyond: further records are rendered in full, which takes up to
/// twice as long. By: any sender of packets with new headers.
const SLOTS: usize = 64;
/// A shape is replaced after this many rows in a row with other shapes, so that rows of alternating shapes do not
/// evict each other.
const MISSES_MAX: u8 = 32;
/// The text is built at this many rows of a shape in one second, because building it takes as long as about ten
/// messages.
const ROWS_BEFORE: u32 = 16;
/// Like [`ROWS_BEFORE`], after a number has changed that was constant so far.
const ROWS_AGAIN: u32 = 4;
/// Shapes with longer texts are not cached.
const TEXT_MAX: usize = 64;
/// Writes the message for a row with these cells. The number is the sequence number of the message.
pub(super) type Write<'w, T> = dyn FnMut(&<T as record::Table>::Row<'_>, &mut dyn RowCells, u64, &mut Vec<u8>) + 'w;

/// The shared parts of messages, by the shape of their rows.
pub(super) struct AlikeMessages {
    slots: Box<[ShapeSlot]>,
    making: Making,
}

/// Buffers for building a text.
#[derive(Default)]
struct Making {
    /// The index of the number that each column shows.
    columns: Vec<Option<usize>>,
    /// Buffers for messages to compare.
    message: Vec<u8>,
    varied: Vec<u8>,
    packet: Vec<u8>,
    holes: Vec<Hole>,
}

#[derive(Default)]
struct ShapeSlot {
    second: u64,
    shared: [u64; 5],
    texts: [Vec<u8>; 2],
    /// The numbers of the row from which the text was built.
    numbers: [u32; NUMBERS],
    /// All bits set for numbers that were equal in all rows; 0 for others.
    same: [u32; NUMBERS],
    /// Number of rows in this second.
    rows: u32,
    misses: u8,
    text: Option<HoledText>,
    /// True if the text cannot be built.
    is_hopeless: bool,
}

impl AlikeMessages {
    /// Makes a cache for rows with these columns; `None` if a column shows values that the shape and its numbers do
    /// not determine.
    pub(super) fn new<T: Shipped>(columns: &Columns) -> Option<AlikeMessages> {
        let numbers: Option<Vec<Option<usize>>> = columns.0.iter().map(|column| number_of::<T>(&column.name)).collect();
        Some(AlikeMessages {
            slots: (0..SLOTS).map(|_| ShapeSlot::default()).collect(),
            making: Making { columns: numbers?, ..Making::default() },
        })
    }

    /// Appends the message of a row; calls `write` if it is not cached. `number` is at most [`SEQUENCE_ID_MAX`].
    #[inline]
    pub(super) fn put<T: Shipped>(
        &mut self,
        row: &T::Row<'_>,
        cells: &mut dyn RowCells,
        number: u64,
        out: &mut Vec<u8>,
        write: &mut Write<'_, T>,
    ) {
        let Some(mut shape) = T::shape(row) else { return write(row, cells, number, out) };
        shape.numbers[MESSAGE] = number as u32;
        let Some(slot) = self.slots.get_mut(slot_of(&shape)) else { return write(row, cells, number, out) };
        if !slot.is_of(&shape) {
            slot.miss(&shape);
            return write(row, cells, number, out);
        }
        slot.misses = 0;
        match &slot.text {
            Some(text) if slot.agrees(&shape.numbers) => text.put(&shape.numbers, out),
            _ => {
                if slot.is_due(&shape.numbers) {
                    slot.text = made::<T>(&shape, &slot.same, row, cells, &mut self.making, write);
                    slot.is_hopeless = slot.text.is_none();
                }
                write(row, cells, number, out);
            }
        }
    }
}

/// The number that a column shows, `Some(None)` for a column whose value is shared, `None` for any other.
fn number_of<T: Shipped>(column: &str) -> Option<Option<usize>> {
    match T::shape_column(column) {
        ShapeColumn::Shared => Some(None),
        ShapeColumn::Number(number) => Some(Some(number)),
        // Only rows that stand for others have these columns, and they are not written from the cache.
        ShapeColumn::Other if matches!(column, "folded" | "folded_since" | "limited") => Some(None),
        ShapeColumn::Other => None,
    }
}

#[inline]
fn slot_of(shape: &RowShape<'_>) -> usize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, number: u64| (sum ^ number).wrapping_mul(ODD).rotate_left(29);
    let byte = |text: &[u8], at: usize| u64::from(text.get(at).copied().unwrap_or(0));
    let [first, second] = shape.texts;
    let of_texts = (first.len() as u64) << 24 | byte(first, first.len() / 2) << 16 | byte(first, 0) << 8;
    let sum = shape.shared.iter().fold(of_texts | byte(second, 11), |sum, number| mix(sum, *number));
    (sum >> 40) as usize % SLOTS
}

impl ShapeSlot {
    #[inline]
    fn is_of(&self, shape: &RowShape<'_>) -> bool {
        self.second == shape.second && self.is_like(shape)
    }

    #[inline]
    fn is_like(&self, shape: &RowShape<'_>) -> bool {
        self.shared == shape.shared && self.texts[0] == shape.texts[0] && self.texts[1] == shape.texts[1]
    }

    /// True if only numbers differ that are known to vary.
    #[inline]
    #[allow(clippy::needless_range_loop)]
    fn agrees(&self, numbers: &[u32; NUMBERS]) -> bool {
        // Branch-free and by index, so that the compiler generates vector instructions.
        let mut differs = 0;
        for at in 0..NUMBERS {
            differs |= (self.numbers[at] ^ numbers[at]) & self.same[at];
        }
        differs == 0
    }

    /// Notes a row with another shape or second, and replaces the shape if it is due.
    #[inline(never)]
    fn miss(&mut self, shape: &RowShape<'_>) {
        let is_like = self.is_like(shape);
        if !is_like && self.second >= shape.second && self.misses < MISSES_MAX {
            self.misses += 1;
            return;
        }
        if !is_like {
            self.same = [u32::MAX; NUMBERS];
            (self.same[NANOS], self.same[MESSAGE]) = (0, 0);
            self.shared = shape.shared;
            for (own, text) in self.texts.iter_mut().zip(shape.texts) {
                own.clear();
                own.extend_from_slice(text.get(..TEXT_MAX).unwrap_or(text));
            }
            self.is_hopeless = false;
        }
        (self.second, self.numbers, self.rows, self.misses, self.text) = (shape.second, shape.numbers, 1, 0, None);
    }

    /// Updates the constant numbers from a row; returns true if the text should be built from it.
    #[inline(never)]
    fn is_due(&mut self, numbers: &[u32; NUMBERS]) -> bool {
        for (same, (own, number)) in self.same.iter_mut().zip(self.numbers.iter().zip(numbers)) {
            if own != number {
                *same = 0;
            }
        }
        if self.text.take().is_some() {
            self.rows = ROWS_BEFORE - ROWS_AGAIN;
        }
        self.rows = self.rows.saturating_add(1);
        self.numbers = *numbers;
        !self.is_hopeless && self.rows >= ROWS_BEFORE
    }
}

/// Builds the text that the message of a row shares with all rows that differ only in numbers outside of `same`;
/// `None` if the positions of the numbers cannot be found.
#[cold]
fn made<T: Shipped>(
    shape: &RowShape<'_>,
    same: &[u32; NUMBERS],
    row: &T::Row<'_>,
    cells: &mut dyn RowCells,
    making: &mut Making,
    write: &mut Write<'_, T>,
) -> Option<HoledText> {
    let Making { columns, message, varied, packet, holes } = making;
    let mut vary = |numbers: &[u32; NUMBERS], cells: &dyn RowCells, out: &mut Vec<u8>| {
        out.clear();
        T::varied(row, numbers, packet, &mut |row| {
            let cells: Vec<Value<'_>> = (0..cells.count())
                .map(|index| cell(cells.cell(index), columns.get(index).copied().flatten(), shape.second, numbers))
                .collect();
            write(row, &mut &cells[..], numbers[MESSAGE].into(), out);
        });
    };
    vary(&shape.numbers, cells, message);
    holes.clear();
    let mut all = shape.numbers;
    for number in (0..NUMBERS).filter(|number| same[*number] == 0) {
        let value = shape.numbers[number];
        let other = other_number::<T>(number, value);
        all[number] = other;
        let numbers = std::array::from_fn(|at| if at == number { other } else { shape.numbers[at] });
        vary(&numbers, cells, varied);
        find_holes((message, value), (varied, other), number, forms::<T>(number), holes)?;
    }
    let text = HoledText::new(message, holes)?;
    vary(&all, cells, varied);
    let mut out = Vec::new();
    text.put(&all, &mut out);
    (out == *varied).then_some(text)
}

fn forms<T: Shipped>(number: usize) -> &'static [HoleForm] {
    match number {
        NANOS => &[HoleForm::Nanoseconds, HoleForm::Microseconds],
        _ if T::is_address(number) => &[HoleForm::Address],
        _ => &[HoleForm::Decimal],
    }
}

/// A number whose text has the same length and a different first byte.
fn other_number<T: Shipped>(number: usize, value: u32) -> u32 {
    const FIRST_OF_NINE: u32 = 100_000_000;
    match number {
        NANOS if value >= FIRST_OF_NINE => value % FIRST_OF_NINE,
        NANOS => value + FIRST_OF_NINE,
        MESSAGE => other_first_digit(value, SEQUENCE_ID_MAX as u32),
        _ if T::is_address(number) => {
            let [first, rest @ ..] = value.to_be_bytes();
            let [.., first] = other_first_digit(first.into(), u8::MAX.into()).to_be_bytes();
            u32::from_be_bytes([first, rest[0], rest[1], rest[2]])
        }
        _ => other_first_digit(value, T::largest_number(number)),
    }
}

/// A number with the same digit count, at most `largest`, whose first digit differs: 1, or 2 if it was 1.
fn other_first_digit(n: u32, largest: u32) -> u32 {
    let Some(digits) = n.checked_ilog10() else { return 1 };
    let one = 10u32.pow(digits);
    match (n / one, n % one) {
        (1, rest) => 2 * one + rest % largest.saturating_sub(2 * one - 1).max(1),
        (_, rest) => one + rest,
    }
}

/// A cell with its number replaced. Null stays null.
fn cell<'v>(cell: Value<'v>, number: Option<usize>, second: u64, numbers: &[u32; NUMBERS]) -> Value<'v> {
    let Some(n) = number.and_then(|number| numbers.get(number)).copied() else { return cell };
    match cell {
        Value::U64(_) => Value::U64(n.into()),
        Value::Addr(_) => Value::Addr(record::Addr::V4(n.to_be_bytes())),
        Value::Time(_) => Value::Time(second * 1_000_000_000 + u64::from(n)),
        other => other,
    }
}

/// A writer that caches messages by the shape of their rows.
pub(super) struct AlikeWriter<T: Shipped> {
    writer: Box<dyn RowWriter<T>>,
    alike: AlikeMessages,
}

impl<T: Shipped> AlikeWriter<T> {
    /// Wraps `writer`, whose messages depend on the row and on the cells of these columns.
    pub(super) fn over(writer: Box<dyn RowWriter<T>>, columns: &Columns) -> Box<dyn RowWriter<T>> {
        match AlikeMessages::new::<T>(columns) {
            Some(alike) => Box::new(AlikeWriter { writer, alike }),
            None => writer,
        }
    }
}

impl<T: Shipped> RowWriter<T> for AlikeWriter<T> {
    fn chooses(&self) -> bool {
        self.writer.chooses()
    }

    fn takes(&self, row: &T::Row<'_>) -> bool {
        self.writer.takes(row)
    }

    fn writes_lines(&self) -> bool {
        self.writer.writes_lines()
    }

    fn file_header(&mut self) -> Vec<u8> {
        self.writer.file_header()
    }

    fn begin_batch(&mut self) {
        self.writer.begin_batch();
    }

    fn write(&mut self, row: &T::Row<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        let AlikeWriter { writer, alike } = self;
        alike.put::<T>(row, cells, 0, out, &mut |row, cells, _, out| writer.write(row, cells, lookups, out));
    }

    fn write_noted(
        &mut self,
        row: &T::Row<'_>,
        cells: &mut dyn RowCells,
        lookups: &Lookups<'_>,
        words: &[u8],
        out: &mut Vec<u8>,
    ) {
        self.writer.write_noted(row, cells, lookups, words, out);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{syslog, ulogd};
    use super::*;
    use export::{Format, Target};
    use proptest::prelude::*;
    use record::rows::{LogRecord, LogRecords};
    use record::{Column, Table};
    use sinks::JsonRows;

    const COLUMNS: [&str; 20] = [
        "time",
        "group",
        "prefix",
        "hook",
        "family",
        "iifindex",
        "proto",
        "src",
        "sport",
        "dst",
        "dport",
        "len",
        "tcp_flags",
        "tcp_seq",
        "icmp_type",
        "icmp_id",
        "ttl",
        "tos",
        "fragment_offset",
        "mark",
    ];

    /// A randomly generated packet.
    #[derive(Debug, Clone)]
    struct Drawn {
        kind: u8,
        later_ns: u64,
        numbers: [u32; NUMBERS],
        tos: u8,
        fragment: u16,
        flags: u8,
        mark: Option<u32>,
        cut: usize,
    }

    /// Most of its numbers have one of two values, so that many are equal.
    fn drawn() -> impl Strategy<Value = Drawn> {
        let rare = |usual: u16| prop_oneof![30 => Just(usual), 1 => any::<u16>()];
        let number = prop_oneof![4 => Just(7u32), 4 => any::<u32>(), 2 => 0..1200u32];
        let mark = prop_oneof![30 => Just(None), 1 => (0..3u32).prop_map(Some)];
        let cut = prop_oneof![30 => Just(0usize), 1 => 1..48usize];
        let parts =
            (0..6u8, prop_oneof![30 => 0..30_000_000u64, 1 => 0..3_000_000_000u64], prop::array::uniform16(number));
        (parts, rare(0), rare(0x4000), rare(2), mark, cut).prop_map(|(parts, tos, fragment, flags, mark, cut)| Drawn {
            kind: parts.0,
            later_ns: parts.1,
            numbers: parts.2,
            tos: tos as u8,
            fragment,
            flags: flags as u8,
            mark,
            cut,
        })
    }

    impl Drawn {
        fn packet(&self) -> Vec<u8> {
            let (proto, rest) = match self.kind {
                0..=2 => (6, vec![0; 28]),
                3 | 4 => (17, vec![0; 30]),
                _ => (1, vec![0; 28]),
            };
            let mut bytes = vec![0x45, self.tos, 0, 0, 0, 0, (self.fragment >> 8) as u8, self.fragment as u8, 0, proto];
            bytes.extend([0; 10]);
            bytes.extend(&rest);
            let row = LogRecord { payload: &bytes, packet: packet::read_headers(&bytes), ..LogRecord::default() };
            let mut numbered = bytes.clone();
            row.put_numbers(&self.numbers, &mut numbered);
            match proto {
                6 => (numbered[32], numbered[33]) = (0x50, self.flags),
                1 => numbered[20] = if self.flags == 2 { 8 } else { self.flags },
                _ => {}
            }
            numbered.truncate(numbered.len() - self.cut);
            numbered
        }
    }

    /// Hands the generated rows to `each`.
    fn rows(drawn: &[Drawn], mut each: impl FnMut(&LogRecord<'_>)) {
        let mut time_ns = 1_795_265_034_999_000_000;
        for one in drawn {
            let packet = one.packet();
            time_ns += one.later_ns;
            each(&LogRecord {
                time_ns,
                group: 5,
                family: 2,
                hook: one.kind % 2,
                ether_type: 0x800,
                prefix: if one.kind == 1 { b"other \"rule\": " } else { b"fw: " },
                in_ifindex: Some(2),
                hw_header: &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0],
                mark: one.mark,
                payload: &packet,
                packet: packet::read_headers(&packet),
                ..LogRecord::default()
            });
        }
    }

    fn columns() -> Columns {
        let fields = COLUMNS.map(|name| LogRecords::FIELDS.iter().find(|field| field.name == name).unwrap());
        Columns(fields.iter().map(|field| Column { name: field.name.into(), kind: field.kind }).collect())
    }

    fn with_cells(row: &LogRecord<'_>, then: impl FnOnce(&mut dyn RowCells)) {
        let lookups = Lookups::none();
        let fields = COLUMNS.map(|name| LogRecords::FIELDS.iter().find(|field| field.name == name).unwrap());
        let cells = fields.map(|field| field.cell(row, &lookups));
        then(&mut &cells[..]);
    }

    /// Each writer, without and with the cache.
    fn pairs() -> Vec<[Box<dyn RowWriter<LogRecords>>; 2]> {
        let columns = columns();
        let syslog = |target: &str| {
            let target: Target = target.parse().unwrap();
            [None, AlikeMessages::new::<LogRecords>(&columns)].map(|alike| {
                // The sequence numbers wrap around during the test.
                let mut writer = syslog::writer_with::<LogRecords>(&target, None, &columns, alike);
                writer.written = SEQUENCE_ID_MAX - 99;
                Box::new(writer) as Box<dyn RowWriter<LogRecords>>
            })
        };
        let logemu = || ulogd::writer(Format::Logemu, None).unwrap();
        let json = || Box::new(JsonRows::of_alike(&columns, LogRecord::varying)) as Box<dyn RowWriter<LogRecords>>;
        vec![
            syslog("syslog+tcp://127.0.0.1:1"),
            syslog("syslog-rfc3164+udp://127.0.0.1:1"),
            [logemu(), AlikeWriter::over(logemu(), &Columns::default())],
            [json(), AlikeWriter::over(json(), &columns)],
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        /// With the cache, every message has the same bytes as from the writer alone.
        #[test]
        fn messages_are_the_same_to_the_byte(drawn in prop::collection::vec(drawn(), 1..600)) {
            for [mut plain, mut alike] in pairs() {
                let (mut expected, mut out) = (Vec::new(), Vec::new());
                rows(&drawn, |row| with_cells(row, |cells| {
                    plain.write(row, cells, &Lookups::none(), &mut expected);
                    alike.write(row, cells, &Lookups::none(), &mut out);
                }));
                let differs = expected.iter().zip(&out).position(|(one, other)| one != other);
                let near = |bytes: &[u8]| {
                    let range = |at: usize| at.saturating_sub(200)..bytes.len().min(at + 50);
                    differs.map(|at| String::from_utf8_lossy(&bytes[range(at)]).into_owned())
                };
                prop_assert_eq!(near(&expected), near(&out));
                prop_assert_eq!(expected.len(), out.len());
            }
        }
    }

    /// For a flood from many sources, the writer is not called.
    #[test]
    fn what_messages_share_is_made_once() {
        let mut alike = AlikeMessages::new::<LogRecords>(&columns()).unwrap();
        let one = |n: u32| Drawn {
            kind: 0,
            later_ns: 1000,
            numbers: std::array::from_fn(|at| if at < 2 { n << (8 * at) } else { 80 }),
            tos: 0,
            fragment: 0x4000,
            flags: 2,
            mark: None,
            cut: 0,
        };
        let flood: Vec<Drawn> = (0..10_000).map(one).collect();
        let (mut json, mut out, mut written, mut number) = (JsonRows::new(&columns()), Vec::new(), 0, 0);
        rows(&flood, |row| {
            number += 1;
            with_cells(row, |cells| {
                alike.put::<LogRecords>(row, cells, number, &mut out, &mut |row, cells, _, out| {
                    written += 1;
                    RowWriter::<LogRecords>::write(&mut json, row, cells, &Lookups::none(), out);
                });
            });
        });
        assert!(written < 100, "{written}");
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), flood.len());
    }

    #[test]
    fn columns_that_show_more_are_written_by_themselves() {
        let column = |name: &str| Columns(vec![Column { name: name.into(), kind: record::Kind::Text }]);
        assert!(AlikeMessages::new::<LogRecords>(&column("src")).is_some());
        for name in ["seq", "payload_bytes", "process", "rule_comment", "ct_state"] {
            assert!(AlikeMessages::new::<LogRecords>(&column(name)).is_none(), "{name}");
        }
    }

    #[test]
    fn other_numbers_begin_with_another_digit() {
        for largest in [u32::from(u8::MAX), u32::from(u16::MAX), u32::MAX, SEQUENCE_ID_MAX as u32] {
            let powers =
                (0..10).map(|digits| 10u64.pow(digits)).flat_map(|n| [n - 1, n, 2 * n, n + n / 2, 3 * n, 9 * n]);
            for n in powers.filter_map(|n| u32::try_from(n).ok()).chain([largest]).filter(|n| *n <= largest) {
                let other = other_first_digit(n, largest);
                let (text, other_text) = (n.to_string(), other.to_string());
                assert!(
                    other <= largest && text.len() == other_text.len() && text[..1] != other_text[..1],
                    "{n} {other}"
                );
            }
        }
    }
}
