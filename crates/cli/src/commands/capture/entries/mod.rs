//! Assigns a conntrack entry to each captured packet, to show its NAT (docs/adr/0024, 0027).
//!
//! A helper process queries the kernel, which requires CAP_NET_ADMIN. It receives addresses and ports only, and no
//! other bytes of a packet.

mod process;
mod stream;

pub(crate) use process::{NAME, run};
pub(super) use stream::PacketEntries;

use super::Capture;
use engine::Plan;
use lookups::packet_entries::{EntryLookups, RemoteAnswers, UnknownWords, receive};
use record::rows::{CapturedPackets, capture_need};
use runtime::helper_process;
use runtime::messages::say;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use sys::Blocks;

/// Time limit for the queries of one batch. After it is exceeded, no more queries are made.
///
/// Bound: for the kernel's answers about the connections of a batch. Beyond: further packets have no connection;
/// reported (exit code 3). By: a broken kernel.
const ANSWER: Duration = Duration::from_secs(5);

/// Messages about packets without their entry.
const WORDS: UnknownWords = UnknownWords {
    unknown: "connections of packets cannot be looked up",
    missing: "packets without a conntrack entry: not confirmed (the first packet was dropped by a rule), invalid, \
              untracked or removed; or not found: in another zone than 0, or captured between two address \
              translations",
    several: "packets that match two connections: neither is shown",
    reused: "packets without their connection: another connection uses its ports by now",
    without: "packets without their connection",
};

/// Prepares lookups of entries if the plan, or the written file, needs them.
pub(super) fn lookups(
    capture: &Capture,
    plan: &Plan<CapturedPackets>,
) -> Result<Option<EntryLookups<'static>>, String> {
    if plan.demand().need & capture_need::ENTRY == 0 || capture.request.explain {
        return Ok(None);
    }
    let failed = |error: io::Error| format!("cannot look up connections of packets: {error}");
    let mut stream = helper_process::start(NAME, process::words(capture.request.all_netns)).map_err(failed)?;
    stream.set_read_timeout(Some(ANSWER)).map_err(failed)?;
    stream.set_write_timeout(Some(ANSWER)).map_err(failed)?;
    let mut opened = Vec::new();
    let trouble = Some(receive(&mut stream, &mut opened).map_err(failed)?).filter(|trouble| !trouble.is_empty());
    if let Some(error) = &trouble {
        say(&format!("{}: {error}", WORDS.unknown));
    }
    let questions = Rc::new(RefCell::default());
    let remote = || Box::new(RemoteAnswers::new(Rc::clone(&questions), stream)) as Box<dyn Blocks>;
    let answers = (opened != process::NOTHING).then(remote);
    Ok(Some(EntryLookups::new(questions, answers, trouble)))
}
