//! Helper processes: this program, started again with the original privileges before the main process drops them
//! (docs/adr/0027). A helper keeps only the rights that its job needs.
//!
//! Both ends exchange messages over a socket: a length in bytes, in the host's byte order, and the content. Each
//! receiver limits the length. A helper ends when the main process closes its end. The main process reports that a
//! helper has ended, and continues without it: it no longer has the privileges to start another one.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// This program.
const PROGRAM: &str = "/proc/self/exe";
/// Bytes before the content of a message.
const LENGTH_BYTES: usize = 4;
/// A message without content.
pub const EMPTY_MESSAGE: [u8; LENGTH_BYTES] = [0; LENGTH_BYTES];

/// One end of the socket between the main process and a helper process.
#[derive(Debug)]
pub struct Helper(UnixStream);

impl Helper {
    /// Starts this program under the name `name`, in the calling thread's network namespace, without environment and
    /// output; the helper's end is its standard input. Returns the end of the main process.
    pub fn start(name: &str, words: impl IntoIterator<Item: AsRef<OsStr>>) -> io::Result<Helper> {
        let mut command = Command::new(PROGRAM);
        command.env_clear().stdout(Stdio::null()).stderr(Stdio::null());
        Helper::spawn(command, name, words)
    }

    /// Starts a helper that keeps the environment and the output, because it runs commands.
    pub fn start_with_output(name: &str, words: impl IntoIterator<Item: AsRef<OsStr>>) -> io::Result<Helper> {
        Helper::spawn(Command::new(PROGRAM), name, words)
    }

    fn spawn(mut command: Command, name: &str, words: impl IntoIterator<Item: AsRef<OsStr>>) -> io::Result<Helper> {
        let [main, other] = Helper::pair()?;
        // Ctrl-C is for the main process; this one ends with it.
        command.arg0(name).args(words).stdin(OwnedFd::from(other.0)).process_group(0).spawn()?;
        Ok(main)
    }

    /// Returns the end of the helper in which it is called, and forbids it to gain rights; `None` if a user started it
    /// without an end.
    pub fn serve(name: &str) -> Option<Helper> {
        let helper = Helper::of_stdin()?;
        // The name that ps(1) and similar tools show for this process.
        let _ = std::fs::write("/proc/self/comm", name);
        let _ = sys::rights::forbid_new();
        Some(helper)
    }

    /// Returns the end of the helper in which it is called, whose commands may gain rights.
    pub fn of_stdin() -> Option<Helper> {
        let stream = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from).ok()?;
        stream.peer_addr().ok()?;
        Some(Helper(stream))
    }

    /// Both ends, without a process.
    pub fn pair() -> io::Result<[Helper; 2]> {
        let (one, other) = UnixStream::pair()?;
        Ok([Helper(one), Helper(other)])
    }

    /// Another handle of the same end.
    pub fn try_clone(&self) -> io::Result<Helper> {
        self.0.try_clone().map(Helper)
    }

    /// Limits the time that the other end may take for a part of a message; before that, calls wait for ever.
    pub fn limit_time(&self, limit: Duration) -> io::Result<()> {
        self.0.set_read_timeout(Some(limit))?;
        self.0.set_write_timeout(Some(limit))
    }

    /// Makes calls return [`ErrorKind::WouldBlock`] instead of waiting.
    pub fn forbid_waiting(&self) -> io::Result<()> {
        self.0.set_nonblocking(true)
    }

    /// Sends messages that [`put_message`] made, or an [`EMPTY_MESSAGE`].
    pub fn send(&self, messages: &[u8]) -> io::Result<()> {
        (&self.0).write_all(messages)
    }

    /// Waits for a message of at most `max` bytes. Returns false if the other end was closed instead.
    pub fn receive(&self, max: usize, message: &mut Vec<u8>) -> io::Result<bool> {
        let (mut stream, mut length) = (&self.0, [0; LENGTH_BYTES]);
        let (first, rest) = length.split_at_mut(1);
        loop {
            match stream.read(first) {
                Ok(0) => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => {
                    read?;
                    break;
                }
            }
        }
        stream.read_exact(rest)?;
        let bytes = u32::from_ne_bytes(length) as usize;
        if bytes > max {
            return Err(ErrorKind::InvalidData.into());
        }
        message.resize(bytes, 0);
        stream.read_exact(message)?;
        Ok(true)
    }

    /// Waits for an answer of at most `max` bytes; a closed end is an error.
    pub fn receive_answer(&self, max: usize, answer: &mut Vec<u8>) -> io::Result<()> {
        if self.receive(max, answer)? { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }
}

