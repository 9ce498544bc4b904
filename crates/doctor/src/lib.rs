//! Diagnosis: rules that find faults in samples, and their remedies.
//!
//! The crate has only rules: it takes numbers that its caller read, and returns findings in words. It reads nothing,
//! changes nothing and knows no command line. A value that the samples cannot show is `None`, never a guess.
#![forbid(unsafe_code)]

pub mod baseline;
pub mod checks;
pub mod nat;
pub mod seen;
