//! The request of an output, and its token: a random text by which a receiver recognises requests that arrive twice.

use super::frozen_request::{FoundMessages, FrozenRequest, take};
use crate::Batch;
use std::io;
use std::ops::Range;

/// The first byte of a note. Other transports have other notes.
const NOTE_VERSION: u8 = 2;

/// The request to send, and the token's number, which stays the same in all runs with the same store.
#[derive(Debug, Default)]
pub(super) struct TokenedRequest {
    id: Option<[u8; 16]>,
    /// The request to send, until it is answered.
    pub(super) current: Option<FrozenRequest>,
    /// True if the store has the bounds of the request.
    is_noted: bool,
    /// True if some messages of the next request may be stored already, under another token.
    is_repeated: bool,
}

impl TokenedRequest {
    /// Chooses the number, unless an earlier run has.
    pub(super) fn open(&mut self) -> io::Result<()> {
        if self.id.is_none() {
            let mut id = [0; 16];
            sys::random::fill(&mut id).map_err(|errno| io::Error::from_raw_os_error(errno.0))?;
            self.id = Some(id);
        }
        Ok(())
    }

    /// The token of the output: 32 hexadecimal digits. Together with the numbers of messages it identifies a request.
    pub(super) fn token(&self) -> String {
        let mut token = String::with_capacity(32);
        self.id.iter().flatten().for_each(|byte| token.push_str(&format!("{byte:02x}")));
        token
    }

    /// See [`super::Transport::resume`].
    pub(super) fn resume(&mut self, note: &[u8]) -> Option<Range<u64>> {
        let (id, request) = decode_note(note)?;
        (self.id, self.current) = (Some(id), Some(request));
        Some(request.first..request.end)
    }

    /// See [`super::Transport::prepare`]: keeps the request, or cuts one of at most `messages_max` and `bytes_max`.
    /// `place` is where the messages belong, for errors.
    pub(super) fn prepare(
        &mut self,
        (batch, at): (&Batch, usize),
        (messages_max, bytes_max): (usize, usize),
        place: &str,
    ) -> io::Result<Option<Vec<u8>>> {
        let first = batch.count_complete(at);
        match self.current.map(|request| (request, request.find_in(batch, first))) {
            Some((_, FoundMessages::All)) | None => {}
            Some((_, FoundMessages::None)) => self.forget(),
            // It was never written.
            Some((request, FoundMessages::Some)) if !request.is_doubtful => self.forget(),
            Some((request, FoundMessages::Some)) => {
                self.forget();
                self.is_repeated = true;
                return Err(request.torn_error(place));
            }
        }
        let request = *self.current.get_or_insert_with(|| FrozenRequest::cut(batch, first, messages_max, bytes_max));
        let note = self.id.filter(|_| !self.is_noted).map(|id| encode_note(&id, &request));
        self.is_noted = true;
        Ok(note)
    }

    /// Forgets the request: the receiver has stored it, or none of it.
    pub(super) fn forget(&mut self) {
        (self.current, self.is_noted) = (None, false);
    }

    /// Forgets the request, whose messages will be sent in other ones. An earlier attempt may have stored it.
    pub(super) fn divide(&mut self) {
        self.is_repeated |= self.current.is_some_and(|request| request.is_doubtful);
        self.forget();
    }

    /// Notes that the receiver may have stored the request, or a part of it.
    pub(super) fn set_doubtful(&mut self) {
        if let Some(request) = &mut self.current {
            request.is_doubtful = true;
        }
    }

    /// Forgets the request, which is stored now. Returns true if it may be stored twice; a receiver that recognises
    /// tokens stores it once, unless its bounds have changed.
    pub(super) fn is_twice(&mut self, knows_tokens: bool) -> bool {
        let is_doubtful = self.current.is_some_and(|request| request.is_doubtful);
        self.forget();
        std::mem::take(&mut self.is_repeated) || is_doubtful && !knows_tokens
    }
}

fn encode_note(id: &[u8; 16], request: &FrozenRequest) -> Vec<u8> {
    let mut note = vec![NOTE_VERSION];
    note.extend_from_slice(id);
    request.put(&mut note);
    note
}

/// Decodes a note; `None` for one of another version or transport.
fn decode_note(note: &[u8]) -> Option<([u8; 16], FrozenRequest)> {
    let mut rest = note.strip_prefix(&[NOTE_VERSION])?;
    let id = take(&mut rest)?;
    Some((id, FrozenRequest::take(rest)?))
}

/// Reads bytes as a note; for the fuzzer.
pub(super) fn fuzz_note(data: &[u8]) {
    if let Some((id, request)) = decode_note(data) {
        assert_eq!(encode_note(&id, &request), data, "what is written is read");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_next_run_has_the_same_token_and_request() {
        let mut batch = Batch::new();
        for _ in 0..9 {
            batch.bytes_mut().push(b'x');
            batch.end_message();
        }
        let mut first = TokenedRequest::default();
        first.open().unwrap();
        let note = first.prepare((&batch, 0), (4, 100), "x").unwrap().unwrap();
        assert_eq!(first.prepare((&batch, 0), (9, 100), "x").unwrap(), None, "it does not change");
        let mut next = TokenedRequest::default();
        assert_eq!(next.resume(&note), Some(0..4));
        next.open().unwrap();
        assert_eq!((next.token(), next.token().len()), (first.token(), 32));
        assert_eq!(next.prepare((&batch, 0), (9, 100), "x").unwrap().unwrap(), note);
        assert!(!next.is_twice(true), "the receiver knows the token");
        next.prepare((&batch, 4), (9, 100), "x").unwrap();
        next.set_doubtful();
        assert!(next.is_twice(false) && next.current.is_none());
        // The first messages of a request are dropped, first before it was written, then after.
        next.prepare((&batch, 0), (4, 100), "x").unwrap();
        next.prepare((&batch, 1), (4, 100), "x").unwrap();
        assert!(!next.is_twice(false));
        next.prepare((&batch, 0), (4, 100), "x").unwrap();
        next.set_doubtful();
        assert!(next.prepare((&batch, 2), (4, 100), "x").unwrap_err().to_string().contains("stored twice"));
        next.prepare((&batch, 2), (4, 100), "x").unwrap();
        assert!(next.is_twice(true));
        assert_eq!(TokenedRequest::default().resume(b"\x01 another transport's"), None);
    }
}
