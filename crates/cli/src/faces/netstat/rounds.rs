//! Once, or again every second (`-c`), and how a run ends.

use super::super::read::ReadError;
use super::complain;
use crate::session::Session;
use record::SinkError;

const ROUND_NS: u64 = 1_000_000_000;

/// Why a round ended early.
pub(super) enum Broken {
    Interrupted,
    Output(SinkError),
    Read(ReadError),
    /// The message is out; the exit code.
    Reported(u8),
}

/// Runs `round`, again and again if asked; the exit code.
pub(super) fn repeat(session: &Session, continuous: bool, mut round: impl FnMut() -> Result<(), Broken>) -> u8 {
    loop {
        let started_ns = sys::clock::monotonic_ns();
        if let Err(broken) = round() {
            return ended(broken);
        }
        if !continuous {
            return 0;
        }
        if !session.sleep_until(started_ns.saturating_add(ROUND_NS)) {
            let failed = session.wait_failure().map(|why| Broken::Reported(complain(&why, 1)));
            return ended(failed.unwrap_or(Broken::Interrupted));
        }
    }
}

/// The exit code, after a message where one is due.
fn ended(broken: Broken) -> u8 {
    match broken {
        // As a shell tells of a program that SIGINT ended.
        Broken::Interrupted => 130,
        Broken::Output(SinkError::Closed) => 0,
        Broken::Output(error) => complain(&error.to_string(), 1),
        Broken::Read(error) => complain(&error.to_string(), 1),
        Broken::Reported(code) => code,
    }
}
