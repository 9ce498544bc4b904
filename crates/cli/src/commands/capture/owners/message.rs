//! Messages from the process that looks up owners to the one that reads packets. Both are the same program.

use record::rows::{Endpoint, HolderWords, PacketSocket, Socket};
use record::{Addr, Comm, Owner, Proto, State};
use std::collections::HashSet;
use std::rc::Rc;

/// Maximum length of a message; a longer one is rejected.
///
/// Bound: bytes of a message from the process that looks up owners. Beyond: the message is refused; packets have no
/// owner. By: the owner of a process.
const MESSAGE_MAX: usize = 64 << 10;
/// Bound: holders of a socket in such a message. Beyond: further holders are left out of `src_owners`. By: the owner of
/// the processes.
pub(super) const OWNERS_MAX: usize = 64;
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
pub(super) enum ToldEvent {
    /// A connection was established.
    Opened = OPENED,
    /// A connection was closed.
    Closed = CLOSED,
    /// A UDP socket sends.
    Sends = SENDS,
}

/// The data on one socket.
#[derive(Debug)]
pub(super) struct ToldSocket {
    netns_id: u64,
    /// 0 in an event.
    inode: u32,
    local: Endpoint,
    peer: Endpoint,
    ifindex: u32,
    v6only: bool,
    pub(super) known: PacketSocket,
}

impl ToldSocket {
    /// Its namespace, ends, protocol and inode.
    pub(super) fn ends(&self) -> Socket<'static> {
        let ToldSocket { netns_id, inode, local, peer, ifindex, v6only, known } = self;
        let (netns_id, inode, local, peer, ifindex) = (*netns_id, *inode, *local, *peer, *ifindex);
        Socket { netns_id, inode, proto: known.proto, local, peer, ifindex, v6only: Some(*v6only), ..Socket::EMPTY }
    }
}

/// One message.
#[derive(Debug)]
pub(super) enum OwnerMessage<'m> {
    /// The start of a reading, in ns since 1970.
    Begin(u64),
    /// An address of a namespace.
    Address(u64, Addr),
    /// A socket of the reading.
    Socket(ToldSocket),
    /// The end of a reading.
    End,
    /// An event of a socket, with its time.
    Event(ToldEvent, u64, ToldSocket),
    /// A read error: its count, and a sentence.
    Trouble(u64, &'m [u8]),
}

/// The data on a socket for writing, borrowed to avoid copies.
pub(super) struct SocketWords<'m> {
    pub(super) uid: Option<u32>,
    pub(super) owners: &'m [Owner],
    /// User, container, pod, unit, command line.
    pub(super) words: [&'m [u8]; 5],
}

/// Appends messages to a buffer.
pub(super) struct MessageWriter<'o>(pub(super) &'o mut Vec<u8>);

impl MessageWriter<'_> {
    pub(super) fn begin(&mut self, taken_ns: u64) {
        self.message(BEGIN, |out| put_u64(out, taken_ns));
    }

    pub(super) fn address(&mut self, netns_id: u64, addr: Addr) {
        self.message(ADDRESS, |out| {
            put_u64(out, netns_id);
            put_addr(out, addr);
        });
    }

    pub(super) fn socket(&mut self, ends: &Socket<'_>, words: &SocketWords<'_>) {
        self.message(SOCKET, |out| put_socket(out, ends, words));
    }

    pub(super) fn end(&mut self) {
        self.message(END, |_| {});
    }

    pub(super) fn event(&mut self, what: ToldEvent, at_ns: u64, ends: &Socket<'_>, words: &SocketWords<'_>) {
        self.message(what as u8, |out| {
            put_u64(out, at_ns);
            put_socket(out, ends, words);
        });
    }

    pub(super) fn trouble(&mut self, count: u64, text: &str) {
        self.message(TROUBLE, |out| {
            put_u64(out, count);
            put_word(out, text.as_bytes());
        });
    }

    fn message(&mut self, kind: u8, put: impl FnOnce(&mut Vec<u8>)) {
        let start = self.0.len();
        put_u32(self.0, 0);
        self.0.push(kind);
        put(self.0);
        let length = u32::try_from(self.0.len() - start).unwrap_or(u32::MAX);
        if let Some(place) = self.0.get_mut(start..start + 4) {
            place.copy_from_slice(&length.to_ne_bytes());
        }
    }
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

