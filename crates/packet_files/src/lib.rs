//! Files of packets: their formats, writing one file or a series, copying parts of files, and notes on packets.
//!
//! Start reading at [`PacketWriter`], which writes captured packets. [`OutputFile`] holds a packet completely or not at
//! all; a series is a [`FileSeries`], and [`FileCommands`] runs commands on its files. [`CopyWriter`] copies packets of
//! other files with everything that these say about them. `capture` reads files.
#![forbid(unsafe_code)]

mod command_runner;
mod copy;
mod cut;
mod figures;
mod file_commands;
mod format;
pub mod formats;
mod limits;
mod merge;
pub mod notes;
mod numbered_names;
mod opening;
mod output_file;
mod packing;
mod place;
mod read_file;
mod rotation;
mod series;
mod summary_text;
mod writer;

pub use command_runner::{RUNNER, run as run_commands};
pub use copy::CopyWriter;
pub use cut::CutRequest;
pub use figures::Figures;
pub use file_commands::{CommandRequest, FileCommands};
pub use format::PacketFormat;
pub use limits::FileLimits;
pub use merge::{check_link_types, merge};
pub use opening::UnopenedOutput;
pub use output_file::{FileEnd, OutputFile, cannot_write, is_input};
pub use packing::{NAME as PACKER, is_pcap, run as run_packing};
pub use place::{can_write_unprivileged, folder_of};
pub use read_file::ReadFile;
pub use rotation::RotationRequest;
pub use series::{FileSeries, NewFile, NextName};
pub use summary_text::render_summary;
pub use writer::{PacketWriter, say_left_out};
