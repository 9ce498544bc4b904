//! Messages from the process that looks up owners to the one that reads packets. Both are the same program.

use ::owners::PacketSockets;
use record::rows::{Endpoint, HolderWords, PacketSocket, Socket, capture_need};
use record::{Accounting, Addr, Comm, Owner, Proto, State, Table, field_index};
use runtime::helper_process::put_message;
use std::collections::HashSet;
use std::rc::Rc;

/// Maximum length of a message; a longer one is rejected.
///
/// Bound: bytes of a message from the process that looks up owners. Beyond: the message is refused; packets have no
/// owner. By: the owner of a process.
pub(super) const MESSAGE_MAX: usize = 64 << 10;
/// Bound: holders of a socket in such a message. Beyond: further holders are left out of `src_owners`. By: the owner of
/// the processes.
const OWNERS_MAX: usize = 64;
/// Bound: bytes of a command line or container name in such a message. Beyond: the text is cut. By: the owner of the
/// process.
const WORD_MAX: usize = 4096;

const BEGIN: u8 = 1;
const ADDRESS: u8 = 2;
const SOCKET: u8 = 3;
const END: u8 = 4;
const OPENED: u8 = 5;
const CLOSED: u8 = 6;
const TROUBLE: u8 = 7;
const SENDS: u8 = 8;

/// A change of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SocketChange {
    /// A connection was established.
    Opened = OPENED,
    /// A connection was closed.
    Closed = CLOSED,
    /// A UDP socket sends.
    Sends = SENDS,
}

/// The owners of a socket, and texts about the first one; borrowed to avoid copies.
pub(super) struct SocketOwner<'m> {
    pub(super) owners: &'m [Owner],
    /// User, container, pod, unit, command line.
    pub(super) words: [&'m [u8]; 5],
}

/// The fields with [`SocketOwner::words`]; `None` for words that are not needed. `need`: bits of `capture_need`.
pub(super) fn word_fields<T: Table>(need: u64) -> [Option<usize>; 5] {
    let has = |bits: u64| need & bits == bits;
    let (places, cmdlines) = (has(capture_need::PLACES), has(capture_need::CMDLINES));
    let words = [("user", true), ("container", places), ("pod", places), ("unit", places), ("cmdline", cmdlines)];
    words.map(|(name, is_needed)| if is_needed { field_index::<T>(name) } else { None })
}

/// Appends the start of a reading, in ns since 1970.
pub(super) fn put_begin(out: &mut Vec<u8>, taken_ns: u64) {
    put(out, BEGIN, |out| put_u64(out, taken_ns));
}

/// Appends an address of a namespace.
pub(super) fn put_address(out: &mut Vec<u8>, netns_id: u64, addr: Addr) {
    put(out, ADDRESS, |out| {
        put_u64(out, netns_id);
        put_addr(out, addr);
    });
}

/// Appends a socket of the reading.
pub(super) fn put_socket(out: &mut Vec<u8>, socket: &Socket<'_>, owner: &SocketOwner<'_>) {
    put(out, SOCKET, |out| put_owned(out, socket, owner));
}

/// Appends the end of a reading.
pub(super) fn put_end(out: &mut Vec<u8>) {
    put(out, END, |_| {});
}

/// Appends a change of a socket, with its time.
pub(super) fn put_change(
    out: &mut Vec<u8>,
    change: SocketChange,
    at_ns: u64,
    socket: &Socket<'_>,
    owner: &SocketOwner<'_>,
) {
    put(out, change as u8, |out| {
        put_u64(out, at_ns);
        put_owned(out, socket, owner);
    });
}

/// Appends a read error: its count, and a sentence.
pub(super) fn put_trouble(out: &mut Vec<u8>, count: u64, text: &str) {
    put(out, TROUBLE, |out| {
        put_u64(out, count);
        put_word(out, text.as_bytes());
    });
}

fn put(out: &mut Vec<u8>, kind: u8, content: impl FnOnce(&mut Vec<u8>)) {
    put_message(out, |out| {
        out.push(kind);
        content(out);
    });
}

fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_ne_bytes());
}

fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_ne_bytes());
}

fn put_word(out: &mut Vec<u8>, word: &[u8]) {
    let word = word.get(..WORD_MAX).unwrap_or(word);
    put_u32(out, word.len() as u32);
    out.extend_from_slice(word);
}

fn put_addr(out: &mut Vec<u8>, addr: Addr) {
    let octets = addr.octets();
    out.push(octets.len() as u8);
    out.extend_from_slice(octets);
}

