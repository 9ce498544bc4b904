//! Rows of `netwren nat advise`: the conntrack table of a namespace and advice about its size.

use crate::table::{fields, stored_once};
use crate::{Field, Kind, List, Member, Show, Table, Value};

/// The table of advice.
pub enum NatAdvices {}

/// The advice for one network namespace. Unknown values are `None`.
pub struct NatAdvice<'b> {
    /// Name of the namespace.
    pub netns: &'b [u8],
    /// Inode of the namespace.
    pub netns_id: u64,
    /// The state of the table in one word, one of [`NatAdvice::VERDICTS`].
    pub verdict: &'static str,
    /// Numbers, indexed by [`AdviceNumber`].
    pub numbers: [Value<'static>; AdviceNumber::COUNT],
    /// Ranges of source ports that are exhausted.
    pub ports_used_up: &'b (dyn List + 'b),
    /// File name of the timeout that applies to most entries.
    pub timeout: Option<&'static str>,
    /// Arguments for `sysctl -w` that set limit and buckets.
    pub sysctl: &'b Vec<String>,
    /// Arguments for `sysctl -w` that set the timeout.
    pub sysctl_timeouts: &'b Vec<String>,
    /// Reasons, as sentences.
    pub reasons: &'b Vec<String>,
}

impl NatAdvice<'_> {
    /// The words of `verdict`, worst last.
    pub const VERDICTS: &'static [&'static str] =
        &["unknown", "roomy", "crowded", "filling", "refusing", "evicting", "full"];
}

/// Members of an exhausted range of source ports.
const OF_PORTS: &[Member] = &[
    Member { name: "proto", kind: Kind::Text },
    Member { name: "snat_addr", kind: Kind::Addr },
    Member { name: "dest_addr", kind: Kind::Addr },
    Member { name: "dest_port", kind: Kind::Port },
    Member { name: "used", kind: Kind::Count },
    Member { name: "ports", kind: Kind::Count },
    Member { name: "first_port", kind: Kind::Port },
    Member { name: "last_port", kind: Kind::Port },
    Member { name: "is_by_rule", kind: Kind::Bool },
];

macro_rules! numbers {
    ($($variant:ident $name:literal $kind:ident $show:ident $doc:literal;)*) => {
        /// A number of a [`NatAdvice`]: its index in `numbers`.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum AdviceNumber {
            $(#[doc = $doc] $variant,)*
        }

        impl AdviceNumber {
            /// How many numbers there are.
            pub const COUNT: usize = [$($name),*].len();
        }

        const NUMBERS: [F; AdviceNumber::COUNT] = [
            $(F::own($name, Kind::$kind,
                |row| row.numbers[AdviceNumber::$variant as usize]).doc($doc).show(Show::$show),)*
        ];
    };
}

type F = Field<NatAdvices>;

numbers! {
    Entries "entries" Count Default "Entries at the last sample.";
    Max "max" Count Default "Limit of entries (nf_conntrack_max).";
    Buckets "buckets" Count Wide "Buckets of the hash table.";
    Samples "samples" Count Wide "Number of samples: how often the counters were read.";
    IntervalMs "interval_ms" DurationMs Wide "Time between the first and the last sample.";
    Peak "peak" Count Wide "Largest number of entries in any sample.";
    GrowthPerS "growth_per_s" Count Wide "Growth of the entries per second.";
    SteadyGrowthPerS "steady_growth_per_s" Count Wide "Growth per second that continued through all samples.";
    FullInS "full_in_s" DurationS Default "Time until the table is full if the growth continues.";
    Expired "expired" Count Wide "Expired entries that still count towards the limit.";
    Drop "drop" Count Wide "Packets dropped because no entry could be created: the table was full or memory ran out.";
    DropDelta "drop_delta" Count Wide "Increase of `drop` between the first and last sample.";
    EarlyDrop "early_drop" Count Wide "Entries evicted early to make room for new ones.";
    EarlyDropDelta "early_drop_delta" Count Wide "Increase of `early_drop` between the first and last sample.";
    InsertFailed "insert_failed" Count Wide "Entries that could not be inserted.";
    InsertFailedDelta "insert_failed_delta" Count Wide "Increase of `insert_failed` between the first and last sample.";
    ChainTooLong "chaintoolong" Count Wide "Entries refused because their hash chain was too long.";
    ChainTooLongDelta "chaintoolong_delta" Count Wide "Increase of `chaintoolong` between the first and last sample.";
    LongestChain "longest_chain" Count Wide "Entries in the longest hash chain.";
    MeanChain "mean_chain" Thousandths Wide "Entries per bucket.";
    NatEntries "nat_entries" Count Wide "Entries whose address is rewritten.";
    BytesPerEntry "bytes_per_entry" Bytes Wide "Mean memory per entry in this table.";
    BytesPerEntryPlain "bytes_per_entry_plain" Bytes Wide "Memory of an entry without NAT.";
    BytesPerEntryNat "bytes_per_entry_nat" Bytes Wide "Memory of a masqueraded entry.";
    AdvisedMax "advised_max" Count Default "Recommended limit of entries.";
    AdvisedBuckets "advised_buckets" Count Default "Recommended number of buckets.";
    MemoryBytes "memory_bytes" Bytes Wide "Memory of the full table at the recommended sizes.";
    MemoryNowBytes "memory_now_bytes" Bytes Wide "Memory of the full table at the current sizes.";
    MemoryBytesMax "memory_bytes_max" Bytes Wide "Memory that the recommended table may take.";
    IsCapped "is_capped" Bool Wide "True if `memory_bytes_max` limits the recommendation.";
    IsEstimate "is_estimate" Bool Wide "True if the recommendation is based on few samples.";
    TimeoutS "timeout_s" DurationS Wide "Current value of that timeout.";
    TimeoutEntries "timeout_entries" Count Wide "Entries to which it applies.";
    TimeoutAdvisedS "timeout_advised_s" DurationS Wide "Recommended value of that timeout.";
    TimeoutFrees "timeout_frees" Count Wide "Entries that the recommended timeout would free.";
}

