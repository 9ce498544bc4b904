//! Enums with a word for each variant; each word is written once.

/// Declares an enum with a word for each variant: `ALL` has the variants and `NAMES` the words, both in order, and
/// `name` gives the word of a variant.
macro_rules! named_enum {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident => $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Every variant, in order.
            pub const ALL: [$name; [$($word),*].len()] = [$($name::$variant),*];
            /// The words, in order.
            pub const NAMES: &'static [&'static str] = &[$($word),*];

            /// The variant's word.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }
    };
}
pub(crate) use named_enum;
