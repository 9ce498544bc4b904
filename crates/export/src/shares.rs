//! Shares of a bounded table: which class may add an entry (docs/adr/0015, docs/adr/0020).

use std::collections::HashMap;

/// Counts the entries of each class of a table. All classes may use the first half; after that, a class may have as
/// many entries as there are free ones. A hostile sender that makes entries of one class therefore leaves room for
/// others.
#[derive(Debug)]
pub(crate) struct Shares {
    entries: usize,
    entries_max: usize,
    by_class: HashMap<u16, usize>,
}

impl Shares {
    pub(crate) fn new(entries_max: usize) -> Shares {
        Shares { entries: 0, entries_max, by_class: HashMap::new() }
    }

    /// Counts a new entry of `class`; returns false if there is no room for it.
    pub(crate) fn take(&mut self, class: u16) -> bool {
        let left = self.entries_max - self.entries;
        if left == 0 {
            return false;
        }
        let own = self.by_class.entry(class).or_insert(0);
        if self.entries >= self.entries_max / 2 && *own >= left {
            return false;
        }
        *own += 1;
        self.entries += 1;
        true
    }

    /// Removes an entry of `class`.
    pub(crate) fn remove_entry(&mut self, class: u16) {
        let Some(own) = self.by_class.get_mut(&class) else { return };
        self.entries -= 1;
        *own -= 1;
        if *own == 0 {
            self.by_class.remove(&class);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_class_leaves_room_for_others() {
        let mut shares = Shares::new(1000);
        let mut take = |class| (0..2000).filter(|_| shares.take(class)).count();
        assert_eq!((take(1), take(2), take(3)), (500, 250, 125));
        assert_eq!(take(1), 0);
        (0..500).for_each(|_| shares.remove_entry(1));
        shares.remove_entry(77);
        assert_eq!((shares.entries, shares.by_class.len()), (375, 2));
    }
}
