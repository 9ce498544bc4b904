//! CRC-32C (Castagnoli), by the processor's own instruction where it has one: 8 bytes a cycle instead of 1.
//!
//! The instruction takes 8 bytes and three cycles, but one can begin each cycle: three parts of the bytes are summed at
//! once, and their sums put together by a table.
//!
//! For what is written all the time: the checksum of the tape (CRC-32) has no instruction on x86.

const POLYNOMIAL: u32 = 0x82f6_3b78;
const TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut n = 0;
    while n < 256 {
        let mut crc = n as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL & 0u32.wrapping_sub(crc & 1));
            bit += 1;
        }
        tables[0][n] = crc;
        n += 1;
    }
    // Table k is table 0 followed by k zero bytes.
    let mut k = 1;
    while k < 8 {
        let mut n = 0;
        while n < 256 {
            let before = tables[k - 1][n];
            tables[k][n] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            n += 1;
        }
        k += 1;
    }
    tables
}

/// Bytes of each of three parts that are summed at once.
const LANE: usize = 1024;
/// What [`LANE`] zero bytes make of a sum, for each byte of the sum.
const LANES: [[u32; 256]; 4] = lanes();

const fn lanes() -> [[u32; 256]; 4] {
    // Of each bit apart: the sum of several is that of the single ones.
    let mut of_bit = [0u32; 32];
    let mut bit = 0;
    while bit < 32 {
        let (mut crc, mut zeros) = (1u32 << bit, 0);
        while zeros < LANE {
            crc = (crc >> 8) ^ TABLES[0][(crc & 0xff) as usize];
            zeros += 1;
        }
        of_bit[bit] = crc;
        bit += 1;
    }
    let mut lanes = [[0u32; 256]; 4];
    let mut n = 0;
    while n < 4 * 256 {
        let (place, byte, mut bit) = (n / 256, n % 256, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                lanes[place][byte] ^= of_bit[8 * place + bit];
            }
            bit += 1;
        }
        n += 1;
    }
    lanes
}

/// The sum `crc` behind [`LANE`] zero bytes.
#[inline]
fn behind_zeros(crc: u32) -> u32 {
    let [a, b, c, d] = crc.to_le_bytes().map(usize::from);
    LANES[0][a] ^ LANES[1][b] ^ LANES[2][c] ^ LANES[3][d]
}

/// The checksum of `bytes` behind those whose checksum is `before` (0 for none).
pub fn crc32c(before: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has SSE 4.2, as the line above has asked it.
        return unsafe { by_instruction(before, bytes) };
    }
    by_table(before, bytes)
}

/// # Safety
/// The processor has SSE 4.2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
// From Rust 1.87 on the intrinsics are safe here.
#[allow(unused_unsafe)]
unsafe fn by_instruction(before: u32, bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};
    let word = |eight: &[u8]| eight.first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
    let mut crc = u64::from(!before);
    let mut threes = bytes.chunks_exact(3 * LANE);
    for three in &mut threes {
        let (first, rest) = three.split_at(LANE);
        let (second, third) = rest.split_at(LANE);
        let mut sums = [crc, 0, 0];
        for ((a, b), c) in first.chunks_exact(8).zip(second.chunks_exact(8)).zip(third.chunks_exact(8)) {
            // SAFETY: as below.
            sums = unsafe {
                [_mm_crc32_u64(sums[0], word(a)), _mm_crc32_u64(sums[1], word(b)), _mm_crc32_u64(sums[2], word(c))]
            };
        }
        let [first, second, third] = sums.map(|sum| sum as u32);
        crc = u64::from(behind_zeros(behind_zeros(first) ^ second) ^ third);
    }
    let mut eights = threes.remainder().chunks_exact(8);
    for eight in &mut eights {
        let word = word(eight);
        // SAFETY: the caller vouches for SSE 4.2; the instruction touches registers only.
        crc = unsafe { _mm_crc32_u64(crc, word) };
    }
    let mut crc = crc as u32;
    for byte in eights.remainder() {
        // SAFETY: as above.
        crc = unsafe { _mm_crc32_u8(crc, *byte) };
    }
    !crc
}

// All table indices are masked to a byte, so they cannot leave the 256 entries.
fn by_table(before: u32, bytes: &[u8]) -> u32 {
    let mut crc = !before;
    let mut eights = bytes.chunks_exact(8);
    for eight in &mut eights {
        let mut next = 0;
        for (i, byte) in eight.iter().enumerate() {
            let mixed = if i < 4 { byte ^ (crc >> (8 * i)) as u8 } else { *byte };
            next ^= TABLES[7 - i][usize::from(mixed)];
        }
        crc = next;
    }
    for byte in eights.remainder() {
        crc = (crc >> 8) ^ TABLES[0][usize::from(byte ^ crc as u8)];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_summed_at_once_are_one_sum() {
        let bytes: Vec<u8> = (0..4 * 3 * LANE as u32 + 77).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        for len in [3 * LANE - 1, 3 * LANE, 3 * LANE + 1, 6 * LANE + 9, bytes.len()] {
            for before in [0, 0xe306_9283] {
                let (cut, from) = (&bytes[..len], &bytes[bytes.len() - len..]);
                assert_eq!(crc32c(before, cut), by_table(before, cut));
                assert_eq!(crc32c(before, from), by_table(before, from));
            }
        }
    }

    /// RFC 3720, appendix B.4.
    #[test]
    fn known_sums_both_ways_however_they_are_cut() {
        let counting: Vec<u8> = (0..32).collect();
        for (bytes, sum) in [
            (&b""[..], 0),
            (b"123456789", 0xe306_9283),
            (&[0; 32], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&counting, 0x46dd_794e),
        ] {
            assert_eq!((crc32c(0, bytes), by_table(0, bytes)), (sum, sum));
            for at in 0..bytes.len() {
                let (head, tail) = bytes.split_at(at);
                assert_eq!(crc32c(crc32c(0, head), tail), sum);
            }
        }
    }
}
