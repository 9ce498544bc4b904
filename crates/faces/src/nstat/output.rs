//! The bytes of nstat (iproute2 6.1): one counter per line, or one JSON object.

use record::text::{put_face, put_u64};

/// The word for the kernel's own counters, which nstat writes above the counters and into its history.
pub const NSTAT_SOURCE: &str = "kernel";

/// Columns of a name, and of a value.
const NAME: usize = 32;
const VALUE: usize = 16;

/// The form of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NstatStyle {
    /// One line for each counter.
    Lines,
    /// JSON on one line.
    Json,
    /// JSON with one line for each counter.
    PrettyJson,
}

/// Writes counters in one of the forms.
pub struct NstatWriter {
    style: NstatStyle,
    is_first: bool,
}

impl NstatWriter {
    /// Begins the output.
    pub fn begin(style: NstatStyle, out: &mut Vec<u8>) -> NstatWriter {
        let head = match style {
            NstatStyle::Lines => format!("#{NSTAT_SOURCE}\n"),
            NstatStyle::Json => format!("{{\"{NSTAT_SOURCE}\":{{"),
            NstatStyle::PrettyJson => format!("{{\n    \"{NSTAT_SOURCE}\": {{"),
        };
        out.extend_from_slice(head.as_bytes());
        NstatWriter { style, is_first: true }
    }

    /// Appends a counter; `overflow` is true if it is smaller than before.
    pub fn put(&mut self, out: &mut Vec<u8>, name: &str, value: u64, overflow: bool) {
        if self.style == NstatStyle::Lines {
            put_padded(out, NAME, |out| put_face(out, name.as_bytes(), false));
            put_padded(out, VALUE, |out| put_u64(out, value));
            // The rate, which only nstat's daemon knows.
            out.extend_from_slice(b"   0.0");
            out.extend_from_slice(if overflow { b" (overflow)\n" } else { b"\n" });
            return;
        }
        let (between, colon) = match self.style {
            NstatStyle::PrettyJson => ("\n        ", ": "),
            _ => ("", ":"),
        };
        out.extend_from_slice(if self.is_first { b"" } else { b"," });
        out.extend_from_slice(between.as_bytes());
        out.push(b'"');
        record::text::put_json(out, name.as_bytes());
        out.push(b'"');
        out.extend_from_slice(colon.as_bytes());
        put_u64(out, value);
        self.is_first = false;
    }

    /// Ends the output.
    pub fn end(self, out: &mut Vec<u8>) {
        out.extend_from_slice(match (self.style, self.is_first) {
            (NstatStyle::Lines, _) => b"",
            (NstatStyle::Json, _) => b"}}\n",
            (NstatStyle::PrettyJson, true) => b"}\n}\n",
            (NstatStyle::PrettyJson, false) => b"\n    }\n}\n",
        });
    }
}

/// Appends a text and blanks up to `columns`.
fn put_padded(out: &mut Vec<u8>, columns: usize, put: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    put(out);
    let end = out.len().max(start + columns);
    out.resize(end, b' ');
}
