//! Certificates for TLS tests, made by openssl(1).

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const NEW_KEY: &str = "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";

/// A certificate authority for a test, run through openssl(1).
pub struct Authority {
    dir: PathBuf,
}

impl Default for Authority {
    fn default() -> Authority {
        Authority::new()
    }
}

impl Authority {
    /// Makes a new authority.
    pub fn new() -> Authority {
        Authority::with_name("test authority")
    }

    /// Makes a new authority with this name.
    pub fn with_name(name: &str) -> Authority {
        let authority = Authority { dir: make_folder() };
        let settings = format!(
            "[ca]\ndefault_ca = own\n[own]\ndatabase = {0}/index\nserial = {0}/serial\nnew_certs_dir = {0}\n\
             default_md = sha256\npolicy = any\nunique_subject = no\n[any]\ncommonName = supplied\n\
             [req]\ndistinguished_name = any\n\
             [v3_ca]\nbasicConstraints = critical, CA:TRUE\n",
            authority.dir.display()
        );
        std::fs::write(authority.file("settings"), settings).unwrap();
        std::fs::write(authority.file("index"), "").unwrap();
        let subject = ["-subj", &format!("/CN={name}"), "-extensions", "v3_ca"];
        authority.openssl(&format!("{NEW_KEY} -x509 -days 2 -config settings -keyout ca.key -out ca.pem"), &subject);
        authority
    }

    /// The path of one of its files: `ca.pem`, or `NAME.pem` and `NAME.key`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Signs a certificate for `alt_names` that is valid between these two times, in seconds from now.
    pub fn sign(&self, name: &str, alt_names: &str, valid_s: (i64, i64)) {
        self.openssl(
            &format!("{NEW_KEY} -config settings -keyout {name}.key -out {name}.csr"),
            &["-subj", &format!("/CN={name}")],
        );
        std::fs::write(self.file("names"), format!("subjectAltName = {alt_names}\n")).unwrap();
        let (from, to) = (openssl_time(valid_s.0), openssl_time(valid_s.1));
        self.openssl(
            &format!(
                "ca -config settings -batch -notext -rand_serial -cert ca.pem -keyfile ca.key -startdate {from} \
                 -enddate {to} -extfile names -in {name}.csr -out {name}.pem"
            ),
            &[],
        );
    }

    fn openssl(&self, words: &str, more: &[&str]) {
        let mut command = Command::new("openssl");
        command.args(words.split_whitespace()).args(more).current_dir(&self.dir).stdin(Stdio::null());
        let done = command.output().unwrap();
        assert!(done.status.success(), "openssl {words}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

/// The time `from_now_s` seconds from now, in openssl's format.
fn openssl_time(from_now_s: i64) -> String {
    let mut time = sys::clock::wall();
    time.seconds += from_now_s;
    format!("{:.0}", time.rfc3339()).replace(['-', ':', 'T'], "")
}

/// Makes a folder that only this authority uses.
fn make_folder() -> PathBuf {
    static AUTHORITIES: AtomicU32 = AtomicU32::new(0);
    let number = AUTHORITIES.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("netwren-authority-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
