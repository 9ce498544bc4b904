//! A unix socket that answers one request per connection: `status text`, `status json`, `status prometheus`, or
//! `GET /metrics` of HTTP.
//!
//! Only its owner may connect (mode 0600). The thread serves one client at a time and gives it at most one second: a
//! slow client delays the next client by a second and the run not at all.

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
use sys::outfile::FilePlace;

/// Longest time for one client.
///
/// Bound: for a question at the control socket. Beyond: the client is disconnected. By: root; the user of the run.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(1);
/// The request of a successor.
pub(crate) const TAKE_OVER: &str = "take-over";
/// Longest request, in bytes.
///
/// Bound: bytes of a question at the control socket. Beyond: the client is disconnected. By: root; the user of the run.
const QUESTION_MAX: usize = 64;
/// Longest head of a request of HTTP, in bytes.
///
/// Bound: bytes of a request for /metrics at the control socket. Beyond: the rest is not read. By: root; the user of
/// the run.
const HTTP_HEAD_MAX: usize = 8 << 10;
/// Longest answer, in bytes.
///
/// Bound: bytes of an answer that `log status` reads. Beyond: the answer is refused. By: a program at the path of the
/// control socket.
const ANSWER_MAX: usize = 16 << 20;
/// How often the thread checks whether it must end, in milliseconds.
const CHECK_INTERVAL_MS: i32 = 250;

/// A control socket, which answers until this value is dropped.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    /// Device and inode of the socket: `drop` removes only its own.
    identity: (u64, u64),
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Returns an error if [`Control::start`] would refuse the directory of `path`, because another user could replace
    /// a socket there.
    pub fn check_directory(path: &Path) -> io::Result<()> {
        check_directory(path)
    }

    /// Listens at `path` and answers with the result of `report`. Replaces a socket without a listener; anything else
    /// at `path` is an error.
    ///
    /// A client that asks to take over, and runs as root or as our own user, is passed to `hand_over`, which returns
    /// the client if there is nothing to hand over.
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
                if sys::wait_any(&[listener.as_fd()], CHECK_INTERVAL_MS, &mut ready).is_err() {
                    thread::park_timeout(Duration::from_millis(CHECK_INTERVAL_MS.unsigned_abs().into()));
                }
                if let Ok((client, _)) = listener.accept() {
                    // Ignore clients that disconnect early.
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

fn refusal_error(text: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, text)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses a directory to which others may write: they could replace our socket with their own.
fn check_directory(path: &Path) -> io::Result<()> {
    let parent = parent(path);
    let facts = fs::metadata(parent).map_err(|error| with_path("cannot inspect", parent, &error))?;
    let is_trusted = facts.uid() == sys::caps::euid() || facts.uid() == 0;
    let others_write = facts.mode() & 0o022 != 0 && facts.mode() & 0o1000 == 0;
    if !is_trusted || others_write {
        let text = format!(
            "other users may write to {}: they could replace a socket there; use another directory",
            escape_path(parent)
        );
        return Err(refusal_error(text));
    }
    // Another user who can rename a parent directory can replace it with their own.
    let place = FilePlace::find(path).and_then(|place| place.check_path());
    place.map_err(|error| with_path("cannot listen on", path, &error))
}

fn check_free(path: &Path) -> io::Result<()> {
    let facts = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !facts.file_type().is_socket() || facts.uid() != sys::caps::euid() {
        return Err(refusal_error(format!("{} is not a socket of this user: use another name", escape_path(path))));
    }
    match connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
        _ => Err(io::Error::new(
            ErrorKind::AddrInUse,
            format!("another process listens on {}: end it first, or use another name", escape_path(path)),
        )),
    }
}

