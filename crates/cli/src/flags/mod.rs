//! The command line of the native commands: [`defs`] is the one table of flags, [`parser`] makes clap's commands of it,
//! [`request`] says what was asked of a table.

pub(crate) mod defs;
pub(crate) mod near_command;
pub(crate) mod parser;
pub(crate) mod request;
pub(crate) mod rotation;
pub(crate) mod shell_line;
pub(crate) mod ship;

pub(crate) use near_command::near_command;
