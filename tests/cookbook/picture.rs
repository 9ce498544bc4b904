//! Converts terminal text with colours (SGR) to SVG pictures.
//!
//! One file suits light and dark pages: its colours follow the reader's preference. It uses the reader's monospaced
//! font.

use std::fmt::Write;

/// Width and height of a cell in the picture's units.
const CELL: (usize, usize) = (8, 18);

/// Margin around the text in the picture's units.
const MARGIN: usize = 12;

/// Class, light colour and dark colour of each SGR number (30 to 37). The first row is for text without a colour.
const COLOURS: [(&str, &str, &str); 9] = [
    ("fg", "#1f2328", "#e6edf3"),
    ("c0", "#57606a", "#8b949e"),
    ("c1", "#cf222e", "#ff7b72"),
    ("c2", "#116329", "#7ee787"),
    ("c3", "#7d4e00", "#e3b341"),
    ("c4", "#0550ae", "#79c0ff"),
    ("c5", "#8250df", "#d2a8ff"),
    ("c6", "#1b7c83", "#56d4dd"),
    ("c7", "#57606a", "#b1bac4"),
];

/// The style of text from a position on.
#[derive(Clone, Copy, Default, PartialEq)]
struct Style {
    bold: bool,
    dim: bool,
    /// The colour's number, from 0 to 7.
    colour: Option<u8>,
}

impl Style {
    /// Applies one number of a sequence `ESC [ … m`.
    fn apply(&mut self, number: u8) {
        match number {
            0 => *self = Style::default(),
            1 => self.bold = true,
            2 => self.dim = true,
            22 => (self.bold, self.dim) = (false, false),
            30..=37 => self.colour = Some(number - 30),
            90..=97 => self.colour = Some(number - 90),
            39 => self.colour = None,
            // Italic, underlined and reversed text is not needed in pictures.
            3 | 4 | 7 | 23 | 24 | 27 => {}
            other => panic!("a picture has no style {other}"),
        }
    }

    fn classes(self) -> String {
        let colour = self.colour.map(|colour| format!("c{colour}"));
        let flags = [(self.bold, "b"), (self.dim, "d")].into_iter().filter(|(is_set, _)| *is_set);
        let words: Vec<String> = colour.into_iter().chain(flags.map(|(_, class)| class.to_owned())).collect();
        words.join(" ")
    }
}

/// Splits the line into pieces of one style, each with its first column. The style continues in the next line.
fn pieces(line: &str, style: &mut Style) -> Vec<(usize, Style, String)> {
    let (mut pieces, mut column, mut rest) = (Vec::<(usize, Style, String)>::new(), 0, line);
    while let Some(c) = rest.chars().next() {
        if let Some(sequence) = rest.strip_prefix("\x1b[") {
            let (numbers, after) = sequence.split_once('m').expect("a sequence ends");
            numbers.split(';').for_each(|number| style.apply(number.parse().unwrap_or(0)));
            rest = after;
            continue;
        }
        assert!(!c.is_control(), "{c:?} in {line:?}");
        match pieces.last_mut() {
            Some((_, of, text)) if of == style => text.push(c),
            _ => pieces.push((column, *style, c.to_string())),
        }
        (column, rest) = (column + 1, &rest[c.len_utf8()..]);
    }
    pieces.retain(|(.., text)| !text.trim().is_empty());
    pieces
}

