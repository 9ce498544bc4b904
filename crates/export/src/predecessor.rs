//! A running netwren that hands over its sockets: the client of `take-over` at the control socket.
//!
//! The answer has one line for each socket, sent together with the socket (SCM_RIGHTS), then `end`. Only the sender
//! and the caller know the meaning of a line. The connection stays open until the earlier run has ended.

use crate::control::{TAKE_OVER, connect, escape_path, with_path};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest time for the earlier run to stop reading and answer.
///
/// Bound: in which an earlier run must hand over its sockets
/// (`predecessor::a_peer_that_never_finishes_is_left_when_the_run_ends`). Beyond: nothing is taken over; exit code 4.
/// By: root; the user of the earlier run.
const ANSWER: Duration = Duration::from_secs(30);
/// Longest time for the earlier run to deliver its waiting messages and end.
///
/// Bound: in which an earlier run must deliver its messages and end. Beyond: its outputs may be refused. By: root; the
/// user of the earlier run.
const END: Duration = Duration::from_secs(30);
/// How often a wait checks whether it should go on.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Most sockets that are accepted: more than a run binds.
///
/// Bound: sockets of an earlier run. Beyond: nothing is taken over; exit code 4. By: root; the user of the earlier run.
const FILES_MAX: usize = 4096;
/// Longest answer, in bytes: room for thousands of sockets.
///
/// Bound: bytes of an answer of an earlier run. Beyond: nothing is taken over; exit code 4. By: root; the user of the
/// earlier run.
const ANSWER_MAX: usize = 1 << 20;

/// The earlier run, which has handed over and is about to end.
#[derive(Debug)]
pub struct Predecessor(UnixStream);

/// The sockets that were handed over, each with its line.
pub type ReceivedSockets = Vec<(String, OwnedFd)>;

impl Predecessor {
    /// Asks the run that answers at `path` for its sockets; `None` if no run answers. Stops once `stop` returns true.
    pub fn request_sockets(path: &Path, stop: &dyn Fn() -> bool) -> io::Result<Option<(Predecessor, ReceivedSockets)>> {
        let mut stream = match connect(path) {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => {
                return Ok(None);
            }
            Err(error) => return Err(with_path("cannot connect to", path, &error)),
        };
        let until = Instant::now() + ANSWER;
        stream.set_read_timeout(Some(CHECK_INTERVAL))?;
        stream.set_write_timeout(Some(CHECK_INTERVAL))?;
        stream.write_all(format!("{TAKE_OVER}\n").as_bytes())?;
        let (mut text, mut files, mut piece) = (Vec::new(), Vec::new(), [0; 4096]);
        while !text.ends_with(b"end\n") && !text.starts_with(b"error\n") && text.len() < ANSWER_MAX {
            if stop() {
                return Err(with_path("interrupted while waiting for", path, &ErrorKind::Interrupted.into()));
            }
            if Instant::now() >= until || files.len() > FILES_MAX {
                return Err(with_path("incomplete answer from", path, &ErrorKind::TimedOut.into()));
            }
            match sys::descriptors::receive_files(&stream, &mut piece, &mut files) {
                Ok(0) => break,
                Ok(bytes) => text.extend_from_slice(piece.get(..bytes).unwrap_or_default()),
                Err(sys::Errno::INTR | sys::Errno::AGAIN) => {}
                Err(errno) => {
                    return Err(with_path("no answer from", path, &io::Error::from_raw_os_error(errno.0)));
                }
            }
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let Some(lines) = text.strip_suffix("end\n") else {
            let why = text.strip_prefix("error\n").unwrap_or("it ended").trim();
            let (path, why) = (escape_path(path), sys::escape_bytes(why.as_bytes()));
            return Err(io::Error::other(format!("the run at {path} does not hand over its groups: {why}")));
        };
        let handed_over = lines.lines().map(str::to_owned).zip(files).collect();
        Ok(Some((Predecessor(stream), handed_over)))
    }

    /// Waits until the earlier run has ended or `stop` returns true. Returns false if it has not ended.
    pub fn wait_for_end(self, stop: &dyn Fn() -> bool) -> bool {
        let (until, mut byte) = (Instant::now() + END, [0]);
        let _ = self.0.set_read_timeout(Some(CHECK_INTERVAL));
        while Instant::now() < until && !stop() {
            match io::Read::read(&mut &self.0, &mut byte) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Ok(1..) => {}
                // Closed, or reset because the earlier run left data unread.
                Ok(0) | Err(_) => return true,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::cell::Cell;
    use std::os::unix::net::UnixListener;

    /// A peer that answers one byte at a time does not delay the end of the run.
    #[test]
    fn a_peer_that_never_finishes_is_left_when_the_run_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || {
            let mut peer = listener.accept().unwrap().0;
            while peer.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let (begun, looks) = (Instant::now(), Cell::new(0));
        let stop = || {
            looks.set(looks.get() + 1);
            looks.get() > 20
        };
        let error = Predecessor::request_sockets(&path, &stop).unwrap_err().to_string();
        assert!(error.starts_with("interrupted while waiting for ") && looks.get() == 21, "{error}");
        assert!(begun.elapsed() < ANSWER);
    }
}