fn put_socket(out: &mut Vec<u8>, ends: &Socket<'_>, words: &SocketWords<'_>) {
    put_u64(out, ends.netns_id);
    put_u32(out, ends.inode);
    put_u32(out, ends.ifindex);
    out.push(u8::from(ends.proto == Proto::Udp));
    out.push(ends.state.0);
    out.push(u8::from(ends.v6only == Some(true)));
    for end in [ends.local, ends.peer] {
        put_addr(out, end.addr);
        out.extend_from_slice(&end.port.to_ne_bytes());
    }
    out.push(u8::from(words.uid.is_some()));
    put_u32(out, words.uid.unwrap_or(0));
    let owners = words.owners.get(..OWNERS_MAX).unwrap_or(words.owners);
    put_u32(out, owners.len() as u32);
    for owner in owners {
        put_u32(out, owner.pid);
        put_u32(out, owner.fd);
        put_word(out, owner.process.as_bytes());
    }
    words.words.iter().for_each(|word| put_word(out, word));
}

/// The first message in a buffer.
pub(super) enum First<'m> {
    /// The message is incomplete.
    Part,
    /// The message, and its length in bytes.
    Whole(OwnerMessage<'m>, usize),
    /// Bytes that netwren does not write.
    Broken,
}

/// Words shared by many sockets, stored once.
#[derive(Debug, Default)]
pub(super) struct SharedWords(HashSet<Rc<HolderWords>>);

/// Bound: different words that a capture keeps once. Beyond: further words are kept more than once. By: the owner of
/// the processes.
const SHARED_MAX: usize = 1 << 14;

impl SharedWords {
    fn share(&mut self, words: HolderWords) -> Rc<HolderWords> {
        if let Some(known) = self.0.get(&words) {
            return Rc::clone(known);
        }
        if self.0.len() >= SHARED_MAX {
            self.0.clear();
        }
        let words = Rc::new(words);
        self.0.insert(Rc::clone(&words));
        words
    }
}

/// Parses the first message.
pub(super) fn first<'m>(bytes: &'m [u8], shared: &mut SharedWords) -> First<'m> {
    let Some(length) = bytes.first_chunk::<4>().map(|length| u32::from_ne_bytes(*length) as usize) else {
        return First::Part;
    };
    if !(5..=MESSAGE_MAX).contains(&length) {
        return First::Broken;
    }
    let Some(whole) = bytes.get(4..length) else { return First::Part };
    match decode(&mut MessageReader(whole), shared) {
        Some(message) => First::Whole(message, length),
        None => First::Broken,
    }
}

