//! The process that queries entries from the kernel.

use lookups::packet_entries::{answer_all, open_queries, send};
use lookups::session::{Session, SessionTarget};
use record::Accounting;
use runtime::exit::Exit;
use runtime::helper_process;
use std::ffi::OsString;
use sys::caps::{Cap, CapSet};
use sys::rights;

/// The program name that selects this process.
pub(crate) const NAME: &str = "netwren-entries";

/// The first message: whether any queries are possible.
const SOMETHING: &[u8] = b"1";
pub(super) const NOTHING: &[u8] = b"0";

/// Its command line: whether all namespaces are queried, or only the one that it is started in.
pub(super) fn words(all_netns: bool) -> [&'static str; 1] {
    [if all_netns { "1" } else { "0" }]
}

/// Answers questions from stdin, a socket, until its other end is closed. First reports whether the kernel can be
/// queried. Keeps only CAP_NET_ADMIN, which each query requires, and opens no files or sockets from then on.
pub(crate) fn run(mut words: impl Iterator<Item = OsString>) -> Exit {
    let Some(all_netns) = words.next().map(|word| word == "1") else { return Exit::Usage };
    let Some(mut stream) = helper_process::begin(NAME) else { return Exit::Usage };
    let Ok(session) = Session::open(SessionTarget { all_netns, ..SessionTarget::default() }) else {
        return Exit::Failed;
    };
    session.find_namespaces(None, &mut Accounting::default());
    let mut trouble = None;
    let mut queries = open_queries(&session, &mut trouble);
    rights::keep_open_only(CapSet::of(&[Cap::NetAdmin]));
    let opened = if queries.is_empty() { NOTHING } else { SOMETHING };
    if send(&mut stream, opened, trouble.as_deref().unwrap_or_default()).is_err() {
        return Exit::Failed;
    }
    // The end of the other process also appears as an error.
    let _ = answer_all(&mut stream, &mut queries);
    Exit::Ok
}
