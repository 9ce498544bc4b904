//! Rows of one round compared with those of the round before: what is new, what is gone, how fast counters grow.
//!
//! [`Memory`] lives as long as the rounds do; [`Watching`] stands between a source and a plan for one of them. Knows
//! rows only by [`Watchable`]; what a counter is, and where it comes from, is the table's business.
//!
//! # How a row is found again
//!
//! The kernel walks its tables in an order that changes only where sockets come and go. So the memory is a list with a
//! link from each row to the one that came behind it: nearly always that is the next one, and finding it is a look at
//! memory that lies side by side. Only where the guess fails, the index is asked (a hash table of identities).

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use record::rows::{Change, Counters, Identity, Pace, Watchable, Watched};
use record::{Accounting, Demand, Each, Next, Offer, Source, SourceError, field_index};
use std::hash::BuildHasher;

/// How many rows are remembered at most: about 128 bytes each for sockets, so 256 MiB. More are shown, but neither
/// found again nor missed; the accounting says so.
pub const ROWS_MAX: usize = 2 << 20;

/// What was not seen for so many rounds that were not whole (`--limit` ended them) is forgotten: it cannot be known to
/// be gone.
const ROUNDS_UNSEEN_MAX: u32 = 16;

/// No row.
const NONE: u32 = u32::MAX;

/// One remembered row.
struct Entry<K> {
    identity: Identity,
    /// When it was seen last.
    seen_ns: u64,
    counters: Option<Counters>,
    /// The round it was seen in last.
    round: u32,
    /// Place of the row that came behind it.
    next: u32,
    kept: K,
}

/// What is remembered from round to round.
pub struct Memory<T: Watchable> {
    rows_max: usize,
    /// `None`: a place that is free.
    rows: Vec<Option<Entry<T::Kept>>>,
    free: Vec<u32>,
    index: HashTable<u32>,
    hasher: RandomState,
    secret: u64,
    /// 0 before the first.
    round: u32,
    now_ns: u64,
    /// The row seen last, and the first of the round.
    last: u32,
    first: u32,
    /// The round before was read to its end, so that what it had not is new.
    whole: bool,
    left_out: u64,
}

impl<T: Watchable> Default for Memory<T> {
    fn default() -> Memory<T> {
        Memory::with_rows(ROWS_MAX)
    }
}

impl<T: Watchable> Memory<T> {
    /// A memory of at most `rows_max` rows.
    pub fn with_rows(rows_max: usize) -> Memory<T> {
        let hasher = RandomState::default();
        Memory {
            rows_max: rows_max.min(NONE as usize),
            rows: Vec::new(),
            free: Vec::new(),
            index: HashTable::new(),
            secret: hasher.hash_one(NONE),
            hasher,
            round: 0,
            now_ns: 0,
            last: NONE,
            first: NONE,
            whole: false,
            left_out: 0,
        }
    }

    /// A new round begins at `now_ns` of a clock that does not jump.
    fn begin(&mut self, now_ns: u64) {
        self.round = self.round.saturating_add(1);
        self.now_ns = now_ns;
        self.last = NONE;
        self.left_out = 0;
    }

    /// What is known of this row; from now on it is remembered.
    #[inline]
    fn meet(&mut self, row: &T::Row<'_>) -> Watched {
        let (identity, counters) = (T::identity(row, self.secret), T::counters(row));
        let Some(place) = self.find(identity) else { return self.add(row, identity, counters) };
        self.link(place);
        let (round, now_ns) = (self.round, self.now_ns);
        let Some(Some(entry)) = self.rows.get_mut(place as usize) else { return Watched::default() };
        if entry.round == round {
            // It came twice: what is known of it was said the first time.
            return Watched { change: (round > 1).then_some(Change::Kept), pace: None };
        }
        let same = T::is_same(&entry.kept, row);
        let interval_ns = now_ns.saturating_sub(entry.seen_ns);
        let pace = match (entry.counters, counters) {
            (Some(before), Some(now)) if same => Some(Pace { before, now, interval_ns }),
            _ => None,
        };
        (entry.round, entry.seen_ns, entry.counters, entry.kept) = (round, now_ns, counters, T::keep(row));
        // What was there under this identity is gone, and this row took its place: it is shown, the other is not.
        Watched { change: Some(if same { Change::Kept } else { Change::New }), pace }
    }

    /// The place of a row: guessed from the order of the round before, else looked up.
    #[inline]
    fn find(&self, identity: Identity) -> Option<u32> {
        let guess = match self.rows.get(self.last as usize) {
            Some(Some(last)) => last.next,
            _ => self.first,
        };
        match self.rows.get(guess as usize) {
            Some(Some(entry)) if entry.identity == identity => Some(guess),
            _ => self.look_up(identity),
        }
    }

    fn look_up(&self, identity: Identity) -> Option<u32> {
        let is_it = |place: &u32| matches!(self.rows.get(*place as usize), Some(Some(e)) if e.identity == identity);
        self.index.find(self.hasher.hash_one(identity), is_it).copied()
    }

