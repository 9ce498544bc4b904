//! The owners of rows: readings of sockets and processes through a session, for the crate `owners`.

pub mod helper_process;
pub mod leaked;
pub mod readings;
pub mod unseen;