/// Binds to a temporary name first, so that no client can connect before the mode is set.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let mut first = path.as_os_str().to_owned();
    first.push(format!(".{}", std::process::id()));
    let first = PathBuf::from(first);
    let _ = fs::remove_file(&first);
    let listener = UnixListener::bind(&first).map_err(|error| with_path("cannot listen on", path, &error))?;
    let moved = fs::set_permissions(&first, Permissions::from_mode(0o600)).and_then(|()| fs::rename(&first, path));
    if let Err(error) = moved {
        let _ = fs::remove_file(&first);
        return Err(with_path("cannot listen on", path, &error));
    }
    Ok(listener)
}

fn serve(
    mut client: UnixStream,
    report: &impl Fn() -> StatusReport,
    hand_over: &impl Fn(UnixStream) -> Result<(), UnixStream>,
) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    let end = Instant::now() + CLIENT_TIMEOUT;
    let (mut question, mut byte) = (Vec::new(), [0; QUESTION_MAX]);
    while !question.contains(&b'\n') && question.len() < QUESTION_MAX {
        client.set_read_timeout(Some(time_left(end)?))?;
        match attempt(client.read(&mut byte))? {
            Some(0) => break,
            bytes => question.extend_from_slice(byte.get(..bytes.unwrap_or(0)).unwrap_or_default()),
        }
    }
    if question.starts_with(b"GET ") {
        return serve_http(client, question, report, end);
    }
    let question = question.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if question == TAKE_OVER.as_bytes() {
        return hand_over_to(client, hand_over);
    }
    let format = question.strip_prefix(b"status ").and_then(|word| std::str::from_utf8(word).ok());
    match format.and_then(|word| ReportFormat::from_word(word.trim())) {
        Some(format) => write_until(&mut client, format!("ok\n{}", report().write(format)).as_bytes(), end),
        None => client.write_all(b"error\nrequests are: status text, status json, status prometheus, take-over\n"),
    }
}

/// Answers a request of HTTP/1, as scrapers of Prometheus send it; `request` is its beginning.
fn serve_http(
    mut client: UnixStream,
    mut request: Vec<u8>,
    report: &impl Fn() -> StatusReport,
    end: Instant,
) -> io::Result<()> {
    let mut bytes = [0; QUESTION_MAX];
    // A connection that is closed with unread bytes is reset.
    while !request.windows(4).any(|four| four == b"\r\n\r\n") && request.len() < HTTP_HEAD_MAX {
        client.set_read_timeout(Some(time_left(end)?))?;
        match attempt(client.read(&mut bytes))? {
            Some(0) => break,
            read => request.extend_from_slice(bytes.get(..read.unwrap_or(0)).unwrap_or_default()),
        }
    }
    let path = request.split(|byte| *byte == b' ').nth(1);
    let (status, body) = match path {
        Some(b"/metrics") => ("200 OK", report().write(ReportFormat::Prometheus)),
        _ => ("404 Not Found", "the path is /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    write_until(&mut client, format!("{head}{body}").as_bytes(), end)
}

/// Hands over to the client, if its user is allowed to take over.
fn hand_over_to(client: UnixStream, hand_over: &impl Fn(UnixStream) -> Result<(), UnixStream>) -> io::Result<()> {
    let uid = sys::service::peer_uid(client.as_fd()).map_err(|errno| io::Error::from_raw_os_error(errno.0))?;
    if uid != 0 && uid != sys::caps::euid() {
        return (&client).write_all(b"error\nonly root and the user of this run may take over\n");
    }
    match hand_over(client) {
        Ok(()) => Ok(()),
        Err(mut client) => client.write_all(b"error\nthis run has nothing to hand over\n"),
    }
}

/// Requests a report from the run that listens at `path`. The returned text has no control bytes, even if an impostor
/// answers.
pub fn request_report(path: &Path, format: ReportFormat) -> io::Result<String> {
    let until = Instant::now() + 3 * CLIENT_TIMEOUT;
    let mut stream = connect(path).map_err(|error| match error.kind() {
        ErrorKind::ConnectionRefused => with_path("no run listens any more on", path, &error),
        _ => with_path("cannot connect to", path, &error),
    })?;
    let word = match format {
        ReportFormat::Text => "text",
        ReportFormat::Json => "json",
        ReportFormat::Prometheus => "prometheus",
    };
    let question = format!("status {word}\n");
    write_until(&mut stream, question.as_bytes(), until).map_err(|error| with_path("cannot ask", path, &error))?;
    let answer = read_until(&mut stream, until).map_err(|error| with_path("no answer from", path, &error))?;
    match answer.strip_prefix(b"ok\n") {
        Some(report) => Ok(report.split_inclusive(|byte| *byte == b'\n').map(escaped_line).collect()),
        None => Err(io::Error::new(ErrorKind::InvalidData, format!("{} returned no report", escape_path(path)))),
    }
}

/// Escapes a line of a report but keeps its newline.
fn escaped_line(line: &[u8]) -> String {
    let (text, end) = line.strip_suffix(b"\n").map_or((line, ""), |text| (text, "\n"));
    format!("{}{end}", sys::escape_bytes(text))
}

/// Connects to a run. A socket that does not accept connections does not belong to one.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    sys::connection::connect_unix(path, CLIENT_TIMEOUT).map_err(|errno| io::Error::from_raw_os_error(errno.0))
}

/// Returns the time left until `until`, or an error if it has passed.
fn time_left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(timeout_error()) } else { Ok(left) }
}

