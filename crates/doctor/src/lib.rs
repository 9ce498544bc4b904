//! What is wrong and what would mend it, from samples.
//!
//! Rules only: numbers that somebody else read go in, findings in words come out. Asks nobody, changes nothing, knows
//! no command line. What cannot be told from the samples is `None`, never a guess.
#![forbid(unsafe_code)]

pub mod baseline;
pub mod checks;
pub mod nat;
pub mod stateless;
