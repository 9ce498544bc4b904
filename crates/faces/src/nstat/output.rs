//! The bytes of nstat (iproute2 6.1): one counter per line, or one JSON object.

use crate::pieces::{Left, Outside, put};

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
        put!(out, head.as_str());
        NstatWriter { style, is_first: true }
    }

    /// Appends a counter; `overflow` is true if it is smaller than before.
    pub fn put(&mut self, out: &mut Vec<u8>, name: &str, value: u64, overflow: bool) {
        if self.style == NstatStyle::Lines {
            put!(out, Left(Outside(name.as_bytes(), false), NAME), Left(value, VALUE));
            // The rate, which only nstat's daemon knows.
            put!(out, "   0.0", if overflow { " (overflow)\n" } else { "\n" });
            return;
        }
        let (between, colon) = match self.style {
            NstatStyle::PrettyJson => ("\n        ", ": "),
            _ => ("", ":"),
        };
        put!(out, if self.is_first { "" } else { "," }, between, "\"");
        record::text::put_json(out, name.as_bytes());
        put!(out, "\"", colon, value);
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
