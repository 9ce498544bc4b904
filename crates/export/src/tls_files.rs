//! Which files TLS takes its certificates from.

use std::path::PathBuf;

/// Certificates and a key in PEM form. They are read anew for each connection: a certificate that was renewed counts
/// from the next connection on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authorities that may have signed the receiver's certificate; without it those of the system.
    pub authorities: Option<PathBuf>,
    /// Our certificate, for receivers that demand one, and those between it and its authority.
    pub certificate: Option<PathBuf>,
    /// The key of our certificate; without it it is in the certificate's file.
    pub key: Option<PathBuf>,
}
