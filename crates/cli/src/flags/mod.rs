//! The command line of the native commands: [`defs`] is the table of flags, [`parser`] makes clap commands from it,
//! and [`request`] has the parsed request for a table.

pub(crate) mod command;
pub(crate) mod comment;
pub(crate) mod defs;
pub(crate) mod near_command;
pub(crate) mod parser;
pub(crate) mod request;
pub(crate) mod rotation;
pub(crate) mod shell_line;
pub(crate) mod ship;
mod sizes;
