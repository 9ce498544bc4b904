//! `--by`: counts and folds rows by the values of some fields.
//!
//! A key is packed into a scratch buffer, hashed once and compared as bytes; a row of a known group allocates nothing.
//! Absent values form a separate group. Memory grows with the number of groups, not of rows.
//!
//! In a stream, the senders of packets choose the number of groups, so there it is bounded ([`GroupBound`]). At the
//! bound, the groups with the least weight (at least half of them) are folded into the group without keys. A group's
//! weight is its number of rows, minus the highest weight that was folded at each earlier folding (Misra and Gries,
//! 1982). Groups that had many rows long ago therefore make room, and a group with more than `2 / groups` of all rows
//! exists at the end, for any order and content of the other rows. Its line may lack as many rows as came before it
//! was once folded; those are in the group without keys, so that all lines together are complete.

use crate::packed_cells::PackedCells;
use crate::plan::{Fold, GROUPS_MAX, GroupBound, KeyPart};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use record::Value;
use std::hash::BuildHasher;

/// The reason in the footer if groups were folded.
pub(crate) fn folded_reason() -> String {
    format!(
        "small groups are counted together, in the row without keys: there were more than {GROUPS_MAX} groups at a \
         time (use a filter or fewer fields)"
    )
}

/// Groups that are being counted.
pub(crate) struct Grouper {
    /// The part of each leading cell that forms the key; the folded cells follow.
    keys: Vec<KeyPart>,
    folds: Vec<Fold>,
    packed: PackedCells,
    scratch: Vec<u8>,
    /// Seeded at random: peers choose their addresses, but must not be able to choose collisions.
    hasher: RandomState,
    table: HashTable<usize>,
    groups: Vec<Group>,
    /// `folds.len()` totals for each group.
    totals: Vec<Total>,
    bound: GroupBound,
    /// The folded groups.
    others: OtherGroups,
}

/// Groups that are counted together.
struct OtherGroups {
    /// Number of rows.
    count: u64,
    /// One total for each fold.
    totals: Vec<Total>,
}

/// A group: the place of its packed key, and its number of rows.
struct Group {
    /// Hash of the packed key, so that growing the table need not pack it again.
    hash: u64,
    /// Offset of the packed key.
    at: usize,
    /// Length of the packed key in bytes.
    len: usize,
    /// Number of rows.
    count: u64,
    /// Number of rows, minus the amounts subtracted when other groups were folded.
    weight: u64,
}

/// The state of one fold; the fold decides what is shown of it.
#[derive(Clone, Copy, Default)]
struct Total {
    /// The sum or the maximum; saturates at the largest number.
    value: u64,
    /// Number of cells with a value.
    known: u64,
}

impl Grouper {
    /// Groups rows by these parts of their leading cells; `folds` defines how the other cells are folded.
    pub(crate) fn new(keys: Vec<KeyPart>, folds: Vec<Fold>, bound: GroupBound) -> Grouper {
        Grouper {
            keys,
            bound,
            others: OtherGroups { count: 0, totals: vec![Total::default(); folds.len()] },
            folds,
            packed: PackedCells::default(),
            scratch: Vec::with_capacity(128),
            hasher: RandomState::default(),
            table: HashTable::new(),
            groups: Vec::new(),
            totals: Vec::new(),
        }
    }

