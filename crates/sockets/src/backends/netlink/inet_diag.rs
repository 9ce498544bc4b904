//! inet_diag: requests for sockets with IP addresses, and their answers.
//!
//! Layouts: include/uapi/linux/inet_diag.h. A message is a fixed struct of 72 bytes and attributes; time-wait and
//! request sockets have hardly any. This module knows no socket, no backend, no filter language. Start reading at
//! [`InetDecoder::decode`].
use crate::address_families::{AF_INET, AF_INET6};
use netlink::prefix::{array_at, be16_at, u32_at};
use netlink::{Attr, Attrs, DecodeError, Request};
use record::rows::{Endpoint, FamilyExtras, MptcpPart, SkMem, Socket, TcpInfo, need};
use record::{Addr, Proto, State, Timer};

/// `TCPDIAG_GETSOCK`: the legacy request, for both families in one pass over the table.
const TCPDIAG_GETSOCK: u16 = 18;
/// `SOCK_DIAG_BY_FAMILY` (include/uapi/linux/sock_diag.h): one family and protocol per request.
pub(crate) const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `INET_DIAG_REQ_BYTECODE`
const INET_DIAG_REQ_BYTECODE: u16 = 1;
/// `INET_DIAG_REQ_SK_BPF_STORAGES`: empty to request the storages of every map. Needs CAP_BPF.
const INET_DIAG_REQ_SK_BPF_STORAGES: u16 = 2;
/// `INET_DIAG_REQ_PROTOCOL`: a protocol number that does not fit into the request's eight bits.
const INET_DIAG_REQ_PROTOCOL: u16 = 3;
/// include/uapi/linux/in.h
const IPPROTO_TCP: u8 = 6;
/// include/uapi/linux/in.h
const IPPROTO_UDP: u8 = 17;
/// include/uapi/linux/in.h
const IPPROTO_UDPLITE: u8 = 136;
/// include/uapi/linux/in.h
const IPPROTO_DCCP: u8 = 33;
/// include/uapi/linux/in.h
const IPPROTO_SCTP: u8 = 132;
/// include/uapi/linux/in.h: for inet_diag this means every raw socket, with any protocol.
const IPPROTO_RAW: u8 = 255;
/// include/uapi/linux/in.h
const IPPROTO_MPTCP: u32 = 262;
/// A protocol without sockets (RFC 3692 reserves it for experiments). A kernel before 5.9, which does not know the
/// attribute, takes it for the requested protocol and refuses it.
const IPPROTO_NONE_SUCH: u8 = 254;

/// `struct inet_diag_sockid`: ports, addresses, interface, cookie.
pub(crate) const SOCKID: usize = 48;
/// `struct inet_diag_req` (legacy): family, src_len, dst_len, ext, id, states u32, dbs u32.
const REQ: usize = 60;
const _: () = assert!(REQ == 4 + SOCKID + 4 + 4);
/// `struct inet_diag_req_v2`: family, protocol, ext, pad, states u32, id.
pub(crate) const REQ_V2: usize = 56;
const _: () = assert!(REQ_V2 == 4 + 4 + SOCKID);
/// `struct inet_diag_msg`: family, state, timer, retrans, id, five u32.
pub(crate) const MSG: usize = 72;
const _: () = assert!(MSG == 4 + SOCKID + 5 * 4);

// Attribute numbers, `INET_DIAG_…`. Numbers without a constant are known but not part of a row: 1 MEMINFO, 10 PROTOCOL,
// 14 PAD.
pub(crate) const INFO: u16 = 2;
const VEGASINFO: u16 = 3;
const CONG: u16 = 4;
const TOS: u16 = 5;
const TCLASS: u16 = 6;
const SKMEMINFO: u16 = 7;
const SHUTDOWN: u16 = 8;
const DCTCPINFO: u16 = 9;
const SKV6ONLY: u16 = 11;
pub(crate) const LOCALS: u16 = 12;
pub(crate) const PEERS: u16 = 13;
const MARK: u16 = 15;
const BBRINFO: u16 = 16;
const CLASS_ID: u16 = 17;
const MD5SIG: u16 = 18;
const ULP_INFO: u16 = 19;
const SK_BPF_STORAGES: u16 = 20;
const CGROUP_ID: u16 = 21;
const SOCKOPT: u16 = 22;
/// The last attribute of 6.18; higher numbers come from a newer kernel.
const LAST_KNOWN: u16 = SOCKOPT;

