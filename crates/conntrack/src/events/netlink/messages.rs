//! Event messages in the order of their arrival, for the conntrack(8) front end and for the rows of `nat events`.
use netlink::datagrams::{BATCH_HEADER, BatchHeader, DUPLICATE, DatagramFrames};
use netlink::{Attrs, DecodeError, Message, Messages};
use record::rows::{Conntrack, NatEventKind};
use record::{Accounting, Next, StreamState};
use sys::{Blocks, Host, SysError};

use crate::backends::netlink::ctnetlink::CtDecoder;
use crate::events::netlink::reader::{CHUNKS, open_reader};
use crate::events::netlink::subscribe::SubscribeOptions;
use crate::uapi::{NFGENMSG, NFNL_SUBSYS_CTNETLINK, NFNL_SUBSYS_CTNETLINK_EXP, cta, msg};

/// NLM_F_EXCL | NLM_F_CREATE: a NEW message with one of these flags reports a new entry, without them a change.
const CREATED: u16 = 0x200 | 0x400;

/// A message about an entry or an expectation.
#[derive(Debug, Clone, Copy)]
pub struct EventMessage<'b> {
    /// Kind of event.
    pub kind: NatEventKind,
    /// True if it is about an expectation.
    pub is_expectation: bool,
    /// Inode of the namespace; 0 if it is unknown.
    pub netns_id: u64,
    /// Nsid of that namespace as seen from the socket's namespace; `None` if both are the same.
    pub nsid: Option<i32>,
    /// Time of reception, in nanoseconds since 1970.
    pub received_ns: u64,
    /// Netlink port id of the process that made the change; 0 if a packet or a timeout did.
    pub portid: u32,
    /// The message; [`CtDecoder`] or [`crate::ExpectDecoder`] decodes its payload.
    pub message: Message<'b>,
}

/// Event messages of one namespace or of all.
pub struct NetlinkEvents<'h> {
    blocks: Box<dyn Blocks + 'h>,
    decoder: CtDecoder,
    head: BatchHeader,
    told: u64,
    failed: u64,
    first_error: Option<DecodeError>,
}

