//! Kernel numbers and the words that stand for them.

use crate::Value;

/// Words for a set of kernel numbers. A number without a word is shown as `other`.
pub(crate) struct KernelWords {
    pub(crate) numbers: &'static [u8],
    /// The words in the order of the numbers, followed by `other`: the words of a [`crate::Kind::Name`].
    pub(crate) names: &'static [&'static str],
}

impl KernelWords {
    /// The number's word as a cell.
    pub(crate) fn value(&self, number: u8) -> Value<'static> {
        let at = self.numbers.iter().position(|known| *known == number);
        Value::Name(at.and_then(|at| self.names.get(at)).unwrap_or(&"other"))
    }
}

/// Builds a [`KernelWords`] from numbers and words.
macro_rules! kernel_words {
    ($($number:literal $word:literal),* $(,)?) => {
        crate::kernel_words::KernelWords { numbers: &[$($number),*], names: &[$($word,)* "other"] }
    };
}
pub(crate) use kernel_words;
