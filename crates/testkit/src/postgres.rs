//! A PostgreSQL server for one test: a new cluster in a temporary directory, run by an unprivileged user.

use crate::wait_until;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The uid of `nobody`, because the server refuses to run as root.
const NOBODY: &str = "65534";

/// A server on a unix socket and a loopback port; on the socket any user may log in as `postgres`.
pub struct Server {
    dir: PathBuf,
    bin: PathBuf,
    port: u16,
    process: Option<Child>,
}

/// The folder of the newest server's programs, from a package that is installed or unpacked below target/tools.
fn programs() -> Option<PathBuf> {
    let tools =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::program::workspace().join("target"), PathBuf::from);
    let roots = [PathBuf::from("/"), tools.join("tools")];
    let versions = roots.iter().flat_map(|root| {
        let found = fs::read_dir(root.join("usr/lib/postgresql")).into_iter().flatten().map_while(Result::ok);
        let mut found: Vec<PathBuf> = found.map(|entry| entry.path().join("bin")).collect();
        found.sort();
        found.into_iter().rev()
    });
    versions.into_iter().find(|bin| bin.join("initdb").is_file())
}

impl Server {
    /// Starts a server; returns `None` and prints a message if PostgreSQL or an unprivileged user is missing.
    pub fn start(purpose: &str) -> Option<Server> {
        let skipped = |why: &str| {
            crate::print_loud(&format!("skipped: a test of {purpose} needs PostgreSQL: {why}"));
            None
        };
        let Some(bin) = programs() else { return skipped("no initdb in /usr/lib/postgresql or target/tools") };
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("nwpg-{purpose}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        if sys::caps::euid() == 0 {
            std::os::unix::fs::chown(&dir, NOBODY.parse().ok(), NOBODY.parse().ok()).unwrap();
        }
        let port = crate::ports::unused_port();
        let mut server = Server { dir, bin, port, process: None };
        let data = server.dir.join("data");
        let made = server
            .command("initdb")
            .args(["-N", "-A", "trust", "-U", "postgres", "--no-locale", "-E", "UTF8", "-D"])
            .arg(&data)
            .output();
        match made {
            Ok(out) if out.status.success() => {}
            Ok(out) => return skipped(&format!("initdb: {}", String::from_utf8_lossy(&out.stderr))),
            Err(error) => return skipped(&format!("setpriv: {error}")),
        }
        fs::write(data.join("pg_hba.conf"), "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n").unwrap();
        server.begin();
        Some(server)
    }

    /// A program of the server, run as the server's user.
    fn command(&self, program: &str) -> Command {
        let path = self.bin.join(program);
        let mut command = if sys::caps::euid() == 0 {
            let mut setpriv = Command::new("setpriv");
            setpriv.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--pdeathsig", "KILL"]);
            if let Some(root) = self.unpacked_folder() {
                // A package below a home that only root can enter is mounted at /mnt, for this process only.
                let script = "mount --make-rprivate / && mount --bind \"$1\" /mnt && shift && exec \"$@\"";
                let mut unshare = Command::new("unshare");
                unshare.args(["-m", "sh", "-c", script, "sh"]).arg(&root).arg("setpriv").args(setpriv.get_args());
                unshare.arg("env").arg(format!("LD_LIBRARY_PATH={}", libraries(&root)));
                unshare.arg(Path::new("/mnt").join(path.strip_prefix(&root).unwrap()));
                unshare
            } else {
                setpriv.arg(path);
                setpriv
            }
        } else {
            let mut command = Command::new(path);
            if let Some(root) = self.unpacked_folder() {
                command.env("LD_LIBRARY_PATH", libraries(&root).replace("/mnt", &root.to_string_lossy()));
            }
            command
        };
        command.env("LC_ALL", "C").current_dir("/").stdin(Stdio::null());
        command
    }

