//! A collector by TLS: openssl(1), with a certificate that can be changed.

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

/// How often a connection that is to be cut is waited for.
const STEP: Duration = Duration::from_millis(5);
/// Bytes of a handshake that are read before it is cut: a part of the first message.
const BEFORE_CUT: usize = 64;
/// Whom the certificates are for.
const NAMES: &str = "IP:127.0.0.1";

/// The collector. It has three certificates: `good`, `short` that expires, and a stranger's.
pub(super) struct TlsCollector<'l> {
    lab: &'l Lab,
    pub(super) addr: SocketAddr,
    authority: Authority,
    stranger: Authority,
    /// What was read.
    pub(super) file: PathBuf,
    server: RefCell<Option<Child>>,
}

/// False, and said, if there is no openssl(1), or a netwren that was built without TLS.
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
    /// Begins with the certificate that expires in so many seconds.
    pub(super) fn start(lab: &'l Lab, dir: &Path, expires_s: u64) -> Result<TlsCollector<'l>> {
        let (authority, stranger) = (Authority::new(), Authority::named("a stranger"));
        authority.sign("good", NAMES, (-3600, 3600));
        authority.sign("short", NAMES, (-3600, expires_s as i64));
        stranger.sign("good", NAMES, (-3600, 3600));
        let addr = lab.inside(|| TcpListener::bind("127.0.0.1:0"))?.local_addr()?;
        let (file, server) = (dir.join("by-tls"), RefCell::new(None));
        let collector = TlsCollector { lab, addr, authority, stranger, file, server };
        collector.serve("short");
        Ok(collector)
    }

    /// Whom netwren is to trust.
    pub(super) fn trusted(&self) -> PathBuf {
        self.authority.file("ca.pem")
    }

    /// Kills what serves and serves with this certificate.
    pub(super) fn serve(&self, name: &str) {
        self.serve_as(&self.authority, name);
    }

    /// Kills what serves and serves with the certificate of somebody whom nobody trusts.
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
        // It ends when its input does.
        command.stdin(Stdio::piped()).stdout(file).stderr(Stdio::null());
        command.spawn().context("openssl s_server")
    }

    /// For so long, connections are taken, and cut in the middle of the handshake.
    pub(super) fn cut_handshakes(&self, lasts: Duration) {
        self.kill();
        let until = Instant::now() + lasts;
        let addr = self.addr;
        let Ok(listener) = self.lab.inside(|| TcpListener::bind(addr)) else { return };
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
