//! Rows of one `--watch` round that are kept for the next: the bytes that were read and the text that was written.
//!
//! A row with the same bytes in the next round gets the same text: it is not decoded, filtered or formatted again. One
//! field may change without the bytes, for example the remaining time of an entry: then the kept text has a hole in
//! the place of its cell, and only that cell is formatted.
//!
//! Most sockets of a host do nothing between two rounds. The kernel walks its tables in an order that changes only
//! where rows come and go, so the search for a row starts after the last one found and covers `AHEAD` rows. This
//! module does not know the meaning of the bytes.

use record::{Hole, RowBytes, Rules, Value};

/// Most bytes that are kept; a socket takes about 160. Further rows are decoded and formatted in every round.
///
/// Bound: bytes of rendered rows that `--watch` keeps. Beyond: further rows are rendered in every round. By: a local
/// user with as many sockets.
const BYTES_MAX: usize = 128 << 20;

/// Rows that are searched after the last one found: this many may have disappeared between two that stayed. Rows come
/// in the order of a hash, so even if every other socket has closed, gaps of this size are rare.
const SEARCH_ROWS: usize = 32;

/// Free space in bytes below which the memory is not compacted.
const WASTE: usize = 1 << 16;

/// Replaces the text length of a row that did not pass the filter and therefore has no text.
const FILTERED: u16 = u16::MAX;

/// A kept row. Its bytes and then its text are in [`RenderedRows::bytes`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptRow {
    /// Upper half of [`RowBytes::key`]. Only a first test: the bytes decide.
    key: u32,
    tag: u32,
    at: u32,
    rules: u16,
    bytes: u16,
    text: u16,
    /// Offset of the hole in the text, if it has one.
    hole: u16,
}

impl KeptRow {
    /// Length of the text; 0 for a row that did not pass the filter.
    fn text_len(self) -> usize {
        if self.text == FILTERED { 0 } else { usize::from(self.text) }
    }

    /// Bytes that the row takes in [`RenderedRows::bytes`].
    fn len(self) -> usize {
        usize::from(self.bytes) + self.text_len()
    }

    /// The source's number for the row, see [`record::RowCache::set_tag`].
    pub(crate) fn tag(self) -> u32 {
        self.tag
    }
}

/// A row that was looked up and not found: it will be decoded now.
#[derive(Clone, Copy, Debug)]
struct PendingRow {
    key: u32,
    rules: Rules,
    /// Length of its bytes at the beginning of [`RenderedRows::fresh`].
    bytes: usize,
    /// The row's place in the round before, when it had other bytes: offset and length of the free space.
    room: Option<(u32, usize)>,
}

/// The rows that are kept from round to round, for one plan and one sink.
#[derive(Debug)]
pub(crate) struct RenderedRows {
    /// Most bytes that are kept.
    bytes_max: usize,
    /// The bytes and texts of all rows. A freed place is reused only by the row that had it.
    bytes: Vec<u8>,
    /// True if a row of this round found no room.
    is_full: bool,
    /// The rows of the round before, in their order.
    before: Vec<KeptRow>,
    /// The rows of this round so far.
    now: Vec<KeptRow>,
    /// Bytes of the rows in `now`.
    live: usize,
    /// Index in `before` after the row found last.
    cursor: usize,
    /// The few different rules for comparing bytes; a row has an index into this list.
    rules: Vec<Rules>,
    /// The column whose cell is missing in all texts.
    hole_column: Option<usize>,
    /// The row that is being decoded because its bytes were unknown.
    asked: Option<PendingRow>,
    /// The bytes of `asked`, then its text.
    fresh: Vec<u8>,
}

impl Default for RenderedRows {
    fn default() -> RenderedRows {
        RenderedRows::with_bytes(BYTES_MAX)
    }
}

impl RenderedRows {
    /// An empty memory of at most `bytes_max` bytes.
    pub(crate) fn with_bytes(bytes_max: usize) -> RenderedRows {
        RenderedRows {
            bytes_max: bytes_max.min(u32::MAX as usize),
            bytes: Vec::new(),
            is_full: false,
            before: Vec::new(),
            now: Vec::new(),
            live: 0,
            cursor: 0,
            rules: Vec::new(),
            hole_column: None,
            asked: None,
            fresh: Vec::new(),
        }
    }

    /// Forgets everything. Must be called when data that rows show in addition to their own bytes has changed, for
    /// example the name of a namespace.
    pub(crate) fn clear(&mut self) {
        *self = RenderedRows::with_bytes(self.bytes_max);
    }

    /// Begins a round. Rows that did not come in the last round are forgotten, and the memory is compacted if much of
    /// it is free.
    pub(crate) fn begin(&mut self) {
        std::mem::swap(&mut self.before, &mut self.now);
        self.now.clear();
        self.cursor = 0;
        self.asked = None;
        let live = std::mem::take(&mut self.live);
        if self.bytes.len() > 2 * live + WASTE || (self.is_full && self.bytes.len() > live + live / 8) {
            self.tidy(live);
        }
        self.is_full = false;
    }

    /// Leaves the cell of this column out of texts. Called before the first row of a round; a change forgets
    /// everything.
    pub(crate) fn set_hole_column(&mut self, column: Option<usize>) {
        if self.hole_column != column {
            *self = RenderedRows { hole_column: column, ..RenderedRows::with_bytes(self.bytes_max) };
        }
    }

    /// Returns the column that texts lack.
    pub(crate) fn hole_column(&self) -> Option<usize> {
        self.hole_column
    }

