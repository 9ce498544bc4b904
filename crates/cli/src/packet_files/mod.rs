//! Files that packets are written into: one, or one after the other, each complete alone.
//!
//! Knows no packets: who writes them says when a file has had enough. Start reading at [`OutputFile`]; files that
//! follow one another are a [`FileSeries`], the commands that are run with them are in [`FileCommands`].

mod command_runner;
mod file_commands;
mod limits;
mod numbered_names;
mod output_file;
mod place;
mod series;

pub(crate) use command_runner::{RUNNER, run as run_commands};
pub(crate) use file_commands::{CommandRequest, FileCommands};
pub(crate) use limits::{FileLimits, FileState};
pub(crate) use numbered_names::NumberedNames;
pub(crate) use output_file::{OutputFile, is_pcap, is_same, words_of};
pub(crate) use place::{folder_of, is_ours, place_of};
pub(crate) use series::{BegunFile, FileSeries, NextName, SeriesReport};
