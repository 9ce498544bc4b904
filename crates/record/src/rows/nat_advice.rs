//! Rows of `netwren nat advise`: the conntrack table of a namespace and advice about its size.

use crate::table::fields;
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
    Entries "entries" Count Default "Entries in the last sample.";
    Max "max" Count Default "The limit (nf_conntrack_max).";
    Buckets "buckets" Count Wide "Buckets of the hash table.";
    Samples "samples" Count Wide "How often the counters were read.";
    IntervalMs "interval_ms" DurationMs Wide "Time between the first and the last sample.";
    Peak "peak" Count Wide "Most entries of all samples.";
    GrowthPerS "growth_per_s" Count Wide "Growth of the entries per second.";
    SteadyGrowthPerS "steady_growth_per_s" Count Wide "The growth that all samples share.";
    FullInS "full_in_s" DurationS Default "Time until the table is full if the growth goes on.";
    Expired "expired" Count Wide "Entries that have expired and still count.";
    Drop "drop" Count Wide "Packets dropped because the table was full.";
    DropDelta "drop_delta" Count Wide "The same between the samples.";
    EarlyDrop "early_drop" Count Wide "Entries thrown out to make room.";
    EarlyDropDelta "early_drop_delta" Count Wide "The same between the samples.";
    InsertFailed "insert_failed" Count Wide "Entries that could not go in.";
    InsertFailedDelta "insert_failed_delta" Count Wide "The same between the samples.";
    ChainTooLong "chaintoolong" Count Wide "Entries refused because their hash chain was too long.";
    ChainTooLongDelta "chaintoolong_delta" Count Wide "The same between the samples.";
    LongestChain "longest_chain" Count Wide "Entries in the longest hash chain.";
    MeanChain "mean_chain" Thousandths Wide "Entries per bucket.";
    NatEntries "nat_entries" Count Wide "Entries whose address is rewritten.";
    BytesPerEntry "bytes_per_entry" Bytes Wide "Memory of an entry, mean of the table.";
    BytesPerEntryPlain "bytes_per_entry_plain" Bytes Wide "Memory of an entry without NAT.";
    BytesPerEntryNat "bytes_per_entry_nat" Bytes Wide "Memory of a masqueraded entry.";
    AdvisedMax "advised_max" Count Default "What the limit should be.";
    AdvisedBuckets "advised_buckets" Count Default "What the buckets should be.";
    MemoryBytes "memory_bytes" Bytes Wide "Memory of the full table at the advised sizes.";
    MemoryNowBytes "memory_now_bytes" Bytes Wide "Memory of the full table at the present sizes.";
    MemoryBytesMax "memory_bytes_max" Bytes Wide "Memory that the advised table may take.";
    IsCapped "is_capped" Bool Wide "True if that memory limits the advice.";
    IsEstimate "is_estimate" Bool Wide "True if the advice rests on few samples.";
    TimeoutS "timeout_s" DurationS Wide "That timeout as it is.";
    TimeoutEntries "timeout_entries" Count Wide "Entries that it holds.";
    TimeoutAdvisedS "timeout_advised_s" DurationS Wide "What it should be.";
    TimeoutFrees "timeout_frees" Count Wide "Entries that the advised timeout frees.";
}

/// How many of the numbers come before `timeout`.
const BEFORE_TIMEOUT: usize = AdviceNumber::TimeoutS as usize;

const OTHERS: &[F] = fields! { F:
    /// Network namespace.
    netns: Text = own(|row| Value::Bytes(row.netns)), show Show::Default;
    /// Inode of the namespace.
    netns_id: Id = own(|row| Value::U64(row.netns_id)), show Show::Wide;
    /// The state of the table in one word.
    verdict: Name(NatAdvice::VERDICTS) = own(|row| Value::Name(row.verdict)), show Show::Default;
    /// Ranges of source ports that are used up.
    ports_used_up: Objects(OF_PORTS) = own(|row| Value::List(row.ports_used_up)), show Show::Wide;
    /// The timeout that holds most entries.
    timeout: Text = own(|row| Value::text(row.timeout.map(str::as_bytes))), show Show::Wide;
    /// What sysctl -w takes to set limit and buckets; in the row of the namespace where they can be set.
    sysctl: Texts = own(|row| Value::List(row.sysctl)), show Show::Wide;
    /// What sysctl -w takes to set the timeout.
    sysctl_timeouts: Texts = own(|row| Value::List(row.sysctl_timeouts)), show Show::Wide;
    /// Why, in sentences; the gravest first.
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
    const FIELDS: &'static [F] = &FIELDS;
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
