//! The aligned table of a terminal.

use super::bounds::Bounds;
use super::cell::Form;
use super::human::{Human, LocalClock, name_of};
use super::paint::{Palette, Tone};
use super::room::{ADDRESS_MAX, ColumnWidths, GAP, NAME_MIN, TEXT_MIN, TableRoom, heading_lines, line_width};
use super::{FormatOptions, round};
use crate::Out;
use crate::cut::{put_beginning, put_shortened_middle, shorten_middle, width_of};
use record::{Accounting, Column, Columns, Kind, Next, Round, Sink, SinkError, Value, text};
use std::io::Write;

/// Rows that are held back to determine the widths of the columns.
const SAMPLE_ROWS: usize = 200;

/// Columns with sentences, whose beginning is most important.
const PROSE: [&str; 12] = [
    "advice",
    "cmdline",
    "evidence",
    "info",
    "late_why",
    "meaning",
    "note",
    "remedy",
    "rule",
    "rule_comment",
    "title",
    "why",
];

/// Writes a table with aligned columns, field names as headings and, if requested, colour.
///
/// Widths come from the first 200 rows (or from all, if there are fewer). Rows after this sample are written as they
/// arrive. A flush ends the sample early. Without a [`TableRoom`] nothing is cut: a longer cell later pushes the rest
/// of its line to the right. With a room no line exceeds it; [`TableRoom`] decides which columns are dropped, and the
/// last line names them.
pub struct TableWriter<W> {
    out: Out<W>,
    options: FormatOptions,
    palette: Palette,
    room: Option<TableRoom>,
    clock: Option<LocalClock>,
    /// Names of the columns that are written only if a row needs them.
    unusual: Vec<&'static str>,
    lanes: Vec<ScreenColumn>,
    bounds: Bounds,
    /// Consecutive formatted cells of the rows held back.
    bytes: Vec<u8>,
    cuts: Vec<CellEnd>,
    rows_held: usize,
    sampling: bool,
    /// Free columns of the screen after the widest line: longer cells may push theirs this far.
    slack: usize,
}

/// A column of the table on the screen.
struct ScreenColumn {
    name: Box<str>,
    heading: Box<str>,
    form: Form,
    human: Option<Human>,
    right: bool,
    is_name: bool,
    is_address: bool,
    is_list: bool,
    /// True for sentences, which are cut at their end.
    is_prose: bool,
    /// Rows that need the column, of one that is only written if a row does; `None` for a column that is written.
    unwritten: Option<u64>,
    /// Width of the widest cell of the sample.
    cells: usize,
    /// Its width; `None` if it does not fit.
    width: Option<usize>,
}

/// A formatted cell: its end in the bytes, and its width on the screen.
#[derive(Clone, Copy)]
struct CellEnd {
    end: usize,
    width: usize,
    tone: Tone,
}

impl<W: Write> TableWriter<W> {
    /// Writes a table to `out`.
    pub fn new(out: Out<W>, options: FormatOptions) -> TableWriter<W> {
        TableWriter {
            out,
            options,
            palette: Palette::new(options.color),
            room: None,
            clock: None,
            unusual: Vec::new(),
            lanes: Vec::new(),
            bounds: Bounds::default(),
            bytes: Vec::new(),
            cuts: Vec::new(),
            rows_held: 0,
            sampling: true,
            slack: usize::MAX,
        }
    }

    /// Limits the table to the room.
    pub fn with_room(self, room: Option<TableRoom>) -> TableWriter<W> {
        TableWriter { room, ..self }
    }

    /// Writes bytes, rates and durations with units, and times by this clock.
    pub fn for_people(self, clock: Option<LocalClock>) -> TableWriter<W> {
        TableWriter { clock, ..self }
    }

    /// The same table, which writes the columns with these names only if a row of the sample needs them: if its cell is
    /// neither null nor false. The last line counts the rows after the sample that need a column which is not there.
    pub fn with_unusual(self, unusual: Vec<&'static str>) -> TableWriter<W> {
        TableWriter { unusual, ..self }
    }

