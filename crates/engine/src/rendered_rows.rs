//! The rows of a round as they were read and as they were written: what comes again, byte for byte, is written again
//! and neither decoded nor filtered nor made into text. One field may stand beside the bytes (a time that is left): texts
//! then lack its cell, and it alone is made anew.
//!
//! Most sockets of a host do nothing between two rounds of `--watch`. The kernel walks its tables in an order that
//! changes only where sockets come and go, so a row is looked for where the last one was found, and a little further.
//! Knows nothing of what the bytes mean.

use record::{Hole, RowBytes, Rules, Value};

/// Bytes kept at most; about 160 go for a socket. Rows behind that are decoded and written as in the first round.
pub const BYTES_MAX: usize = 128 << 20;

/// How far a row is looked for behind the one found last: so many may have gone between two that stayed. Rows come in
/// the order of a hash, so even where every other socket has gone, gaps of this size are rare.
const AHEAD: usize = 32;

/// Free space that is not worth a tidying.
const WASTE: usize = 1 << 16;

/// Length of the text of a row that did not pass the filter.
const FILTERED: u16 = u16::MAX;

/// One row. Its bytes and, behind them, its text lie in [`RenderedRows::bytes`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// Half of [`RowBytes::key`]: only where to look, the bytes decide.
    key: u32,
    tag: u32,
    at: u32,
    rules: u16,
    bytes: u16,
    text: u16,
    /// Where in the text a cell is missing, if one is.
    hole: u16,
}

impl Kept {
    fn text_len(self) -> usize {
        if self.text == FILTERED { 0 } else { usize::from(self.text) }
    }

    fn len(self) -> usize {
        usize::from(self.bytes) + self.text_len()
    }

    /// What its number was, see [`record::RowCache::set_tag`].
    pub(crate) fn tag(self) -> u32 {
        self.tag
    }
}

/// A row that was asked for and is not known: it will be decoded now.
#[derive(Clone, Copy, Debug)]
struct Asked {
    key: u32,
    rules: Rules,
    /// Bytes of it at the beginning of [`RenderedRows::fresh`].
    bytes: usize,
    /// Where it stood in the round before, with other bytes, and how many of them.
    room: Option<(u32, usize)>,
}

/// What is remembered from round to round. One belongs to one plan and one sink.
#[derive(Debug)]
pub struct RenderedRows {
    bytes_max: usize,
    bytes: Vec<u8>,
    /// Some row had no room in this round.
    is_full: bool,
    before: Vec<Kept>,
    now: Vec<Kept>,
    /// Bytes of the rows in `now`.
    live: usize,
    /// Place in `before` behind the row found last.
    cursor: usize,
    rules: Vec<Rules>,
    /// The column that all texts lack.
    hole_column: Option<usize>,
    asked: Option<Asked>,
    /// The bytes of `asked`, then its text.
    fresh: Vec<u8>,
}

impl Default for RenderedRows {
    fn default() -> RenderedRows {
        RenderedRows::with_bytes(BYTES_MAX)
    }
}

impl RenderedRows {
    /// A memory of at most `bytes_max` bytes; nothing is known yet.
    pub fn with_bytes(bytes_max: usize) -> RenderedRows {
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

    /// Forgets everything: what rows are made of, beside their own bytes, has changed (a namespace's name).
    pub fn clear(&mut self) {
        *self = RenderedRows::with_bytes(self.bytes_max);
    }

    /// A new round begins; what was not there in the last one is forgotten.
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

    /// From this round on, and before its first row: texts lack the cell of this column.
    pub(crate) fn set_hole_column(&mut self, column: Option<usize>) {
        if self.hole_column != column {
            *self = RenderedRows { hole_column: column, ..RenderedRows::with_bytes(self.bytes_max) };
        }
    }

    /// The column that texts lack.
    pub(crate) fn hole_column(&self) -> Option<usize> {
        self.hole_column
    }

    /// The cell that this row's text lacks, with what it is now.
    #[inline]
    pub(crate) fn hole<'v>(&self, kept: Kept, value: Value<'v>) -> Option<Hole<'v>> {
        self.hole_column.map(|column| Hole { column, at: kept.hole.into(), value })
    }

    /// Rows in their order, without gaps.
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

    /// The row, if it was there in the round before and is the same: from now on it is of this round. Otherwise what is
    /// put into [`RenderedRows::fresh`] behind its bytes may be kept for it.
    #[inline]
    pub(crate) fn look(&mut self, row: RowBytes<'_>) -> Option<Kept> {
        let key = (row.key >> 32) as u32;
        let ahead = self.before.get(self.cursor..).unwrap_or_default();
        let found = ahead.iter().take(AHEAD).position(|kept| kept.key == key);
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
        self.asked = Some(Asked { key, rules: row.rules, bytes: row.bytes.len(), room });
        None
    }

    /// The text of a row that was found; `None` if it did not pass the filter.
    #[inline]
    pub(crate) fn text(&self, kept: Kept) -> Option<&[u8]> {
        let from = kept.at as usize + usize::from(kept.bytes);
        let text = || self.bytes.get(from..from + kept.text_len()).unwrap_or_default();
        (kept.text != FILTERED).then(text)
    }

    /// Where the text of the row that was asked for goes; `None` if nobody asked.
    #[inline]
    pub(crate) fn fresh(&mut self) -> Option<&mut Vec<u8>> {
        self.asked.is_some().then_some(&mut self.fresh)
    }

    /// The row that was asked for is not to be known again.
    #[inline]
    pub(crate) fn invalidate(&mut self) {
        self.asked = None;
    }

    /// The row that was asked for is to be known again, with `tag`, if there is room; `passed` is where in its text a cell
    /// is missing, or `None` if it did not pass the filter.
    pub(crate) fn keep(&mut self, tag: u32, passed: Option<usize>) {
        let Some(asked) = self.asked.take() else { return };
        let text = if passed.is_some() { self.fresh.len() - asked.bytes } else { FILTERED.into() };
        self.fresh.truncate(if passed.is_some() { self.fresh.len() } else { asked.bytes });
        let lengths = (u16::try_from(asked.bytes), u16::try_from(text), u16::try_from(passed.unwrap_or(0)));
        let (Ok(bytes), Ok(text), Ok(hole)) = lengths else { return };
        if passed.is_some() && text == FILTERED {
            return;
        }
        let Some(rules) = self.number_of(asked.rules) else { return };
        let Some(at) = self.put(asked.room) else { return };
        self.live += self.fresh.len();
        self.now.push(Kept { key: asked.key, tag, at, rules, bytes, text, hole });
    }

    /// Puts `fresh` where the row was before, if it fits, else behind everything.
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

    /// There are two or three: listeners, connections.
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
