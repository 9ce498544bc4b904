//! Descriptions of what is wrong with a connection.

use crate::TlsFiles;
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error};
use std::io::{self, ErrorKind};
use std::path::Path;
use sys::clock::WallTime;

/// Converts an error of the connection to `receiver`.
pub(in crate::transports) fn io_error(error: &Error, receiver: &str, files: &TlsFiles) -> io::Error {
    let text = match error {
        Error::InvalidCertificate(wrong) => certificate(wrong, receiver, files),
        Error::NoCertificatesPresented => format!("{receiver} presents no certificate"),
        Error::AlertReceived(alert) => alert_text(*alert, receiver, files),
        Error::InvalidMessage(_) => format!("{receiver} does not speak TLS"),
        other => format!("no TLS with {receiver}: {}", in_words(&other.to_string())),
    };
    io::Error::new(ErrorKind::InvalidData, text)
}

fn certificate(wrong: &CertificateError, receiver: &str, files: &TlsFiles) -> String {
    match wrong {
        CertificateError::Expired => format!("the certificate of {receiver} has expired"),
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("the certificate of {receiver} expired at {}", date(*not_after))
        }
        CertificateError::NotValidYet => format!("the certificate of {receiver} is not valid yet"),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("the certificate of {receiver} is not valid before {}", date(*not_before))
        }
        CertificateError::NotValidForName => format!("the certificate of {receiver} is for another host"),
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<&str> = presented.iter().map(|name| strip_wrapper(name)).collect();
            let names =
                if names.is_empty() { "no host".into() } else { sys::escape_bytes(names.join(", ").as_bytes()) };
            format!("the certificate of {receiver} is not for this host; it is for {names}")
        }
        // BadSignature: an authority has the issuer's name but another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            let known = files.authorities.as_deref().map_or("that this system trusts (--tls-ca)".to_owned(), in_file);
            format!("the certificate of {receiver} is signed by none of the authorities {known}")
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            format!("the certificate of {receiver} is not for a server (extended key usage)")
        }
        CertificateError::BadEncoding => format!("the certificate of {receiver} is malformed"),
        CertificateError::Revoked => format!("the certificate of {receiver} was revoked"),
        other => {
            let words = in_words(&format!("{other:?}"));
            match &*words {
                "ca used as end entity" => {
                    format!("the certificate of {receiver} is a CA certificate (CA:TRUE), not a server certificate")
                }
                "unsupported cert version" => {
                    format!(
                        "the certificate of {receiver} is not an X.509 version 3 certificate (it has no \
                        extensions)"
                    )
                }
                words => format!("the certificate of {receiver} is invalid: {words}"),
            }
        }
    }
}

/// Strips wrappers and splits names: `Other(OtherError(CaUsedAsEndEntity))` becomes `ca used as end entity`.
fn in_words(text: &str) -> String {
    let mut text = text;
    while let Some(inner) = ["Other(", "OtherError("].iter().find_map(|wrapper| text.strip_prefix(*wrapper)) {
        text = inner.strip_suffix(')').unwrap_or(inner);
    }
    let (mut words, mut before) = (String::with_capacity(text.len()), ' ');
    for c in text.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
        before = c;
    }
    sys::escape_bytes(words.as_bytes()).into()
}

/// Returns `log.example` for `DnsName("log.example")`.
fn strip_wrapper(name: &str) -> &str {
    name.split_once("(\"").and_then(|(_, rest)| rest.strip_suffix("\")")).unwrap_or(name)
}

/// Describes the receiver's reason for ending the connection.
fn alert_text(alert: AlertDescription, receiver: &str, files: &TlsFiles) -> String {
    let own = match files.certificate.as_deref() {
        Some(path) => format!("our certificate {}", in_file(path)),
        None => return without_certificate(alert, receiver),
    };
    match alert {
        AlertDescription::CertificateExpired => format!("{receiver} refuses {own}: it has expired"),
        AlertDescription::CertificateRevoked => format!("{receiver} refuses {own}: it was revoked"),
        AlertDescription::UnknownCA => {
            format!("{receiver} refuses {own}: it does not know the authority that signed it")
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::AccessDenied => format!("{receiver} refuses {own} ({alert:?})"),
        other => format!("{receiver} refuses the connection ({other:?})"),
    }
}

fn without_certificate(alert: AlertDescription, receiver: &str) -> String {
    match alert {
        // Before TLS 1.3 there was no separate alert for this.
        AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure => {
            format!("{receiver} requires a client certificate (--tls-cert, --tls-key; {alert:?})")
        }
        other => format!("{receiver} refuses the connection ({other:?})"),
    }
}

fn in_file(path: &Path) -> String {
    format!("in {}", path.display())
}

fn date(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    format!("{:.0}", WallTime { seconds, nanos: 0 }.rfc3339())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rustls::OtherError;
    use std::sync::Arc;

    #[test]
    fn no_fault_is_reported_by_the_name_of_a_type() {
        #[derive(Debug)]
        struct CaUsedAsEndEntity;
        impl std::fmt::Display for CaUsedAsEndEntity {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{self:?}")
            }
        }
        impl std::error::Error for CaUsedAsEndEntity {}
        let other = || OtherError(Arc::new(CaUsedAsEndEntity));
        for (fault, says) in [
            (Error::InvalidCertificate(CertificateError::Other(other())), "a CA certificate (CA:TRUE)"),
            (
                Error::InvalidCertificate(CertificateError::UnhandledCriticalExtension),
                "is invalid: unhandled critical ext",
            ),
            (Error::Other(other()), "ca used as end entity"),
            (Error::PeerIncompatible(rustls::PeerIncompatible::NoCipherSuitesInCommon), "no cipher suites in common"),
        ] {
            let said = io_error(&fault, "log.example:6514", &TlsFiles::default()).to_string();
            assert!(said.contains(says) && !said.contains("Error("), "{said}");
        }
    }
}
