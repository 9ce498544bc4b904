//! A unix socket that answers one question a connection: `status text`, `status json`, `status prometheus`.
//!
//! Only its owner may connect (mode 0600). One client is served at a time, for a second at most: whoever is slow costs
//! the next one a second, and the run nothing.

use crate::{ReportFormat, StatusReport};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a client is listened to.
const PATIENCE: Duration = Duration::from_secs(1);
/// The question of a successor.
pub(crate) const TAKE_OVER: &str = "take-over";
/// Bytes of a question.
const QUESTION_MAX: usize = 64;
/// Bytes of an answer.
const ANSWER_MAX: u64 = 16 << 20;
/// How often the thread looks whether it is to end.
const LOOK_MS: i32 = 250;

/// A socket that answers as long as this lives.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    /// Device and inode: only one's own socket is removed.
    identity: (u64, u64),
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// The error of a `path` where none would be made, because others could put another one in its place.
    pub fn check_directory(path: &Path) -> io::Result<()> {
        check_directory(path)
    }

    /// Listens at `path` and answers with what `report` returns. A socket that nobody listens to any more is replaced;
    /// anything else at `path` is an error.
    ///
    /// Who asks to take over, and is root or our own user, is given to `hand_over`, which gives it back if there is
    /// nothing to hand over.
    pub fn start(
        path: &Path,
        report: impl Fn() -> StatusReport + Send + 'static,
        hand_over: impl Fn(UnixStream) -> Result<(), UnixStream> + Send + 'static,
    ) -> io::Result<Control> {
        check_directory(path)?;
        check_free(path)?;
        let listener = listen(path)?;
        listener.set_nonblocking(true)?;
        let facts = fs::symlink_metadata(path)?;
        let is_ending = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_ending);
        let serve = move || {
            while !ends.load(Ordering::Relaxed) {
                let mut ready = Vec::new();
                if sys::wait_any(&[listener.as_fd()], LOOK_MS, &mut ready).is_err() {
                    thread::park_timeout(Duration::from_millis(LOOK_MS.unsigned_abs().into()));
                }
                if let Ok((client, _)) = listener.accept() {
                    // A client that goes away is its own business.
                    let _ = serve(client, &report, &hand_over);
                }
            }
        };
        let thread = thread::Builder::new().name("netwren-control".to_owned()).spawn(serve)?;
        Ok(Control { path: path.to_owned(), identity: (facts.dev(), facts.ino()), is_ending, thread: Some(thread) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        let is_ours = fs::symlink_metadata(&self.path).is_ok_and(|now| (now.dev(), now.ino()) == self.identity);
        if is_ours {
            let _ = fs::remove_file(&self.path);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn refused(text: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, text)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// In a directory that others write to, they could put a socket of their own in the place of ours.
fn check_directory(path: &Path) -> io::Result<()> {
    let parent = parent(path);
    let facts = fs::metadata(parent).map_err(|error| named("cannot look at", parent, &error))?;
    let is_trusted = facts.uid() == sys::caps::euid() || facts.uid() == 0;
    let others_write = facts.mode() & 0o022 != 0 && facts.mode() & 0o1000 == 0;
    if !is_trusted || others_write {
        let text =
            format!("others may write to {}: a socket there could be replaced; take another directory", shown(parent));
        return Err(refused(text));
    }
    Ok(())
}

fn check_free(path: &Path) -> io::Result<()> {
    let facts = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !facts.file_type().is_socket() || facts.uid() != sys::caps::euid() {
        return Err(refused(format!("{} is no socket of this user's: take another name", shown(path))));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
        _ => Err(io::Error::new(
            ErrorKind::AddrInUse,
            format!("another process listens at {}: end it first, or take another name", shown(path)),
        )),
    }
}

/// Listens under another name first, so that nobody can connect before the mode is set.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let mut first = path.as_os_str().to_owned();
    first.push(format!(".{}", std::process::id()));
    let first = PathBuf::from(first);
    let _ = fs::remove_file(&first);
    let listener = UnixListener::bind(&first).map_err(|error| named("cannot listen at", path, &error))?;
    let moved = fs::set_permissions(&first, Permissions::from_mode(0o600)).and_then(|()| fs::rename(&first, path));
    if let Err(error) = moved {
        let _ = fs::remove_file(&first);
        return Err(named("cannot listen at", path, &error));
    }
    Ok(listener)
}

fn serve(
    mut client: UnixStream,
    report: &impl Fn() -> StatusReport,
    hand_over: &impl Fn(UnixStream) -> Result<(), UnixStream>,
) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_write_timeout(Some(PATIENCE))?;
    let end = Instant::now() + PATIENCE;
    let (mut question, mut byte) = (Vec::new(), [0; QUESTION_MAX]);
    while !question.contains(&b'\n') && question.len() < QUESTION_MAX {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut byte)? {
            0 => break,
            bytes => question.extend_from_slice(byte.get(..bytes).unwrap_or_default()),
        }
    }
    let question = question.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if question == TAKE_OVER.as_bytes() {
        return give_up(client, hand_over);
    }
    let format = question.strip_prefix(b"status ").and_then(|word| std::str::from_utf8(word).ok());
    match format.and_then(|word| ReportFormat::of(word.trim())) {
        Some(format) => client.write_all(format!("ok\n{}", report().write(format)).as_bytes()),
        None => client.write_all(b"error\nquestions are: status text, status json, status prometheus, take-over\n"),
    }
}

