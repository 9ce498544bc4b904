//! Reads and changes rules by running nft(8).

use std::fmt;
use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use sys::{Errno, SysError};

/// Possible paths of nft. PATH is never searched: a user who sets it for a run as root could choose the program. On
/// every distribution only root can write to these paths (NixOS has the last).
const PLACES: [&str; 5] = ["/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft", "/bin/nft", "/run/current-system/sw/bin/nft"];

/// The words of a listing without the elements of sets, which may be millions.
const JSON: [&str; 4] = ["--json", "--terse", "list", "ruleset"];
/// Bound: bytes of a listing of nft (`nft::issue_10_a_listing_is_bounded_in_bytes_and_time`). Beyond: the rules are
/// unknown; reported. By: the owner of a namespace, for that namespace.
const LISTING_BYTES_MAX: usize = 16 << 20;
/// Bound: for the listing of one namespace. Beyond: the rules are unknown; reported. By: the owner of a namespace, for
/// that namespace.
const LISTING_PATIENCE: Duration = Duration::from_secs(2);

/// Limits for a listing: the owner of a namespace controls its length, and may change rules so fast that nft restarts
/// forever.
#[derive(Debug, Clone, Copy)]
pub struct ListingBounds {
    /// Maximum size in bytes.
    pub bytes_max: usize,
    /// Maximum time.
    pub patience: Duration,
}

impl ListingBounds {
    /// Enough for all realistic rules.
    pub const USUAL: ListingBounds = ListingBounds { bytes_max: LISTING_BYTES_MAX, patience: LISTING_PATIENCE };
}

/// A failure of nft.
#[derive(Debug)]
pub enum NftError {
    /// The program is in none of the usual directories.
    Missing,
    /// It could not be started, or communication failed.
    Io(io::Error),
    /// It refused, with its message.
    Refused(String),
}

impl NftError {
    /// True if the failure says nothing about the rules: nft is missing, or may not be used.
    pub fn is_unable(&self) -> bool {
        match self {
            NftError::Missing | NftError::Io(_) => true,
            NftError::Refused(words) => {
                let mut errors = words.lines().filter(|line| line.contains("Error: "));
                errors.all(|line| line.contains("Operation not permitted")) && words.contains("Error: ")
            }
        }
    }

    /// True if the table does not exist.
    pub fn is_absent(&self) -> bool {
        matches!(self, NftError::Refused(words) if words.contains("No such file or directory"))
    }
}

impl fmt::Display for NftError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NftError::Missing => f.write_str(
                "nft is not installed (not found in /usr/sbin, /sbin, /usr/bin, /bin): install the package nftables, \
                 or copy the rules to a host that has it",
            ),
            NftError::Io(error) => write!(f, "cannot run nft: {error}"),
            NftError::Refused(words) => write!(f, "nft refused: {}", words.trim_end()),
        }
    }
}

/// Runs a script in one transaction, in the network namespace of the calling thread. If any line is refused, nothing
/// is changed.
pub fn apply(script: &str) -> Result<(), NftError> {
    run(&["-f", "-"], script).map(drop)
}

/// Checks whether nft would accept a script, in the network namespace of the calling thread. Changes nothing.
pub fn check(script: &str) -> Result<(), NftError> {
    run(&["-c", "-f", "-"], script).map(drop)
}

/// The output of `nft WORDS`.
pub fn list(words: &[&str]) -> Result<String, NftError> {
    run(words, "")
}

/// The rules of the calling thread's namespace in JSON.
pub fn list_json(bounds: ListingBounds) -> Result<Vec<u8>, SysError> {
    let listed = start(&JSON).and_then(|child| Listing::begin(child, bounds.bytes_max).finish(bounds.patience));
    listed.map_err(|error| failed(&error))
}

/// Appends the rules of the calling thread's namespace: the length of the JSON listing, that listing, and with
/// `with_texts` the human-readable listing, which has the texts of rules.
pub fn put_ruleset(with_texts: bool, bounds: ListingBounds, into: &mut Vec<u8>) -> Result<(), SysError> {
    let begin = |words: &[&str]| match start(words) {
        Ok(child) => Ok(Listing::begin(child, bounds.bytes_max)),
        Err(error) => Err(failed(&error)),
    };
    let finish = |listing: Listing| listing.finish(bounds.patience).map_err(|error| failed(&error));
    // Both run in parallel, because starting nft takes longer than a typical listing.
    let json = begin(&JSON)?;
    let texts = with_texts.then(|| begin(&["--handle", "--stateless", "--terse", "list", "ruleset"])).transpose();
    let json = finish(json);
    let texts = texts.and_then(|texts| texts.map(finish).transpose());
    let (json, texts) = (json?, texts?.unwrap_or_default());
    into.extend_from_slice(&(json.len() as u64).to_ne_bytes());
    into.extend_from_slice(&json);
    into.extend_from_slice(&texts);
    Ok(())
}

