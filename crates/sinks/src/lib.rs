//! The final writers: table, text, JSON, CSV, syslog and the formats of ulogd2.
//!
//! They take cells or typed rows and write bytes through one buffer. The crate knows no source, no plan and no flag,
//! and reads nothing. Start reading at [`Text`], the simplest writer, and [`Out`], the buffer that all use.
#![forbid(unsafe_code)]

mod clock;
mod cut;
mod home;
mod log_tail;
mod native;
mod out;
pub mod screen;
pub mod syslog;
pub mod ulogd;

pub use clock::{Clock, LocalTime};
pub use cut::width_of;
pub use home::{HomeText, HomeTextOptions};
pub use log_tail::{LOG_TAIL_COLUMNS, LogTail, LogTailOptions};
pub use native::{
    Csv, FormatOptions, Json, JsonRows, LocalClock, TableRoom, TableWriter, Text, bit_rate, byte_rate, headings,
    put_json_value,
};
pub use out::Out;
