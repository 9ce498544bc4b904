//! Builds the text that messages share, from messages with other numbers.

use super::shared_text::{MarkedMessage, NumberForm, SharedText};
use record::{NUMBERS, NumberKind};
use std::array;

/// Replaces the bytes by a message with these numbers.
pub(super) type Render<'r> = dyn FnMut(&[u32; NUMBERS], &mut Vec<u8>) + 'r;

/// Builds the text that the message with these `numbers` shares with all messages in which only the `varying` numbers
/// differ; `None` if the positions of the numbers cannot be found.
pub(super) fn build(
    numbers: &[u32; NUMBERS],
    varying: impl Iterator<Item = usize>,
    kind: fn(usize) -> NumberKind,
    render: &mut Render<'_>,
) -> Option<SharedText> {
    let (mut message, mut varied) = (Vec::new(), Vec::new());
    render(numbers, &mut message);
    let mut marked = MarkedMessage::new(&message);
    let mut all = *numbers;
    for number in varying {
        let (kind, value) = (kind(number), numbers[number]);
        let other = other_number(kind, value);
        all[number] = other;
        render(&array::from_fn(|at| if at == number { other } else { numbers[at] }), &mut varied);
        marked = marked.find((number, forms(kind)), value, (&varied, other))?;
    }
    render(&all, &mut varied);
    marked.cut()?.verify(&all, &varied)
}

/// The forms in which writers write a number.
fn forms(kind: NumberKind) -> &'static [NumberForm] {
    match kind {
        NumberKind::Nanoseconds => &[NumberForm::Nanoseconds, NumberForm::Microseconds],
        NumberKind::Address => &[NumberForm::Address],
        NumberKind::Decimal { .. } => &[NumberForm::Decimal],
    }
}

/// A number whose text has the same length and a different first byte.
fn other_number(kind: NumberKind, value: u32) -> u32 {
    const FIRST_OF_NINE: u32 = 100_000_000;
    match kind {
        NumberKind::Nanoseconds if value >= FIRST_OF_NINE => value % FIRST_OF_NINE,
        NumberKind::Nanoseconds => value + FIRST_OF_NINE,
        NumberKind::Address => {
            let [first, rest @ ..] = value.to_be_bytes();
            let [.., first] = other_first_digit(first.into(), u8::MAX.into()).to_be_bytes();
            u32::from_be_bytes([first, rest[0], rest[1], rest[2]])
        }
        NumberKind::Decimal { largest } => other_first_digit(value, largest),
    }
}

/// A number with the same digit count, at most `largest`, whose first digit differs: 1, or 2 if it was 1.
fn other_first_digit(n: u32, largest: u32) -> u32 {
    let Some(digits) = n.checked_ilog10() else { return 1 };
    let one = 10u32.pow(digits);
    match (n / one, n % one) {
        (1, rest) => 2 * one + rest % largest.saturating_sub(2 * one - 1).max(1),
        (_, rest) => one + rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sinks::syslog::SEQUENCE_ID_MAX;

    #[test]
    fn other_numbers_begin_with_another_digit() {
        for largest in [u32::from(u8::MAX), u32::from(u16::MAX), u32::MAX, SEQUENCE_ID_MAX as u32] {
            let powers =
                (0..10).map(|digits| 10u64.pow(digits)).flat_map(|n| [n - 1, n, 2 * n, n + n / 2, 3 * n, 9 * n]);
            for n in powers.filter_map(|n| u32::try_from(n).ok()).chain([largest]).filter(|n| *n <= largest) {
                let other = other_first_digit(n, largest);
                let (text, other_text) = (n.to_string(), other.to_string());
                assert!(
                    other <= largest && text.len() == other_text.len() && text[..1] != other_text[..1],
                    "{n} {other}"
                );
            }
        }
    }
}
