//! ClickHouse's engine with its HTTP interface for one test, with its own data in a temporary directory.

use crate::authority::Authority;
use crate::ports::unused_port;
use crate::sandbox::{Limit, confine};
use crate::wait_until;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use sys::netns::NetNs;

/// The folder of the engine below target/tools (`need_clickhouse` in netwren.sh).
const ENGINE: &str = "chdb-core-26.9.0";
const FRONT: &str = include_str!("clickhouse_front.py");

/// A server that keeps its data when it is killed.
pub struct ClickHouseServer {
    dir: PathBuf,
    engine: PathBuf,
    netns: Option<PathBuf>,
    port: u16,
    /// Each insert of this number gets no answer; 0 for none.
    cut: u32,
    /// A port with TLS, and the file with its certificate and key.
    encrypted: Option<(u16, PathBuf)>,
    process: Option<Child>,
}

impl ClickHouseServer {
    /// Starts a server on 127.0.0.1, in this network namespace if one is given. It stores each insert of number `cut`
    /// and ends its connection without an answer; 0 for none. Returns `None` and prints a message if a part is missing.
    pub fn start(purpose: &str, netns: Option<&Path>, cut: u32) -> Option<ClickHouseServer> {
        let mut server = ClickHouseServer::new(purpose, netns, cut)?;
        server.begin();
        Some(server)
    }

    /// Like [`ClickHouseServer::start`], with a second port for TLS, whose certificate is of the authority.
    pub fn start_with_tls(purpose: &str, authority: &Authority) -> Option<ClickHouseServer> {
        let mut server = ClickHouseServer::new(purpose, None, 0)?;
        authority.sign("clickhouse", "DNS:localhost, IP:127.0.0.1", (-3600, 3600));
        let read = |name: &str| fs::read_to_string(authority.file(name)).unwrap();
        let certificate = server.dir.join("server.pem");
        fs::write(&certificate, read("clickhouse.key") + &read("clickhouse.pem")).unwrap();
        server.encrypted = Some((unused_port(), certificate));
        server.begin();
        Some(server)
    }

    fn new(purpose: &str, netns: Option<&Path>, cut: u32) -> Option<ClickHouseServer> {
        let engine = crate::tool::require_fetched(ENGINE, "NETWREN_WITHOUT_CLICKHOUSE", purpose)?;
        if !crate::tool::require("python3") || !crate::tool::require("setpriv") {
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("nwclickhouse-{purpose}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("front.py"), FRONT).unwrap();
        let (port, netns) = (unused_port(), netns.map(Path::to_owned));
        Some(ClickHouseServer { dir, engine, netns, port, cut, encrypted: None, process: None })
    }

    /// Starts the server, again after [`ClickHouseServer::kill`], and waits until it answers.
    pub fn begin(&mut self) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.dir.join("log")).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "python3", "-S"]).arg(self.dir.join("front.py"));
        command.arg(self.port.to_string()).arg(&self.dir).arg(self.cut.to_string());
        if let Some((port, certificate)) = &self.encrypted {
            command.arg(port.to_string()).arg(certificate);
        }
        command.env("PYTHONPATH", &self.engine).env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        if let Some(netns) = &self.netns {
            confine(&mut command, &[Limit::Network(netns.clone())]).unwrap();
        }
        self.process = Some(command.spawn().unwrap());
        wait_until("the server answers", || self.ask("SELECT 1").is_some_and(|answer| answer == "1\n"));
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// `HOST:PORT`.
    pub fn place(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `HOST:PORT` of the port with TLS.
    ///
    /// # Panics
    /// If it has none.
    pub fn encrypted_place(&self) -> String {
        format!("127.0.0.1:{}", self.encrypted.as_ref().unwrap().0)
    }

    /// The answer to a statement, without its end of line.
    ///
    /// # Panics
    /// If the server does not answer.
    #[track_caller]
    pub fn query(&self, statement: &str) -> String {
        self.ask(statement).unwrap().trim_end().to_owned()
    }

    fn ask(&self, statement: &str) -> Option<String> {
        let mut stream = self.connect()?;
        let head = format!("POST / HTTP/1.0\r\nContent-Length: {}\r\n\r\n", statement.len());
        stream.write_all((head + statement).as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, mut rest) = answer.split_once("\r\n\r\n")?;
        let mut text = String::new();
        while let Some((size, more)) = rest.split_once("\r\n") {
            let size = usize::from_str_radix(size, 16).ok()?;
            text += more.get(..size)?;
            rest = more.get(size + 2..)?;
        }
        Some(text)
    }

    /// Connects to the server in its network namespace.
    fn connect(&self) -> Option<TcpStream> {
        let lab = self.netns.as_deref().map(|path| NetNs::open_path(path).unwrap());
        let _inside = lab.map(|lab| lab.enter().unwrap());
        TcpStream::connect(self.place()).ok()
    }
}

impl Drop for ClickHouseServer {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("the server's output:\n{}", fs::read_to_string(self.dir.join("log")).unwrap_or_default());
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}
