//! The TLS settings: certificates and keys, read from their files.

use crate::TlsFiles;
use crate::transports::with_object;
use rustls::client::{ClientConfig, ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, RootCertStore, SignatureScheme};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The files in which systems keep trusted authorities: Debian and derivatives, Red Hat and derivatives, SUSE.
const SYSTEM_AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"];

/// Mode bit with which everybody may read.
const OTHERS_READ: u32 = 0o004;

/// The settings of a connection.
pub(super) struct Config {
    pub(super) client: Arc<ClientConfig>,
    pub(super) own: Arc<OwnCertificate>,
}

impl Config {
    /// Reads the files.
    pub(super) fn read(files: &TlsFiles) -> io::Result<Config> {
        let provider = Arc::new(ring::default_provider());
        let own =
            Arc::new(OwnCertificate { key: load_client_key(files, &provider)?, was_asked: AtomicBool::new(false) });
        let roots = authorities(files.authorities.as_deref())?;
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| io::Error::other(format!("cannot begin TLS: {error}")))?;
        let resolver = Arc::clone(&own) as Arc<dyn ResolvesClientCert>;
        let mut client = builder.with_root_certificates(roots).with_client_cert_resolver(resolver);
        // Each connection reads the files again: a resumed session would bypass that.
        client.resumption = Resumption::disabled();
        Ok(Config { client: Arc::new(client), own })
    }
}

/// Checks the files. Returns a warning if everybody can read the key, and an error if a file cannot be used.
pub(crate) fn check(files: &TlsFiles) -> io::Result<Vec<String>> {
    Config::read(files)?;
    let Some(key) = files.key.as_ref().or(files.certificate.as_ref()) else { return Ok(Vec::new()) };
    let mode = fs::metadata(key).map_err(|error| with_object("cannot read", &key.to_string_lossy(), &error))?;
    let mode = mode.permissions().mode();
    let warning = format!("{}: every user of this host can read this key (mode {:04o})", key.display(), mode & 0o7777);
    Ok((mode & OTHERS_READ != 0).then_some(warning).into_iter().collect())
}

fn invalid(path: &Path, words: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("{}: {words}", path.display()))
}

/// Largest file, in bytes. A system's bundle of authorities has about 300 KB.
///
/// Bound: bytes of a file of certificates or keys. Beyond: the file is refused. By: the author of the file.
const FILE_MAX: u64 = 16 << 20;

/// Reads a file that only trusted users can write to, because its contents decide whom to trust.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let read = sys::infile::read_trusted(path, FILE_MAX);
    read.map(|(bytes, _)| bytes).map_err(|error| with_object("cannot read", &path.to_string_lossy(), &error))
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let bytes = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| invalid(path, format!("no certificate in PEM form: {error}")))?;
    if found.is_empty() {
        return Err(invalid(path, "it contains no certificate (-----BEGIN CERTIFICATE-----)"));
    }
    Ok(found)
}

fn authorities(path: Option<&Path>) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = path {
        for certificate in certificates(path)? {
            roots
                .add(certificate)
                .map_err(|error| invalid(path, format!("no certificate of an authority: {error}")))?;
        }
        return Ok(roots);
    }
    let system = SYSTEM_AUTHORITIES.map(Path::new).into_iter().find(|path| path.exists());
    let Some(system) = system else {
        let text = "this system has no list of authorities (Debian's package ca-certificates): --tls-ca names one";
        return Err(io::Error::new(ErrorKind::NotFound, text));
    };
    let (added, _) = roots.add_parsable_certificates(certificates(system)?);
    if added == 0 {
        return Err(invalid(system, "none of its certificates can be used"));
    }
    Ok(roots)
}

fn load_client_key(files: &TlsFiles, provider: &CryptoProvider) -> io::Result<Option<Arc<CertifiedKey>>> {
    let (certificate, key) = match (&files.certificate, &files.key) {
        (None, None) => return Ok(None),
        (None, Some(key)) => return Err(invalid(key, "a key is useless without its certificate (--tls-cert)")),
        (Some(certificate), key) => (certificate, key.as_ref().unwrap_or(certificate)),
    };
    let chain = certificates(certificate)?;
    let private = PrivateKeyDer::from_pem_slice(&read(key)?)
        .map_err(|error| invalid(key, format!("no key in PEM form without a passphrase: {error}")))?;
    match CertifiedKey::from_der(chain, private, provider) {
        Ok(own) => Ok(Some(Arc::new(own))),
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(invalid(key, format!("not the key of the certificate in {}", certificate.display())))
        }
        Err(error) => Err(invalid(key, format!("this key cannot be used: {error}"))),
    }
}

/// Our certificate, if we have one, and whether the receiver has asked for it.
#[derive(Debug)]
pub(super) struct OwnCertificate {
    key: Option<Arc<CertifiedKey>>,
    was_asked: AtomicBool,
}

impl OwnCertificate {
    /// True if the receiver has asked for a certificate, whether we have one or not.
    pub(super) fn was_requested(&self) -> bool {
        self.was_asked.load(Ordering::Relaxed)
    }
}

impl ResolvesClientCert for OwnCertificate {
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.was_asked.store(true, Ordering::Relaxed);
        // Ignore the issuers that the receiver names: its refusal of the certificate explains more than sending none.
        self.key.as_ref().filter(|own| own.key.choose_scheme(schemes).is_some()).map(Arc::clone)
    }

    fn has_certs(&self) -> bool {
        self.key.is_some()
    }
}