    /// Returns the output, for text after the table.
    pub fn into_out(self) -> Out<W> {
        self.out
    }

    fn hold_row(&mut self, cells: &[Value<'_>]) {
        if !self.unusual.is_empty() {
            self.count_needed(cells);
        }
        for (index, (lane, &cell)) in self.lanes.iter_mut().zip(cells).enumerate() {
            let start = self.bytes.len();
            if self.sampling || lane.width.is_some() {
                lane.put(&mut self.bytes, cell);
            }
            let width = width_of(text_of(&self.bytes, start, self.bytes.len()));
            if self.sampling {
                lane.cells = lane.cells.max(width);
            }
            let bound = if self.options.color { self.bounds.tone(index, cells) } else { None };
            self.cuts.push(CellEnd {
                end: self.bytes.len(),
                width,
                tone: bound.unwrap_or_else(|| Tone::from_cell(cell)),
            });
        }
        self.rows_held += 1;
    }

    /// Counts the row for each column that it needs.
    fn count_needed(&mut self, cells: &[Value<'_>]) {
        for (lane, cell) in self.lanes.iter_mut().zip(cells) {
            let Some(rows) = &mut lane.unwritten else { continue };
            *rows += u64::from(match cell {
                Value::Null | Value::Bool(false) => false,
                // The interface is written with the address.
                Value::Bytes(_) => !cells.iter().any(|cell| matches!(cell, Value::LinkAddr(_))),
                _ => true,
            });
        }
    }

    /// Determines the widths, writes the heading, then the rows held back.
    fn end_sample(&mut self) -> Result<(), SinkError> {
        self.sampling = false;
        self.decide_widths();
        if self.options.header {
            self.put_headings()?;
        }
        self.write_held_rows()
    }

    fn decide_widths(&mut self) {
        let has_header = self.options.header;
        for lane in &mut self.lanes {
            lane.unwritten = lane.unwritten.filter(|rows| *rows == 0);
            let heading = if has_header { width_of(&lane.heading) } else { 0 };
            lane.width = if lane.unwritten.is_none() { Some(lane.cells.max(heading)) } else { None };
        }
        let Some(room) = &self.room else { return };
        let mut lanes: Vec<&mut ScreenColumn> = self.lanes.iter_mut().filter(|lane| lane.unwritten.is_none()).collect();
        let wishes: Vec<ColumnWidths<'_>> = lanes.iter().map(|lane| lane.column_widths(has_header)).collect();
        let widths = room.share_out(&wishes);
        self.slack = room.width.saturating_sub(line_width(&widths));
        for (lane, width) in lanes.iter_mut().zip(widths) {
            lane.width = width;
        }
    }

    /// Writes the headings, broken between words if their column is narrower; the last line of each is next to the
    /// cells.
    fn put_headings(&mut self) -> Result<(), SinkError> {
        if self.room.is_none() {
            let cells = self.lanes.iter().map(|lane| (&*lane.heading, width_of(&lane.heading), Tone::Heading));
            put_line(self.out.buf(), &self.lanes, &self.palette, self.slack, cells);
            return self.out.line_done();
        }
        let broken = |lane: &ScreenColumn| -> Vec<String> {
            let Some(width) = lane.width else { return Vec::new() };
            heading_lines(&lane.heading, width)
                .into_iter()
                .map(|line| shorten_middle(line, width).into_owned())
                .collect()
        };
        let broken: Vec<Vec<String>> = self.lanes.iter().map(broken).collect();
        let height = broken.iter().map(Vec::len).max().unwrap_or(0);
        for line in (0..height).rev() {
            let cells = broken.iter().map(|lines| {
                let place = lines.len().checked_sub(line + 1);
                let text = place.and_then(|place| lines.get(place)).map_or("", String::as_str);
                (text, width_of(text), Tone::Heading)
            });
            put_line(self.out.buf(), &self.lanes, &self.palette, self.slack, cells);
            self.out.line_done()?;
        }
        Ok(())
    }

    fn write_held_rows(&mut self) -> Result<(), SinkError> {
        let mut start = 0;
        for row in self.cuts.chunks(self.lanes.len().max(1)) {
            let cells = row.iter().map(|cut| {
                let text = text_of(&self.bytes, start, cut.end);
                start = cut.end;
                (text, cut.width, cut.tone)
            });
            put_line(self.out.buf(), &self.lanes, &self.palette, self.slack, cells);
            self.out.line_done()?;
        }
        self.bytes.clear();
        self.cuts.clear();
        self.rows_held = 0;
        Ok(())
    }

    /// Names the columns that do not fit, those that rows after the sample need, and the option that shows them.
    fn put_left_out(&mut self) -> Result<(), SinkError> {
        let (mut left_out, mut lines) = (Vec::new(), Vec::new());
        for lane in self.lanes.iter().filter(|lane| lane.width.is_none()) {
            match lane.unwritten {
                None => left_out.push(&*lane.name),
                Some(0) => {}
                Some(rows) => lines.push(unwritten_line(&lane.name, rows)),
            }
        }
        let room = self.room.as_ref();
        let width = room.map_or(usize::MAX, |room| room.width);
        lines.extend(room.and_then(|room| left_out_line(&left_out, room)));
        for line in lines.iter().flat_map(|line| fold_sentence(line, width)) {
            self.palette.put(self.out.buf(), Tone::Faint, line.as_bytes());
            self.out.buf().push(b'\n');
            self.out.line_done()?;
        }
        Ok(())
    }
}

impl ScreenColumn {
    fn new(column: &Column, form: Form, clock: Option<LocalClock>) -> ScreenColumn {
        ScreenColumn {
            name: escape_name(&column.name).into(),
            heading: escape_name(if clock.is_some() { name_of(column) } else { &column.name }).into(),
            form,
            human: clock.map(|clock| Human::from_column(form, column, clock)),
            right: column.kind.is_number(),
            is_name: column.kind == Kind::Text,
            is_address: matches!(column.kind, Kind::Addr | Kind::Endpoint),
            is_list: matches!(column.kind, Kind::Words(_)) || column.kind.is_list(),
            is_prose: PROSE.contains(&&*column.name),
            unwritten: None,
            cells: 0,
            width: Some(0),
        }
    }

    fn put(&self, out: &mut Vec<u8>, cell: Value<'_>) {
        match &self.human {
            Some(human) => human.put(out, cell),
            None => self.form.put(out, cell),
        }
    }

    fn column_widths(&self, has_header: bool) -> ColumnWidths<'_> {
        let heading = if has_header { &*self.heading } else { "" };
        ColumnWidths {
            name: &self.name,
            cells: self.cells,
            heading: width_of(heading),
            word: heading.split_inclusive('_').map(width_of).max().unwrap_or(0),
            least: match () {
                () if self.is_prose || self.is_list => TEXT_MIN,
                () if self.is_name => NAME_MIN,
                () if self.is_address => ADDRESS_MAX,
                () => usize::MAX,
            },
        }
    }
}

impl<W: Write> Sink for TableWriter<W> {
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        round::put_separator(self.out.buf(), round, b"\n");
        let forms = Form::from_columns(columns, |name| self.options.null_word(name));
        let unwritten = |column: &Column| self.unusual.contains(&&*column.name).then_some(0);
        let lane = |column: &Column, form| ScreenColumn {
            unwritten: unwritten(column),
            ..ScreenColumn::new(column, form, self.clock)
        };
        self.lanes = columns.0.iter().zip(forms).map(|(column, form)| lane(column, form)).collect();
        self.bounds = Bounds::from_columns(columns);
        self.sampling = true;
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        self.hold_row(cells);
        if !self.sampling {
            self.write_held_rows()?;
        } else if self.rows_held >= SAMPLE_ROWS {
            self.end_sample()?;
        }
        Ok(Next::More)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        if self.sampling && self.rows_held == 0 {
            return Ok(());
        }
        if self.sampling {
            self.end_sample()?;
        }
        self.out.flush()
    }