/// The parts separated by two or more blanks, each with its first column.
fn cells(text: &str) -> Vec<(usize, String)> {
    let (mut cells, mut blanks) = (Vec::<(usize, String)>::new(), 2);
    for (column, c) in text.chars().enumerate() {
        if c == ' ' {
            blanks += 1;
            continue;
        }
        match cells.last_mut() {
            Some((_, cell)) if blanks < 2 => {
                cell.extend(std::iter::repeat_n(' ', blanks));
                cell.push(c);
            }
            _ => cells.push((column, c.to_string())),
        }
        blanks = 0;
    }
    cells
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Draws the text of a terminal as a picture with the title `title`.
pub(super) fn svg(title: &str, text: &str) -> String {
    let plain = text.lines().map(|line| {
        pieces(line, &mut Style::default()).last().map_or(0, |(at, _, text)| at + text.trim_end().chars().count())
    });
    let (columns, rows) = (plain.max().unwrap_or(0).max(80), text.lines().count());
    let (width, height) = (columns * CELL.0 + 2 * MARGIN, rows * CELL.1 + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} \
         {height}\" xml:space=\"preserve\" role=\"img\">\n<title>{}</title>\n{}<rect width=\"{width}\" \
         height=\"{height}\" rx=\"6\"/>\n",
        escaped(title),
        styles()
    );
    let mut style = Style::default();
    for (row, line) in text.lines().enumerate() {
        let y = MARGIN + row * CELL.1 + 13;
        let cells = pieces(line, &mut style).into_iter().flat_map(|(at, style, text)| {
            cells(&text).into_iter().map(move |(within, text)| (at + within, style, text)).collect::<Vec<_>>()
        });
        for (column, style, text) in cells {
            let (x, length) = (MARGIN + column * CELL.0, text.chars().count() * CELL.0);
            let class = Some(style.classes()).filter(|classes| !classes.is_empty());
            let class = class.map_or(String::new(), |classes| format!(" class=\"{classes}\""));
            // Some viewers ignore `textLength`; separate text elements still align the cells of a column.
            let _ = writeln!(svg, "<text{class} x=\"{x}\" y=\"{y}\" textLength=\"{length}\">{}</text>", escaped(&text));
        }
    }
    svg + "</svg>\n"
}

/// The style sheet: fonts, and colours for light and dark pages.
fn styles() -> String {
    let of = |dark: bool| -> String {
        let rules = COLOURS.iter().map(|(class, on_light, on_dark)| {
            let selector = if *class == "fg" { "text".to_owned() } else { format!(".{class}") };
            format!("{selector}{{fill:{}}}", if dark { on_dark } else { on_light })
        });
        format!("rect{{fill:{}}}{}", if dark { "#0d1117" } else { "#f6f8fa" }, rules.collect::<String>())
    };
    format!(
        "<style>text{{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;\
         white-space:pre}}.b{{font-weight:600}}.d{{opacity:.7}}\n{}\n@media(prefers-color-scheme:dark){{{}}}</style>\n",
        of(false),
        of(true)
    )
}

/// The text of a picture made by [`svg`], line by line.
///
/// # Panics
/// If its elements are not nested correctly, or have other attributes or entities than [`svg`] writes.
pub(super) fn text_of(svg: &str) -> String {
    let (mut open, mut lines, mut rest) = (Vec::new(), Vec::<(String, String)>::new(), svg);
    while let Some(at) = rest.find('<') {
        let (text, after) = rest.split_at(at);
        let (tag, after) = after[1..].split_once('>').expect("a tag ends");
        assert!(!tag.contains('<') && tag.matches('"').count() % 2 == 0, "<{tag}>");
        let text = unescaped(text);
        if let Some(name) = tag.strip_prefix('/') {
            let (opened, y) = open.pop().unwrap_or_default();
            assert_eq!(opened, name);
            match lines.last_mut() {
                Some((of, line)) if name == "text" && *of == y => line.push_str(&format!(" {text}")),
                _ if name == "text" => lines.push((y, text)),
                _ => {}
            }
        } else if !tag.ends_with('/') {
            let name = tag.split(' ').next().unwrap().to_owned();
            let y = tag.split(" y=\"").nth(1).and_then(|value| value.split('"').next()).unwrap_or_default();
            open.push((name, y.to_owned()));
        }
        rest = after;
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} are not closed; {rest}");
    lines.into_iter().map(|(_, line)| line + "\n").collect()
}

fn unescaped(text: &str) -> String {
    let left = text.replace("&lt;", "<").replace("&gt;", ">");
    assert!(left.matches('&').count() == left.matches("&amp;").count(), "{text}");
    left.replace("&amp;", "&")
}

#[test]
fn a_picture_has_the_text_in_its_colours() {
    let made = svg("a & b", "\x1b[1mproto\x1b[0m  <x>\n\n\x1b[31;1mCRITICAL\x1b[39m & more\x1b[0m");
    assert_eq!(text_of(&made), "proto <x>\nCRITICAL & more\n");
    for words in ["<title>a &amp; b</title>", "<text class=\"b\" x=\"12\"", "<text class=\"c1 b\"", "&lt;x&gt;"] {
        assert!(made.contains(words), "{words}: {made}");
    }
    assert!(made.contains("prefers-color-scheme:dark"));
    assert_eq!(cells("  a b   c "), [(2, "a b".to_owned()), (8, "c".to_owned())]);
}
