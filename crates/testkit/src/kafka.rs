//! A Kafka broker for one test, with its own data in a temporary directory.

use crate::authority::Authority;
use crate::ports::unused_port;
use crate::sandbox::{Limit, confine};
use crate::wait_until;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The folder of its jars below target/tools (`need_kafka` in netwren.sh).
const JARS: &str = "kafka-4.4.0";
/// The user whom [`Listener::Scram`] and [`Listener::Login`] know, and its password.
pub const USER: &str = "fw";
/// The password of [`USER`].
pub const PASSWORD: &str = "hunter2";

/// The broker's ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    /// Anybody may produce and consume.
    Open,
    /// SCRAM-SHA-256 and SCRAM-SHA-512.
    Scram,
    /// TLS with a client's certificate.
    Tls,
    /// PLAIN over TLS.
    Login,
}

/// A broker that keeps its data when it is killed.
pub struct Broker {
    dir: PathBuf,
    jars: PathBuf,
    netns: Option<PathBuf>,
    /// One for each [`Listener`], and the controller's.
    ports: [u16; 5],
    process: Option<Child>,
}

impl Broker {
    /// Starts a broker on 127.0.0.1, in this network namespace if one is given. Its certificate is `broker.pem` of the
    /// authority, and clients need one of the same authority. Returns `None` and prints a message if a part is missing.
    pub fn start(purpose: &str, netns: Option<&Path>, authority: &Authority) -> Option<Broker> {
        let jars = crate::tool::require_fetched(JARS, "NETWREN_WITHOUT_KAFKA", purpose)?;
        if !crate::tool::require("java") || !crate::tool::require("kcat") || !crate::tool::require("setpriv") {
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("nwkafka-{purpose}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        let netns = netns.map(Path::to_owned);
        let mut broker = Broker { dir, jars, netns, ports: [(); 5].map(|()| unused_port()), process: None };
        broker.configure(authority);
        let user = |hash: &str| format!("SCRAM-SHA-{hash}=[name={USER},password={PASSWORD}]");
        let mut format = broker.java("kafka.tools.StorageTool");
        format.args(["format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c"]).arg(broker.dir.join("properties"));
        let made = format.args(["--add-scram", &user("256"), "--add-scram", &user("512")]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        broker.begin();
        Some(broker)
    }

    fn configure(&self, authority: &Authority) {
        authority.sign("broker", "DNS:localhost, IP:127.0.0.1", (-3600, 3600));
        let read = |name: &str| fs::read_to_string(authority.file(name)).unwrap();
        fs::write(self.dir.join("broker.pem"), read("broker.key") + &read("broker.pem")).unwrap();
        fs::write(self.dir.join("ca.pem"), read("ca.pem")).unwrap();
        let names = ["OPEN", "SCRAM", "TLS", "LOGIN", "CONTROLLER"];
        let places = |names: &[&str]| {
            let place = |(name, port): (&&str, &u16)| format!("{name}://127.0.0.1:{port}");
            names.iter().zip(&self.ports).map(place).collect::<Vec<_>>().join(",")
        };
        let module = "org.apache.kafka.common.security";
        let dir = self.dir.display();
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\nlisteners={}\nadvertised.listeners={}\n\
             listener.security.protocol.map=OPEN:PLAINTEXT,SCRAM:SASL_PLAINTEXT,TLS:SSL,LOGIN:SASL_SSL,\
             CONTROLLER:PLAINTEXT\n\
             inter.broker.listener.name=OPEN\ncontroller.listener.names=CONTROLLER\n\
             controller.quorum.voters=1@127.0.0.1:{}\nlog.dirs={dir}/logs\nnum.partitions=4\n\
             offsets.topic.replication.factor=1\nssl.keystore.type=PEM\nssl.keystore.location={dir}/broker.pem\n\
             ssl.truststore.type=PEM\nssl.truststore.location={dir}/ca.pem\n\
             listener.name.tls.ssl.client.auth=required\n\
             listener.name.scram.sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512\n\
             listener.name.scram.scram-sha-256.sasl.jaas.config={module}.scram.ScramLoginModule required;\n\
             listener.name.scram.scram-sha-512.sasl.jaas.config={module}.scram.ScramLoginModule required;\n\
             listener.name.login.sasl.enabled.mechanisms=PLAIN\n\
             listener.name.login.plain.sasl.jaas.config={module}.plain.PlainLoginModule required \
             user_{USER}=\"{PASSWORD}\";\n",
            places(&names),
            places(&names[..4]),
            self.ports[4],
        );
        fs::write(self.dir.join("properties"), text).unwrap();
    }

    /// A Java program of Kafka.
    fn java(&self, class: &str) -> Command {
        let mut command = self.command("setpriv");
        command.args(["--pdeathsig", "KILL", "java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"]);
        command.arg(format!("{}/*", self.jars.display())).arg(class).stdin(Stdio::null()).current_dir(&self.dir);
        command
    }

    /// A command in the broker's network namespace.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        if let Some(netns) = &self.netns {
            confine(&mut command, &[Limit::Network(netns.clone())]).unwrap();
        }
        command
    }

    /// Starts the broker, again after [`Broker::kill`], and waits until it answers.
    pub fn begin(&mut self) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.dir.join("log")).unwrap();
        let mut command = self.java("kafka.Kafka");
        command.arg(self.dir.join("properties")).stdout(log.try_clone().unwrap()).stderr(log);
        self.process = Some(command.spawn().unwrap());
        wait_until("the broker answers", || self.kcat(&["-L", "-m", "5"]).status.success());
    }

    /// Kills the broker with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// `HOST:PORT` of a listener.
    pub fn place(&self, listener: Listener) -> String {
        format!("127.0.0.1:{}", self.ports[listener as usize])
    }

    fn kcat(&self, words: &[&str]) -> Output {
        self.command("kcat")
            .args(["-b", &self.place(Listener::Open)])
            .args(words)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Partition, key and value of each message of a topic, in the order of each partition; empty if it does not exist.
    ///
    /// # Panics
    /// If kcat fails.
    #[track_caller]
    pub fn messages(&self, topic: &str) -> Vec<(u32, String, String)> {
        let read = self.kcat(&["-C", "-t", topic, "-e", "-q", "-o", "beginning", "-f", "%p\t%k\t%s\n"]);
        let said = String::from_utf8_lossy(&read.stderr);
        assert!(read.status.success() || said.contains("Unknown topic or partition"), "{said}");
        let text = String::from_utf8_lossy(&read.stdout).into_owned();
        let fields = |line: &str| {
            let mut fields = line.splitn(3, '\t').map(str::to_owned);
            let mut next = || fields.next().unwrap();
            (next().parse().unwrap(), next(), next())
        };
        text.lines().map(fields).collect()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(15).collect();
            eprintln!("the broker's last lines:\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}
