//! An empty library; the package only contains the test binary `all`.
#![forbid(unsafe_code)]
