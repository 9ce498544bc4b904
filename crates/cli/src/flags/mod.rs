//! The command line of the native commands.
//!
//! [`defs`] is the one table of flags; help, man pages and completions come from it through clap. Only the command
//! that was named is built: the whole tree costs 0.2 ms at every start.

mod command;
mod defs;
mod events;
mod kill;
mod nat;
mod nat_advise;
mod nat_stats;
mod record;
mod request;
mod stateless;

pub use command::{COMMANDS, all, one};
pub(crate) use events::Events;
pub(crate) use kill::Kill;
pub(crate) use nat::{NatDelete, NatList};
pub(crate) use nat_advise::NatAdvise;
pub(crate) use nat_stats::NatStats;
pub(crate) use record::Record;
pub(crate) use request::{Format, Repeat, Request};
pub(crate) use stateless::{Stateless, Task as StatelessTask};

/// `8MiB`, `64k`, `1000000`: a number of bytes.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..).unwrap_or_default() {
        "" | "B" => 0,
        "k" | "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok().map(|number| number.saturating_mul(1 << unit))
}
