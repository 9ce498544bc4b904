//! `--by`: rows counted and summed by the values of some fields.
//!
//! A key is packed into a scratch buffer, hashed once and compared as bytes; a row of a known group allocates
//! nothing. Absent values are a group of their own. Memory grows with the number of groups, not of rows.

use crate::packed_cells::PackedCells;
use crate::plan::Fold;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use record::Value;
use std::hash::BuildHasher;

/// Groups in the making.
pub(crate) struct Grouper {
    /// How many of the cells are the key; the folded ones follow.
    keys: usize,
    folds: Vec<Fold>,
    packed: PackedCells,
    scratch: Vec<u8>,
    /// Seeded at random: peers choose their addresses, they shall not choose our collisions.
    hasher: RandomState,
    table: HashTable<usize>,
    groups: Vec<Group>,
    /// One row of `folds.len()` for each group.
    totals: Vec<Total>,
}

/// One group: where its key is packed, and how many rows it stands for.
struct Group {
    /// Hash of the packed key, so that growing the table packs nothing again.
    hash: u64,
    /// Where the packed key begins.
    at: usize,
    /// Bytes of the packed key.
    len: usize,
    /// Rows.
    count: u64,
}

/// What was folded so far; which of it is shown depends on the fold.
#[derive(Clone, Copy, Default)]
struct Total {
    /// The sum, or the maximum; stays at the largest number when it would grow beyond.
    value: u64,
    /// Cells that were there.
    known: u64,
}

impl Grouper {
    /// Groups by the first `keys` cells of a row; `folds` says what happens to the others.
    pub(crate) fn new(keys: usize, folds: Vec<Fold>) -> Grouper {
        Grouper {
            keys,
            folds,
            packed: PackedCells::default(),
            scratch: Vec::with_capacity(128),
            hasher: RandomState::default(),
            table: HashTable::new(),
            groups: Vec::new(),
            totals: Vec::new(),
        }
    }

    /// Counts one row: the cells of the key, then one for each fold.
    pub(crate) fn add(&mut self, cells: &[Value<'_>]) {
        let (key, folded) = cells.split_at_checked(self.keys).unwrap_or((cells, &[]));
        let index = self.group_of(key);
        let Some(group) = self.groups.get_mut(index) else { return };
        group.count += 1;
        let totals = self.totals.get_mut(index * self.folds.len()..).unwrap_or(&mut []);
        for ((fold, total), cell) in self.folds.iter().zip(totals).zip(folded) {
            let number = match *cell {
                Value::U64(n) => n,
                Value::I64(n) => u64::try_from(n).unwrap_or(0),
                _ => continue,
            };
            total.known += 1;
            total.value = match fold {
                Fold::Max => total.value.max(number),
                Fold::Sum | Fold::Avg => total.value.saturating_add(number),
            };
        }
    }

    /// The index of the key's group; a new key gets a new one.
    fn group_of(&mut self, key: &[Value<'_>]) -> usize {
        self.scratch.clear();
        for cell in key {
            self.packed.side().pack(cell, &mut self.scratch);
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
        let index = self.groups.len();
        let at = self.packed.put_bytes(&self.scratch);
        self.groups.push(Group { hash, at, len: self.scratch.len(), count: 0 });
        self.totals.resize(self.totals.len() + self.folds.len(), Total::default());
        let groups = &self.groups;
        self.table.insert_unique(hash, index, |&i| groups.get(i).map_or(0, |group| group.hash));
        index
    }

    /// Hands out each group: the key's cells, the count, one cell a fold. In the order of first appearance.
    pub(crate) fn finish(&self, mut each: impl FnMut(&[Value<'_>])) {
        let mut cells = Vec::with_capacity(self.keys + 1 + self.folds.len());
        if self.keys == 0 && self.groups.is_empty() {
            // Without keys there is one group, even of nothing.
            cells.push(Value::U64(0));
            cells.extend(self.folds.iter().map(|_| Value::Null));
            return each(&cells);
        }
        for (index, group) in self.groups.iter().enumerate() {
            let mut key = self.packed.read(group.at);
            cells.clear();
            cells.extend((0..self.keys).map(|_| key.cell()));
            cells.push(Value::U64(group.count));
            let totals = self.totals.get(index * self.folds.len()..).unwrap_or(&[]);
            cells.extend(self.folds.iter().zip(totals).map(|(fold, total)| total.cell(*fold)));
            each(&cells);
        }
    }
}

impl Total {
    /// Null if no cell was there.
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
