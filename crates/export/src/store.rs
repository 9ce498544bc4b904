//! Where messages wait for their receiver.

use crate::{Batch, Drops, Ledger};
use std::io;
use std::str::FromStr;
use std::sync::Arc;

/// What is done with new messages while the store is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// The oldest messages that wait are dropped: what is newest is kept.
    #[default]
    DropOldest,
    /// New messages are dropped: what came first is kept.
    DropNewest,
    /// Whoever hands messages over waits. Then the kernel's buffer fills up, and the kernel counts what it drops.
    Block,
}

impl WhenFull {
    /// The words that are parsed.
    pub const WORDS: [&'static str; 3] = ["drop-oldest", "drop-newest", "block"];

    /// The word for it.
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

/// What became of a batch that was handed over.
#[derive(Debug)]
pub enum Pushed {
    /// It waits; so many messages, older ones or its own, were dropped to make room.
    Kept {
        /// Dropped messages.
        dropped: u64,
    },
    /// There is no room: here it is again.
    Full {
        /// The batch.
        batch: Batch,
        /// Messages that were dropped nevertheless.
        dropped: u64,
    },
    /// It could not be stored.
    Failed {
        /// The batch.
        batch: Batch,
        /// Why.
        error: io::Error,
    },
}

/// Messages that wait, in order and numbered without gaps, but for those that were dropped.
pub trait Store: Send {
    /// Adds a batch, which gets the numbers from [`Store::end`] on. If there is no room, messages of the class that has
    /// most of what waits are dropped, the oldest or the newest as `when_full` says, but none below `held`, which are
    /// being delivered.
    fn push(&mut self, batch: Batch, when_full: WhenFull, held: u64) -> Pushed;

    /// The batch that holds message `number`, or the first one after it; `None` if there is none.
    fn get(&mut self, number: u64) -> io::Result<Option<Arc<Batch>>>;

    /// Messages with numbers below `number` were delivered and are needed no more.
    fn release(&mut self, number: u64) -> io::Result<()>;

    /// Messages with numbers below `number` were handed to the transport: only after a fault they are asked for again.
    fn let_go(&mut self, number: u64) {
        let _ = number;
    }

    /// An empty batch in memory of earlier ones, if there is some.
    fn spare(&mut self) -> Option<Batch> {
        None
    }

    /// Frees the memory that is kept for [`Store::spare`]; true if there was some.
    fn free_spares(&mut self) -> bool {
        false
    }

    /// Frees the memory of messages below `number`, which were delivered and are needed no more: [`Store::release`] may
    /// keep those that lie in a batch with later ones.
    fn shrink(&mut self, number: u64) {
        let _ = number;
    }

    /// Number that the next message will get.
    fn end(&self) -> u64;

    /// Number of the first message that waits; [`Store::end`] if none does.
    fn begin(&self) -> u64;

    /// Bytes that wait.
    fn bytes(&self) -> u64;

    /// Most bytes of delivered messages that may stay here because the receiver may not have read them: far less than
    /// there is room for, since they are in the way of new ones.
    fn delivered_bytes_max(&self) -> u64;

    /// True if what waits survives the end of the program.
    fn is_kept(&self) -> bool;

    /// The counts of earlier runs, if what waits survives them: all zero for a new store.
    fn ledger(&self) -> Ledger;

    /// Writes what must survive, with the counts. Called when a run ends.
    fn sync(&mut self, ledger: &Ledger) -> io::Result<()>;

    /// The counts as they are now. Called after they have changed, and at least twice a second.
    fn checkpoint(&mut self, ledger: &Ledger) -> io::Result<()> {
        let _ = ledger;
        Ok(())
    }

    /// Messages that the store has given up by itself since it was last asked, beside those that a push returns.
    fn take_drops(&mut self) -> Drops {
        Drops::default()
    }

    /// The store's present fault in words, for example a full disk; `None` while it works.
    fn trouble(&self) -> Option<String> {
        None
    }
}
