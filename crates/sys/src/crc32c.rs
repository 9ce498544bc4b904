//! CRC-32C (Castagnoli), by the processor's own instruction where it has one: 3 bytes a cycle instead of 1.
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
    let mut crc = u64::from(!before);
    let mut eights = bytes.chunks_exact(8);
    for eight in &mut eights {
        let word = eight.first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
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
