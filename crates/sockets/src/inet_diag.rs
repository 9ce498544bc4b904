//! inet_diag: requests for TCP and UDP sockets, and the messages that come back.
//!
//! Layouts: include/uapi/linux/inet_diag.h. A message is a fixed struct of 72 bytes and attributes; time-wait and
//! request sockets have hardly any. Knows no socket, no door, no filter language. Start reading at
//! [`InetDecoder::decode`].
use netlink::prefix::{array_at, be16_at, u32_at};
use netlink::{Attr, Attrs, Request};
use record::rows::{Endpoint, SkMem, Socket, TcpInfo, need};
use record::{Addr, Proto, State, Timer};

use crate::error::DecodeError;

/// include/linux/socket.h
pub(crate) const AF_INET: u8 = 2;
/// include/linux/socket.h
pub(crate) const AF_INET6: u8 = 10;

/// `TCPDIAG_GETSOCK`: the legacy request, both families in one pass over the table.
const TCPDIAG_GETSOCK: u16 = 18;
/// `SOCK_DIAG_BY_FAMILY` (include/uapi/linux/sock_diag.h): one family and protocol a request.
pub(crate) const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `INET_DIAG_REQ_BYTECODE`
const INET_DIAG_REQ_BYTECODE: u16 = 1;
/// include/uapi/linux/in.h
const IPPROTO_TCP: u8 = 6;
/// include/uapi/linux/in.h
const IPPROTO_UDP: u8 = 17;

/// `struct inet_diag_sockid`: ports, addresses, interface, cookie.
const SOCKID: usize = 48;
/// `struct inet_diag_req` (legacy): family, src_len, dst_len, ext, id, states u32, dbs u32.
const REQ: usize = 60;
const _: () = assert!(REQ == 4 + SOCKID + 4 + 4);
/// `struct inet_diag_req_v2`: family, protocol, ext, pad, states u32, id.
const REQ_V2: usize = 56;
const _: () = assert!(REQ_V2 == 4 + 4 + SOCKID);
/// `struct inet_diag_msg`: family, state, timer, retrans, id, five u32.
const MSG: usize = 72;
const _: () = assert!(MSG == 4 + SOCKID + 5 * 4);

/// Every state that a listing wants: 1–12. Bit 13 (BOUND_INACTIVE, 6.8) is not asked for.
pub(crate) const STATES_ALL: u32 = 0x1ffe;

// enum of attributes, `INET_DIAG_…`. Those without a constant are known and have no place in a row:
// 1 MEMINFO, 10 PROTOCOL, 12 LOCALS, 13 PEERS, 14 PAD, 20 SK_BPF_STORAGES.
const INFO: u16 = 2;
const VEGASINFO: u16 = 3;
const CONG: u16 = 4;
const TOS: u16 = 5;
const TCLASS: u16 = 6;
const SKMEMINFO: u16 = 7;
const SHUTDOWN: u16 = 8;
const DCTCPINFO: u16 = 9;
const SKV6ONLY: u16 = 11;
const MARK: u16 = 15;
const BBRINFO: u16 = 16;
const CLASS_ID: u16 = 17;
const MD5SIG: u16 = 18;
const ULP_INFO: u16 = 19;
const CGROUP_ID: u16 = 21;
const SOCKOPT: u16 = 22;
/// The last attribute of 6.18; what is beyond comes from a newer kernel.
const LAST_KNOWN: u16 = SOCKOPT;

/// The extension bits that fetch the fields behind these `need` bits: `1 << (attribute - 1)`.
pub(crate) fn ext_of(demanded: u64) -> u8 {
    let bits: [(u64, &[u16]); 5] = [
        (need::TCP_INFO, &[INFO]),
        (need::CONG, &[CONG]),
        (need::CONG_INFO, &[VEGASINFO]),
        (need::SKMEM, &[SKMEMINFO]),
        (need::TOS, &[TOS, TCLASS]),
    ];
    let wanted = bits.iter().filter(|(need, _)| demanded & need != 0);
    wanted.flat_map(|(_, attrs)| attrs.iter()).fold(0, |ext, attr| ext | 1 << (attr - 1))
}

