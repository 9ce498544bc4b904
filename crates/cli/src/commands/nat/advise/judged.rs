//! A namespace and what is advised for it.

use doctor::nat::{Advice, Evidence};

/// One namespace with what is advised.
pub(super) struct Judged {
    pub(super) netns_id: u64,
    /// Hostile text.
    pub(super) name: Vec<u8>,
    pub(super) evidence: Evidence,
    pub(super) advice: Advice,
}
