//! Writers that print what the old tools print, byte for byte, from typed rows.
//!
//! A writer knows layout and words; switches, exit codes and the order of questions are the command line's job.

pub mod conntrack;
pub mod lstf;
pub mod netstat;
pub mod ss;