/// The extension bits that fetch the fields of these `need` bits: `1 << (attribute - 1)`.
pub(crate) fn ext_of(demanded: u64) -> u8 {
    let bits: [(u64, &[u16]); 5] = [
        (need::TCP_INFO | need::COUNTERS | need::ULP | need::SCTP, &[INFO]),
        (need::CONG, &[CONG]),
        (need::CONG_INFO, &[VEGASINFO]),
        (need::SKMEM, &[SKMEMINFO]),
        (need::TOS, &[TOS, TCLASS]),
    ];
    let wanted = bits.iter().filter(|(need, _)| demanded & need != 0);
    wanted.flat_map(|(_, attrs)| attrs.iter()).fold(0, |ext, attr| ext | 1 << (attr - 1))
}

/// The protocol's number (`IPPROTO_…`).
pub(crate) fn number_of(proto: Proto) -> u8 {
    match proto {
        Proto::Udp => IPPROTO_UDP,
        Proto::UdpLite => IPPROTO_UDPLITE,
        Proto::Raw => IPPROTO_RAW,
        Proto::Sctp => IPPROTO_SCTP,
        Proto::Dccp => IPPROTO_DCCP,
        // Its own number does not fit; an attribute carries it.
        Proto::Mptcp => IPPROTO_NONE_SUCH,
        _ => IPPROTO_TCP,
    }
}

/// Parameters of a dump.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DumpParameters<'c> {
    /// Extension bits.
    pub(crate) ext: u8,
    /// State mask.
    pub(crate) states: u32,
    /// Local port of the rows; 0 for any.
    pub(crate) sport: u16,
    /// Peer port of the rows; 0 for any.
    pub(crate) dport: u16,
    /// Compiled filter; empty without one.
    pub(crate) bytecode: &'c [u8],
    /// True to request the storages that BPF maps keep for sockets.
    pub(crate) storages: bool,
}

impl DumpParameters<'_> {
    // In a dump the kernel only reads the two ports of the id.
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
        if self.storages {
            request.nested(INET_DIAG_REQ_SK_BPF_STORAGES, |_| {});
        }
        request
    }

    /// Requests all TCP sockets of both families in one dump, which saves one walk of the table (10–20 % of the total).
    pub(crate) fn legacy(&self) -> Request {
        let mut body = [0; REQ];
        body[3] = self.ext;
        body[4..4 + SOCKID].copy_from_slice(&self.sockid());
        body[52..56].copy_from_slice(&self.states.to_ne_bytes());
        let mut request = Request::dump(TCPDIAG_GETSOCK);
        request.append(&body);
        self.finish(request)
    }

    /// Requests the sockets of one family and protocol.
    pub(crate) fn by_family(&self, family: u8, proto: Proto) -> Request {
        let mut body = [0; REQ_V2];
        body[0] = family;
        body[1] = number_of(proto);
        body[2] = self.ext;
        body[4..8].copy_from_slice(&self.states.to_ne_bytes());
        body[8..8 + SOCKID].copy_from_slice(&self.sockid());
        let mut request = Request::dump(SOCK_DIAG_BY_FAMILY);
        request.append(&body);
        if proto == Proto::Mptcp {
            request.attr_u32(INET_DIAG_REQ_PROTOCOL, IPPROTO_MPTCP);
        }
        self.finish(request)
    }
}

/// `need` bits that require attributes.
const IN_ATTRIBUTES: u64 = need::TCP_INFO
    | need::COUNTERS
    | need::RESENT
    | need::CONG
    | need::CONG_INFO
    | need::SKMEM
    | need::TOS
    | need::CGROUP
    | need::SOCKOPT
    | need::V6ONLY
    | need::IFACE_MARK
    | need::SHUTDOWN
    | need::ULP
    | need::STORAGES;

/// `idiag_timer` of time-wait sockets, also if their state is FIN_WAIT2.
pub(crate) const TIMER_TIME_WAIT: u8 = 3;

/// Decodes `inet_diag_msg`s into rows. Allocates nothing.
#[derive(Debug, Clone, Copy)]
pub struct InetDecoder {
    proto: Proto,
    netns_id: u64,
    /// True if anything after the fixed part is demanded.
    attributes: bool,
    /// Number of skipped attributes so far that only newer kernels define.
    pub unknown_attrs: u64,
}

impl InetDecoder {
    /// A decoder for the answers to a request for `proto` in namespace `netns_id`; `proto` must be [`Proto::is_inet`].
    pub fn new(proto: Proto, netns_id: u64) -> InetDecoder {
        InetDecoder { proto, netns_id, attributes: true, unknown_attrs: 0 }
    }

