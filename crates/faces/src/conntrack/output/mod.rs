//! The bytes of conntrack (conntrack-tools 1.4.7): entries, expectations and events as text, XML and commands.
//!
//! The writer takes typed rows and writes lines. It knows no switch, no filter and no kernel. Start reading at
//! [`EntryWriter`]; the three forms of an entry are in `text`, `xml` and `save`.
mod clock;
mod expect;
mod layout;
mod line_writer;
mod save;
#[cfg(test)]
mod tests;
mod text;
mod words;
mod writer;
mod xml;

pub use clock::put_moment;
pub use layout::{Change, EntryOptions, Form, LabelNames, Origin};
pub use words::{DCCP_ROLES, DCCP_STATES, PROTOCOLS, SCTP_STATES, TCP_STATES};
pub use writer::EntryWriter;
