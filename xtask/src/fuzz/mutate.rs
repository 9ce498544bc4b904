//! Applies small random changes to known inputs; the same seed gives the same changes.

/// xorshift64*: good enough for choosing positions, and needs no crate.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number n with 0 ≤ n < `end`; 0 for an empty range.
    fn below(&mut self, end: usize) -> usize {
        // The upper bits are more random.
        ((self.roll() >> 32) as usize).checked_rem(end).unwrap_or(0)
    }
}

/// Makes inputs out of a corpus.
pub(crate) struct Mutator {
    dice: Dice,
    bytes_max: usize,
}

/// Numbers that often break lengths and counts.
const EDGES: &[u64] =
    &[0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 19, 20, 127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0xffff_ffff];

impl Mutator {
    /// The same `seed` gives the same inputs for the same corpus.
    pub(crate) fn new(seed: u64, bytes_max: usize) -> Mutator {
        // Zero is the one state that xorshift cannot leave.
        Mutator { dice: Dice(seed | 1), bytes_max }
    }

    /// Writes the next input into `out`: a seed with one to eight changes.
    pub(crate) fn next(&mut self, corpus: &[Vec<u8>], out: &mut Vec<u8>) {
        out.clear();
        let base = self.dice.below(corpus.len());
        out.extend_from_slice(corpus.get(base).map_or(&[], Vec::as_slice));
        for _ in 0..=self.dice.below(8) {
            let other = self.dice.below(corpus.len());
            self.damage(out, corpus.get(other).map_or(&[], Vec::as_slice));
        }
        out.truncate(self.bytes_max);
    }

    fn damage(&mut self, out: &mut Vec<u8>, other: &[u8]) {
        let at = self.dice.below(out.len());
        let end = at + self.dice.below((out.len() - at).min(64) + 1);
        match self.dice.below(9) {
            0 => self.byte(out, at, |old, dice| old ^ (1 << dice.below(8))),
            1 => self.byte(out, at, |_, dice| dice.below(256) as u8),
            2 => self.byte(out, at, |old, dice| old.wrapping_add(1 + 254 * dice.below(2) as u8)),
            3 => self.edge(out, at),
            4 => out.truncate(at),
            5 => drop(out.drain(at..end)),
            6 => {
                let piece = out[at..end].to_vec();
                let to = self.dice.below(out.len() + 1);
                out.splice(to..to, piece);
            }
            7 => {
                let piece: Vec<u8> = (0..=self.dice.below(16)).map(|_| self.dice.below(256) as u8).collect();
                out.splice(at..at, piece);
            }
            _ => {
                let from = self.dice.below(other.len() + 1);
                out.truncate(at);
                out.extend_from_slice(&other[from..]);
            }
        }
    }

    fn byte(&mut self, out: &mut [u8], at: usize, change: impl FnOnce(u8, &mut Dice) -> u8) {
        if let Some(byte) = out.get_mut(at) {
            *byte = change(*byte, &mut self.dice);
        }
    }

    /// Overwrites 1, 2 or 4 bytes with a number from [`EDGES`], in either byte order.
    fn edge(&mut self, out: &mut [u8], at: usize) {
        let value = EDGES[self.dice.below(EDGES.len())];
        let width = 1 << self.dice.below(3);
        let (little, big) = (value.to_le_bytes(), value.to_be_bytes());
        let bytes = if self.dice.below(2) == 0 { &little[..width] } else { &big[8 - width..] };
        if let Some(place) = out.get_mut(at..at + width) {
            place.copy_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn same_seed_same_inputs_and_never_too_long() {
        let corpus = vec![b"hello world".to_vec(), Vec::new(), vec![7; 90]];
        let run = |seed| {
            let corpus = corpus.clone();
            let mut mutator = Mutator::new(seed, 100);
            let mut input = Vec::new();
            (0..5_000).map(move |_| {
                mutator.next(&corpus, &mut input);
                assert!(input.len() <= 100);
                input.clone()
            })
        };
        let first: Vec<Vec<u8>> = run(7).collect();
        assert!(run(7).eq(first.iter().cloned()));
        assert!(!run(8).eq(first.iter().cloned()));
    }

    #[test]
    fn an_empty_corpus_gives_inputs_too() {
        let mut input = Vec::new();
        Mutator::new(1, 10).next(&[], &mut input);
        assert!(input.len() <= 10);
    }
}