impl AsFd for Helper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Appends a message whose content `put` writes. Receivers refuse a message whose length does not fit into 32 bits.
pub fn put_message(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&EMPTY_MESSAGE);
    put(out);
    let length = u32::try_from(out.len() - start - LENGTH_BYTES).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(start..).and_then(|message| message.first_chunk_mut()) {
        *place = length.to_ne_bytes();
    }
}

/// Messages received in portions, for an end that does not wait.
#[derive(Debug)]
pub struct Inbox {
    portion: Vec<u8>,
    /// Received bytes; those before `taken` have been returned.
    bytes: Vec<u8>,
    taken: usize,
    message_max: usize,
}

impl Inbox {
    /// Receives at most `portion` bytes at a time, and refuses messages of more than `message_max` bytes.
    pub fn new(portion: usize, message_max: usize) -> Inbox {
        Inbox { portion: vec![0; portion], bytes: Vec::new(), taken: 0, message_max }
    }

    /// Receives a portion. Returns the number of bytes: 0 if the other end was closed.
    pub fn fill(&mut self, from: &Helper) -> io::Result<usize> {
        let count = (&from.0).read(&mut self.portion)?;
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(self.portion.get(..count).unwrap_or_default());
        Ok(count)
    }

    /// Takes the next message; `None` if it has not arrived completely. A message that is too long is an error.
    pub fn take(&mut self) -> io::Result<Option<&[u8]>> {
        let rest = self.bytes.get(self.taken..).unwrap_or_default();
        let Some((length, content)) = rest.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_ne_bytes(*length) as usize;
        if length > self.message_max {
            return Err(ErrorKind::InvalidData.into());
        }
        let message = content.get(..length);
        self.taken += message.map_or(0, |message| LENGTH_BYTES + message.len());
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn messages_arrive_whole_and_a_closed_end_is_noticed() {
        let [main, helper] = Helper::pair().unwrap();
        let mut out = Vec::new();
        put_message(&mut out, |out| out.extend_from_slice(b"one"));
        put_message(&mut out, |_| {});
        main.send(&out).unwrap();
        let mut message = b"old".to_vec();
        assert!(helper.receive(3, &mut message).unwrap() && message == b"one");
        assert!(helper.receive(0, &mut message).unwrap() && message.is_empty());
        main.send(&out).unwrap();
        assert_eq!(helper.receive(2, &mut message).unwrap_err().kind(), ErrorKind::InvalidData);
        main.send(&u32::MAX.to_ne_bytes()).unwrap();
        drop(main);
        let [main, helper] = Helper::pair().unwrap();
        main.send(&out[..5]).unwrap();
        drop(main);
        assert!(helper.receive(9, &mut message).is_err(), "the end of a part of a message");
        assert!(!helper.receive(9, &mut message).unwrap());
        assert_eq!(helper.receive_answer(9, &mut message).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn an_inbox_returns_whole_messages_only() {
        let [main, helper] = Helper::pair().unwrap();
        let mut out = Vec::new();
        put_message(&mut out, |out| out.extend_from_slice(b"one"));
        put_message(&mut out, |out| out.extend_from_slice(b"second"));
        let mut inbox = Inbox::new(5, 6);
        main.send(&out).unwrap();
        drop(main);
        let mut taken = Vec::new();
        while inbox.fill(&helper).unwrap() > 0 {
            while let Some(message) = inbox.take().unwrap() {
                taken.push(message.to_vec());
            }
        }
        assert_eq!(taken, [&b"one"[..], b"second"]);
        let [main, helper] = Helper::pair().unwrap();
        main.send(&7_u32.to_ne_bytes()).unwrap();
        assert!(inbox.fill(&helper).unwrap() == 4 && inbox.take().is_err());
    }
}
