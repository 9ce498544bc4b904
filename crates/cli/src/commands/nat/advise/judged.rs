//! A namespace, and the advice for it.

use doctor::nat::{Advice, Evidence};

/// A namespace, and the advice for it.
pub(super) struct Judged {
    pub(super) netns_id: u64,
    /// Untrusted text.
    pub(super) name: Vec<u8>,
    pub(super) evidence: Evidence,
    pub(super) advice: Advice,
}
