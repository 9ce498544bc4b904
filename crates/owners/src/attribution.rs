//! The socket at an end of a row, or its owners.

/// The attribution of an end to a socket, according to the sockets that are known at the moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Attribution<F> {
    /// The end is not on this host, or its protocol has no sockets.
    NotHere,
    /// The end is on this host, but its socket was not found, or has no owner.
    Unknown,
    /// The socket, or its owners.
    Found(F),
    /// A later reading of the sockets may find it.
    NotYet,
}
