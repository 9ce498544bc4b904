//! Runs rounds, once or every second (`-c`), and ends the run.

use super::super::read::ReadError;
use super::complain;
use lookups::session::Session;
use record::SinkError;

const ROUND_NS: u64 = 1_000_000_000;

/// The reason for the early end of a round.
pub(super) enum Broken {
    Interrupted,
    Output(SinkError),
    Read(ReadError),
    /// A reported error, with its exit code.
    Reported(u8),
}

/// Runs `round`, repeatedly if requested; returns the exit code.
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

/// Prints the message if required; returns the exit code.
fn ended(broken: Broken) -> u8 {
    match broken {
        // The exit code that a shell reports for a program killed by SIGINT.
        Broken::Interrupted => 130,
        Broken::Output(SinkError::Closed) => 0,
        Broken::Output(error) => complain(&error.to_string(), 1),
        Broken::Read(error) => complain(&error.to_string(), 1),
        Broken::Reported(code) => code,
    }
}
