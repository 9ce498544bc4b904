//! Tables that are drawn in place: the lines of a writer, cropped to a screen. Only changed parts are drawn.
//!
//! [`FrameLines`] collects the lines of a round. [`Screen`] remembers the contents of the terminal and writes the
//! bytes that turn them into the next frame. Neither accesses the terminal.

mod crop;

pub use crop::put_cropped;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// Bound: bytes of a line on a drawn screen. Beyond: the rest of the line is not drawn. By: anyone whose names are
/// shown.
const LINE_MAX: usize = 64 << 10;

/// The lines of a round, as many as fit on a screen; further lines are counted.
#[derive(Debug, Default)]
pub struct FrameLines {
    lines: Vec<Vec<u8>>,
    /// A line that has no newline yet.
    open: Vec<u8>,
    lines_max: usize,
    left_out: u64,
}

impl FrameLines {
    /// Forgets the lines; then keeps at most `lines_max` new ones.
    pub fn restart(&mut self, lines_max: usize) {
        *self = FrameLines { lines_max, ..FrameLines::default() };
    }

    /// Returns the lines so far, without newlines.
    pub fn lines(&self) -> &[Vec<u8>] {
        &self.lines
    }

    /// Returns the number of lines that were not kept.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn add(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|b| *b == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            let room = LINE_MAX.saturating_sub(self.open.len());
            self.open.extend_from_slice(text.get(..room).unwrap_or(text));
            if text.len() == part.len() {
                continue;
            }
            let line = std::mem::take(&mut self.open);
            if self.lines.len() < self.lines_max {
                self.lines.push(line);
            } else {
                self.left_out += 1;
            }
        }
    }
}

/// An output into a frame, for writers of rows.
#[derive(Clone, Debug, Default)]
pub struct FrameWriter(pub Rc<RefCell<FrameLines>>);

impl io::Write for FrameWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The contents of a terminal.
#[derive(Debug, Default)]
pub struct Screen {
    shown: Vec<Vec<u8>>,
    rows: usize,
    columns: usize,
}

impl Screen {
    /// Appends to `out` the bytes that replace the present contents with these lines, each cropped to `columns`, and
    /// at most `rows` of them. If the size has changed, everything is redrawn. The cursor ends in the first line,
    /// where typed characters disturb no row.
    pub fn draw<'l>(
        &mut self,
        lines: impl Iterator<Item = &'l [u8]>,
        (rows, columns): (usize, usize),
        out: &mut Vec<u8>,
    ) {
        if (rows, columns) != (self.rows, self.columns) {
            *self = Screen { shown: Vec::new(), rows, columns };
            out.extend_from_slice(b"\x1b[0m\x1b[H\x1b[2J");
        }
        let mut count = 0;
        for (row, line) in lines.take(rows).enumerate() {
            count = row + 1;
            let (mut cropped, mut width) = (Vec::new(), 0);
            put_cropped(line, columns, &mut cropped, &mut width);
            let before = self.shown.get(row);
            if before.is_some_and(|shown| *shown == cropped) {
                continue;
            }
            put_place(out, row);
            out.extend_from_slice(&cropped);
            // In the last column, the cursor is on the character written last, which would be erased.
            if width < columns && before.is_some_and(|shown| !shown.is_empty()) {
                out.extend_from_slice(b"\x1b[K");
            }
            match self.shown.get_mut(row) {
                Some(shown) => *shown = cropped,
                None => self.shown.push(cropped),
            }
        }
        if count < self.shown.len() {
            put_place(out, count);
            out.extend_from_slice(b"\x1b[J");
            self.shown.truncate(count);
        }
        if !out.is_empty() {
            out.extend_from_slice(b"\x1b[H");
        }
    }

    /// Forgets the contents of the terminal, so that everything is redrawn.
    pub fn redraw_next(&mut self) {
        *self = Screen::default();
    }
}

/// Moves the cursor to the beginning of a line.
fn put_place(out: &mut Vec<u8>, row: usize) {
    out.extend_from_slice(b"\x1b[");
    record::text::put_u64(out, row as u64 + 1);
    out.push(b'H');
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;

    fn drawn(screen: &mut Screen, lines: &[&str], size: (usize, usize)) -> String {
        let mut out = Vec::new();
        screen.draw(lines.iter().map(|line| line.as_bytes()), size, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_what_has_changed_is_written() {
        let mut screen = Screen::default();
        let size = (3, 10);
        assert_eq!(drawn(&mut screen, &["a", "bcd"], size), "\x1b[0m\x1b[H\x1b[2J\x1b[1Ha\x1b[2Hbcd\x1b[H");
        assert_eq!(drawn(&mut screen, &["a", "bcd"], size), "");
        assert_eq!(drawn(&mut screen, &["a", "x"], size), "\x1b[2Hx\x1b[K\x1b[H");
        assert_eq!(drawn(&mut screen, &["a"], size), "\x1b[2H\x1b[J\x1b[H");
        assert_eq!(drawn(&mut screen, &["a", "0123456789ab"], size), "\x1b[2H0123456789\x1b[H");
        assert_eq!(drawn(&mut screen, &["1", "2", "3", "4"], size), "\x1b[1H1\x1b[K\x1b[2H2\x1b[K\x1b[3H3\x1b[H");
        assert!(drawn(&mut screen, &["1"], (4, 10)).contains("\x1b[2J"), "another size");
    }

    #[test]
    fn lines_beyond_the_screen_are_counted() {
        let mut writer = FrameWriter::default();
        writer.0.borrow_mut().restart(2);
        for part in ["a\nb", "c\n", "d\ne\n", "f"] {
            writer.write_all(part.as_bytes()).unwrap();
        }
        let frame = writer.0.borrow();
        assert_eq!((frame.lines(), frame.left_out()), (&[b"a".to_vec(), b"bc".to_vec()][..], 2));
    }
}
