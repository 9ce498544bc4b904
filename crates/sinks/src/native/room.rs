//! The room of a table on a terminal: the columns that fit, and their widths.
//!
//! It knows widths and names, but no cells. Start reading at [`TableRoom::share_out`].

/// Blanks between columns.
pub(super) const GAP: usize = 2;

/// Width to which sentences and lists may be cut before a column is dropped.
pub(super) const TEXT_MIN: usize = 15;
/// Width that names keep even if other columns are dropped for it: any process name fits.
pub(super) const NAME_MIN: usize = 24;
/// Width that addresses keep even if other columns are dropped for it: an IPv6 address with its scope fits.
pub(super) const ADDRESS_MAX: usize = 48;

/// The room of a table, and the columns that are kept longest if it is scarce.
///
/// A table that is too wide shrinks in three steps: headings break between their words; sentences are cut at their end
/// and lists in the middle, but not below 15 columns; then columns are dropped, while addresses stay whole and names
/// keep up to 24 columns. Columns that are neither in `named` nor in `keeps` are dropped first, starting with the
/// last; then those in `keeps`, from its end; the columns that the user named are dropped last.
#[derive(Clone, Debug, Default)]
pub struct TableRoom {
    /// Columns of the screen.
    pub width: usize,
    /// Names of the columns that the user requested.
    pub named: Vec<&'static str>,
    /// Names of other columns, the most important one first.
    pub keeps: Vec<&'static str>,
    /// True if `--columns` can name columns of the table, which are then kept.
    pub can_be_named: bool,
    /// The option that shows all columns; empty if there is none.
    pub see_by: &'static str,
}

/// Widths of one column of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnWidths<'n> {
    /// Its name.
    pub(super) name: &'n str,
    /// Width of the widest cell.
    pub(super) cells: usize,
    /// Width of the heading; 0 without headings.
    pub(super) heading: usize,
    /// Width of the longest word of the heading.
    pub(super) word: usize,
    /// The width below which the column is dropped instead of cutting its cells.
    pub(super) least: usize,
}

impl ColumnWidths<'_> {
    /// Returns the width below which the column is dropped.
    fn least_width(&self) -> usize {
        self.cells.min(self.least).max(self.word)
    }
}

