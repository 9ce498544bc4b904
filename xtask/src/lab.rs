//! `cargo xtask lab` reproduces problems of real hosts in namespaces and runs netwren while they last.

mod nat;

use anyhow::{Result, bail, ensure};

/// The names of the labs.
pub(crate) const NAMES: [&str; 1] = ["nat"];

/// The options of `cargo xtask lab`.
pub(crate) struct Options {
    /// One of [`NAMES`].
    pub(crate) name: String,
    /// Requests per mode.
    pub(crate) requests: u64,
    /// Number of simultaneous requests.
    pub(crate) at_once: u64,
    /// Number of rounds; each runs all modes.
    pub(crate) rounds: u32,
}

/// Runs the lab and writes its result file.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(testkit::root::is_privileged(), "a lab needs root: it makes hosts of its own");
    match options.name.as_str() {
        "nat" => nat::run(options),
        other => bail!("there is no lab called {other}"),
    }
}
