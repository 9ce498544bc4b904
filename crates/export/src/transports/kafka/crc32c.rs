//! CRC-32C (Castagnoli, RFC 3720 appendix B.4), the checksum of record batches. It covers packed bytes, which are few,
//! so a table is fast enough.

/// The remainder of each byte.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let (mut rest, mut bit) = (byte as u32, 0);
        while bit < 8 {
            rest = if rest & 1 == 1 { rest >> 1 ^ 0x82f6_3b78 } else { rest >> 1 };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
};

/// Returns the checksum of `bytes`.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    let step = |rest: u32, byte: &u8| TABLE[usize::from(rest as u8 ^ byte)] ^ rest >> 8;
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    #[test]
    fn sums_are_those_of_the_rfc() {
        assert_eq!(super::crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(super::crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(super::crc32c(b"123456789"), 0xe306_9283);
    }
}