    /// The row at `place` was seen behind the last one.
    #[inline]
    fn link(&mut self, place: u32) {
        match self.rows.get_mut(self.last as usize) {
            Some(Some(last)) => last.next = place,
            _ => self.first = place,
        }
        self.last = place;
    }

    fn add(&mut self, row: &T::Row<'_>, identity: Identity, counters: Option<Counters>) -> Watched {
        // Without a whole round before, nobody knows whether it was there.
        let change = (self.round > 1 && self.whole).then_some(Change::New);
        let watched = Watched { change, pace: None };
        let kept = T::keep(row);
        let entry = Entry { identity, seen_ns: self.now_ns, counters, round: self.round, next: NONE, kept };
        let Some(place) = self.room() else {
            self.left_out += 1;
            // It may have been left out before as well.
            return Watched::default();
        };
        if let Some(slot) = self.rows.get_mut(place as usize) {
            *slot = Some(entry);
        }
        let (rows, hasher) = (&self.rows, &self.hasher);
        let hash_at = |place: &u32| match rows.get(*place as usize) {
            Some(Some(entry)) => hasher.hash_one(entry.identity),
            _ => 0,
        };
        self.index.insert_unique(hasher.hash_one(identity), place, hash_at);
        self.link(place);
        watched
    }

    /// A place for one row more.
    fn room(&mut self) -> Option<u32> {
        if let Some(place) = self.free.pop() {
            return Some(place);
        }
        if self.rows.len() >= self.rows_max {
            return None;
        }
        let place = u32::try_from(self.rows.len()).ok()?;
        self.rows.push(None);
        Some(place)
    }

    /// Forgets the rows that were not seen in this round and hands each to `each`, if the round was `whole`; otherwise
    /// only those that nobody has seen for long.
    fn end(&mut self, whole: bool, each: &mut dyn FnMut(&T::Row<'_>)) {
        let keep_from = if whole { self.round } else { self.round.saturating_sub(ROUNDS_UNSEEN_MAX) };
        let watched = Watched { change: Some(Change::Gone), pace: None };
        for place in 0..self.rows.len() {
            let Some(slot) = self.rows.get_mut(place) else { break };
            if slot.as_ref().is_none_or(|entry| entry.round >= keep_from) {
                continue;
            }
            let Some(entry) = slot.take() else { continue };
            if let Ok(place) = u32::try_from(place) {
                let found = self.index.find_entry(self.hasher.hash_one(entry.identity), |at| *at == place);
                if let Ok(found) = found {
                    found.remove();
                }
                self.free.push(place);
            }
            if whole {
                each(&T::gone(entry.identity, &entry.kept, &watched));
            }
        }
        self.whole = whole;
    }
}

/// A source whose rows know what they were in the round before.
///
/// Rows that are gone come last, if the demand has `change` in it; as what they were when they were seen last, they
/// have passed the part of the filter that the source does. What no longer passes that part is gone, too.
pub struct Watching<'s, T: Watchable> {
    source: &'s mut dyn Source<T>,
    memory: &'s mut Memory<T>,
    now_ns: u64,
}

impl<'s, T: Watchable> Watching<'s, T> {
    /// One round over `source`, at `now_ns` of a clock that does not jump (in a replay: the recorded time).
    pub fn new(source: &'s mut dyn Source<T>, memory: &'s mut Memory<T>, now_ns: u64) -> Watching<'s, T> {
        Watching { source, memory, now_ns }
    }
}

/// True if some field of the demand is about the round before.
fn is_wanted<T: Watchable>(demand: &Demand<T>) -> bool {
    let about = |&i: &usize| T::FIELDS.get(i).is_some_and(|f| f.name == CHANGE || f.name.ends_with("_per_s"));
    demand.fields.iter().any(about)
}

/// The field that asks for rows that are gone.
const CHANGE: &str = "change";

impl<T: Watchable> Source<T> for Watching<'_, T> {
    fn offer(&self, demand: &Demand<T>) -> Offer {
        self.source.offer(demand)
    }

    fn run(&mut self, demand: &Demand<T>, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        if !is_wanted(demand) {
            return self.source.run(demand, each);
        }
        let memory = &mut *self.memory;
        memory.begin(self.now_ns);
        let mut stopped = false;
        let read = self.source.run(demand, &mut |row| {
            let watched = memory.meet(row);
            let next = each(&T::watched(row, &watched));
            stopped |= next == Next::Stop;
            next
        });
        let mut books = match read {
            Ok(books) => books,
            Err(error) => {
                memory.end(false, &mut |_| {});
                return Err(error);
            }
        };
        let whole = !stopped && !books.is_partial();
        let wanted = field_index::<T>(CHANGE).is_some_and(|change| demand.fields.contains(&change));
        memory.end(whole, &mut |row| {
            if wanted && !stopped {
                stopped = each(row) == Next::Stop;
            }
        });
        if memory.left_out > 0 {
            let words = format!("more than {} rows: the others have no rates and are not missed", memory.rows_max);
            books.because(memory.left_out, words);
        }
        Ok(books)
    }
}

#[cfg(test)]
mod tests;
