//! The cells of a terminal, and the effects of sequences on them.

use super::TermSize;
use super::sequences::{OutputPiece, SequenceParser};
use super::width::width;

/// One cell: a character with its combining marks; empty for the right half of a wide one.
type Cell = String;

/// A line and a column, starting at 0.
type GridPosition = (usize, usize);

/// The content of a terminal.
pub struct Grid {
    size: TermSize,
    cells: Vec<Vec<Cell>>,
    cursor: GridPosition,
    /// True if the last column was written, so that the next character begins a new line.
    wraps: bool,
    saved: GridPosition,
    /// First and last line of the scrolling region.
    region: (usize, usize),
    /// Cells and cursor of the normal screen, while the alternate one is shown.
    normal: Option<(Vec<Vec<Cell>>, GridPosition)>,
    is_cursor_shown: bool,
    pieces: SequenceParser,
    answers: Vec<u8>,
    received: Vec<u8>,
    unknown: Vec<OutputPiece>,
}

fn new_blank() -> Cell {
    " ".to_owned()
}

impl Grid {
    /// Makes an empty screen.
    pub fn new(size: TermSize) -> Grid {
        Grid {
            size,
            cells: vec![vec![new_blank(); size.columns]; size.rows],
            cursor: (0, 0),
            wraps: false,
            saved: (0, 0),
            region: (0, size.rows - 1),
            normal: None,
            is_cursor_shown: true,
            pieces: SequenceParser::default(),
            answers: Vec::new(),
            received: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// The lines without trailing blanks.
    ///
    /// # Panics
    /// If an unsupported sequence was received.
    pub fn lines(&self) -> Vec<String> {
        assert!(self.unknown.is_empty(), "sequences that testkit's terminal does not know: {:?}", self.unknown);
        self.cells.iter().map(|line| line.concat().trim_end().to_owned()).collect()
    }

    /// The lines as one text, without empty lines at the end.
    ///
    /// # Panics
    /// Like [`Grid::lines`].
    pub fn text(&self) -> String {
        self.lines().join("\n").trim_end().to_owned()
    }

    /// The line with this number, starting at 0; empty beyond the last one.
    ///
    /// # Panics
    /// Like [`Grid::lines`].
    pub fn line(&self, number: usize) -> String {
        self.lines().into_iter().nth(number).unwrap_or_default()
    }

    /// True if some line contains this text.
    ///
    /// # Panics
    /// Like [`Grid::lines`].
    pub fn contains(&self, text: &str) -> bool {
        self.lines().iter().any(|line| line.contains(text))
    }

    /// Line and column of the cursor, starting at 0.
    pub fn cursor(&self) -> (usize, usize) {
        self.cursor
    }

    /// True unless the program has hidden the cursor.
    pub fn is_cursor_shown(&self) -> bool {
        self.is_cursor_shown
    }

    /// True while the alternate screen is shown.
    pub fn is_alternate(&self) -> bool {
        self.normal.is_some()
    }

    /// The program's entire output so far.
    pub fn received_bytes(&self) -> &[u8] {
        &self.received
    }

    /// Processes output of the program; returns the terminal's answers.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.received.extend_from_slice(bytes);
        for piece in self.pieces.take(bytes) {
            self.apply(piece);
        }
        std::mem::take(&mut self.answers)
    }

    pub(super) fn resize(&mut self, size: TermSize) {
        let fit = |cells: &mut Vec<Vec<Cell>>| {
            cells.resize(size.rows, vec![new_blank(); size.columns]);
            cells.iter_mut().for_each(|line| line.resize(size.columns, new_blank()));
        };
        fit(&mut self.cells);
        self.normal.iter_mut().for_each(|(cells, _)| fit(cells));
        (self.size, self.region) = (size, (0, size.rows - 1));
        self.move_to(self.cursor);
    }

    fn move_to(&mut self, (row, column): GridPosition) {
        self.cursor = (row.min(self.size.rows - 1), column.min(self.size.columns - 1));
        self.wraps = false;
    }

    fn apply(&mut self, piece: OutputPiece) {
        let (row, column) = self.cursor;
        match piece {
            OutputPiece::Char(c) => self.put(c),
            OutputPiece::Control(b'\n' | 0x0b | 0x0c) => self.line_feed(),
            OutputPiece::Control(b'\r') => self.move_to((row, 0)),
            OutputPiece::Control(8) => self.move_to((row, column.saturating_sub(1))),
            OutputPiece::Control(b'\t') => self.move_to((row, (column / 8 + 1) * 8)),
            OutputPiece::Control(_) => {}
            OutputPiece::Escape(ref escape) => match escape.as_slice() {
                b"7" => self.saved = self.cursor,
                b"8" => self.move_to(self.saved),
                b"M" if row == self.region.0 => self.scroll_down(self.region.0, 1),
                b"M" => self.move_to((row.saturating_sub(1), column)),
                b"D" => self.line_feed(),
                b"E" => {
                    self.line_feed();
                    self.move_to((self.cursor.0, 0));
                }
                b"c" => {
                    let received = std::mem::take(&mut self.received);
                    *self = Grid { received, ..Grid::new(self.size) };
                }
                // Keypad modes and character sets.
                b"=" | b">" | b"\\" => {}
                [b'(' | b')' | b'*' | b'+' | b' ' | b'%', ..] => {}
                _ => self.unknown.push(piece),
            },
            OutputPiece::Csi { mark: 0, ref numbers, last } => {
                if !self.csi(last, numbers) {
                    self.unknown.push(piece);
                }
            }
            OutputPiece::Csi { mark: b'?', ref numbers, last: last @ (b'h' | b'l') } => {
                numbers.iter().for_each(|mode| self.mode(*mode, last == b'h'));
            }
            // Keyboard modes, and queries that need no answer.
            OutputPiece::Csi { .. } => {}
        }
    }

    fn mode(&mut self, mode: usize, on: bool) {
        match mode {
            25 => self.is_cursor_shown = on,
            47 | 1047 | 1049 if on && self.normal.is_none() => {
                let empty = vec![vec![new_blank(); self.size.columns]; self.size.rows];
                self.normal = Some((std::mem::replace(&mut self.cells, empty), self.cursor));
            }
            47 | 1047 | 1049 if !on => {
                if let Some((cells, cursor)) = self.normal.take() {
                    self.cells = cells;
                    self.move_to(cursor);
                }
            }
            // Mouse, paste, blinking and similar modes change no cells.
            _ => {}
        }
    }

    fn csi(&mut self, last: u8, numbers: &[usize]) -> bool {
        let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
        let count = number(0).max(1);
        let (row, column) = self.cursor;
        match last {
            b'A' => self.move_to((row.saturating_sub(count), column)),
            b'B' | b'e' => self.move_to((row + count, column)),
            b'C' | b'a' => self.move_to((row, column + count)),
            b'D' => self.move_to((row, column.saturating_sub(count))),
            b'E' => self.move_to((row + count, 0)),
            b'F' => self.move_to((row.saturating_sub(count), 0)),
            b'G' | b'`' => self.move_to((row, count - 1)),
            b'd' => self.move_to((count - 1, column)),
            b'H' | b'f' => self.move_to((count - 1, number(1).max(1) - 1)),
            b's' => self.saved = self.cursor,
            b'u' => self.move_to(self.saved),
            b'r' => {
                let last_row = if number(1) == 0 { self.size.rows } else { number(1).min(self.size.rows) };
                self.region = (count - 1, last_row - 1);
                self.move_to((0, 0));
            }
            b'c' => self.answers.extend_from_slice(b"\x1b[?6c"),
            b'n' if number(0) == 6 => {
                self.answers.extend_from_slice(format!("\x1b[{};{}R", row + 1, column + 1).as_bytes());
            }
            b'm' | b'h' | b'l' | b'n' | b't' | b'q' => {}
            _ => return self.edit_cells(last, number(0), count),
        }
        true
    }

    /// Applies sequences that change cells but not the cursor.
    fn edit_cells(&mut self, last: u8, number: usize, count: usize) -> bool {
        let (row, column) = self.cursor;
        let columns = self.size.columns;
        match last {
            b'J' => match number {
                0 => self.erase((row, column), (self.size.rows - 1, columns)),
                1 => self.erase((0, 0), (row, column + 1)),
                _ => self.erase((0, 0), (self.size.rows - 1, columns)),
            },
            b'K' => match number {
                0 => self.erase((row, column), (row, columns)),
                1 => self.erase((row, 0), (row, column + 1)),
                _ => self.erase((row, 0), (row, columns)),
            },
            b'X' => self.erase((row, column), (row, (column + count).min(columns))),
            b'P' => {
                let line = &mut self.cells[row];
                line.drain(column..(column + count).min(columns));
                line.resize(columns, new_blank());
            }
            b'@' => {
                let line = &mut self.cells[row];
                (0..count).for_each(|_| line.insert(column, new_blank()));
                line.truncate(columns);
            }
            b'L' => self.scroll_down(row, count),
            b'M' => self.scroll_up(row, count),
            b'S' => self.scroll_up(self.region.0, count),
            b'T' => self.scroll_down(self.region.0, count),
            _ => return false,
        }
        true
    }

    /// Erases from one position up to, but not including, another.
    fn erase(&mut self, from: GridPosition, to: GridPosition) {
        for row in from.0..=to.0 {
            let first = if row == from.0 { from.1 } else { 0 };
            let end = if row == to.0 { to.1 } else { self.size.columns };
            self.cells[row]
                .get_mut(first..end.min(self.size.columns))
                .into_iter()
                .flatten()
                .for_each(|c| *c = new_blank());
        }
        self.wraps = false;
    }

    fn scroll_up(&mut self, first: usize, count: usize) {
        for _ in 0..count.min(self.size.rows) {
            self.cells.remove(first);
            self.cells.insert(self.region.1, vec![new_blank(); self.size.columns]);
        }
    }

    fn scroll_down(&mut self, first: usize, count: usize) {
        for _ in 0..count.min(self.size.rows) {
            self.cells.remove(self.region.1);
            self.cells.insert(first, vec![new_blank(); self.size.columns]);
        }
    }

    fn line_feed(&mut self) {
        let (row, column) = self.cursor;
        if row == self.region.1 {
            self.scroll_up(self.region.0, 1);
            self.wraps = false;
        } else {
            self.move_to((row + 1, column));
        }
    }

    fn put(&mut self, c: char) {
        let wide = width(c);
        if wide == 0 {
            let (row, column) = self.cursor;
            let on = if self.wraps { column } else { column.saturating_sub(1) };
            return self.cells[row][on].push(c);
        }
        if self.wraps || self.cursor.1 + wide > self.size.columns {
            self.line_feed();
            self.move_to((self.cursor.0, 0));
        }
        let (row, column) = self.cursor;
        self.cells[row][column] = c.to_string();
        if wide == 2 {
            self.cells[row][column + 1] = String::new();
        }
        self.move_to((row, column + wide));
        self.wraps = column + wide == self.size.columns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rows: usize, columns: usize, bytes: &str) -> Grid {
        let mut grid = Grid::new(TermSize { rows, columns });
        // Sequences may be cut at any position.
        bytes.as_bytes().chunks(3).for_each(|part| drop(grid.feed(part)));
        grid
    }

    #[test]
    fn lines_wrap_and_scroll() {
        assert_eq!(shown(3, 4, "abcdef\r\ng\r\nh").lines(), ["ef", "g", "h"]);
        let grid = shown(2, 4, "abcd");
        assert_eq!((grid.text(), grid.cursor()), ("abcd".to_owned(), (0, 3)), "it wraps with the next one");
    }

    #[test]
    fn cells_are_moved_to_erased_and_inserted() {
        assert_eq!(shown(3, 8, "\x1b[2;3Hxy\x1b[H\x1b[1mtop\x1b[0m\x1b[K").lines(), ["top", "  xy", ""]);
        assert_eq!(shown(1, 8, "abcdef\x1b[1;3H\x1b[P").text(), "abdef");
        assert_eq!(shown(1, 8, "abcdef\x1b[1;3H\x1b[2@").text(), "ab  cdef");
        assert_eq!(shown(2, 8, "abc\r\ndef\x1b[1;2H\x1b[J").text(), "a");
        assert_eq!(shown(3, 8, "a\r\nb\r\nc\x1b[1;1H\x1b[M").lines(), ["b", "c", ""]);
    }

    #[test]
    fn wide_and_combining_characters() {
        assert_eq!(shown(2, 4, "a字字x").lines(), ["a字", "字x"].map(str::to_owned));
        assert_eq!(shown(1, 9, "e\u{301}f").text(), "e\u{301}f");
    }

    #[test]
    fn the_normal_screen_comes_back() {
        let there = "old\x1b[?1049h\x1b[?25l\x1b[Hnew";
        let grid = shown(2, 8, there);
        assert_eq!((grid.text().as_str(), grid.is_alternate(), grid.is_cursor_shown()), ("new", true, false));
        let grid = shown(2, 8, &format!("{there}\x1b[?25h\x1b[?1049l!"));
        assert_eq!((grid.text().as_str(), grid.is_alternate(), grid.is_cursor_shown()), ("old!", false, true));
    }

    #[test]
    fn titles_are_ignored_and_questions_answered() {
        let mut grid = Grid::new(TermSize { rows: 2, columns: 8 });
        assert_eq!(grid.feed(b"\x1b]0;title\x07a\x1b]2;t\x1b\\b\x1b[6n"), b"\x1b[1;3R");
        assert_eq!(grid.text(), "ab");
    }
}
