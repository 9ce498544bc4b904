//! Requests that change the table, or ask for one entry: create, update, get, delete, flush; expectations likewise.
//!
//! One socket for all of them, one request after the other, each acknowledged. Needs CAP_NET_ADMIN in the namespace's
//! user namespace.
use std::ops::ControlFlow;

use netlink::{Ask, Conversation, DecodeError, DumpError, Part, Request};
use record::Addr;
use record::rows::{Conntrack, CtState, CtTuple, Expectation, ip_proto};
use sys::Host;

use crate::ctnetlink::CtDecoder;
use crate::dump::{CtTable, Place, put_addr, put_tuple};
use crate::expect::ExpectDecoder;
use crate::uapi::{
    AF_INET, AF_INET6, NETLINK_NETFILTER, NFNL_SUBSYS_CTNETLINK, NFNL_SUBSYS_CTNETLINK_EXP, cta, expect, msg, nat,
    protoinfo,
};

/// NLM_F_CREATE and NLM_F_EXCL (include/uapi/linux/netlink.h).
const CREATE: u16 = 0x400;
const EXCL: u16 = 0x200;

/// IPS_CONFIRMED: no entry of the table is without it, and the kernel refuses to take it away.
const CONFIRMED: u32 = 1 << 3;

/// What an address and a port are to be rewritten to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rewrite {
    /// The address; none: it stays.
    pub addr: Option<Addr>,
    /// The port; none: it stays.
    pub port: Option<u16>,
}

/// What a request says of an entry. What is `None` is not sent: a new entry gets the kernel's own, an old one keeps its.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Given<'g> {
    /// Original direction.
    pub orig: Option<CtTuple>,
    /// Reply direction.
    pub reply: Option<CtTuple>,
    /// Status bits.
    pub status: Option<u32>,
    /// Seconds until it ends.
    pub timeout_s: Option<u32>,
    /// Mark.
    pub mark: Option<u32>,
    /// State of the protocol.
    pub state: Option<CtState>,
    /// Flags of both directions of TCP (`IP_CT_TCP_FLAG_…`), set as they are here.
    pub tcp_flags: Option<u8>,
    /// SCTP's verification tags as they stand in the packet, original and reply direction.
    pub vtags: [Option<[u8; 4]>; 2],
    /// DCCP's role of the original direction.
    pub dccp_role: Option<u8>,
    /// To be rewritten: source. Only a new entry can get it.
    pub snat: Rewrite,
    /// To be rewritten: destination.
    pub dnat: Rewrite,
    /// Zone of both directions.
    pub zone: Option<u16>,
    /// Id: the request is refused if the entry is another one by now.
    pub id: Option<u32>,
    /// Label bits and, of the same length, which of them are meant.
    pub labels: Option<(&'g [u8], Option<&'g [u8]>)>,
}