impl TableRoom {
    /// Returns the widths of the columns; `None` for one that does not fit.
    pub(super) fn share_out(&self, columns: &[ColumnWidths<'_>]) -> Vec<Option<usize>> {
        let mut widths: Vec<Option<usize>> = columns.iter().map(|column| Some(column.least_width())).collect();
        while line_width(&widths) > self.width {
            match self.column_to_drop(columns, &widths) {
                Some(index) => {
                    if let Some(width) = widths.get_mut(index) {
                        *width = None;
                    }
                }
                // The last column is cut, regardless of its kind.
                None => {
                    widths.iter_mut().flatten().for_each(|width| *width = self.width);
                    return widths;
                }
            }
        }
        self.grow_to_cells(&mut widths, columns);
        self.grow_to_headings(&mut widths, columns);
        widths
    }

    /// Returns the column to drop next; `None` if only one is left.
    fn column_to_drop(&self, columns: &[ColumnWidths<'_>], widths: &[Option<usize>]) -> Option<usize> {
        let shown = || widths.iter().enumerate().filter(|(_, width)| width.is_some()).map(|(index, _)| index);
        if shown().count() < 2 {
            return None;
        }
        shown().max_by_key(|&index| self.drop_rank(columns.get(index).map_or("", |column| column.name), index))
    }

    /// Returns the rank of a column: the one with the highest rank is dropped first.
    fn drop_rank(&self, name: &str, index: usize) -> (u8, usize) {
        if self.named.contains(&name) {
            return (0, index);
        }
        match self.keeps.iter().position(|kept| *kept == name) {
            Some(place) => (1, place),
            None => (2, index),
        }
    }

    /// Distributes the remaining width, one column of the screen at a time, to the narrowest column with wider cells.
    fn grow_to_cells(&self, widths: &mut [Option<usize>], columns: &[ColumnWidths<'_>]) {
        for _ in line_width(widths)..self.width {
            let shown = widths.iter_mut().zip(columns).filter_map(|(width, column)| Some((width.as_mut()?, column)));
            let hungry = shown.filter(|(width, column)| **width < column.cells);
            let Some((width, _)) = hungry.min_by_key(|(width, _)| **width) else { return };
            *width += 1;
        }
    }

    /// Completes headings with the width that then remains, starting with those that need least.
    fn grow_to_headings(&self, widths: &mut [Option<usize>], columns: &[ColumnWidths<'_>]) {
        let mut left = self.width.saturating_sub(line_width(widths));
        loop {
            let shown = widths.iter_mut().zip(columns).filter_map(|(width, column)| Some((width.as_mut()?, column)));
            let lacking = shown.map(|(width, column)| (column.heading.saturating_sub(*width), width));
            match lacking.filter(|(lack, _)| (1..=left).contains(lack)).min_by_key(|(lack, _)| *lack) {
                Some((lack, width)) => {
                    *width += lack;
                    left -= lack;
                }
                None => return,
            }
        }
    }
}

/// Returns the width of a line.
pub(super) fn line_width(widths: &[Option<usize>]) -> usize {
    let shown = widths.iter().flatten();
    shown.clone().sum::<usize>() + shown.count().saturating_sub(1) * GAP
}

/// Breaks the heading after its underscores into lines of at most this width; a wider word gets its own line.
pub(super) fn heading_lines(heading: &str, width: usize) -> Vec<&str> {
    let (mut lines, mut start, mut end) = (Vec::new(), 0, 0);
    for part in heading.split_inclusive('_') {
        let next = end + part.len();
        let is_wider = heading.get(start..next).is_some_and(|line| crate::width_of(line) > width);
        if is_wider && end > start {
            lines.extend(heading.get(start..end));
            start = end;
        }
        end = next;
    }
    lines.extend(heading.get(start..end));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, cells: usize, is_text: bool) -> ColumnWidths<'_> {
        let word = name.split_inclusive('_').map(str::len).max().unwrap_or(0);
        ColumnWidths { name, cells, heading: name.len(), word, least: if is_text { TEXT_MIN } else { usize::MAX } }
    }

    fn room(width: usize, named: &[&'static str], keeps: &[&'static str]) -> TableRoom {
        TableRoom { width, named: named.to_vec(), keeps: keeps.to_vec(), ..TableRoom::default() }
    }

    #[test]
    fn nothing_changes_where_there_is_room() {
        let columns = [column("state", 11, false), column("local_addr", 9, true), column("process", 30, true)];
        assert_eq!(room(200, &[], &[]).share_out(&columns), [Some(11), Some(10), Some(30)]);
    }

    #[test]
    fn headings_break_then_text_is_cut_then_columns_leave() {
        let columns = [column("state", 11, false), column("local_port", 5, false), column("process", 30, true)];
        assert_eq!(room(55, &[], &[]).share_out(&columns), [Some(11), Some(10), Some(30)]);
        assert_eq!(room(50, &[], &[]).share_out(&columns), [Some(11), Some(6), Some(29)]);
        assert_eq!(room(40, &[], &[]).share_out(&columns), [Some(11), Some(6), Some(19)]);
        assert_eq!(room(34, &[], &[]).share_out(&columns), [Some(11), Some(10), None]);
        assert_eq!(room(34, &[], &["process", "state"]).share_out(&columns), [Some(11), None, Some(21)]);
        assert_eq!(room(34, &["local_port"], &["process", "state"]).share_out(&columns), [None, Some(6), Some(26)]);
        assert_eq!(room(3, &[], &[]).share_out(&columns), [Some(3), None, None]);
    }

    #[test]
    fn no_table_is_wider_than_its_room() {
        let columns: Vec<ColumnWidths<'_>> =
            (0..20).map(|n| column("some_long_heading", n * 7 % 40, n % 3 == 0)).collect();
        for width in 1..300 {
            assert!(line_width(&room(width, &[], &[]).share_out(&columns)) <= width, "{width}");
        }
    }

    #[test]
    fn headings_break_between_words() {
        assert_eq!(heading_lines("bytes_in_per_s", 14), ["bytes_in_per_s"]);
        assert_eq!(heading_lines("bytes_in_per_s", 8), ["bytes_", "in_per_s"]);
        assert_eq!(heading_lines("bytes_in_per_s", 3), ["bytes_", "in_", "per_", "s"]);
        assert_eq!(heading_lines("netns", 3), ["netns"]);
        assert_eq!(heading_lines("", 3), [""]);
    }
}