    fn end(&mut self, _totals: &Accounting) -> Result<(), SinkError> {
        if self.sampling {
            self.end_sample()?;
        }
        self.put_left_out()?;
        self.out.flush()
    }
}

/// Returns the headings of columns without rows yet.
pub fn headings(columns: &Columns) -> String {
    columns.0.iter().map(|column| escape_name(&column.name)).collect::<Vec<_>>().join("  ")
}

/// Escapes a name for a terminal.
fn escape_name(name: &str) -> String {
    let mut escaped = Vec::new();
    text::put_text(&mut escaped, name.as_bytes());
    String::from_utf8_lossy(&escaped).into_owned()
}

/// Returns the cell between these offsets; the forms write only UTF-8.
fn text_of(bytes: &[u8], start: usize, end: usize) -> &str {
    bytes.get(start..end).and_then(|cell| std::str::from_utf8(cell).ok()).unwrap_or_default()
}

/// Appends a line. A cell that is wider than its column pushes the others to the right as far as there is `slack`, and
/// is cut otherwise.
fn put_line<'c>(
    out: &mut Vec<u8>,
    lanes: &[ScreenColumn],
    palette: &Palette,
    mut slack: usize,
    cells: impl Iterator<Item = (&'c str, usize, Tone)>,
) {
    let mut owed = 0;
    for (lane, (text, width, tone)) in lanes.iter().zip(cells) {
        let Some(room) = lane.width else { continue };
        if text.is_empty() {
            owed += room + GAP;
            continue;
        }
        let missing = room.saturating_sub(width);
        // Blanks are written only before further text: no line ends in blanks.
        let (before, after) = if lane.right { (missing, 0) } else { (0, missing) };
        out.resize(out.len() + owed + before, b' ');
        let over = width.saturating_sub(room);
        palette.begin(out, tone);
        if over <= slack {
            slack -= over;
            out.extend_from_slice(text.as_bytes());
            owed = after + GAP;
        } else {
            let start = out.len();
            if lane.is_prose {
                put_beginning(out, text, room)
            } else {
                put_shortened_middle(out, text, room)
            }
            // Cutting before a wide character may leave one more blank.
            owed = room.saturating_sub(width_of(text_of(out, start, out.len()))) + GAP;
        }
        palette.end(out, tone);
    }
    out.push(b'\n');
}

