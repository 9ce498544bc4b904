//! Nothing but a home for the test binary `all`.
#![forbid(unsafe_code)]
