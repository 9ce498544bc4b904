//! Sinks of the native commands. Each takes planned cells and writes one format.

mod bounds;
mod cell;
mod csv;
mod fixed_text;
mod human;
mod json;
mod json_rows;
mod paint;
mod room;
mod round;
mod table;
mod text;
mod value;

pub(crate) use cell::Form;
pub use csv::Csv;
pub(crate) use fixed_text::{FixedText, put_piece};
pub use human::{LocalClock, bit_rate, byte_rate};
pub use json::Json;
pub use json_rows::JsonRows;
pub use room::TableRoom;
pub use table::{TableWriter, headings};
pub use text::Text;
pub use value::put_json_value;
pub(crate) use value::put_link_addr;

/// Options of native formats. A format ignores those that it does not use.
#[derive(Clone, Copy, Debug)]
pub struct FormatOptions {
    /// False omits the header line of text, table and CSV (`-H`).
    pub header: bool,
    /// True colours the table.
    pub color: bool,
    /// Words for null in text and table, by column: `("local_port", "many")`. Elsewhere null is `-`.
    pub null_words: &'static [(&'static str, &'static str)],
    /// True if JSON ends with the accounting even if nothing was lost (`--stats`).
    pub stats: bool,
    /// Returns the microseconds of CPU that the process has used; called once per round, for the accounting.
    pub cpu_us: Option<fn() -> u64>,
}

impl Default for FormatOptions {
    /// A header, no colour, no null words and no accounting.
    fn default() -> FormatOptions {
        FormatOptions { header: true, color: false, null_words: &[], stats: false, cpu_us: None }
    }
}

impl FormatOptions {
    /// Returns the word for null in the column called `name`.
    fn null_word(&self, name: &str) -> &'static str {
        self.null_words.iter().find(|(column, _)| *column == name).map_or("-", |(_, word)| word)
    }
}