/// Returns the sentence about a column that no row of the sample needed.
fn unwritten_line(name: &str, rows: u64) -> String {
    let rows = if rows == 1 { "1 row has".to_owned() } else { format!("{rows} rows have") };
    format!("{rows} {name}, which the first {SAMPLE_ROWS} do not; show it with --columns +{name}")
}

/// Returns the sentence about the columns that do not fit; `None` if all do.
fn left_out_line(names: &[&str], room: &TableRoom) -> Option<String> {
    /// Columns of the screen for names: about one line of the narrowest usual terminal.
    const NAMES_MAX: usize = 60;
    let first = names.first()?;
    let mut shown = String::new();
    for (place, name) in names.iter().enumerate() {
        if place > 0 && shown.len() + name.len() > NAMES_MAX {
            shown.push_str(&format!(" and {} more", names.len() - place));
            break;
        }
        shown.push_str(if place > 0 { ", " } else { "" });
        shown.push_str(name);
    }
    let mut said = match names.len() {
        1 => format!("column does not fit: {shown}"),
        _ => format!("columns do not fit: {shown}"),
    };
    if room.can_be_named {
        said.push_str(&format!("; keep one with --columns +{first}"));
    }
    if !room.see_by.is_empty() {
        said.push_str(&format!("; show all with {}", room.see_by));
    }
    Some(said)
}

/// The sentence in lines none of which is wider than the screen.
fn fold_sentence(sentence: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in sentence.split(' ') {
        let word = shorten_middle(word, width);
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(&word),
            Some(line) if width_of(line) + 1 + width_of(&word) <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word.into_owned()),
        }
    }
    lines
}
