//! The maximum number of groups.

/// Bound: groups of a stream at a time (`--by` of packets, log records and single drops). Beyond: at least half of the
/// groups, the smallest, become one line without keys; reported (exit code 3). A group with more than one in 32,768 of
/// all rows stays (`group::a_flood_of_groups_pushes_no_heavy_one_out`). By: any sender of packets, for small groups.
pub const GROUPS_MAX: usize = 65_536;
/// Bound: bytes of the keys of these groups (`capture_groups::root_a_flood_of_senders_is_bounded_and_hides_no_group`).
/// Beyond: the smallest groups become one line without keys; reported (exit code 3). By: any sender of packets with
/// long texts.
const KEYS_BYTES_MAX: usize = 32 << 20;

/// The most groups at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupBound {
    /// Number of groups.
    pub(crate) groups: usize,
    /// Bytes of their packed keys; one key may exceed this.
    pub(crate) bytes: usize,
}

impl GroupBound {
    /// For rows from outside: about 16 MiB with usual keys.
    pub(crate) const OF_STREAMS: GroupBound = GroupBound { groups: GROUPS_MAX, bytes: KEYS_BYTES_MAX };
    /// For rows of the host's own tables, which are bounded themselves: 2 million conntrack entries are counted
    /// exactly.
    pub(crate) const NONE: GroupBound = GroupBound { groups: usize::MAX, bytes: usize::MAX };
}