    /// Returns the hole in the text of this row, with its present value.
    #[inline]
    pub(crate) fn hole<'v>(&self, kept: KeptRow, value: Value<'v>) -> Option<Hole<'v>> {
        self.hole_column.map(|column| Hole { column, at: kept.hole.into(), value })
    }

    /// Compacts the memory: rows in their order, without gaps.
    fn tidy(&mut self, live: usize) {
        let mut tidied = Vec::with_capacity(live);
        for kept in &mut self.before {
            let from = kept.at as usize;
            kept.at = tidied.len() as u32;
            tidied.extend_from_slice(self.bytes.get(from..from + kept.len()).unwrap_or_default());
        }
        self.bytes = tidied;
        self.bytes.shrink_to_fit();
    }

    /// Finds a row with the same bytes in the round before, and moves it to this round. For any other row the caller
    /// may format the text into [`RenderedRows::fresh`] and keep it with [`RenderedRows::keep`].
    #[inline]
    pub(crate) fn find_unchanged(&mut self, row: RowBytes<'_>) -> Option<KeptRow> {
        let key = (row.key >> 32) as u32;
        let ahead = self.before.get(self.cursor..).unwrap_or_default();
        let found = ahead.iter().take(SEARCH_ROWS).position(|kept| kept.key == key);
        let mut room = None;
        if let Some((step, kept)) = found.and_then(|step| Some((step, *ahead.get(step)?))) {
            self.cursor += step + 1;
            let from = kept.at as usize;
            let same = self.bytes.get(from..from + usize::from(kept.bytes)) == Some(row.bytes);
            if same && self.rules.get(usize::from(kept.rules)) == Some(&row.rules) {
                self.asked = None;
                self.live += kept.len();
                self.now.push(kept);
                return Some(kept);
            }
            room = Some((kept.at, kept.len()));
        }
        self.fresh.clear();
        self.fresh.extend_from_slice(row.bytes);
        self.asked = Some(PendingRow { key, rules: row.rules, bytes: row.bytes.len(), room });
        None
    }

    /// Returns the text of a row that was found; `None` if it did not pass the filter.
    #[inline]
    pub(crate) fn text(&self, kept: KeptRow) -> Option<&[u8]> {
        let from = kept.at as usize + usize::from(kept.bytes);
        let text = || self.bytes.get(from..from + kept.text_len()).unwrap_or_default();
        (kept.text != FILTERED).then(text)
    }

    /// Returns the rows of this round that passed the filter, in the order of their arrival.
    pub(crate) fn passed_rows(&self) -> impl Iterator<Item = (KeptRow, &[u8])> {
        self.now.iter().filter_map(|kept| Some((*kept, self.text(*kept)?)))
    }

    /// Returns the text of the row that was looked up and not found, once it is in [`RenderedRows::fresh`].
    #[inline]
    pub(crate) fn pending_text(&self) -> &[u8] {
        let start = self.asked.as_ref().map_or(self.fresh.len(), |asked| asked.bytes);
        self.fresh.get(start..).unwrap_or_default()
    }

    /// Returns the buffer for the text of the row that was looked up and not found; `None` without such a row.
    #[inline]
    pub(crate) fn pending_buffer(&mut self) -> Option<&mut Vec<u8>> {
        self.asked.is_some().then_some(&mut self.fresh)
    }

    /// Discards the row that was looked up and not found.
    #[inline]
    pub(crate) fn invalidate(&mut self) {
        self.asked = None;
    }

    /// Keeps the row that was looked up and not found, with `tag`, if there is room; returns whether it is kept.
    /// `passed` is the offset of the hole in its text, or `None` if it did not pass the filter.
    pub(crate) fn store_pending(&mut self, tag: u32, passed: Option<usize>) -> bool {
        let Some(asked) = self.asked.take() else { return false };
        let text = if passed.is_some() { self.fresh.len() - asked.bytes } else { FILTERED.into() };
        self.fresh.truncate(if passed.is_some() { self.fresh.len() } else { asked.bytes });
        let lengths = (u16::try_from(asked.bytes), u16::try_from(text), u16::try_from(passed.unwrap_or(0)));
        let (Ok(bytes), Ok(text), Ok(hole)) = lengths else { return false };
        if passed.is_some() && text == FILTERED {
            return false;
        }
        let Some(rules) = self.number_of(asked.rules) else { return false };
        let Some(at) = self.put(asked.room) else { return false };
        self.live += self.fresh.len();
        self.now.push(KeptRow { key: asked.key, tag, at, rules, bytes, text, hole });
        true
    }

    /// Copies `fresh` to the row's previous place if it fits, otherwise to the end. Returns the offset.
    fn put(&mut self, room: Option<(u32, usize)>) -> Option<u32> {
        let fits = room.filter(|(_, len)| self.fresh.len() <= *len);
        if let Some((at, _)) = fits {
            let from = at as usize;
            self.bytes.get_mut(from..from + self.fresh.len())?.copy_from_slice(&self.fresh);
            return Some(at);
        }
        if self.bytes.len() + self.fresh.len() > self.bytes_max {
            self.is_full = true;
            return None;
        }
        let at = u32::try_from(self.bytes.len()).ok()?;
        self.bytes.extend_from_slice(&self.fresh);
        Some(at)
    }

    /// Returns the index of `rules`. There are two or three different ones: listeners, connections.
    fn number_of(&mut self, rules: Rules) -> Option<u16> {
        let known = self.rules.iter().rposition(|known| *known == rules);
        let at = known.unwrap_or_else(|| {
            self.rules.push(rules);
            self.rules.len() - 1
        });
        u16::try_from(at).ok()
    }
}

#[cfg(test)]
mod tests;
