//! Decides when the text of a shape is built, and for which rows it holds.

use super::build::{Render, build};
use super::shared_text::SharedText;
use record::{MESSAGE, NANOS, NUMBERS, NumberKind, RowShape, V6_ADDRESSES, V6_WORDS};

/// A shape is replaced after this many rows in a row with other shapes or earlier seconds, so that alternating rows do
/// not evict each other.
const MISSES_MAX: u8 = 32;
/// The text is built at this many rows of a shape in one second, because building it takes as long as about ten
/// messages.
const ROWS_BEFORE: u32 = 16;
/// Like [`ROWS_BEFORE`], after a number has changed that was constant so far.
const ROWS_AGAIN: u32 = 4;
/// Shapes with longer texts are not cached.
const TEXT_MAX: usize = 64;

/// One shape in one second, and the text of its messages.
#[derive(Default)]
pub(super) struct ShapeSlot {
    second: u64,
    shared: [u64; 5],
    texts: [Vec<u8>; 2],
    /// The numbers of the latest row that was rendered in full.
    numbers: [u32; NUMBERS],
    /// All bits set for numbers that were equal in all rows; 0 for others.
    constant: [u32; NUMBERS],
    misses: u8,
    state: TextState,
}

enum TextState {
    /// This many rows have come in this second.
    Counting(u32),
    Ready(SharedText),
    /// The positions of the numbers cannot be found.
    Unsupported,
}

impl Default for TextState {
    fn default() -> TextState {
        TextState::Counting(0)
    }
}

/// The answer of a slot for a row.
pub(super) enum SlotAnswer<'s> {
    /// The text of the row's message.
    Ready(&'s SharedText),
    /// The text has to be built from this row.
    Due(DueSlot<'s>),
    NotReady,
}

/// A slot whose text has to be built. Nothing else sets a text.
pub(super) struct DueSlot<'s>(&'s mut ShapeSlot);

impl DueSlot<'_> {
    /// Builds the text that messages share which differ only in numbers that are not constant. `kind` is the kind of
    /// the number at an index; `render` renders the row's message with other numbers.
    #[cold]
    pub(super) fn build(self, kind: fn(usize) -> NumberKind, render: &mut Render<'_>) {
        let DueSlot(slot) = self;
        let numbers = (0..V6_ADDRESSES).chain((V6_ADDRESSES..NUMBERS).step_by(V6_WORDS));
        let varying = numbers.filter(|number| slot.constant[*number] == 0);
        slot.state = build(&slot.numbers, varying, kind, render).map_or(TextState::Unsupported, TextState::Ready);
    }
}

impl ShapeSlot {
    /// Finds the text for a row of this shape.
    #[inline]
    pub(super) fn find(&mut self, shape: &RowShape<'_>) -> SlotAnswer<'_> {
        if self.second != shape.second || !self.has_shape(shape) {
            self.miss(shape);
            return SlotAnswer::NotReady;
        }
        self.misses = 0;
        let is_ready = match &self.state {
            TextState::Unsupported => return SlotAnswer::NotReady,
            TextState::Ready(_) => self.agrees(&shape.numbers),
            TextState::Counting(_) => false,
        };
        if !is_ready {
            return if self.learn(&shape.numbers) { SlotAnswer::Due(DueSlot(self)) } else { SlotAnswer::NotReady };
        }
        match &self.state {
            TextState::Ready(text) => SlotAnswer::Ready(text),
            _ => SlotAnswer::NotReady,
        }
    }

    /// Ends the use of a text that yields other bytes than `message`, a row's own message.
    #[cold]
    pub(super) fn check(&mut self, numbers: &[u32; NUMBERS], message: &[u8]) {
        if matches!(&self.state, TextState::Ready(text) if !text.yields(numbers, message)) {
            self.state = TextState::Unsupported;
        }
    }

    #[inline]
    fn has_shape(&self, shape: &RowShape<'_>) -> bool {
        self.shared == shape.shared && self.texts[0] == shape.texts[0] && self.texts[1] == shape.texts[1]
    }

    /// True if only numbers differ that are not constant.
    #[inline]
    #[allow(clippy::needless_range_loop)]
    fn agrees(&self, numbers: &[u32; NUMBERS]) -> bool {
        // Branch-free and by index, so that the compiler generates vector instructions.
        let mut differs = 0;
        for at in 0..NUMBERS {
            differs |= (self.numbers[at] ^ numbers[at]) & self.constant[at];
        }
        differs == 0
    }

    /// Notes a row with another shape or second, and replaces the shape if it is due: rows of earlier seconds, which
    /// other sources may deliver late, do not. The new second of a shape starts with what is known about its numbers.
    #[inline(never)]
    fn miss(&mut self, shape: &RowShape<'_>) {
        let has_shape = self.has_shape(shape);
        let is_newer = shape.second > self.second;
        if !is_newer && self.misses < MISSES_MAX {
            self.misses += 1;
            return;
        }
        if !has_shape {
            self.constant = [u32::MAX; NUMBERS];
            (self.constant[NANOS], self.constant[MESSAGE]) = (0, 0);
            self.shared = shape.shared;
            for (own, text) in self.texts.iter_mut().zip(shape.texts) {
                own.clear();
                own.extend_from_slice(text.get(..TEXT_MAX).unwrap_or(text));
            }
        }
        (self.second, self.numbers, self.misses) = (shape.second, shape.numbers, 0);
        if !has_shape || !matches!(self.state, TextState::Unsupported) {
            self.state = TextState::Counting(1);
        }
    }

    /// Learns from a row without a text which numbers are constant; returns true if the text should be built from it.
    #[inline(never)]
    fn learn(&mut self, numbers: &[u32; NUMBERS]) -> bool {
        for (constant, (own, number)) in self.constant.iter_mut().zip(self.numbers.iter().zip(numbers)) {
            if own != number {
                *constant = 0;
            }
        }
        // An address varies as a whole.
        for address in self.constant.get_mut(V6_ADDRESSES..).unwrap_or_default().chunks_mut(V6_WORDS) {
            if address.contains(&0) {
                address.fill(0);
            }
        }
        self.numbers = *numbers;
        let rows = match self.state {
            TextState::Unsupported => return false,
            TextState::Counting(rows) => rows.saturating_add(1),
            TextState::Ready(_) => ROWS_BEFORE - ROWS_AGAIN + 1,
        };
        self.state = TextState::Counting(rows);
        rows >= ROWS_BEFORE
    }
}
