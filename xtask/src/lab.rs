//! `cargo xtask lab`: troubles of real hosts, made on purpose in namespaces, and what netwren says while they last.

mod nat;

use anyhow::{Result, bail, ensure};

/// What can be asked for by name.
pub(crate) const NAMES: [&str; 1] = ["nat"];

/// What to run.
pub(crate) struct Options {
    /// One of [`NAMES`].
    pub(crate) name: String,
    /// Requests a mode.
    pub(crate) requests: u64,
    /// Of these at once.
    pub(crate) at_once: u64,
    /// Times that all modes are gone through.
    pub(crate) rounds: u32,
}

/// Runs the lab and writes its file.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(testkit::root::have(), "a lab needs root: it makes hosts of its own");
    match options.name.as_str() {
        "nat" => nat::run(options),
        other => bail!("there is no lab called {other}"),
    }
}