fn timeout_error() -> io::Error {
    ErrorKind::TimedOut.into()
}

/// Returns the bytes of a read or write; `None` if a signal has ended it, as SIGCONT does with each socket that has a
/// timeout (signal(7)). The kernel reports the timeout itself as EAGAIN.
fn attempt(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) => match error.kind() {
            ErrorKind::Interrupted => Ok(None),
            ErrorKind::WouldBlock => Err(timeout_error()),
            _ => Err(error),
        },
    }
}

/// Writes all bytes by `until`, even if the other end takes only a few at a time.
fn write_until(stream: &mut UnixStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(time_left(until)?))?;
        match attempt(stream.write(bytes))? {
            Some(0) => return Err(ErrorKind::WriteZero.into()),
            count => bytes = bytes.get(count.unwrap_or(0)..).unwrap_or_default(),
        }
    }
    Ok(())
}

/// Reads until the other end closes. Fails if that takes longer than `until`, or if the answer is longer than any
/// report.
fn read_until(stream: &mut UnixStream, until: Instant) -> io::Result<Vec<u8>> {
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        stream.set_read_timeout(Some(time_left(until)?))?;
        match attempt(stream.read(&mut piece))? {
            Some(0) => return Ok(answer),
            _ if answer.len() >= ANSWER_MAX => return Err(io::Error::other("it sends more than a report contains")),
            count => answer.extend_from_slice(piece.get(..count.unwrap_or(0)).unwrap_or_default()),
        }
    }
}

pub(crate) fn escape_path(path: &Path) -> Box<str> {
    sys::escape_bytes(path.as_os_str().as_encoded_bytes())
}

