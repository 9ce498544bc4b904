//! The files with TLS certificates and keys.

use std::path::PathBuf;

/// Certificates and a key in PEM form. They are read again for each connection, so a renewed certificate counts from
/// the next connection on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authorities that may have signed the receiver's certificate; by default the system's.
    pub authorities: Option<PathBuf>,
    /// Our certificate with its intermediate certificates, for receivers that demand one.
    pub certificate: Option<PathBuf>,
    /// The key of our certificate; by default it is in the certificate's file.
    pub key: Option<PathBuf>,
}
