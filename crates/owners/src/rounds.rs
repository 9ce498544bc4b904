//! Owners of sockets, remembered for sockets that disappeared since the previous round.

use record::{Key, Lookup, Owner, Value};

/// The owners of a socket; if it has none now, its owners in the previous round.
#[derive(Debug)]
pub struct RoundOwners<L> {
    /// Owners in this round.
    pub now: L,
    /// Owners in the previous round.
    pub before: Option<L>,
    /// Pids of processes that started since then, ascending: facts about these pids no longer apply to the former
    /// owners.
    pub others: Vec<u32>,
}

impl<L: Lookup> RoundOwners<L> {
    /// Owners in a first round.
    pub fn new(now: L) -> RoundOwners<L> {
        RoundOwners { now, before: None, others: Vec::new() }
    }

    /// The previous owners, unless the pid of one of them has been reused.
    fn before(&self, key: Key) -> Option<&L> {
        let before = self.before.as_ref()?;
        let lost = |owner: &Owner| self.others.binary_search(&owner.pid).is_ok();
        (!before.owners(key).iter().any(lost)).then_some(before)
    }
}

impl<L: Lookup> Lookup for RoundOwners<L> {
    fn value(&self, key: Key) -> Value<'_> {
        match self.now.value(key) {
            Value::Null => self.before(key).map_or(Value::Null, |before| before.value(key)),
            value => value,
        }
    }

    fn owners(&self, key: Key) -> &[Owner] {
        match self.now.owners(key) {
            [] => self.before(key).map_or(&[], |before| before.owners(key)),
            owners => owners,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Comm;

    /// The owners of every key.
    struct Owned(Vec<Owner>);

    impl Lookup for Owned {
        fn value(&self, _: Key) -> Value<'_> {
            self.0.first().map_or(Value::Null, |owner| Value::U64(owner.pid.into()))
        }

        fn owners(&self, _: Key) -> &[Owner] {
            &self.0
        }
    }

    #[test]
    fn issue_10_owners_of_the_round_before_lose_to_a_process_that_took_their_number() {
        let (key, owner) = (Key::Id(1), Owner { pid: 7, fd: 3, process: Comm::new(b"x"), started: 0 });
        let mut rounds = RoundOwners::new(Owned(Vec::new()));
        assert!(rounds.owners(key).is_empty() && rounds.value(key).is_null());
        rounds.before = Some(Owned(vec![owner]));
        assert_eq!((rounds.owners(key), rounds.value(key)), (&[owner][..], Value::U64(7)));
        rounds.others = vec![5, 7];
        assert!(rounds.owners(key).is_empty() && rounds.value(key).is_null());
        rounds.now.0 = vec![Owner { pid: 8, ..owner }];
        assert_eq!((rounds.owners(key)[0].pid, rounds.value(key)), (8, Value::U64(8)));
    }
}
