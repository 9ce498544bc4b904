//! Link-layer addresses as text.

/// A link-layer address in words: `02:00:00:00:00:01`.
pub fn mac_text(address: [u8; 6]) -> [u8; 17] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b':'; 17];
    for (place, byte) in text.chunks_mut(3).zip(address) {
        place[0] = DIGITS[usize::from(byte >> 4)];
        place[1] = DIGITS[usize::from(byte & 0xf)];
    }
    text
}