impl<'h> NetlinkEvents<'h> {
    /// Subscribes: events after the return are received. Needs CAP_NET_ADMIN; for all namespaces also CAP_NET_BROADCAST
    /// or CAP_SYS_ADMIN.
    pub fn open(host: &'h Host, options: SubscribeOptions<'h>) -> Result<NetlinkEvents<'h>, SysError> {
        let key = key(options.netns_id, options.find.is_some());
        // A recording of all namespaces is replayed in full, whether one or all are requested.
        let key = if host.is_replay() && host.contains(KEY_ALL_NETNS) { KEY_ALL_NETNS.to_owned() } else { key };
        let blocks = host.stream(&key, "", || Ok(Box::new(open_reader(options, CHUNKS)?)))?;
        Ok(NetlinkEvents::from_blocks(blocks))
    }

    /// Reads batches from `blocks`.
    pub(crate) fn from_blocks(blocks: Box<dyn Blocks + 'h>) -> NetlinkEvents<'h> {
        NetlinkEvents {
            blocks,
            decoder: CtDecoder::new(0),
            head: BatchHeader::default(),
            told: 0,
            failed: 0,
            first_error: None,
        }
    }

    /// Waits for a batch and hands its messages to `each`, oldest first. A batch may be empty.
    pub fn next(&mut self, each: &mut dyn FnMut(&EventMessage<'_>) -> Next) -> Result<StreamState, SysError> {
        let NetlinkEvents { blocks, head, told, failed, first_error, .. } = self;
        let Some(block) = blocks.next()? else { return Ok(StreamState::Ended) };
        let mut fault = |error: DecodeError| {
            *failed += 1;
            first_error.get_or_insert(error);
        };
        match BatchHeader::parse(block) {
            Some(now) => *head = now,
            None => fault(DecodeError::Short { what: "block of events", claims: BATCH_HEADER, has: block.len() }),
        }
        for frame in DatagramFrames::new(block) {
            let frame = match frame {
                Ok(frame) if frame.netns_id == DUPLICATE => continue,
                Ok(frame) => frame,
                Err(error) => {
                    fault(error);
                    break;
                }
            };
            for message in Messages::new(frame.bytes) {
                let message = match message {
                    Ok(message) => message,
                    Err(error) => {
                        fault(DecodeError::Short { what: "nlmsghdr", claims: error.claims, has: error.has });
                        break;
                    }
                };
                let Some((kind, is_expectation)) = kind(&message) else { continue };
                *told += 1;
                let (netns_id, nsid, received_ns) = (frame.netns_id, frame.nsid, frame.wall_ns);
                let portid = message.port;
                let told = EventMessage { kind, is_expectation, netns_id, nsid, received_ns, portid, message };
                if each(&told) == Next::Stop {
                    return Ok(StreamState::Open);
                }
            }
        }
        Ok(StreamState::Open)
    }

    /// Like [`NetlinkEvents::next`], with the entries as rows. Expectations are left out, malformed messages are
    /// counted.
    pub fn next_entries(
        &mut self,
        each: &mut dyn FnMut(&EventMessage<'_>, &Conntrack<'_>) -> Next,
    ) -> Result<StreamState, SysError> {
        let mut decoder = self.decoder;
        let (mut failed, mut expectations, mut first_error) = (0, 0, None);
        let tide = self.next(&mut |told| {
            if told.is_expectation {
                expectations += 1;
                return Next::More;
            }
            decoder.set_netns(told.netns_id);
            match decoder.decode(told.message.payload) {
                Ok(row) => each(told, &row),
                Err(error) => {
                    failed += 1;
                    first_error.get_or_insert(error);
                    Next::More
                }
            }
        });
        self.decoder = decoder;
        self.told -= failed + expectations;
        self.failed += failed;
        self.first_error = self.first_error.or(first_error);
        tide
    }

    /// Number of messages that the kernel dropped so far, according to its own counter.
    pub fn lost_messages(&self) -> u64 {
        self.head.lost
    }

    /// Number of messages so far, including malformed ones.
    pub(crate) fn received_messages(&self) -> u64 {
        self.told + self.failed
    }

    /// The final accounting: `seen` counts the messages that were handed out.
    pub fn close(&mut self) -> Accounting {
        let head = self.head;
        let mut stats = Accounting {
            seen: self.told + self.failed,
            failed: self.failed,
            lost: head.lost,
            unknown_attrs: self.decoder.unknown_attrs,
            ..Accounting::default()
        };
        stats.add_backend("netlink");
        if let Some(error) = self.first_error {
            stats.add_reason(self.failed, format!("malformed messages, the first: {error}"));
        }
        if head.lost > 0 {
            stats.add_reason(head.lost, lost_text(head.buffer_bytes));
        }
        let mut incomplete = |count, text: &'static str| {
            if count > 0 {
                stats.incomplete(count, text);
            }
        };
        incomplete(
            head.alloc_failures,
            "the kernel had no memory for the message of an event: at least one event is missing",
        );
        incomplete(
            head.late,
            "namespaces appeared and were read only a moment later: their first events may be missing",
        );
        incomplete(
            head.unreachable,
            "namespaces could not be read (they cannot be entered and have no nsid here, or --buffer-total left no \
             memory for them)",
        );
        stats
    }
}

/// Says why messages were lost, and what helps.
fn lost_text(buffer_bytes: u64) -> String {
    format!(
        "events lost: the netlink buffer ({buffer_bytes} bytes) was full, and then the kernel drops all events until \
         it is empty (raise with --buffer; --resync dumps the current entries)"
    )
}

/// Name of the stream in a recording.
fn key(netns_id: u64, all_netns: bool) -> String {
    if all_netns { KEY_ALL_NETNS.to_owned() } else { format!("{KEY_ALL_NETNS}/{netns_id}") }
}

const KEY_ALL_NETNS: &str = "ctnetlink/events";

/// The kind of event, and whether it concerns an expectation; `None` if the message is not an event.
fn kind(message: &Message<'_>) -> Option<(NatEventKind, bool)> {
    let (subsystem, kind) = (message.kind >> 8, message.kind & 0xff);
    let is_expectation = match subsystem {
        NFNL_SUBSYS_CTNETLINK => false,
        NFNL_SUBSYS_CTNETLINK_EXP => true,
        _ => return None,
    };
    let kind = match kind {
        msg::CT_NEW if message.flags & CREATED != 0 => NatEventKind::New,
        msg::CT_NEW => NatEventKind::Update,
        msg::CT_DELETE => NatEventKind::Destroy,
        _ => return None,
    };
    Some((kind, is_expectation))
}

/// The kernel's time of the event (CTA_TIMESTAMP_EVENT; Linux 6.14).
pub(crate) fn event_ns(told: &EventMessage<'_>) -> Option<u64> {
    let attrs = Attrs::new(told.message.payload.get(NFGENMSG..)?);
    attrs.flatten().find(|attr| attr.kind == cta::TIMESTAMP_EVENT)?.be64().ok()
}
