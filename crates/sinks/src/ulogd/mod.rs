//! The bytes of ulogd2 2.0.8: log records in the formats of its output plugins.
//!
//! There is one writer for each plugin; each appends one whole message for a typed row. docs/ulogd.md lists the
//! intended differences from the tool; [`UlogdStyle::bug_compatible`] gives the old bytes. Start reading at
//! [`Logemu`].

mod clock;
mod database;
mod fuzz;
mod gprint;
mod json;
mod keys;
mod logemu;
mod names;
mod oprint;
mod packet;
#[cfg(test)]
mod tests;
mod xml;

pub use clock::Zone;
pub use database::{KEYS, KeyValue, KeyValues};
pub use fuzz::fuzz_ulogd_formats;
pub use gprint::Gprint;
pub use json::{Json, JsonOptions};
pub use keys::Stages;
pub use logemu::Logemu;
pub use oprint::Oprint;
pub use xml::{XML_END, XML_HEAD, Xml};

/// The options that all writers take.
#[derive(Clone, Copy)]
pub struct UlogdStyle {
    /// The source of local time, which all formats use.
    pub zone: Zone,
    /// The old bytes, even if they are wrong.
    pub bug_compatible: bool,
}
