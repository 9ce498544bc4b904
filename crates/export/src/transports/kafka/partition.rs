//! The partition of a key, chosen as Kafka's Java client does, so that other programs find a host's messages where they
//! expect them.

/// The hash of Kafka's `Utils.murmur2` (MurmurHash2 of Austin Appleby, with a fixed seed).
fn murmur2(bytes: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const FACTOR: u32 = 0x5bd1_e995;
    let mix = |word: u32| {
        let word = word.wrapping_mul(FACTOR);
        (word ^ word >> 24).wrapping_mul(FACTOR)
    };
    let words = bytes.chunks_exact(4);
    let rest = words.remainder();
    let mut hash = SEED ^ bytes.len() as u32;
    for word in words.filter_map(|word| word.first_chunk()) {
        hash = hash.wrapping_mul(FACTOR) ^ mix(u32::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        hash ^= rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash = hash.wrapping_mul(FACTOR);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(FACTOR);
    hash ^ hash >> 15
}

/// Returns the partition of `key` among `count`, which is not 0.
pub(super) fn partition_of(key: &[u8], count: u32) -> u32 {
    (murmur2(key) & 0x7fff_ffff) % count.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of `UtilsTest.testMurmur2` in Kafka.
    #[test]
    fn hashes_are_those_of_the_java_client() {
        for (text, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(text.as_bytes()) as i32, hash, "{text}");
        }
        assert_eq!((partition_of(b"abc", 1), partition_of(b"abc", 0)), (0, 0));
    }
}