    /// Counts a row: the cells of the key, then one for each fold.
    pub(crate) fn add(&mut self, cells: &[Value<'_>]) {
        let (key, folded) = cells.split_at_checked(self.keys.len()).unwrap_or((cells, &[]));
        let index = self.group_of(key);
        let Some(group) = self.groups.get_mut(index) else { return };
        group.count += 1;
        group.weight += 1;
        let totals = self.totals.get_mut(index * self.folds.len()..).unwrap_or(&mut []);
        for ((fold, total), cell) in self.folds.iter().zip(totals).zip(folded) {
            let number = match *cell {
                Value::U64(n) => n,
                Value::I64(n) => u64::try_from(n).unwrap_or(0),
                _ => continue,
            };
            total.known += 1;
            total.value = fold.fold(total.value, number);
        }
    }

    /// Returns the index of the key's group; a new key gets a new group.
    fn group_of(&mut self, key: &[Value<'_>]) -> usize {
        self.scratch.clear();
        for (cell, part) in key.iter().zip(&self.keys) {
            self.packed.side().pack(&part.take_from(cell.without_other_owners()), &mut self.scratch);
        }
        let hash = self.hasher.hash_one(&*self.scratch);
        let is_it = |&index: &usize| {
            self.groups
                .get(index)
                .is_some_and(|group| group.hash == hash && self.packed.bytes(group.at, group.len) == &*self.scratch)
        };
        if let Some(index) = self.table.find(hash, is_it) {
            return *index;
        }
        let bytes = self.packed.len().saturating_add(self.scratch.len());
        if self.groups.len() >= self.bound.groups || bytes > self.bound.bytes {
            self.fold_small();
        }
        let index = self.groups.len();
        let at = self.packed.put_bytes(&self.scratch);
        self.groups.push(Group { hash, at, len: self.scratch.len(), count: 0, weight: 0 });
        self.totals.resize(self.totals.len() + self.folds.len(), Total::default());
        let groups = &self.groups;
        self.table.insert_unique(hash, index, |&i| groups.get(i).map_or(0, |group| group.hash));
        index
    }

    /// Folds the groups with the least weight, so that at most half of the bound remains. Sorts all groups, which
    /// takes a few ms, at most once per half of the bound in new groups.
    #[cold]
    fn fold_small(&mut self) {
        let mut weights: Vec<(u64, usize)> = self.groups.iter().map(|group| (group.weight, group.len)).collect();
        weights.sort_unstable_by(|a, b| b.cmp(a));
        let (mut bytes, groups_max, bytes_max) = (0_usize, self.bound.groups / 2, self.bound.bytes / 2);
        let level = weights.iter().enumerate().find(|(place, (_, len))| {
            bytes = bytes.saturating_add(*len);
            *place >= groups_max || bytes > bytes_max
        });
        let Some((_, &(level, _))) = level else { return };
        let (groups, totals) = (std::mem::take(&mut self.groups), std::mem::take(&mut self.totals));
        let packed = self.packed.take_bytes();
        self.table.clear();
        for (index, mut group) in groups.into_iter().enumerate() {
            let first = index * self.folds.len();
            let own = totals.get(first..first + self.folds.len()).unwrap_or(&[]);
            if group.weight <= level {
                self.others.add(group.count, own, &self.folds);
                continue;
            }
            group.weight -= level;
            let key = packed.get(group.at..group.at + group.len).unwrap_or(&[]);
            group.at = self.packed.put_bytes(key);
            let place = self.groups.len();
            self.groups.push(group);
            self.totals.extend_from_slice(own);
            let groups = &self.groups;
            let hash_of = |&i: &usize| groups.get(i).map_or(0, |group: &Group| group.hash);
            self.table.insert_unique(hash_of(&place), place, hash_of);
        }
    }

    /// Returns the number of rows in folded groups.
    pub(crate) fn folded_rows(&self) -> u64 {
        self.others.count
    }

    /// Passes each group to `each`: the key's cells, the count, one cell per fold. The groups are in order of first
    /// appearance; folded ones are in the group whose keys are all absent.
    pub(crate) fn finish(&self, mut each: impl FnMut(&[Value<'_>])) {
        let mut cells = Vec::with_capacity(self.keys.len() + 1 + self.folds.len());
        if self.keys.is_empty() && self.groups.is_empty() {
            // A request without keys has exactly one group, even without rows.
            cells.push(Value::U64(0));
            cells.extend(self.folds.iter().map(|_| Value::Null));
            return each(&cells);
        }
        let mut others = OtherGroups { count: self.others.count, totals: self.others.totals.clone() };
        for (index, group) in self.groups.iter().enumerate() {
            let mut key = self.packed.read(group.at);
            cells.clear();
            cells.extend(self.keys.iter().map(|_| key.cell()));
            let totals = self.totals.get(index * self.folds.len()..).unwrap_or(&[]);
            if self.others.count > 0 && cells.iter().all(|cell| *cell == Value::Null) {
                others.add(group.count, totals, &self.folds);
                continue;
            }
            cells.push(Value::U64(group.count));
            cells.extend(self.folds.iter().zip(totals).map(|(fold, total)| total.cell(*fold)));
            each(&cells);
        }
        if self.others.count > 0 {
            cells.clear();
            cells.extend(self.keys.iter().map(|_| Value::Null));
            cells.push(Value::U64(others.count));
            cells.extend(self.folds.iter().zip(&others.totals).map(|(fold, total)| total.cell(*fold)));
            each(&cells);
        }
    }
}

impl OtherGroups {
    /// Adds a group.
    fn add(&mut self, count: u64, totals: &[Total], folds: &[Fold]) {
        self.count += count;
        for ((all, total), fold) in self.totals.iter_mut().zip(totals).zip(folds) {
            all.known += total.known;
            all.value = fold.fold(all.value, total.value);
        }
    }
}

impl Fold {
    /// Folds two values, or two intermediate results, into one. A mean is computed from a sum.
    fn fold(self, value: u64, other: u64) -> u64 {
        match self {
            Fold::Max => value.max(other),
            Fold::Sum | Fold::Avg => value.saturating_add(other),
        }
    }
}

impl Total {
    /// Returns the result; null if no cell had a value.
    fn cell(self, fold: Fold) -> Value<'static> {
        match (fold, self.known) {
            (_, 0) => Value::Null,
            (Fold::Sum | Fold::Max, _) => Value::U64(self.value),
            (Fold::Avg, n) => {
                let (whole, rest) = (self.value / n, self.value % n);
                Value::U64(whole + u64::from(rest >= n - rest))
            }
        }
    }
}

#[cfg(test)]
mod tests;
