//! Stores, in which messages wait for their receiver.

use crate::{Batch, Drops, Ledger};
use std::io;
use std::str::FromStr;
use std::sync::Arc;

/// What to do with new messages while the store is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// Drop the oldest waiting messages and keep the newest.
    #[default]
    DropOldest,
    /// Drop new messages and keep the oldest.
    DropNewest,
    /// Make the thread that hands messages over wait. Then the kernel's buffer fills up, and the kernel counts its
    /// drops.
    Block,
}

impl WhenFull {
    /// The words for the policies.
    pub const WORDS: [&'static str; 3] = ["drop-oldest", "drop-newest", "block"];

    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            WhenFull::DropOldest => "drop-oldest",
            WhenFull::DropNewest => "drop-newest",
            WhenFull::Block => "block",
        }
    }
}

impl FromStr for WhenFull {
    type Err = ();

    fn from_str(word: &str) -> Result<WhenFull, ()> {
        match word {
            "drop-oldest" => Ok(WhenFull::DropOldest),
            "drop-newest" => Ok(WhenFull::DropNewest),
            "block" => Ok(WhenFull::Block),
            _ => Err(()),
        }
    }
}

/// The result of a push.
#[derive(Debug)]
pub enum PushOutcome {
    /// The batch waits. To make room, this many messages were dropped, older ones or its own.
    Kept {
        /// Dropped messages.
        dropped: u64,
    },
    /// There is no room; the batch is returned.
    Full {
        /// The batch.
        batch: Batch,
        /// Messages that were dropped nevertheless.
        dropped: u64,
    },
}

/// A queue of messages, in order, numbered without gaps except for dropped messages.
pub trait Store: Send {
    /// Adds a batch, which gets the numbers from [`Store::end`] on. If there is no room, drops messages of the class
    /// with the most waiting bytes: the oldest or the newest, according to `when_full`, but none below `held`, which
    /// are being delivered.
    fn push(&mut self, batch: Batch, when_full: WhenFull, held: u64) -> PushOutcome;

    /// Returns the batch with message `number`, or the first batch after it; `None` without either.
    fn get(&mut self, number: u64) -> io::Result<Option<Arc<Batch>>>;

    /// Releases messages with numbers below `number`: they were delivered and are no longer needed.
    fn release(&mut self, number: u64) -> io::Result<()>;

    /// Reports that messages with numbers below `number` were handed to the transport. They are requested again only
    /// after a fault.
    fn note_sent(&mut self, number: u64) {
        let _ = number;
    }

    /// Returns an empty batch in the memory of an earlier one, if there is one.
    fn take_spare(&mut self) -> Option<Batch> {
        None
    }

    /// Frees the memory kept for [`Store::take_spare`]; returns true if there was some.
    fn free_spares(&mut self) -> bool {
        false
    }

    /// Frees the memory of messages below `number`, which were delivered and are no longer needed. [`Store::release`]
    /// may keep those that share a batch with later messages.
    fn shrink(&mut self, number: u64) {
        let _ = number;
    }

    /// Number of the next message that is added.
    fn end(&self) -> u64;

    /// Number of the first message that waits; [`Store::end`] if none waits.
    fn begin(&self) -> u64;

    /// Bytes of the messages that wait.
    fn bytes(&self) -> u64;

    /// Most bytes of delivered messages that may stay here because the receiver may not have read them. Far less than
    /// the store's size, because they take room from new messages.
    fn delivered_bytes_max(&self) -> u64;

    /// True if waiting messages survive the end of the program.
    fn is_persistent(&self) -> bool;

    /// The counts of earlier runs, if messages survive them; all zero for a new store.
    fn ledger(&self) -> Ledger;

    /// Writes everything that must survive, with the counts. Called when a run ends.
    fn sync(&mut self, ledger: &Ledger) -> io::Result<()>;

    /// Keeps a transport's note ([`Transport::prepare`](crate::Transport::prepare)) for a later run, with the counts. A
    /// fault of the disk is reported by [`Store::fault_text`], and does not keep messages from being sent.
    fn keep_note(&mut self, note: Vec<u8>, ledger: &Ledger) {
        let _ = (note, ledger);
    }

    /// The note of an earlier run.
    fn note(&self) -> Option<&[u8]> {
        None
    }

    /// Takes the current counts. Called after they have changed, and at least twice a second.
    fn checkpoint(&mut self, ledger: &Ledger) -> io::Result<()> {
        let _ = ledger;
        Ok(())
    }

    /// Returns and clears the messages that the store dropped by itself, in addition to those that a push returns.
    fn take_drops(&mut self) -> Drops {
        Drops::default()
    }

    /// The store's present fault in words, for example a full disk; `None` while it works.
    fn fault_text(&self) -> Option<String> {
        None
    }
}