fn put_owned(out: &mut Vec<u8>, socket: &Socket<'_>, owner: &SocketOwner<'_>) {
    put_u64(out, socket.netns_id);
    put_u32(out, socket.inode);
    put_u32(out, socket.ifindex);
    out.push(u8::from(socket.proto == Proto::Udp));
    out.push(socket.state.0);
    out.push(u8::from(socket.v6only == Some(true)));
    for end in [socket.local, socket.peer] {
        put_addr(out, end.addr);
        out.extend_from_slice(&end.port.to_ne_bytes());
    }
    out.push(u8::from(socket.uid.is_some()));
    put_u32(out, socket.uid.unwrap_or(0));
    let owners = owner.owners.get(..OWNERS_MAX).unwrap_or(owner.owners);
    put_u32(out, owners.len() as u32);
    for owner in owners {
        put_u32(out, owner.pid);
        put_u32(out, owner.fd);
        put_word(out, owner.process.as_bytes());
    }
    owner.words.iter().for_each(|word| put_word(out, word));
}

/// Bound: different words that a capture keeps once. Beyond: further words are kept more than once. By: the owner of
/// the processes.
const SHARED_MAX: usize = 1 << 14;

/// Decodes messages, and stores what they contain.
#[derive(Debug)]
pub(super) struct MessageDecoder {
    /// Words that many sockets share, stored once.
    shared: HashSet<Rc<HolderWords>>,
    /// True until the requested reading has arrived.
    pub(super) is_asked: bool,
    /// Errors of the newest reading.
    pub(super) troubles: Accounting,
}

impl MessageDecoder {
    /// Expects a first reading.
    pub(super) fn new() -> MessageDecoder {
        MessageDecoder { shared: HashSet::new(), is_asked: true, troubles: Accounting::default() }
    }

