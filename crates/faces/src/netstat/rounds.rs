//! Runs rounds, once or every second (`-c`), and ends the run.

use super::super::read::ReadError;
use super::complain;
use lookups::session::Session;
use record::SinkError;

const ROUND_NS: u64 = 1_000_000_000;

/// The reason for the early end of a round.
pub(super) enum RoundEnd {
    Interrupted,
    Output(SinkError),
    Read(ReadError),
    /// A reported error, with its exit code.
    Reported(u8),
}

/// Runs `round`, repeatedly if requested; returns the exit code.
pub(super) fn repeat(session: &Session, continuous: bool, mut round: impl FnMut() -> Result<(), RoundEnd>) -> u8 {
    loop {
        let started_ns = sys::clock::monotonic_ns();
        if let Err(end) = round() {
            return ended(end);
        }
        if !continuous {
            return 0;
        }
        if !session.sleep_until(started_ns.saturating_add(ROUND_NS)) {
            let failed = session.waits().failure().map(|why| RoundEnd::Reported(complain(&why, 1)));
            return ended(failed.unwrap_or(RoundEnd::Interrupted));
        }
    }
}

/// Prints the message if required; returns the exit code.
fn ended(end: RoundEnd) -> u8 {
    match end {
        // The exit code that a shell reports for a program killed by SIGINT.
        RoundEnd::Interrupted => 130,
        RoundEnd::Output(SinkError::Closed) => 0,
        RoundEnd::Output(error) => complain(&error.to_string(), 1),
        RoundEnd::Read(error) => complain(&error.to_string(), 1),
        RoundEnd::Reported(code) => code,
    }
}
