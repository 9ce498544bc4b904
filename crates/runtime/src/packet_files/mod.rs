//! Files that packets are written to: one, or a series, each complete by itself.
//!
//! This module knows nothing about packets: the writer decides when a file is complete. Start reading at
//! [`OutputFile`]; a series is a [`FileSeries`], and [`FileCommands`] runs commands on files.

mod command_runner;
mod file_commands;
mod limits;
mod numbered_names;
mod output_file;
mod packing;
mod place;
mod series;

pub use command_runner::{RUNNER, run as run_commands};
pub use file_commands::{CommandRequest, FileCommands};
pub use limits::{FileLimits, FileState};
pub use numbered_names::NumberedNames;
pub use output_file::{OutputFile, is_same, words_of};
pub use packing::{NAME as PACKER, Packing, is_pcap, run as run_packing};
pub use place::{folder_of, is_ours, place_of};
pub use series::{BegunFile, FileSeries, NextName, SeriesReport};
