//! A running netwren that gives up its sockets: the other end of `take-over` at the control socket.
//!
//! The answer is a line for each socket, which comes with it (SCM_RIGHTS), then `end`; what a line says is its
//! sender's and its reader's business. The connection stays open until the earlier run has ended.

use crate::control::{TAKE_OVER, named, shown};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the earlier run may take to stop reading.
const ANSWER: Duration = Duration::from_secs(30);
/// How long it may take to deliver what waits, and end.
const END: Duration = Duration::from_secs(30);
/// How often it is looked whether waiting makes sense.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of an answer: thousands of sockets.
const ANSWER_MAX: usize = 1 << 20;

/// The earlier run, which has handed over and is about to end.
#[derive(Debug)]
pub struct Predecessor(UnixStream);

/// What was handed over: lines, each with its file.
pub type HandedOver = Vec<(String, OwnedFd)>;

impl Predecessor {
    /// Asks the run that answers at `path` for its sockets; `None` if no run does.
    pub fn ask(path: &Path) -> io::Result<Option<(Predecessor, HandedOver)>> {
        let mut stream = match UnixStream::connect(path) {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => {
                return Ok(None);
            }
            Err(error) => return Err(named("cannot connect to", path, &error)),
        };
        stream.set_read_timeout(Some(ANSWER))?;
        stream.write_all(format!("{TAKE_OVER}\n").as_bytes())?;
        let (mut text, mut files, mut piece) = (Vec::new(), Vec::new(), [0; 4096]);
        while !text.ends_with(b"end\n") && !text.starts_with(b"error\n") && text.len() < ANSWER_MAX {
            match sys::descriptors::receive_files(&stream, &mut piece, &mut files) {
                Ok(0) => break,
                Ok(bytes) => text.extend_from_slice(piece.get(..bytes).unwrap_or_default()),
                Err(sys::Errno::INTR) => {}
                Err(errno) => {
                    return Err(named("no answer from", path, &io::Error::from_raw_os_error(errno.0)));
                }
            }
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let Some(lines) = text.strip_suffix("end\n") else {
            let why = text.strip_prefix("error\n").unwrap_or("it ended").trim();
            return Err(io::Error::other(format!("the run at {} does not hand over: {why}", shown(path))));
        };
        let handed_over = lines.lines().map(str::to_owned).zip(files).collect();
        Ok(Some((Predecessor(stream), handed_over)))
    }

    /// Waits until it has ended, or `stop` says so; false if it does not end.
    pub fn wait_for_end(self, stop: &dyn Fn() -> bool) -> bool {
        let (until, mut byte) = (Instant::now() + END, [0]);
        let _ = self.0.set_read_timeout(Some(LOOK));
        while Instant::now() < until && !stop() {
            match io::Read::read(&mut &self.0, &mut byte) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Ok(1..) => {}
                // Closed, or reset because it left something unread.
                Ok(0) | Err(_) => return true,
            }
        }
        false
    }
}