/// How many of the numbers come before `timeout`.
const BEFORE_TIMEOUT: usize = AdviceNumber::TimeoutS as usize;

const OTHERS: &[F] = fields! { F:
    /// Network namespace.
    netns: Text = own(|row| Value::Bytes(row.netns)), show Show::Default;
    /// Inode of the namespace.
    netns_id: Id = own(|row| Value::U64(row.netns_id)), show Show::Wide;
    /// State of the table in one word.
    verdict: Name(NatAdvice::VERDICTS) = own(|row| Value::Name(row.verdict)), show Show::Default;
    /// Ranges of source ports that are exhausted.
    ports_used_up: Objects(OF_PORTS) = own(|row| Value::List(row.ports_used_up)), show Show::Wide;
    /// The timeout that applies to most entries.
    timeout: Text = own(|row| Value::text(row.timeout.map(str::as_bytes))), show Show::Wide;
    /// Arguments of `sysctl -w` that set limit and buckets; in the row of the namespace where they can be set.
    sysctl: Texts = own(|row| Value::List(row.sysctl)), show Show::Wide;
    /// Arguments of `sysctl -w` that set the timeout.
    sysctl_timeouts: Texts = own(|row| Value::List(row.sysctl_timeouts)), show Show::Wide;
    /// Reasons in sentences, the most serious first.
    reasons: Texts = own(|row| Value::List(row.reasons)), show Show::Wide;
};

const FIELDS: [F; OTHERS.len() + NUMBERS.len()] = in_order();

/// The fields in the order of the JSON keys.
const fn in_order() -> [F; OTHERS.len() + NUMBERS.len()] {
    let mut fields = [OTHERS[0]; OTHERS.len() + NUMBERS.len()];
    let (mut to, mut other, mut number) = (0, 0, 0);
    while to < fields.len() {
        let is_number = number < NUMBERS.len() && (other == 3 && number < BEFORE_TIMEOUT || other == 5);
        if is_number {
            fields[to] = NUMBERS[number];
            number += 1;
        } else {
            fields[to] = OTHERS[other];
            other += 1;
        }
        to += 1;
    }
    fields
}

impl Table for NatAdvices {
    type Row<'b> = NatAdvice<'b>;
    const NAME: &'static str = "nat advise";
    const FIELDS: &'static [F] = stored_once!(F, &FIELDS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order() {
        let names: Vec<&str> = NatAdvices::FIELDS.iter().map(|field| field.name).collect();
        assert_eq!(names[..5], ["netns", "netns_id", "verdict", "entries", "max"]);
        assert_eq!(
            names[33..],
            [
                "is_estimate",
                "ports_used_up",
                "timeout",
                "timeout_s",
                "timeout_entries",
                "timeout_advised_s",
                "timeout_frees",
                "sysctl",
                "sysctl_timeouts",
                "reasons"
            ]
        );
    }
}