/// Splits the bytes appended by [`put_ruleset`] into JSON and texts; `None` for other bytes.
pub fn split_ruleset(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u64::from_ne_bytes(*length)).ok()?)
}

fn failed(error: &NftError) -> SysError {
    let errno = match error {
        NftError::Io(error) => error.raw_os_error().map_or(Errno::INVAL, Errno),
        NftError::Missing => Errno::NOENT,
        NftError::Refused(_) => Errno::INVAL,
    };
    SysError::new("run", "nft", errno)
}

/// A listing in progress.
struct Listing {
    child: Child,
    bytes_max: usize,
    /// Receives the text from the reading thread; the error if the thread could not be started.
    told: io::Result<mpsc::Receiver<io::Result<Vec<u8>>>>,
}

impl Listing {
    /// Reads the output of `child` in a thread, at most `bytes_max` bytes.
    fn begin(mut child: Child, bytes_max: usize) -> Listing {
        drop((child.stdin.take(), child.stderr.take()));
        let (tell, told) = mpsc::channel();
        let stdout = child.stdout.take();
        // It ends with the child at the latest: killing the child closes its end of the pipe.
        let reader = std::thread::Builder::new().name("nft".to_owned()).spawn(move || {
            let mut text = Vec::new();
            let most = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
            let read = stdout.map_or(Ok(0), |stdout| stdout.take(most).read_to_end(&mut text));
            let _ = tell.send(read.map(|_| text));
        });
        Listing { child, bytes_max, told: reader.map(|_| told) }
    }

    /// Returns the text once the child has ended; kills it if that takes longer than `patience`.
    fn finish(mut self, patience: Duration) -> Result<Vec<u8>, NftError> {
        let text = std::mem::replace(&mut self.told, Err(io::ErrorKind::Other.into()))
            .and_then(|told| told.recv_timeout(patience).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())))
            .and_then(
                |text| {
                    if text.len() > self.bytes_max { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(text) }
                },
            );
        if text.is_err() {
            let _ = self.child.kill();
        }
        let ended = self.child.wait();
        let text = text.map_err(NftError::Io)?;
        match ended.map_err(NftError::Io)?.success() {
            true => Ok(text),
            false => Err(NftError::Refused("it did not list the rules".to_owned())),
        }
    }
}

fn run(words: &[&str], input: &str) -> Result<String, NftError> {
    let mut child = start(words)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If nft ends before it has read everything, it reports the reason on stderr.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(NftError::Io)?;
    if !output.status.success() {
        return Err(NftError::Refused(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Starts the first nft that exists. It gets an empty environment, without loader variables or a language.
fn start(words: &[&str]) -> Result<Child, NftError> {
    for place in PLACES {
        let mut command = Command::new(place);
        command.args(words).env_clear().env("LC_ALL", "C");
        match command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
            Ok(child) => return Ok(child),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(NftError::Io(error)),
        }
    }
    Err(NftError::Missing)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(program: &str, args: &[&str], bytes_max: usize, patience: Duration) -> Result<Vec<u8>, NftError> {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Listing::begin(command.spawn().unwrap(), bytes_max).finish(patience)
    }

    #[test]
    fn a_wrong_word_is_refused_also_where_nft_may_do_nothing() {
        let unable = |words: &str| NftError::Refused(words.to_owned()).is_unable();
        let forbidden = "netlink: Error: cache initialization failed: Operation not permitted\n";
        let wrong = "/dev/stdin:4:44-48: Error: syntax error, unexpected string\nadd rule x\n";
        assert!(unable(forbidden) && !unable(wrong) && !unable(&[wrong, forbidden].concat()) && !unable(""));
    }

    #[test]
    fn issue_10_a_listing_is_bounded_in_bytes_and_time() {
        let long = Duration::from_secs(60);
        assert_eq!(read("printf", &["rules"], 5, long).unwrap(), b"rules");
        let kind = |result: Result<Vec<u8>, NftError>| match result {
            Err(NftError::Io(error)) => Some(error.kind()),
            _ => None,
        };
        assert_eq!(kind(read("printf", &["rules"], 4, long)), Some(io::ErrorKind::FileTooLarge));
        assert_eq!(kind(read("yes", &[], 100_000, long)), Some(io::ErrorKind::FileTooLarge));
        assert_eq!(kind(read("sleep", &["60"], 9, Duration::from_millis(20))), Some(io::ErrorKind::TimedOut));
        assert!(matches!(read("false", &[], 9, long), Err(NftError::Refused(_))));
    }
}
