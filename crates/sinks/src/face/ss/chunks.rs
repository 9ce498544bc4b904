//! Where ss would start a new block: a model of its text buffer.
//!
//! ss keeps every cell as a 16-bit length and its text, aligned to two bytes, in chunks of 1 MiB, and renders after
//! the row that made it allocate the fifth chunk (misc/ss.c, `BUF_CHUNK`, `BUF_CHUNKS_MAX`). Column widths are those
//! of a block, so the boundaries decide about bytes. Only positions are kept here, no text.

/// Room for cells in one chunk: 1 MiB without the two pointers at its start.
const ROOM: usize = (1 << 20) - 16;
/// The block ends with the row that made so many chunks.
const CHUNKS_MAX: usize = 5;
/// Bytes of the length in front of a cell.
pub(super) const HEAD: usize = 2;

/// Position in the model.
#[derive(Default)]
pub(super) struct Chunks {
    /// How many chunks are in use; 0 before the first cell of a block.
    count: usize,
    /// End of the cell that is being written, relative to the start of the newest chunk.
    end: usize,
}

impl Chunks {
    /// A cell of `len` bytes is written at the current position.
    fn put(&mut self, len: usize) {
        if self.count == 0 {
            self.fresh();
        }
        // A cell that is the first of its chunk stays there, however long.
        if len >= ROOM.saturating_sub(self.end) && self.end != HEAD && len > 0 {
            self.fresh();
        }
        self.end += len;
    }

    /// The cell of `len` bytes is complete, the next one starts behind it.
    fn close(&mut self, len: usize) {
        let gap = len % 2;
        if ROOM.saturating_sub(self.end + gap) < HEAD {
            return self.fresh();
        }
        self.end += gap + HEAD;
    }

    fn fresh(&mut self) {
        self.count += 1;
        self.end = HEAD;
    }

    /// All cells of a row but the last are written and closed, the last is written.
    pub(super) fn row(&mut self, cells: &[usize], last: usize) {
        let whole: usize = cells.iter().map(|len| len + len % 2 + HEAD).sum::<usize>() + last;
        if self.count > 0 && self.end + whole + HEAD < ROOM {
            self.end += whole;
            return;
        }
        for &len in cells {
            self.put(len);
            self.close(len);
        }
        self.put(last);
    }

    /// The same for rows whose last cell is empty, inside a chunk: closes the row before (`closing` bytes) and adds
    /// cells of `whole` bytes with all that belongs to them. False, and nothing done, near the end of a chunk.
    #[inline]
    pub(super) fn plain_row(&mut self, closing: usize, whole: usize) -> bool {
        let end = self.end + closing + whole;
        if self.count == 0 || self.is_full() || end + HEAD >= ROOM {
            return false;
        }
        self.end = end;
        true
    }

    /// Closes the last cell of a row.
    pub(super) fn close_last(&mut self, len: usize) {
        self.close(len);
    }

    /// True if ss would render now.
    pub(super) fn is_full(&self) -> bool {
        self.count >= CHUNKS_MAX
    }

    /// A new block starts.
    pub(super) fn clear(&mut self) {
        *self = Chunks::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by single cells, as ss does it.
    fn slow(rows: &[(&[usize], usize)]) -> (usize, usize) {
        let mut chunks = Chunks::default();
        for (cells, last) in rows {
            for &len in *cells {
                chunks.put(len);
                chunks.close(len);
            }
            chunks.put(*last);
            chunks.close(*last);
        }
        (chunks.count, chunks.end)
    }

    #[test]
    fn the_short_cut_counts_like_single_cells() {
        let cells: [usize; 7] = [5, 6, 6, 12, 5, 13, 2];
        let rows: Vec<(&[usize], usize)> = (0..60_000).map(|i| (&cells[..], i % 40)).collect();
        let mut chunks = Chunks::default();
        for (cells, last) in &rows {
            chunks.row(cells, *last);
            chunks.close_last(*last);
        }
        assert_eq!((chunks.count, chunks.end), slow(&rows));
        assert!(chunks.is_full());
    }

    #[test]
    fn a_cell_that_does_not_fit_moves_as_a_whole() {
        let mut chunks = Chunks::default();
        chunks.put(ROOM - 100);
        chunks.close(ROOM - 100);
        chunks.put(200);
        assert_eq!((chunks.count, chunks.end), (2, HEAD + 200));
    }
}
