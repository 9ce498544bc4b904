//! Finds the position of each value in a rendered message, so that the next message rewrites only the values.
//!
//! Most messages of a flood differ only in numbers, such as ports and the time. The steps, in this order:
//!
//! 1. [`slot`] waits until enough messages of one shape have come within a second.
//! 2. [`build`] renders one of them again for each number, with that number changed. Where the texts differ, the number
//!    has its position ([`shared_text`]). So it works with any writer, and knows no format.
//! 3. The shared text must yield the same bytes as the writer for a message in which all numbers are changed, and for
//!    the row's own message.
//! 4. A further message costs a copy of the shared text and its own numbers ([`cache`]).

mod build;
mod cache;
mod shared_text;
mod slot;
#[cfg(test)]
mod tests;
mod writer;

pub(super) use cache::TextCache;
pub(super) use writer::CachingWriter;
