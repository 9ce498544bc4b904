//! CRC-32C (Castagnoli), with processor instructions if available: 16 or 8 bytes per cycle instead of 1.
//!
//! - SSE 4.2 has an instruction for it that takes 8 bytes and three cycles, but one can start in each cycle: three
//!   parts of the bytes are summed concurrently, and their sums are combined with a table.
//! - AVX-512 multiplies polynomials, eight at a time. A sum is the remainder of a division, and the remainder does not
//!   change if the first bytes are replaced by their product with a power of x that represents their distance from the
//!   end. This folds 256 bytes at a time into the next 256, and the instruction above handles the last 64.
//!
//! It is meant for data that is written continuously: the checksum of the tape (CRC-32) has no instruction on x86.

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

/// Size in bytes of each of the three parts that are summed concurrently.
const LANE: usize = 1024;
/// The effect of [`LANE`] zero bytes on a sum, for each byte of the sum.
const LANES: [[u32; 256]; 4] = lanes();

const fn lanes() -> [[u32; 256]; 4] {
    // The effect on each single bit: the sum of several bits is the sum of the single effects.
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

/// The sum after appending [`LANE`] zero bytes to the bytes with sum `crc`.
#[inline]
fn behind_zeros(crc: u32) -> u32 {
    let [a, b, c, d] = crc.to_le_bytes().map(usize::from);
    LANES[0][a] ^ LANES[1][b] ^ LANES[2][c] ^ LANES[3][d]
}

/// Number of bytes that are folded at once.
const BLOCK: usize = 256;
/// Factors that move 16 bytes forward by a block, and by the 64 bytes of a register.
const BY_BLOCK: [u64; 2] = factors(8 * BLOCK as u32);
const BY_REGISTER: [u64; 2] = factors(512);

/// Factors that move the two halves of 16 bytes forward by `bits`. The first half is 64 bits before the second; in
/// both, a product of reflected polynomials is shifted by 33 bits.
const fn factors(bits: u32) -> [u64; 2] {
    [power_of_x(bits + 64 - 33), power_of_x(bits - 33)]
}

/// The remainder of x to the power of `n`, with its highest power in the lowest bit.
const fn power_of_x(n: u32) -> u64 {
    let (mut remainder, mut at) = (1u32 << 31, 0);
    while at < n {
        remainder = (remainder >> 1) ^ (POLYNOMIAL & 0u32.wrapping_sub(remainder & 1));
        at += 1;
    }
    remainder as u64
}

/// The checksum after appending `bytes` to data with checksum `before` (0 for no data).
pub fn crc32c(before: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= 2 * BLOCK && can_fold() {
        let (blocks, rest) = bytes.split_at(bytes.len() / BLOCK * BLOCK);
        // SAFETY: the line above has checked that the processor has the required instructions.
        let sum = unsafe { by_folding(before, blocks) };
        return crc32c(sum, rest);
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the line above has checked that the processor has SSE 4.2.
        return unsafe { by_instruction(before, bytes) };
    }
    by_table(before, bytes)
}

/// True if the processor has the instructions for [`by_folding`].
#[cfg(target_arch = "x86_64")]
fn can_fold() -> bool {
    std::arch::is_x86_feature_detected!("vpclmulqdq")
        && std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("sse4.2")
}

/// The sum of one or more whole blocks. Written in assembly, because the intrinsics are stable only since Rust 1.89.
///
/// # Safety
/// The processor has SSE 4.2, AVX-512F and VPCLMULQDQ.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
#[allow(unused_unsafe)]
unsafe fn by_folding(before: u32, blocks: &[u8]) -> u32 {
    let mut folded = [0u8; 64];
    let more = blocks.len() / BLOCK - 1;
    // SAFETY: it reads `more + 1` blocks from the beginning of `blocks`, which has that many, and two times 16 bytes
    // of factors, and writes 64 bytes into `folded`. The registers are named, the stack is not used.
    unsafe {
        std::arch::asm!(
            "vmovdqu64 zmm0, [{at}]",
            "vmovdqu64 zmm1, [{at} + 64]",
            "vmovdqu64 zmm2, [{at} + 128]",
            "vmovdqu64 zmm3, [{at} + 192]",
            // The previous sum is added to the first four bytes.
            "vmovd xmm4, {sum:e}",
            "vpxorq zmm0, zmm0, zmm4",
            "vbroadcasti32x4 zmm8, [{by_block}]",
            "test {more}, {more}",
            "jz 3f",
            "2:",
            "add {at}, 256",
            "vpclmulqdq zmm4, zmm0, zmm8, 0x00",
            "vpclmulqdq zmm5, zmm1, zmm8, 0x00",
            "vpclmulqdq zmm6, zmm2, zmm8, 0x00",
            "vpclmulqdq zmm7, zmm3, zmm8, 0x00",
            "vpclmulqdq zmm0, zmm0, zmm8, 0x11",
            "vpclmulqdq zmm1, zmm1, zmm8, 0x11",
            "vpclmulqdq zmm2, zmm2, zmm8, 0x11",
            "vpclmulqdq zmm3, zmm3, zmm8, 0x11",
            // 0x96: the exclusive or of all three operands.
            "vpternlogq zmm0, zmm4, [{at}], 0x96",
            "vpternlogq zmm1, zmm5, [{at} + 64], 0x96",
            "vpternlogq zmm2, zmm6, [{at} + 128], 0x96",
            "vpternlogq zmm3, zmm7, [{at} + 192], 0x96",
            "dec {more}",
            "jnz 2b",
            // Fold the four registers into the last of them.
            "3:",
            "vbroadcasti32x4 zmm8, [{by_register}]",
            "vpclmulqdq zmm4, zmm0, zmm8, 0x00",
            "vpclmulqdq zmm0, zmm0, zmm8, 0x11",
            "vpternlogq zmm1, zmm4, zmm0, 0x96",
            "vpclmulqdq zmm4, zmm1, zmm8, 0x00",
            "vpclmulqdq zmm1, zmm1, zmm8, 0x11",
            "vpternlogq zmm2, zmm4, zmm1, 0x96",
            "vpclmulqdq zmm4, zmm2, zmm8, 0x00",
            "vpclmulqdq zmm2, zmm2, zmm8, 0x11",
            "vpternlogq zmm3, zmm4, zmm2, 0x96",
            "vmovdqu64 [{folded}], zmm3",
            "vzeroupper",
            at = inout(reg) blocks.as_ptr() => _,
            more = inout(reg) more => _,
            sum = in(reg) !before,
            by_block = in(reg) &BY_BLOCK,
            by_register = in(reg) &BY_REGISTER,
            folded = in(reg) &mut folded,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
            out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _,
            options(nostack),
        );
        // The previous sum is already included, so this sum starts from the beginning.
        by_instruction(!0, &folded)
    }
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
        // SAFETY: the caller guarantees SSE 4.2; the instruction accesses registers only.
        crc = unsafe { _mm_crc32_u64(crc, word) };
    }
    let mut crc = crc as u32;
    for byte in eights.remainder() {
        // SAFETY: as above.
        crc = unsafe { _mm_crc32_u8(crc, *byte) };
    }
    !crc
}