/// What a dump is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'c> {
    /// Extension bits.
    pub(crate) ext: u8,
    /// State mask.
    pub(crate) states: u32,
    /// Local port that rows must have; 0 is any.
    pub(crate) sport: u16,
    /// Peer port that rows must have; 0 is any.
    pub(crate) dport: u16,
    /// Compiled filter; empty is none.
    pub(crate) bytecode: &'c [u8],
}

impl Wanted<'_> {
    // In a dump the kernel looks at nothing of the id but the two ports.
    fn sockid(&self) -> [u8; SOCKID] {
        let mut id = [0; SOCKID];
        let [s0, s1] = self.sport.to_be_bytes();
        let [d0, d1] = self.dport.to_be_bytes();
        (id[0], id[1], id[2], id[3]) = (s0, s1, d0, d1);
        id
    }

    fn finish(&self, mut request: Request) -> Request {
        if !self.bytecode.is_empty() {
            request.attr(INET_DIAG_REQ_BYTECODE, self.bytecode);
        }
        request
    }

    /// All TCP sockets of both families in one dump: saves one walk of the table (10–20 % of the whole).
    pub(crate) fn legacy(&self) -> Request {
        let mut body = [0; REQ];
        body[3] = self.ext;
        body[4..4 + SOCKID].copy_from_slice(&self.sockid());
        body[52..56].copy_from_slice(&self.states.to_ne_bytes());
        let mut request = Request::dump(TCPDIAG_GETSOCK);
        request.body(&body);
        self.finish(request)
    }

    /// The sockets of one family and protocol.
    pub(crate) fn by_family(&self, family: u8, proto: Proto) -> Request {
        let mut body = [0; REQ_V2];
        body[0] = family;
        body[1] = if proto == Proto::Udp { IPPROTO_UDP } else { IPPROTO_TCP };
        body[2] = self.ext;
        body[4..8].copy_from_slice(&self.states.to_ne_bytes());
        body[8..8 + SOCKID].copy_from_slice(&self.sockid());
        let mut request = Request::dump(SOCK_DIAG_BY_FAMILY);
        request.body(&body);
        self.finish(request)
    }
}

/// `need` bits whose answers are attributes.
const IN_ATTRIBUTES: u64 = need::TCP_INFO
    | need::CONG
    | need::CONG_INFO
    | need::SKMEM
    | need::TOS
    | need::CGROUP
    | need::SOCKOPT
    | need::V6ONLY
    | need::IFACE_MARK
    | need::SHUTDOWN;

/// `idiag_timer` of time-wait sockets, also of those whose state says FIN_WAIT2.
pub(crate) const TIMER_TIME_WAIT: u8 = 3;

/// Makes rows of `inet_diag_msg`s. Allocates nothing.
#[derive(Debug, Clone, Copy)]
pub struct InetDecoder {
    proto: Proto,
    netns_id: u64,
    /// Whether anything behind the fixed part is wanted.
    attributes: bool,
    /// Attributes of a newer kernel that were skipped so far.
    pub unknown_attrs: u64,
}

impl InetDecoder {
    /// A decoder for the answers to a request for `proto` (TCP or UDP) in namespace `netns_id`.
    pub fn new(proto: Proto, netns_id: u64) -> InetDecoder {
        InetDecoder { proto, netns_id, attributes: true, unknown_attrs: 0 }
    }

    /// The same for a demand with these `need` bits: where none of them is an attribute, none is looked at. Four come
    /// with every row whether one asks or not, and cost an eighth of a plain list's time in this process.
    pub fn needing(self, need: u64) -> InetDecoder {
        InetDecoder { attributes: need & IN_ATTRIBUTES != 0, ..self }
    }