    /// The folder that the package was unpacked to, if it is not installed.
    fn unpacked_folder(&self) -> Option<PathBuf> {
        (!self.bin.starts_with("/usr")).then(|| self.bin.ancestors().nth(5).unwrap().to_owned())
    }

    /// Starts the server and waits until it answers.
    pub fn begin(&mut self) {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.dir.join("data"));
        command.args(["-p", &self.port.to_string(), "-c", "fsync=off", "-c", "listen_addresses=127.0.0.1"]);
        command.arg("-c").arg(format!("unix_socket_directories={}", self.dir.display()));
        let log = fs::OpenOptions::new().create(true).append(true).open(self.dir.join("log")).unwrap();
        command.stdout(Stdio::null()).stderr(log);
        self.process = Some(command.spawn().unwrap());
        wait_until("the server answers", || self.try_query("SELECT 1").is_ok());
    }

    /// Restarts the server with additional lines of configuration, and copies of the files that they name.
    pub fn configure(&mut self, lines: &str, files: &[(&str, &Path)]) {
        self.kill();
        for (name, from) in files {
            let to = self.dir.join("data").join(name);
            crate::program::install(from, &to, 0o600);
            if sys::caps::euid() == 0 {
                std::os::unix::fs::chown(&to, NOBODY.parse().ok(), NOBODY.parse().ok()).unwrap();
            }
        }
        fs::write(self.dir.join("data/postgresql.auto.conf"), lines).unwrap();
        self.begin();
    }

    /// Kills the server as in a crash: connections break, and uncommitted data is lost.
    pub fn kill(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let number = fs::read_to_string(self.dir.join("data/postmaster.pid")).unwrap_or_default();
        let number = number.lines().next().unwrap_or_default().to_owned();
        if number.parse::<u32>().is_ok() {
            let _ = Command::new("kill").args(["-QUIT", &number]).status();
        } else {
            let _ = process.kill();
        }
        let _ = process.wait();
    }

    /// The server's pid.
    ///
    /// # Panics
    /// If it is not running.
    pub fn pid(&self) -> u32 {
        let text = fs::read_to_string(self.dir.join("data/postmaster.pid")).unwrap();
        text.lines().next().unwrap().trim().parse().unwrap()
    }

    /// The directory of its socket.
    pub fn directory(&self) -> &Path {
        &self.dir
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A `--to` target on its socket, with more parameters.
    pub fn url(&self, more: &str) -> String {
        format!("postgres://postgres@:{}/postgres?host={}{more}", self.port, self.dir.display())
    }

    /// The rows of a statement as lines, with cells separated by `|`.
    ///
    /// # Panics
    /// If it fails.
    #[track_caller]
    pub fn query(&self, sql: &str) -> Vec<String> {
        self.try_query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The rows of a statement, or psql's error.
    pub fn try_query(&self, sql: &str) -> Result<Vec<String>, String> {
        let out = self.psql(&["-c", sql]).output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&out.stdout);
        let lines = || text.lines().map(str::to_owned).collect();
        out.status.success().then(lines).ok_or_else(|| String::from_utf8_lossy(&out.stderr).into_owned())
    }

    /// psql with these arguments.
    pub fn psql(&self, args: &[&str]) -> Command {
        let mut psql = self.command("psql");
        psql.args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", "postgres", "-p", &self.port.to_string()]);
        psql.arg("-h").arg(&self.dir).args(args);
        psql
    }
}

/// The paths of the unpacked server's libraries, as the server sees them.
fn libraries(root: &Path) -> String {
    let found = ["usr/lib", "lib"].map(|lib| root.join(lib));
    let dirs = found.iter().flat_map(|lib| fs::read_dir(lib).into_iter().flatten().map_while(Result::ok));
    let dirs = dirs.map(|entry| entry.path()).filter(|path| path.to_string_lossy().ends_with("-linux-gnu"));
    let dirs: Vec<String> = dirs.map(|dir| format!("/mnt/{}", dir.strip_prefix(root).unwrap().display())).collect();
    dirs.join(":")
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.dir);
    }
}