impl Given<'_> {
    /// 2 AF_INET or 10 AF_INET6, by the addresses; 0 without any.
    pub fn family(&self) -> u8 {
        let tuple = self.orig.or(self.reply);
        tuple.map_or(0, |tuple| if matches!(tuple.src, Addr::V4(_)) { AF_INET } else { AF_INET6 })
    }

    fn put(&self, request: &mut Request) {
        for (kind, tuple) in [(cta::TUPLE_ORIG, &self.orig), (cta::TUPLE_REPLY, &self.reply)] {
            if let Some(tuple) = tuple {
                put_tuple(request, kind, tuple);
            }
        }
        let status = self.status.map(|status| status | CONFIRMED);
        let numbers =
            [(cta::STATUS, status), (cta::TIMEOUT, self.timeout_s), (cta::MARK, self.mark), (cta::ID, self.id)];
        for (kind, number) in numbers {
            if let Some(number) = number {
                request.attr(kind, &number.to_be_bytes());
            }
        }
        self.put_protocol(request);
        self.snat.put(request, cta::NAT_SRC);
        self.dnat.put(request, cta::NAT_DST);
        if let Some(zone) = self.zone {
            request.attr(cta::ZONE, &zone.to_be_bytes());
        }
        if let Some((labels, mask)) = self.labels {
            request.attr(cta::LABELS, labels);
            if let Some(mask) = mask {
                request.attr(cta::LABELS_MASK, mask);
            }
        }
    }

    fn put_protocol(&self, request: &mut Request) {
        let proto = self.orig.or(self.reply).map(|tuple| tuple.proto);
        let (kind, number) = match (self.state, proto) {
            (Some(CtState::Tcp(state)), _) => (protoinfo::TCP, Some(state)),
            (Some(CtState::Sctp(state)), _) => (protoinfo::SCTP, Some(state)),
            (Some(CtState::Dccp(state)), _) => (protoinfo::DCCP, Some(state)),
            (None, Some(ip_proto::TCP)) if self.tcp_flags.is_some() => (protoinfo::TCP, None),
            (None, Some(ip_proto::SCTP)) if self.vtags.iter().any(Option::is_some) => (protoinfo::SCTP, None),
            (None, Some(ip_proto::DCCP)) if self.dccp_role.is_some() => (protoinfo::DCCP, None),
            _ => return,
        };
        request.nested(cta::PROTOINFO, |inside| {
            inside.nested(kind, |inside| {
                if let Some(number) = number {
                    inside.attr(protoinfo::STATE, &[number]);
                }
                match kind {
                    protoinfo::TCP => self.put_tcp_flags(inside),
                    protoinfo::SCTP => self.put_vtags(inside),
                    _ => {
                        if let Some(role) = self.dccp_role {
                            inside.attr(protoinfo::DCCP_ROLE, &[role]);
                        }
                    }
                }
            });
        });
    }

    /// `struct nf_ct_tcp_flags`: value and mask.
    fn put_tcp_flags(&self, request: &mut Request) {
        let Some(flags) = self.tcp_flags else { return };
        request.attr(protoinfo::TCP_FLAGS_ORIG, &[flags, flags]).attr(protoinfo::TCP_FLAGS_REPLY, &[flags, flags]);
    }

    fn put_vtags(&self, request: &mut Request) {
        for (kind, tag) in [protoinfo::SCTP_VTAG_ORIG, protoinfo::SCTP_VTAG_REPLY].into_iter().zip(self.vtags) {
            if let Some(tag) = tag {
                request.attr(kind, &tag);
            }
        }
    }
}

impl Rewrite {
    fn put(self, request: &mut Request, kind: u16) {
        if self == Rewrite::default() {
            return;
        }
        request.nested(kind, |inside| {
            if let Some(addr) = self.addr {
                let kinds = if matches!(addr, Addr::V4(_)) {
                    [nat::V4_MINIP, nat::V4_MAXIP]
                } else {
                    [nat::V6_MINIP, nat::V6_MAXIP]
                };
                kinds.into_iter().for_each(|kind| put_addr(inside, kind, addr));
            }
            if let Some(port) = self.port {
                inside.nested(nat::PROTO, |inside| {
                    inside.attr(nat::PORT_MIN, &port.to_be_bytes()).attr(nat::PORT_MAX, &port.to_be_bytes());
                });
            }
        });
    }
}

/// What a request says of an expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GivenExpectation {
    /// What the connection will look like.
    pub tuple: Option<CtTuple>,
    /// Which bits of it matter.
    pub mask: Option<CtTuple>,
    /// The connection in which it was announced.
    pub master: Option<CtTuple>,
    /// Seconds until it is given up.
    pub timeout_s: Option<u32>,
}

/// Changes the table of one namespace.
#[derive(Debug)]
pub struct Changes<'h> {
    host: &'h Host,
    place: Place<'h>,
    conversation: Conversation,
}