// All table indexes are masked to a byte, so they cannot exceed the 256 entries.
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

    /// The sums computed with all methods that this processor supports.
    fn all_ways(before: u32, bytes: &[u8]) -> Vec<u32> {
        let mut sums = vec![crc32c(before, bytes), by_table(before, bytes)];
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("sse4.2") {
                // SAFETY: the line above has checked for it.
                sums.push(unsafe { by_instruction(before, bytes) });
            }
            if can_fold() && !bytes.is_empty() && bytes.chunks_exact(BLOCK).remainder().is_empty() {
                // SAFETY: the line above has checked for all of them.
                sums.push(unsafe { by_folding(before, bytes) });
            }
        }
        sums
    }

    #[test]
    fn all_ways_make_the_same_sum() {
        let bytes: Vec<u8> = (0..4 * 3 * LANE as u32 + 77).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        let long = [3 * LANE - 1, 3 * LANE, 3 * LANE + 1, 6 * LANE + 9, bytes.len()];
        for len in (0..5 * BLOCK).chain(long) {
            for before in [0, 0xe306_9283] {
                for bytes in [&bytes[..len], &bytes[bytes.len() - len..]] {
                    let sums = all_ways(before, bytes);
                    assert!(sums.iter().all(|sum| *sum == sums[0]), "{len} {sums:x?}");
                }
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
