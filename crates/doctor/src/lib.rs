//! What is wrong and how to mend it: rules on samples, remedies as text. Pure: reads nothing, changes nothing.
#![forbid(unsafe_code)]

pub mod stateless;
