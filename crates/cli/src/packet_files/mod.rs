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

pub(crate) use command_runner::{RUNNER, run as run_commands};
pub(crate) use file_commands::{CommandRequest, FileCommands};
pub(crate) use limits::{FileLimits, FileState};
pub(crate) use numbered_names::NumberedNames;
pub(crate) use output_file::{OutputFile, is_same, words_of};
pub(crate) use packing::{NAME as PACKER, Packing, is_pcap, run as run_packing};
pub(crate) use place::{folder_of, is_ours, place_of};
pub(crate) use series::{BegunFile, FileSeries, NextName, SeriesReport};
