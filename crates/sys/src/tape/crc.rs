//! CRC-32 (IEEE 802.3, as in gzip), eight bytes per step.

const TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut n = 0;
    while n < 256 {
        let mut crc = n as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1));
            bit += 1;
        }
        tables[0][n] = crc;
        n += 1;
    }
    // Table k is table 0 followed by k zero bytes: eight look-ups then do the work of eight steps.
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

/// A running checksum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crc(u32);

impl Crc {
    pub(crate) fn new() -> Crc {
        Crc(!0)
    }

    // All table indexes are masked to a byte, so they cannot exceed the 256 entries.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let mut crc = self.0;
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
        self.0 = crc;
    }

    pub(crate) fn sum(self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sums_however_it_is_cut() {
        let sum = |parts: &[&[u8]]| {
            let mut crc = Crc::new();
            parts.iter().for_each(|part| crc.add(part));
            crc.sum()
        };
        assert_eq!(sum(&[]), 0);
        assert_eq!(sum(&[b"123456789"]), 0xcbf4_3926);
        assert_eq!(sum(&[b"1", b"23456789"]), 0xcbf4_3926);
        assert_eq!(sum(&[b"The quick brown fox jumps", b" over the lazy dog"]), 0x414f_a339);
    }
}
