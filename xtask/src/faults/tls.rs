//! A TLS collector: openssl(1) with a certificate that can be changed.

use anyhow::{Context, Result};
use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::authority::Authority;
use testkit::netns::Lab;

/// Interval between two attempts to accept a connection that will be cut.
const STEP: Duration = Duration::from_millis(5);
/// Bytes of a handshake that are read before it is cut: a part of the first message.
const BEFORE_CUT: usize = 64;
/// The subject of the certificates.
const NAMES: &str = "IP:127.0.0.1";

/// The collector. Its certificates are `good`, `short`, which expires, and one of an untrusted authority.
pub(super) struct TlsCollector<'l> {
    lab: &'l Lab,
    pub(super) addr: SocketAddr,
    authority: Authority,
    stranger: Authority,
    /// The file with the received data.
    pub(super) file: PathBuf,
    server: RefCell<Option<Child>>,
}

/// False if openssl(1) is missing or netwren was built without TLS; prints a message then.
pub(super) fn is_possible(netwren: &Path) -> bool {
    let words = ["log", "--group", "2", "--to", "json+tls://127.0.0.1:1", "--tls-ca", "/nowhere"];
    let says = Command::new(netwren).args(words).output().map(|ran| String::from_utf8_lossy(&ran.stderr).into_owned());
    let has_tls = says.is_ok_and(|says| !says.contains("built without TLS"));
    let is_possible = has_tls && Command::new("openssl").arg("version").output().is_ok();
    if !is_possible {
        println!("faults: NOT TRIED by TLS: it needs openssl(1) and a netwren with the cargo feature `tls`");
    }
    is_possible
}

impl<'l> TlsCollector<'l> {
    /// Starts with the certificate that expires in `expires_s` seconds.
    pub(super) fn start(lab: &'l Lab, dir: &Path, expires_s: u64) -> Result<TlsCollector<'l>> {
        let (authority, stranger) = (Authority::new(), Authority::with_name("a stranger"));
        authority.sign("good", NAMES, (-3600, 3600));
        authority.sign("short", NAMES, (-3600, expires_s as i64));
        stranger.sign("good", NAMES, (-3600, 3600));
        let addr = lab.run_inside(|| TcpListener::bind("127.0.0.1:0"))?.local_addr()?;
        let (file, server) = (dir.join("by-tls"), RefCell::new(None));
        let collector = TlsCollector { lab, addr, authority, stranger, file, server };
        collector.serve("short");
        Ok(collector)
    }

    /// The CA certificate that netwren trusts.
    pub(super) fn trusted(&self) -> PathBuf {
        self.authority.file("ca.pem")
    }

    /// Kills the server and restarts it with this certificate.
    pub(super) fn serve(&self, name: &str) {
        self.serve_as(&self.authority, name);
    }

    /// Kills the server and restarts it with a certificate of an untrusted authority.
    pub(super) fn serve_as_stranger(&self) {
        self.serve_as(&self.stranger, "good");
    }

    fn serve_as(&self, authority: &Authority, name: &str) {
        self.kill();
        let started = self.started(authority, name);
        if let Err(error) = &started {
            println!("faults: {error:#}");
        }
        *self.server.borrow_mut() = started.ok();
    }

    fn started(&self, authority: &Authority, name: &str) -> Result<Child> {
        let file = OpenOptions::new().create(true).append(true).open(&self.file)?;
        let mut command = self.lab.command("openssl");
        command.args(["s_server", "-quiet", "-accept", &self.addr.to_string()]);
        command.arg("-cert").arg(authority.file(&format!("{name}.pem")));
        command.arg("-key").arg(authority.file(&format!("{name}.key")));
        // The server ends when its input does.
        command.stdin(Stdio::piped()).stdout(file).stderr(Stdio::null());
        command.spawn().context("openssl s_server")
    }

    /// Accepts connections for this time and cuts them in the middle of the handshake.
    pub(super) fn cut_handshakes(&self, lasts: Duration) {
        self.kill();
        let until = Instant::now() + lasts;
        let addr = self.addr;
        let Ok(listener) = self.lab.run_inside(|| TcpListener::bind(addr)) else { return };
        let _ = listener.set_nonblocking(true);
        while Instant::now() < until {
            match listener.accept() {
                Ok((mut stream, _)) => {
                    let _ = stream.set_nonblocking(false);
                    let _ = stream.read(&mut [0; BEFORE_CUT]);
                }
                Err(_) => std::thread::sleep(STEP),
            }
        }
    }

    fn kill(&self) {
        if let Some(mut server) = self.server.borrow_mut().take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Drop for TlsCollector<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}