impl<'h> Changes<'h> {
    /// Nothing is opened before the first request.
    pub fn new(host: &'h Host, place: Place<'h>) -> Changes<'h> {
        Changes { host, place, conversation: Conversation::new() }
    }

    /// Makes an entry. EEXIST if there is one with such a tuple, ENOMEM if the table is full.
    pub fn create(&mut self, given: &Given<'_>) -> Result<(), DumpError> {
        self.change("a connection-tracking entry", msg::CT_NEW, CREATE | EXCL, given)
    }

    /// Changes an entry that is there; ENOENT if there is none.
    pub fn update(&mut self, given: &Given<'_>) -> Result<(), DumpError> {
        self.change("a connection-tracking entry", msg::CT_NEW, 0, given)
    }

    /// Ends an entry; ENOENT if there is none, or if its id says that it is another one.
    pub fn delete(&mut self, given: &Given<'_>) -> Result<(), DumpError> {
        self.change("a connection-tracking entry", msg::CT_DELETE, 0, given)
    }

    fn change(&mut self, what: &'static str, message: u16, flags: u16, given: &Given<'_>) -> Result<(), DumpError> {
        let mut request = Request::one_with(NFNL_SUBSYS_CTNETLINK << 8 | message, flags);
        request.body(&[given.family(), 0, 0, 0]);
        given.put(&mut request);
        self.ask(what, &request, |_| ControlFlow::Continue(()))
    }

    /// Hands the entry with a tuple to `each`; ENOENT if there is none.
    pub fn get(&mut self, given: &Given<'_>, mut each: impl FnMut(&Conntrack<'_>)) -> Result<(), DumpError> {
        let mut request = Request::one(NFNL_SUBSYS_CTNETLINK << 8 | msg::CT_GET);
        request.body(&[given.family(), 0, 0, 0]);
        given.put(&mut request);
        let mut decoder = CtDecoder::new(self.place.netns_id);
        self.ask_for("a connection-tracking entry", &request, |answer| decoder.decode(answer).map(|row| each(&row)))
    }

    /// Ends every entry, or every expectation: of one family (2, 10) or of both (0), and of one zone if asked for
    /// (kernel 6.8; an older one takes no notice of it).
    pub fn flush(&mut self, table: CtTable, family: u8, zone: Option<u16>) -> Result<(), DumpError> {
        let kind = match table {
            CtTable::Expect => NFNL_SUBSYS_CTNETLINK_EXP << 8 | msg::EXP_DELETE,
            _ => NFNL_SUBSYS_CTNETLINK << 8 | msg::CT_DELETE,
        };
        let mut request = Request::one(kind);
        request.body(&[family, 0, 0, 0]);
        if let Some(zone) = zone {
            request.attr(cta::ZONE, &zone.to_be_bytes());
        }
        self.ask(table.what(), &request, |_| ControlFlow::Continue(()))
    }

    /// Makes an expectation. EOPNOTSUPP if its master has no helper.
    pub fn create_expectation(&mut self, given: &GivenExpectation) -> Result<(), DumpError> {
        let request = expectation_request(msg::EXP_NEW, CREATE | EXCL, given);
        self.ask("an expectation", &request, |_| ControlFlow::Continue(()))
    }

    /// Ends the expectation of a tuple.
    pub fn delete_expectation(&mut self, given: &GivenExpectation) -> Result<(), DumpError> {
        let request = expectation_request(msg::EXP_DELETE, 0, given);
        self.ask("an expectation", &request, |_| ControlFlow::Continue(()))
    }

    /// Hands the expectation of a tuple, or of a master, to `each`.
    pub fn get_expectation(
        &mut self,
        given: &GivenExpectation,
        mut each: impl FnMut(&Expectation<'_>),
    ) -> Result<(), DumpError> {
        let request = expectation_request(msg::EXP_GET, 0, given);
        let mut decoder = ExpectDecoder::new(self.place.netns_id);
        self.ask_for("an expectation", &request, |answer| decoder.decode(answer).map(|row| each(&row)))
    }

    /// Asks for rows; one that makes no sense is an error, when the others are out.
    fn ask_for(
        &mut self,
        what: &'static str,
        request: &Request,
        mut row: impl FnMut(&[u8]) -> Result<(), DecodeError>,
    ) -> Result<(), DumpError> {
        let mut wrong = None;
        self.ask(what, request, |part| {
            wrong = row(part.payload).err().or(wrong);
            ControlFlow::Continue(())
        })?;
        whole(what, wrong)
    }

    fn ask(
        &mut self,
        what: &'static str,
        request: &Request,
        each: impl FnMut(&Part<'_>) -> ControlFlow<()>,
    ) -> Result<(), DumpError> {
        // One name for all: a recording keeps the answers in their order.
        let key = format!("ctnetlink/change/{}", self.place.netns_id);
        let netns = self.place.netns;
        let ask = Ask { what, protocol: NETLINK_NETFILTER, request, key: &key, note: "", netns };
        self.conversation.exchange(self.host, &ask, each).map(|_| ())
    }
}

fn expectation_request(message: u16, flags: u16, given: &GivenExpectation) -> Request {
    let mut request = Request::one_with(NFNL_SUBSYS_CTNETLINK_EXP << 8 | message, flags);
    let tuples = [(expect::TUPLE, given.tuple), (expect::MASTER, given.master), (expect::MASK, given.mask)];
    let v4 = tuples.iter().find_map(|(_, tuple)| *tuple).is_none_or(|tuple| matches!(tuple.src, Addr::V4(_)));
    request.body(&[if v4 { AF_INET } else { AF_INET6 }, 0, 0, 0]);
    for (kind, tuple) in tuples {
        if let Some(tuple) = tuple {
            put_tuple(&mut request, kind, &tuple);
        }
    }
    if let Some(timeout) = given.timeout_s {
        request.attr(expect::TIMEOUT, &timeout.to_be_bytes());
    }
    request
}

fn whole(what: &'static str, wrong: Option<DecodeError>) -> Result<(), DumpError> {
    Err(match wrong {
        None => return Ok(()),
        Some(DecodeError::Attr { attr, claims, has }) => DumpError::Malformed { what, attr: Some(attr), claims, has },
        Some(DecodeError::Short { claims, has, .. }) => DumpError::Malformed { what, attr: None, claims, has },
        Some(_) => DumpError::Malformed { what, attr: None, claims: 1, has: 0 },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use netlink::Attrs;

    fn kinds(request: &Request) -> Vec<u16> {
        let body = &request.bytes().unwrap()[16 + 4..];
        Attrs::new(body).map(|attr| attr.unwrap().kind).collect()
    }

    #[test]
    fn what_is_not_given_is_not_sent() {
        let mut request = Request::one(0x100);
        request.body(&[2, 0, 0, 0]);
        Given { mark: Some(1), ..Given::default() }.put(&mut request);
        assert_eq!(kinds(&request), [cta::MARK]);
    }

    #[test]
    fn everything_has_its_place() {
        let tuple = CtTuple { proto: ip_proto::TCP, ..CtTuple::EMPTY };
        let given = Given {
            orig: Some(tuple),
            reply: Some(tuple),
            status: Some(2),
            timeout_s: Some(3),
            state: Some(CtState::Tcp(3)),
            tcp_flags: Some(10),
            snat: Rewrite { addr: Some(Addr::ANY4), port: Some(1) },
            zone: Some(4),
            labels: Some((&[1, 0, 0, 0], Some(&[1, 0, 0, 0]))),
            ..Given::default()
        };
        let mut request = Request::one(0x100);
        request.body(&[given.family(), 0, 0, 0]);
        given.put(&mut request);
        let expected = [
            cta::TUPLE_ORIG,
            cta::TUPLE_REPLY,
            cta::STATUS,
            cta::TIMEOUT,
            cta::PROTOINFO,
            cta::NAT_SRC,
            cta::ZONE,
            cta::LABELS,
            cta::LABELS_MASK,
        ];
        assert_eq!(kinds(&request), expected);
        assert_eq!(given.family(), AF_INET);
    }
}