fn decode<'m>(from: &mut MessageReader<'m>, shared: &mut SharedWords) -> Option<OwnerMessage<'m>> {
    Some(match from.byte()? {
        BEGIN => OwnerMessage::Begin(from.u64()?),
        ADDRESS => OwnerMessage::Address(from.u64()?, from.addr()?),
        SOCKET => OwnerMessage::Socket(from.socket(shared)?),
        END => OwnerMessage::End,
        OPENED => OwnerMessage::Event(ToldEvent::Opened, from.u64()?, from.socket(shared)?),
        CLOSED => OwnerMessage::Event(ToldEvent::Closed, from.u64()?, from.socket(shared)?),
        SENDS => OwnerMessage::Event(ToldEvent::Sends, from.u64()?, from.socket(shared)?),
        TROUBLE => OwnerMessage::Trouble(from.u64()?, from.word()?),
        _ => return None,
    })
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

    fn socket(&mut self, shared: &mut SharedWords) -> Option<ToldSocket> {
        let (netns_id, inode, ifindex) = (self.u64()?, self.u32()?, self.u32()?);
        let proto = if self.byte()? == 1 { Proto::Udp } else { Proto::Tcp };
        let state = State(self.byte()?);
        let v6only = self.byte()? == 1;
        let (local, peer) = (self.endpoint()?, self.endpoint()?);
        let is_uid_known = self.byte()? == 1;
        let uid = Some(self.u32()?).filter(|_| is_uid_known);
        let count = self.u32()? as usize;
        if count > OWNERS_MAX {
            return None;
        }
        let owners: Option<Box<[Owner]>> = (0..count).map(|_| self.owner()).collect();
        let mut word = || self.word().map(Box::from);
        let words = HolderWords { user: word()?, container: word()?, pod: word()?, unit: word()?, cmdline: word()? };
        let known = PacketSocket { inode, proto, state, uid, owners: owners?, words: shared.share(words) };
        Some(ToldSocket { netns_id, inode, local, peer, ifindex, v6only, known })
    }

    fn owner(&mut self) -> Option<Owner> {
        Some(Owner { pid: self.u32()?, fd: self.u32()?, process: Comm::new(self.word()?), started: 0 })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ends() -> Socket<'static> {
        let end = |last, port| Endpoint { addr: Addr::V4([10, 0, 0, last]), port };
        Socket {
            netns_id: 7,
            inode: 5,
            proto: Proto::Udp,
            state: State::ESTABLISHED,
            local: end(1, 80),
            peer: end(2, 90),
            ifindex: 3,
            ..Socket::EMPTY
        }
    }

    fn written() -> Vec<u8> {
        let owners = [Owner { pid: 9, fd: 3, process: Comm::new(b"nginx"), started: 0 }];
        let long = vec![b'x'; 2 * WORD_MAX];
        let words = SocketWords { uid: Some(33), owners: &owners, words: [b"www", b"web", b"", b"a.service", &long] };
        let mut out = Vec::new();
        let mut writer = MessageWriter(&mut out);
        writer.begin(1);
        writer.address(7, Addr::V6([1; 16]));
        writer.socket(&ends(), &words);
        writer.end();
        writer.event(ToldEvent::Opened, 2, &ends(), &words);
        writer.event(ToldEvent::Closed, 3, &ends(), &SocketWords { uid: None, owners: &[], words: [b""; 5] });
        writer.trouble(4, "no");
        out
    }

    #[test]
    fn what_is_written_is_read() {
        let (out, mut shared) = (written(), SharedWords::default());
        let (mut rest, mut messages) = (&out[..], Vec::new());
        while let First::Whole(message, bytes) = first(rest, &mut shared) {
            messages.push(message);
            rest = &rest[bytes..];
        }
        assert!(rest.is_empty());
        let [
            OwnerMessage::Begin(1),
            OwnerMessage::Address(7, Addr::V6(_)),
            OwnerMessage::Socket(told),
            OwnerMessage::End,
            OwnerMessage::Event(ToldEvent::Opened, 2, opened),
            OwnerMessage::Event(ToldEvent::Closed, 3, closed),
            OwnerMessage::Trouble(4, b"no"),
        ] = &messages[..]
        else {
            unreachable!("{messages:?}")
        };
        assert_eq!((told.local, told.peer, told.inode, told.ifindex), (ends().local, ends().peer, 5, 3));
        assert_eq!((told.known.uid, told.known.state), (Some(33), State::ESTABLISHED));
        assert_eq!((told.known.owners[0].pid, told.known.owners[0].process.as_bytes()), (9, &b"nginx"[..]));
        assert_eq!((&*told.known.words.unit, told.known.words.cmdline.len()), (&b"a.service"[..], WORD_MAX));
        assert!(Rc::ptr_eq(&told.known.words, &opened.known.words), "kept once");
        assert!(closed.known.uid.is_none() && closed.known.owners.is_empty());
    }

    #[test]
    fn a_part_waits_and_other_bytes_are_refused() {
        let (out, mut shared) = (written(), SharedWords::default());
        assert!((0..13).all(|end| matches!(first(&out[..end], &mut shared), First::Part)));
        let second = first(&out[13..], &mut shared);
        assert!(matches!(second, First::Whole(OwnerMessage::Address(..), _)));
        for broken in [&[0u8, 0, 0, 0][..], &[255, 255, 255, 255, 0], &[5, 0, 0, 0, 99], &[6, 0, 0, 0, BEGIN, 1]] {
            assert!(matches!(first(broken, &mut shared), First::Broken), "{broken:?}");
        }
    }
}
