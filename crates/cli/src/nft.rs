//! Rules by way of nft(8): it speaks its own language best.

use std::fmt;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// What nft did not do.
#[derive(Debug)]
pub(crate) enum NftError {
    /// The program is not there.
    Missing,
    /// It could not be started, or not be talked to.
    Io(io::Error),
    /// It refused; its own words.
    Refused(String),
}

impl NftError {
    /// True if there is no such table.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, NftError::Refused(words) if words.contains("No such file or directory"))
    }
}

impl fmt::Display for NftError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NftError::Missing => f.write_str(
                "nft is not installed: install the package nftables, or take the rules to a host that has it",
            ),
            NftError::Io(error) => write!(f, "cannot run nft: {error}"),
            NftError::Refused(words) => write!(f, "nft refused: {}", words.trim_end()),
        }
    }
}

/// Runs a script in one transaction, in the network namespace of the calling thread; nothing of it is done if any line is
/// refused.
pub(crate) fn apply(script: &str) -> Result<(), NftError> {
    run(&["-f", "-"], script).map(drop)
}

/// What `nft WORDS` prints.
pub(crate) fn list(words: &[&str]) -> Result<String, NftError> {
    run(words, "")
}

fn run(words: &[&str], input: &str) -> Result<String, NftError> {
    let mut command = Command::new("nft");
    command.args(words).env("LC_ALL", "C").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => NftError::Missing,
        _ => NftError::Io(error),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // Who ends before it has read everything says why on stderr.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(NftError::Io)?;
    if !output.status.success() {
        return Err(NftError::Refused(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
