//! Nothing but a home for the test binary `all`.
