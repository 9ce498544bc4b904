//! What a log service takes over from an earlier run and leaves for the next one.
//!
//! The bound sockets of log groups outlive a run: systemd stores them (FDSTORE), or a running netwren hands them over
//! through its control socket. Start reading at [`Inheritance`].

mod inheritance;
mod leaving;
mod numbers;

pub use inheritance::Inheritance;