    /// Adds the content of a message to `into`. `None` for bytes that netwren does not write.
    pub(super) fn add(&mut self, message: &[u8], into: &mut PacketSockets) -> Option<()> {
        let mut from = MessageReader(message);
        match from.byte()? {
            BEGIN => {
                self.troubles = Accounting::default();
                into.begin(from.u64()?);
            }
            ADDRESS => into.add_address(from.u64()?, from.addr()?),
            SOCKET => {
                let (socket, known) = self.socket(&mut from)?;
                into.add_socket(&socket, known);
            }
            END => {
                self.is_asked = false;
                into.end();
            }
            TROUBLE => {
                let (count, text) = (from.u64()?, from.word()?);
                self.troubles.incomplete(count, String::from_utf8_lossy(text).into_owned());
            }
            kind @ (OPENED | CLOSED | SENDS) => {
                let at_ns = from.u64()?;
                let (socket, known) = self.socket(&mut from)?;
                match kind {
                    OPENED => into.opened(&socket, known, at_ns),
                    CLOSED => into.closed(&socket, known, at_ns),
                    _ => into.sends(&socket, known, at_ns),
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// The socket's namespace, ends, protocol and inode (0 in an event), and what is known about its owners.
    fn socket(&mut self, from: &mut MessageReader<'_>) -> Option<(Socket<'static>, PacketSocket)> {
        let (netns_id, inode, ifindex) = (from.u64()?, from.u32()?, from.u32()?);
        let proto = if from.byte()? == 1 { Proto::Udp } else { Proto::Tcp };
        let (state, v6only) = (State(from.byte()?), Some(from.byte()? == 1));
        let (local, peer) = (from.endpoint()?, from.endpoint()?);
        let is_uid_known = from.byte()? == 1;
        let uid = Some(from.u32()?).filter(|_| is_uid_known);
        let count = from.u32()? as usize;
        if count > OWNERS_MAX {
            return None;
        }
        let owners: Option<Box<[Owner]>> = (0..count).map(|_| from.owner()).collect();
        let mut word = || from.word().map(Box::from);
        let words = HolderWords { user: word()?, container: word()?, pod: word()?, unit: word()?, cmdline: word()? };
        let known = PacketSocket { inode, proto, state, uid, owners: owners?, words: self.share(words) };
        Some((Socket { netns_id, inode, proto, local, peer, ifindex, v6only, ..Socket::EMPTY }, known))
    }

    fn share(&mut self, words: HolderWords) -> Rc<HolderWords> {
        if let Some(known) = self.shared.get(&words) {
            return Rc::clone(known);
        }
        if self.shared.len() >= SHARED_MAX {
            self.shared.clear();
        }
        let words = Rc::new(words);
        self.shared.insert(Rc::clone(&words));
        words
    }
}

/// The unparsed rest of a message.
struct MessageReader<'m>(&'m [u8]);

impl<'m> MessageReader<'m> {
    fn bytes(&mut self, count: usize) -> Option<&'m [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }

    fn word(&mut self) -> Option<&'m [u8]> {
        let length = self.u32()?;
        self.bytes(length as usize)
    }

    fn addr(&mut self) -> Option<Addr> {
        match self.byte()? {
            4 => self.array().map(Addr::V4),
            16 => self.array().map(Addr::V6),
            _ => None,
        }
    }

    fn endpoint(&mut self) -> Option<Endpoint> {
        Some(Endpoint { addr: self.addr()?, port: self.array().map(u16::from_ne_bytes)? })
    }

    fn owner(&mut self) -> Option<Owner> {
        Some(Owner { pid: self.u32()?, fd: self.u32()?, process: Comm::new(self.word()?), started: 0 })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn socket() -> Socket<'static> {
        let end = |last, port| Endpoint { addr: Addr::V4([10, 0, 0, last]), port };
        Socket {
            netns_id: 7,
            inode: 5,
            proto: Proto::Udp,
            state: State::ESTABLISHED,
            local: end(1, 80),
            peer: end(2, 90),
            ifindex: 3,
            uid: Some(33),
            ..Socket::EMPTY
        }
    }

    /// The contents of messages of all kinds.
    fn messages() -> Vec<Vec<u8>> {
        let owners = [Owner { pid: 9, fd: 3, process: Comm::new(b"nginx"), started: 0 }];
        let long = vec![b'x'; 2 * WORD_MAX];
        let owner = SocketOwner { owners: &owners, words: [b"www", b"web", b"", b"a.service", &long] };
        let nobody = SocketOwner { owners: &[], words: [b""; 5] };
        let mut out = Vec::new();
        put_begin(&mut out, 1);
        put_address(&mut out, 7, Addr::V6([1; 16]));
        put_socket(&mut out, &socket(), &owner);
        put_trouble(&mut out, 4, "no");
        put_end(&mut out);
        put_change(&mut out, SocketChange::Opened, 2, &socket(), &owner);
        put_change(&mut out, SocketChange::Closed, 3, &Socket { uid: None, ..socket() }, &nobody);
        let (mut rest, mut messages) = (&out[..], Vec::new());
        while let Some((length, content)) = rest.split_first_chunk::<4>() {
            let (message, others) = content.split_at(u32::from_ne_bytes(*length) as usize);
            messages.push(message.to_vec());
            rest = others;
        }
        messages
    }

    #[test]
    fn what_is_written_is_read() {
        let (mut decoder, mut sockets) = (MessageDecoder::new(), PacketSockets::default());
        let messages = messages();
        assert!(messages.iter().all(|message| decoder.add(message, &mut sockets).is_some()));
        assert_eq!((sockets.taken_ns(), decoder.is_asked), (1, false));
        assert_eq!((decoder.troubles.why[0].count, &*decoder.troubles.why[0].text), (4, "no"));
        let mut read =
            |message: usize, skipped: usize| decoder.socket(&mut MessageReader(&messages[message][skipped..])).unwrap();
        let (read_socket, known) = read(2, 1);
        let expected = Socket { v6only: Some(false), state: Socket::EMPTY.state, uid: None, ..socket() };
        assert_eq!(format!("{read_socket:?}"), format!("{expected:?}"));
        assert_eq!((known.uid, known.state), (Some(33), State::ESTABLISHED));
        assert_eq!((known.owners[0].pid, known.owners[0].process.as_bytes()), (9, &b"nginx"[..]));
        assert_eq!((&*known.words.unit, known.words.cmdline.len()), (&b"a.service"[..], WORD_MAX));
        assert!(Rc::ptr_eq(&known.words, &read(5, 9).1.words), "kept once");
        let (_, closed) = read(6, 9);
        assert!(closed.uid.is_none() && closed.owners.is_empty());
    }

    #[test]
    fn other_bytes_are_refused() {
        let (mut decoder, mut sockets) = (MessageDecoder::new(), PacketSockets::default());
        for broken in [&[][..], &[99], &[BEGIN, 1], &[SOCKET, 1, 2, 3]] {
            assert_eq!(decoder.add(broken, &mut sockets), None, "{broken:?}");
        }
        for message in messages().iter().filter(|message| message.len() > 1) {
            assert_eq!(decoder.add(&message[..message.len() - 1], &mut sockets), None, "{message:?}");
        }
    }
}
