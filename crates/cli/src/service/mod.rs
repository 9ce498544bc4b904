//! A run as a service: what it tells the service manager, what it takes over from an earlier run, and what it leaves
//! to the next one.
//!
//! The bound sockets of log groups outlive a run: systemd keeps them (FDSTORE), or a running netwren hands them over by
//! its control socket. Start reading at [`Inheritance`].
mod inheritance;
mod leaving;
mod notifier;
mod numbers;
mod run_state;

pub(crate) use inheritance::Inheritance;
pub(crate) use notifier::Notifier;
pub(crate) use run_state::RunState;
