//! A run as a service: status reports to the service manager, sockets taken over from an earlier run, and sockets left
//! for the next one.
//!
//! The bound sockets of log groups outlive a run: systemd stores them (FDSTORE), or a running netwren hands them over
//! through its control socket. Start reading at [`Inheritance`].
mod inheritance;
mod leaving;
mod notifier;
mod numbers;
mod run_state;

pub(crate) use inheritance::Inheritance;
pub(crate) use notifier::Notifier;
pub(crate) use run_state::RunState;