    /// One message's payload as a row that borrows it.
    ///
    /// Fails if the payload is shorter than the struct or an attribute does not fit; a longer struct cannot be told
    /// from attributes and has never been sent.
    #[inline]
    pub fn decode<'b>(&mut self, payload: &'b [u8]) -> Result<Socket<'b>, DecodeError> {
        let Some((msg, attrs)) = payload.split_first_chunk::<MSG>() else {
            return Err(DecodeError::Short { what: "inet_diag_msg", claims: MSG, has: payload.len() });
        };
        let (local, peer) = match msg[0] {
            AF_INET => (Addr::V4(octets_at(msg, 8)), Addr::V4(octets_at(msg, 24))),
            AF_INET6 => (Addr::V6(octets_at(msg, 8)), Addr::V6(octets_at(msg, 24))),
            other => return Err(DecodeError::Family(other)),
        };
        // The result is made first and filled in place: wrapping a finished row would copy it.
        let mut result = Ok(self.fixed_part(msg, local, peer));
        if let Ok(row) = &mut result {
            for attr in Attrs::new(if self.attributes { attrs } else { &[] }) {
                self.attribute(row, &attr?)?;
            }
        }
        result
    }

    // Replies call a TCP socket that is bound and nothing else closed; a closed one is in no table.
    #[inline(always)]
    fn state_of(&self, number: u8) -> State {
        if number == State::CLOSE.0 && self.proto == Proto::Tcp { State::BOUND_INACTIVE } else { State(number) }
    }

    // Always inlined: the row has some 400 bytes, and every return of it would be a copy (a third of the whole).
    #[inline(always)]
    fn fixed_part<'b>(&self, msg: &[u8; MSG], local: Addr, peer: Addr) -> Socket<'b> {
        // Every offset lies inside the array, so the fallbacks vanish when this is compiled.
        let u32_of = |at| u32_at(msg, at).unwrap_or(0);
        let port_of = |at| be16_at(msg, at).unwrap_or(0);
        Socket {
            proto: self.proto,
            family: msg[0],
            state: self.state_of(msg[1]),
            timer: Timer(msg[2]),
            retrans: msg[3],
            local: Endpoint { addr: local, port: port_of(4) },
            peer: Endpoint { addr: peer, port: port_of(6) },
            ifindex: u32_of(40),
            // Two words, the low one first, whatever the machine's byte order.
            cookie: u64::from(u32_of(44)) | u64::from(u32_of(48)) << 32,
            timer_ms: u32_of(52),
            rqueue: u32_of(56),
            wqueue: Some(u32_of(60)),
            // A time-wait socket has no owner any more; the kernel writes 0, which would be root.
            uid: (msg[2] != TIMER_TIME_WAIT).then(|| u32_of(64)),
            inode: u32_of(68),
            netns_id: self.netns_id,
            ..Socket::EMPTY
        }
    }

    #[inline]
    fn attribute<'b>(&mut self, row: &mut Socket<'b>, attr: &Attr<'b>) -> Result<(), DecodeError> {
        match attr.kind {
            // These four come unasked with every row that is no minisock.
            SHUTDOWN => row.shutdown = Some(attr.u8()?),
            CGROUP_ID => row.cgroup_id = Some(attr.u64()?),
            SOCKOPT => row.sockopt = Some(attr.array::<2>()?),
            MARK => row.mark = Some(attr.u32()?),
            SKV6ONLY => row.v6only = Some(attr.u8()? != 0),
            _ => return self.asked_attribute(row, attr),
        }
        Ok(())
    }

    fn asked_attribute<'b>(&mut self, row: &mut Socket<'b>, attr: &Attr<'b>) -> Result<(), DecodeError> {
        match attr.kind {
            INFO => row.tcp_info = Some(TcpInfo::new(attr.payload)),
            SKMEMINFO => row.skmem = Some(SkMem::new(attr.payload)),
            CONG => row.cong = Some(attr.c_str()),
            VEGASINFO => row.vegas = Some(attr.payload),
            DCTCPINFO => row.dctcp = Some(attr.payload),
            BBRINFO => row.bbr = Some(attr.payload),
            TOS => row.tos = Some(attr.u8()?),
            TCLASS => row.tclass = Some(attr.u8()?),
            CLASS_ID => row.class_id = Some(attr.u32()?),
            ULP_INFO => row.ulp = Some(attr.payload),
            MD5SIG => row.md5sig = Some(attr.payload),
            known if known <= LAST_KNOWN => {}
            _ => self.unknown_attrs += 1,
        }
        Ok(())
    }
}

#[inline(always)]
fn octets_at<const N: usize>(msg: &[u8; MSG], at: usize) -> [u8; N] {
    array_at(msg, at).unwrap_or([0; N])
}

/// One inet_diag message as a row. For a whole dump keep an [`InetDecoder`], which counts what it skips.
pub fn decode_inet(payload: &[u8], proto: Proto, netns_id: u64) -> Result<Socket<'_>, DecodeError> {
    InetDecoder::new(proto, netns_id).decode(payload)
}
