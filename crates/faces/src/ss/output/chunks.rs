//! A model of ss's text buffer, to find where ss would start a new block.
//!
//! ss keeps every cell as a 16-bit length and its text, aligned to two bytes, in chunks of 1 MiB, and renders after
//! the row for which it allocated the fifth chunk (misc/ss.c, `BUF_CHUNK`, `BUF_CHUNKS_MAX`). Column widths are
//! computed per block, so the boundaries affect the output. The model keeps only positions, no text.

/// Room for cells in one chunk: 1 MiB without the two pointers at its start.
const ROOM: usize = (1 << 20) - 16;
/// The block ends with the row that allocates this many chunks.
const CHUNKS_MAX: usize = 5;
/// Bytes of the length before a cell.
pub(super) const HEAD: usize = 2;

/// Position in the model.
#[derive(Default)]
pub(super) struct Chunks {
    /// Number of chunks in use; 0 before the first cell of a block.
    count: usize,
    /// End of the cell that is being written, relative to the start of the newest chunk.
    end: usize,
}

impl Chunks {
    /// Writes a cell of `len` bytes at the current position.
    fn put(&mut self, len: usize) {
        if self.count == 0 {
            self.fresh();
        }
        // A cell that is the first of its chunk stays there, regardless of its length.
        if len >= ROOM.saturating_sub(self.end) && self.end != HEAD && len > 0 {
            self.fresh();
        }
        self.end += len;
    }

    /// Completes a cell of `len` bytes; the next one starts after it.
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

    /// Writes and closes all cells of a row except the last, which is only written.
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

    /// A shortcut within a chunk for rows whose last cell is empty: closes the row before (`closing` bytes) and adds
    /// cells of `whole` bytes, including their lengths and padding. Returns false, and does nothing, near the end of a
    /// chunk.
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

    /// Starts a new block.
    pub(super) fn clear(&mut self) {
        *self = Chunks::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds rows cell by cell, like ss.
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
