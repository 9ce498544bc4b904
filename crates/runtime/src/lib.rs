//! The process itself: exit codes, messages, standard output, rights, helper processes, the service manager.
#![forbid(unsafe_code)]

pub mod ascii;
mod drawing;
pub mod drawn_rounds;
pub mod exit;
pub mod fold;
pub mod helper_process;
pub mod local_time;
pub mod messages;
pub mod notifier;
pub mod outcome;
pub mod print;
pub mod rights;
pub mod run_group;
pub mod run_state;
pub mod stdout;
pub mod waiting;
pub mod width;

pub use exit::Exit;