/// Hands over to the client, if it may ask for it.
fn give_up(client: UnixStream, hand_over: &impl Fn(UnixStream) -> Result<(), UnixStream>) -> io::Result<()> {
    let uid = sys::service::peer_uid(client.as_fd()).map_err(|errno| io::Error::from_raw_os_error(errno.0))?;
    if uid != 0 && uid != sys::caps::euid() {
        return (&client).write_all(b"error\nonly root and the user of this run may take over\n");
    }
    match hand_over(client) {
        Ok(()) => Ok(()),
        Err(mut client) => client.write_all(b"error\nthis run has nothing to hand over\n"),
    }
}

/// Asks the run that listens at `path` for its report.
pub fn ask(path: &Path, format: ReportFormat) -> io::Result<String> {
    let mut stream = UnixStream::connect(path).map_err(|error| match error.kind() {
        ErrorKind::ConnectionRefused => named("no run listens any more at", path, &error),
        _ => named("cannot connect to", path, &error),
    })?;
    let word = match format {
        ReportFormat::Text => "text",
        ReportFormat::Json => "json",
        ReportFormat::Prometheus => "prometheus",
    };
    stream.set_write_timeout(Some(3 * PATIENCE))?;
    stream.set_read_timeout(Some(3 * PATIENCE))?;
    stream.write_all(format!("status {word}\n").as_bytes()).map_err(|error| named("cannot ask", path, &error))?;
    let mut answer = String::new();
    let read = stream.take(ANSWER_MAX).read_to_string(&mut answer);
    read.map_err(|error| named("no answer from", path, &error))?;
    match answer.split_once('\n') {
        Some(("ok", report)) => Ok(report.to_owned()),
        _ => Err(io::Error::new(ErrorKind::InvalidData, format!("{} gave no report", shown(path)))),
    }
}

pub(crate) fn shown(path: &Path) -> Box<str> {
    sys::escaped(path.as_os_str().as_encoded_bytes())
}

pub(crate) fn named(what: &str, path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {}: {error}", shown(path)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn report() -> StatusReport {
        StatusReport { outputs: Vec::new(), lost_in_kernel: Some(5) }
    }

    #[test]
    fn it_answers_its_owner_and_is_gone_in_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let control = Control::start(&path, report, Err).unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(ask(&path, ReportFormat::Json).unwrap(), "{\"outputs\":[]}\n");
        assert_eq!(ask(&path, ReportFormat::Text).unwrap(), "lost in the kernel: 5\n");
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"shutdown\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("error\nquestions are: status text"), "{answer}");
        drop(control);
        assert!(!path.exists());
        assert!(ask(&path, ReportFormat::Text).unwrap_err().to_string().contains("cannot connect to"));
    }

    #[test]
    fn a_silent_client_keeps_others_waiting_for_a_second() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let _control = Control::start(&path, report, Err).unwrap();
        let _silent = UnixStream::connect(&path).unwrap();
        assert_eq!(ask(&path, ReportFormat::Text).unwrap(), "lost in the kernel: 5\n");
    }

    #[test]
    fn only_a_socket_that_nobody_listens_to_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        drop(UnixListener::bind(&path).unwrap());
        let _control = Control::start(&path, report, Err).unwrap();
        let error = Control::start(&path, report, Err).unwrap_err().to_string();
        assert!(error.contains("another process listens at"), "{error}");
        let file = dir.path().join("file");
        fs::write(&file, "x").unwrap();
        let error = Control::start(&file, report, Err).unwrap_err().to_string();
        assert!(error.contains("is no socket of this user's"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"x");
        fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        let error = Control::start(&dir.path().join("new"), report, Err).unwrap_err().to_string();
        assert!(error.contains("others may write to"), "{error}");
    }
}
