//! Builds the text that messages share, from messages with other numbers.

use super::shared_text::{MarkedMessage, NumberForm, SharedText};
use record::{NUMBERS, NumberKind};

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
        let (kind, mut others) = (kind(number), *numbers);
        replace(kind, number, &mut others);
        replace(kind, number, &mut all);
        render(&others, &mut varied);
        marked = marked.find((number, forms(kind)), numbers, (&varied, &others))?;
    }
    render(&all, &mut varied);
    marked.cut()?.verify(&all, &varied)
}

/// The forms in which writers write a number.
fn forms(kind: NumberKind) -> &'static [NumberForm] {
    match kind {
        NumberKind::Nanoseconds => &[NumberForm::Nanoseconds, NumberForm::Microseconds],
        NumberKind::Address => &[NumberForm::Address],
        NumberKind::AddressV6 => &[NumberForm::AddressV6],
        NumberKind::Decimal { .. } => &[NumberForm::Decimal],
    }
}

/// Replaces the number at this index by one whose text has a different first byte.
fn replace(kind: NumberKind, number: usize, numbers: &mut [u32; NUMBERS]) {
    const FIRST_OF_NINE: u32 = 100_000_000;
    let value = numbers[number];
    numbers[number] = match kind {
        NumberKind::Nanoseconds if value >= FIRST_OF_NINE => value % FIRST_OF_NINE,
        NumberKind::Nanoseconds => value + FIRST_OF_NINE,
        NumberKind::Address => {
            let [first, rest @ ..] = value.to_be_bytes();
            let [.., first] = other_first_digit(first.into(), (0, u8::MAX.into())).to_be_bytes();
            u32::from_be_bytes([first, rest[0], rest[1], rest[2]])
        }
        // The text begins with the first digit of the first group that is not 0, or with a colon.
        NumberKind::AddressV6 => match value >> 16 {
            0x1 | 0x10..=0x1f | 0x100..=0x1ff | 0x1000..=0x1fff => 0x2000_0000 | value & 0xffff,
            _ => 0x1000_0000 | value & 0xffff,
        },
        NumberKind::Decimal { smallest, largest } => other_first_digit(value, (smallest, largest)),
    };
}

/// A number within these bounds whose first digit differs: 1, or 2 if it was 1, or the next possible one. It has the
/// same digit count if there is such a number. A number out of bounds may become another such number.
fn other_first_digit(n: u32, (smallest, largest): (u32, u32)) -> u32 {
    let Some(digits) = n.checked_ilog10() else { return 1 };
    let one = 10u32.pow(digits);
    match (n / one, n % one) {
        (1, _) if 2 * one > largest => 2 * (one / 10),
        (1, rest) => 2 * one + rest % largest.saturating_sub(2 * one - 1).max(1),
        (first, rest) if one + rest < smallest => {
            let mut larger = (2..=9).filter(|digit| *digit != first).map(|digit| digit * one + rest);
            larger.find(|other| *other >= smallest).unwrap_or(one + rest)
        }
        (_, rest) => one + rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Addr, V6_ADDRESSES, put_v6_at, v6_at};
    use sinks::syslog::SEQUENCE_ID_MAX;

    #[test]
    fn other_numbers_begin_with_another_digit() {
        for (smallest, largest) in
            [(0, u32::from(u8::MAX)), (40, u16::MAX.into()), (0, 0xf_ffff), (0, u32::MAX), (0, SEQUENCE_ID_MAX as u32)]
        {
            let powers =
                (0..10).map(|digits| 10u64.pow(digits)).flat_map(|n| [n - 1, n, 2 * n, n + n / 2, 3 * n, 9 * n]);
            for n in powers
                .filter_map(|n| u32::try_from(n).ok())
                .chain([largest, 43, 99])
                .filter(|n| (smallest..=largest).contains(n))
            {
                let other = other_first_digit(n, (smallest, largest));
                let (text, other_text) = (n.to_string(), other.to_string());
                assert!(
                    (smallest..=largest).contains(&other)
                        && (text.len() == other_text.len() || n > largest / 2)
                        && text[..1] != other_text[..1],
                    "{n} {other}"
                );
            }
        }
    }

    #[test]
    fn other_ipv6_addresses_begin_with_another_byte() {
        for text in [
            "::",
            "::1",
            "::ffff:192.0.2.1",
            "2001:db8::1",
            "1::",
            "1a::",
            "1ab::",
            "1abc::",
            "fe80::1",
            "0:1:2:3:4:5:6:7",
        ] {
            let Ok(Addr::V6(octets)) = text.parse() else { continue };
            let mut numbers = [0; NUMBERS];
            put_v6_at(&mut numbers, V6_ADDRESSES, octets);
            replace(NumberKind::AddressV6, V6_ADDRESSES, &mut numbers);
            let other = Addr::V6(v6_at(&numbers, V6_ADDRESSES)).to_string();
            assert_ne!(text[..1], other[..1], "{text} {other}");
        }
    }
}