pub(crate) fn with_path(what: &str, path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {}: {error}", escape_path(path)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn report() -> StatusReport {
        StatusReport { lost_in_kernel: Some(5), ..StatusReport::default() }
    }

    #[test]
    fn it_answers_its_owner_and_is_gone_in_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let control = Control::start(&path, report, Err).unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(request_report(&path, ReportFormat::Json).unwrap(), "{\"outputs\":[]}\n");
        assert_eq!(request_report(&path, ReportFormat::Text).unwrap(), "lost in the kernel: 5\n");
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"shutdown\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("error\nrequests are: status text"), "{answer}");
        drop(control);
        assert!(!path.exists());
        assert!(request_report(&path, ReportFormat::Text).unwrap_err().to_string().contains("cannot connect to"));
    }

    #[test]
    fn a_scraper_gets_the_metrics_by_http() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let _control = Control::start(&path, report, Err).unwrap();
        let ask = |request: &str| {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let long = format!("GET /metrics HTTP/1.1\r\nHost: a\r\nX-Long: {}\r\n\r\n", "x".repeat(500));
        for request in ["GET /metrics HTTP/1.0\r\n\r\n", &long] {
            let answer = ask(request);
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
            assert_eq!(body, report().write(ReportFormat::Prometheus));
            assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        }
        assert!(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 Not Found\r\n"));
    }

    /// An impostor that accepts one connection and writes `words` to it over and over.
    fn impostor(path: &Path, words: &'static [u8], pause: Duration) {
        let listener = UnixListener::bind(path).unwrap();
        thread::spawn(move || {
            let mut client = listener.accept().unwrap().0;
            while client.write_all(words).is_ok() {
                thread::sleep(pause);
            }
        });
    }

    /// Answers one question at `path` with `words`, after `pause`.
    fn answer_once(path: &Path, pause: fn(), words: &'static [u8]) {
        let listener = UnixListener::bind(path).unwrap();
        thread::spawn(move || {
            let mut client = listener.accept().unwrap().0;
            assert!(client.read(&mut [0; QUESTION_MAX]).unwrap() > 0);
            pause();
            client.write_all(words).unwrap();
        });
    }

    #[test]
    fn an_answering_stranger_neither_delays_us_nor_fills_memory() {
        let dir = tempfile::tempdir().unwrap();
        for (name, pause, says) in [("slow", Duration::from_millis(10), "timed out"), ("fast", Duration::ZERO, "more")]
        {
            let path = dir.path().join(name);
            impostor(&path, if name == "slow" { b"o" } else { &[b'o'; 65_536] }, pause);
            let begun = Instant::now();
            let error = request_report(&path, ReportFormat::Text).unwrap_err().to_string();
            assert!(error.contains("no answer from") && error.contains(says), "{error}");
            assert!(begun.elapsed() < Duration::from_secs(20), "{name}");
        }
    }

    #[test]
    fn a_signal_ends_neither_a_question_nor_an_answer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        answer_once(&path, testkit::signals::stop_and_continue, b"ok\nlost: 1\n");
        assert_eq!(request_report(&path, ReportFormat::Text).unwrap(), "lost: 1\n");
        let path = dir.path().join("own");
        let _control = Control::start(&path, report, Err).unwrap();
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"status ").unwrap();
        testkit::signals::stop_and_continue();
        stream.write_all(b"text\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "ok\nlost in the kernel: 5\n");
    }

    #[test]
    fn what_an_impostor_answers_is_escaped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        answer_once(&path, || {}, b"ok\nlost: 1\n\x1b[2J\xff\rx\n");
        assert_eq!(request_report(&path, ReportFormat::Text).unwrap(), "lost: 1\n\\u{1b}[2J\\xff\\rx\n");
    }

    #[test]
    fn a_listener_that_accepts_nothing_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let listener = sys::Fd::from(std::os::fd::OwnedFd::from(UnixListener::bind(&path).unwrap()));
        sys::socket::listen(&listener, 0).unwrap();
        let _first = UnixStream::connect(&path).unwrap();
        let error = request_report(&path, ReportFormat::Text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    }

    #[test]
    fn a_silent_client_keeps_others_waiting_for_a_second() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let _control = Control::start(&path, report, Err).unwrap();
        let _silent = UnixStream::connect(&path).unwrap();
        assert_eq!(request_report(&path, ReportFormat::Text).unwrap(), "lost in the kernel: 5\n");
    }

    #[test]
    fn only_a_socket_without_a_listener_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        drop(UnixListener::bind(&path).unwrap());
        let _control = Control::start(&path, report, Err).unwrap();
        let error = Control::start(&path, report, Err).unwrap_err().to_string();
        assert!(error.contains("another process listens on"), "{error}");
        let file = dir.path().join("file");
        fs::write(&file, "x").unwrap();
        let error = Control::start(&file, report, Err).unwrap_err().to_string();
        assert!(error.contains("is not a socket of this user"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"x");
        fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        let error = Control::start(&dir.path().join("new"), report, Err).unwrap_err().to_string();
        assert!(error.contains("other users may write to"), "{error}");
    }
}
