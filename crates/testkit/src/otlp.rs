//! A receiver of OpenTelemetry logs for one test, which decodes requests with OpenTelemetry's own definitions.

use crate::sandbox::{Limit, confine};
use crate::wait_until;
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use sys::netns::NetNs;

const PROGRAM: &str = include_str!("otlp_receiver.py");

/// A receiver.
pub struct OtlpReceiver {
    dir: PathBuf,
    port: u16,
    process: Child,
    /// Bytes of requests that were returned.
    taken: Cell<usize>,
}

impl OtlpReceiver {
    /// Starts a receiver on 127.0.0.1 of a network namespace, which keeps its files in `dir`. Returns `None` and prints
    /// a message if a part is missing.
    pub fn start(purpose: &str, netns: &Path, dir: &Path) -> Option<OtlpReceiver> {
        // Written once all packages are there.
        let tools = crate::tool::require_fetched("python/installed", "NETWREN_WITHOUT_PYTHON_TOOLS", purpose)?;
        let python = tools.with_file_name("bin").join("python3");
        let (program, port) = (dir.join("receiver.py"), {
            let lab = NetNs::open_path(netns).unwrap();
            let _inside = lab.enter().unwrap();
            crate::ports::unused_port()
        });
        fs::write(&program, PROGRAM).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(python).arg(program);
        command
            .arg(port.to_string())
            .arg(dir.join("requests"))
            .stdin(Stdio::null())
            .env("PYTHONDONTWRITEBYTECODE", "1");
        confine(&mut command, &[Limit::Network(netns.to_owned())]).unwrap();
        let receiver =
            OtlpReceiver { dir: dir.to_owned(), port, process: command.spawn().unwrap(), taken: Cell::new(0) };
        wait_until("the receiver listens", || {
            let lab = NetNs::open_path(netns).unwrap();
            let _inside = lab.enter().unwrap();
            std::net::TcpStream::connect(receiver.place()).is_ok()
        });
        Some(receiver)
    }

    /// `HOST:PORT`.
    pub fn place(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The requests since the last call, as lines of JSON.
    pub fn take_requests(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.join("requests")).unwrap_or_default();
        let news = text.get(self.taken.get()..).unwrap_or_default();
        // A line without its end is still being written.
        let whole = news.rfind('\n').map_or("", |end| news.get(..=end).unwrap_or_default());
        self.taken.set(self.taken.get() + whole.len());
        whole.lines().map(str::to_owned).collect()
    }
}

impl Drop for OtlpReceiver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
