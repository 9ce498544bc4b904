//! Colours of the table: the tone of each cell, and the escape sequences, which are made once.

use anstyle::{AnsiColor, Reset, Style};
use record::Value;

/// The meaning of a colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tone {
    /// A usual value.
    Plain,
    /// The header.
    Heading,
    /// An absent or ended object: of little interest.
    Faint,
    /// An object in use, or an incoming direction.
    Good,
    /// An object that waits for the other side, or an outgoing direction.
    Open,
    /// Neither open nor closed, or retransmitted: notable if there are many.
    Halfway,
    /// Out of bounds: over a limit, or lost.
    Bad,
}

impl Tone {
    /// Returns the tone of a cell.
    pub(super) fn from_cell(cell: Value<'_>) -> Tone {
        match cell {
            Value::Null => Tone::Faint,
            Value::Name(word) => Tone::of_word(word),
            Value::Guess(_) => Tone::Halfway,
            _ => Tone::Plain,
        }
    }

    /// Returns the tone of a state or a direction; other words are plain.
    fn of_word(word: &str) -> Tone {
        match word {
            "established" | "in" => Tone::Good,
            "listen" | "bound_inactive" | "out" => Tone::Open,
            "time_wait" | "close" | "unconn" | "unknown" => Tone::Faint,
            "syn_sent" | "syn_recv" | "new_syn_recv" | "fin_wait1" | "fin_wait2" | "close_wait" | "last_ack"
            | "closing" | "partopen" => Tone::Halfway,
            _ => Tone::Plain,
        }
    }

    fn to_style(self) -> Style {
        let colored = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
        match self {
            Tone::Plain => Style::new(),
            Tone::Heading => Style::new().bold(),
            Tone::Faint => Style::new().dimmed(),
            Tone::Good => colored(AnsiColor::Green),
            Tone::Open => colored(AnsiColor::Cyan),
            Tone::Halfway => colored(AnsiColor::Yellow),
            Tone::Bad => colored(AnsiColor::Red),
        }
    }
}

const TONES: [Tone; 7] = [Tone::Plain, Tone::Heading, Tone::Faint, Tone::Good, Tone::Open, Tone::Halfway, Tone::Bad];

/// The escape sequences of all tones, or none without colour.
pub(super) struct Palette {
    on: [Box<[u8]>; TONES.len()],
    off: Box<[u8]>,
}

impl Palette {
    /// The palette; without `color` it writes no escape sequences.
    pub(super) fn new(color: bool) -> Palette {
        let bytes = |text: String| if color { text.into_bytes().into_boxed_slice() } else { Box::default() };
        Palette { on: TONES.map(|t| bytes(t.to_style().render().to_string())), off: bytes(Reset.render().to_string()) }
    }

    /// Appends `text` in `tone`.
    pub(super) fn put(&self, out: &mut Vec<u8>, tone: Tone, text: &[u8]) {
        self.begin(out, tone);
        out.extend_from_slice(text);
        self.end(out, tone);
    }

    /// Begins a text in `tone`.
    pub(super) fn begin(&self, out: &mut Vec<u8>, tone: Tone) {
        out.extend_from_slice(self.start_sequence(tone));
    }

    /// Ends a text in `tone`.
    pub(super) fn end(&self, out: &mut Vec<u8>, tone: Tone) {
        if !self.start_sequence(tone).is_empty() {
            out.extend_from_slice(&self.off);
        }
    }

    fn start_sequence(&self, tone: Tone) -> &[u8] {
        self.on.get(tone as usize).map_or(&[], |on| on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::State;

    #[test]
    fn every_state_has_a_tone_and_every_tone_its_place() {
        for word in State::NAMES {
            assert_ne!(Tone::of_word(word), Tone::Plain, "{word}");
        }
        for (i, tone) in TONES.iter().enumerate() {
            assert_eq!(*tone as usize, i);
        }
    }
}
