//! Numbers of the kernel together with their words.

use crate::Value;

/// Words for numbers of the kernel. A number without a word is `other`.
pub(crate) struct KernelWords {
    pub(crate) numbers: &'static [u8],
    /// The words in the order of the numbers, and `other` as the last one: the words of a [`crate::Kind::Name`].
    pub(crate) names: &'static [&'static str],
}

impl KernelWords {
    /// The word of a number as a cell.
    pub(crate) fn value(&self, number: u8) -> Value<'static> {
        let at = self.numbers.iter().position(|known| *known == number);
        Value::Name(at.and_then(|at| self.names.get(at)).unwrap_or(&"other"))
    }
}

/// The [`KernelWords`] of numbers and words.
macro_rules! kernel_words {
    ($($number:literal $word:literal),* $(,)?) => {
        crate::kernel_words::KernelWords { numbers: &[$($number),*], names: &[$($word,)* "other"] }
    };
}
pub(crate) use kernel_words;