    /// Sets the demanded `need` bits: if none of them needs an attribute, attributes are skipped. The kernel always
    /// sends four of them with every row, and decoding them would take an eighth of the time of a plain list in this
    /// process.
    pub fn with_need(self, need: u64) -> InetDecoder {
        InetDecoder { attributes: need & IN_ATTRIBUTES != 0, ..self }
    }

    /// Decodes one message's payload into a row that borrows it.
    ///
    /// Fails if the payload is shorter than the struct or an attribute does not fit. A longer struct would look like
    /// attributes, but no kernel has ever sent one.
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
        // The result is created first and filled in place: wrapping a finished row would copy it.
        let mut result = Ok(self.decode_fixed_part(msg, local, peer));
        if let Ok(row) = &mut result {
            for attr in Attrs::new(if self.attributes { attrs } else { &[] }) {
                self.attribute(row, &attr?)?;
            }
        }
        result
    }

    /// Decodes raw and MPTCP sockets, with their additional fields in `extras`.
    pub fn decode_rare<'b>(
        &mut self,
        payload: &'b [u8],
        extras: &'b mut FamilyExtras<'b>,
    ) -> Result<Socket<'b>, DecodeError> {
        let mut row = self.decode(payload)?;
        *extras = FamilyExtras::EMPTY;
        match self.proto {
            Proto::Raw => extras.ip_protocol = u8::try_from(row.local.port).ok(),
            Proto::Mptcp => {
                let attrs = payload.get(MSG..).filter(|_| self.attributes).unwrap_or_default();
                let info = Attrs::new(attrs).map_while(Result::ok).find(|attr| attr.kind == INFO);
                extras.mptcp = info.map(|attr| MptcpPart::new(attr.payload));
            }
            _ => {}
        }
        row.extras = Some(extras);
        Ok(row)
    }

    // Replies report TCP sockets that are only bound as closed; a closed socket is not in any table.
    #[inline(always)]
    fn state_of(&self, number: u8) -> State {
        if number == State::CLOSE.0 && self.proto == Proto::Tcp { State::BOUND_INACTIVE } else { State(number) }
    }

    // Always inlined: the row has some 400 bytes, and every return of it would be a copy (a third of the total).
    #[inline(always)]
    fn decode_fixed_part<'b>(&self, msg: &[u8; MSG], local: Addr, peer: Addr) -> Socket<'b> {
        // Every offset is inside the array, so the compiler removes the fallbacks.
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
            // Two words, the low one first, in any byte order of the machine.
            cookie: u64::from(u32_of(44)) | u64::from(u32_of(48)) << 32,
            timer_ms: u32_of(52),
            rqueue: u32_of(56),
            wqueue: Some(u32_of(60)),
            // A time-wait socket no longer has an owner; the kernel writes 0, which would be root.
            uid: (msg[2] != TIMER_TIME_WAIT).then(|| u32_of(64)),
            inode: u32_of(68),
            netns_id: self.netns_id,
            ..Socket::EMPTY
        }
    }

    #[inline]
    fn attribute<'b>(&mut self, row: &mut Socket<'b>, attr: &Attr<'b>) -> Result<(), DecodeError> {
        match attr.kind {
            // The kernel sends these four with every row except minisocks, even if they are not requested.
            SHUTDOWN => row.shutdown = Some(attr.u8()?),
            CGROUP_ID => row.cgroup_id = Some(attr.u64()?),
            SOCKOPT => row.sockopt = Some(attr.array::<2>()?),
            MARK => row.mark = Some(attr.u32()?),
            SKV6ONLY => row.v6only = Some(attr.u8()? != 0),
            _ => return self.decode_requested(row, attr),
        }
        Ok(())
    }

    fn decode_requested<'b>(&mut self, row: &mut Socket<'b>, attr: &Attr<'b>) -> Result<(), DecodeError> {
        match attr.kind {
            // For MPTCP and SCTP the same attribute contains another struct.
            INFO if !matches!(self.proto, Proto::Mptcp | Proto::Sctp) => {
                row.tcp_info = Some(TcpInfo::new(attr.payload))
            }
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
            SK_BPF_STORAGES => row.storages = Some(attr.payload),
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

/// Decodes one inet_diag message into a row. For a whole dump use an [`InetDecoder`], which counts skipped attributes.
pub fn decode_inet(payload: &[u8], proto: Proto, netns_id: u64) -> Result<Socket<'_>, DecodeError> {
    InetDecoder::new(proto, netns_id).decode(payload)
}
