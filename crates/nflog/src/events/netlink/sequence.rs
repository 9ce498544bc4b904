//! How many records the kernel could not deliver, from the numbers that it gives them.

/// Last numbers of each group that was heard. There are few: a list.
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    next: Vec<Expected>,
    /// Numbers that did not come.
    lost: u64,
}

#[derive(Debug)]
struct Expected {
    netns_id: u64,
    group: u16,
    seq: u32,
}

impl Sequences {
    /// Notes that the record with this number came. The kernel begins with 0 when a group is bound (nfulnl_instance.seq
    /// in net/netfilter/nfnetlink_log.c), so what is missing before the first record is known, too.
    pub(crate) fn note(&mut self, netns_id: u64, group: u16, seq: u32) {
        let known = self.next.iter_mut().find(|next| next.group == group && next.netns_id == netns_id);
        let (missing, next) = (|expected: u32| seq.wrapping_sub(expected), seq.wrapping_add(1));
        match known {
            Some(known) => {
                self.lost += u64::from(missing(known.seq));
                known.seq = next;
            }
            None => {
                self.lost += u64::from(missing(0));
                self.next.push(Expected { netns_id, group, seq: next });
            }
        }
    }

    /// Records that the kernel could not deliver, up to the last one that came.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_for_each_group() {
        let mut sequences = Sequences::default();
        for (netns_id, group, seq, lost) in [
            (1, 5, 0, 0),
            (1, 5, 1, 0),
            (1, 6, 2, 2),
            (1, 5, 5, 5),
            (2, 5, 0, 5),
            (1, 6, 3, 5),
            (1, 6, u32::MAX, 5 + u64::from(u32::MAX) - 4),
            (1, 6, 1, 5 + u64::from(u32::MAX) - 3),
        ] {
            sequences.note(netns_id, group, seq);
            assert_eq!(sequences.lost(), lost, "{netns_id} {group} {seq}");
        }
    }
}
