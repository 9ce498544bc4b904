//! Transports: the connections to receivers.

#[cfg(feature = "http")]
mod clickhouse;
#[cfg(all(feature = "tls", any(feature = "http", feature = "kafka", feature = "postgres")))]
mod encrypted;
#[cfg(any(feature = "http", feature = "kafka", feature = "postgres"))]
mod exchange;
mod file;
#[cfg(any(feature = "http", feature = "kafka"))]
mod frozen_request;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod http_sender;
mod ipfix;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "http")]
mod otlp;
mod packing;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "http")]
mod protobuf;
mod rotation;
#[cfg(any(feature = "http", feature = "kafka", feature = "postgres"))]
mod secret_file;
#[cfg(any(feature = "http", feature = "kafka", feature = "postgres"))]
mod socket;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stream;
mod tcp;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "http")]
mod tokened_request;
mod udp;
mod unix;

use crate::{Address, Batch, Target, TlsFiles};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

#[cfg(feature = "kafka")]
pub use kafka::fuzz_kafka_answers;
pub use packing::PACKER;
pub use rotation::Rotation;
#[cfg(feature = "http")]
pub use {clickhouse::fuzz_clickhouse_answers, otlp::fuzz_otlp_answers};

/// Time limit for a connection to one address of a receiver.
///
/// Bound: for a connection to one address of a receiver. Beyond: the next address is tried. By: a receiver.
const CONNECT: Duration = Duration::from_secs(3);

/// Why a table's transport refuses a message that is a row of another shape.
const OTHER_COLUMNS: &str = "they waited on disk while the columns were changed";

/// The part of a batch that a transport has taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TakenPart {
    /// Bytes of the batch, from the requested offset on.
    pub bytes: usize,
    /// Messages among them that can never be sent.
    pub refused: u64,
    /// Messages among them that the receiver may have twice.
    pub repeated: u64,
}

/// Batches that are joined before a transport gets them, for receivers to which each request is expensive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gathering {
    /// Least time between two joined batches, unless many messages wait or the run ends.
    pub every: Duration,
    /// Messages up to this number belong together, however many they are.
    pub together: u64,
}

/// Whether the thread that hands messages over may deliver them itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DirectDelivery {
    /// Yes. Messages that cannot be sent at once are left.
    WithoutWait,
    /// Yes, but it may have to wait, for example for a slow disk.
    MayWait,
    /// It may not deliver them.
    Never,
}

/// A connection to a receiver. After any error it is closed and reopened.
pub trait Transport: Send {
    /// Opens the file or connects; gives up after a few seconds.
    fn open(&mut self) -> io::Result<()>;

    /// Takes what an earlier run left in the store by [`Transport::prepare`]. Returns the numbers of the messages that
    /// must be sent together again; earlier ones were delivered.
    fn resume(&mut self, note: &[u8]) -> Option<Range<u64>> {
        let _ = note;
        None
    }

    /// Called before each [`Transport::send`]. Returns what the store must keep before these messages are sent, so
    /// that a later run can send the same ones together again; `None` if it has that already.
    fn prepare(&mut self, batch: &Batch, at: usize) -> io::Result<Option<Vec<u8>>> {
        let _ = (batch, at);
        Ok(None)
    }

    /// How messages are gathered before they are handed over; `None` if each batch is sent as soon as possible.
    fn gathering(&self) -> Option<Gathering> {
        None
    }

    /// Sends messages of `batch` from byte `at` on, as many as the receiver takes without a long wait: none if it
    /// takes nothing for 0.2 s. After an error, the receiver never has a part of a message that looks complete.
    fn send(&mut self, batch: &Batch, at: usize) -> io::Result<TakenPart>;

    /// Whether [`Transport::send_without_waiting`] may be called.
    fn direct_delivery(&self) -> DirectDelivery {
        DirectDelivery::Never
    }

    /// Like [`Transport::send`], but never waits.
    fn send_without_waiting(&mut self, batch: &Batch, at: usize) -> io::Result<TakenPart> {
        self.send(batch, at)
    }

    /// Bytes taken since opening that the receiver has not confirmed; 0 if the transport has no confirmations.
    fn unconfirmed_bytes(&mut self) -> io::Result<u64> {
        Ok(0)
    }

    /// Most bytes that the receiver may have confirmed without reading them.
    fn unread_max(&mut self) -> u64 {
        0
    }

    /// Like [`Transport::unread_max`], after the connection has ended with `error`: 0 if the receiver has certainly
    /// read everything.
    fn unread_after(&mut self, error: &io::Error) -> u64 {
        let _ = error;
        0
    }

    /// Checks whether the receiver is still there.
    fn check(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The reason why messages were refused since the last call. Only called after a refusal.
    fn take_refusal_reason(&mut self) -> Option<String> {
        Some(OTHER_COLUMNS.to_owned())
    }

    /// False if the transport is open but may have no receiver: the last one refused the messages.
    fn is_proven(&self) -> bool {
        true
    }

    /// Closes the transport. It may be opened again.
    fn close(&mut self);
}

/// The options of transports.
#[derive(Debug, Clone, Default)]
pub struct TransportOptions {
    /// The beginning of each new file; the templates of IPFIX.
    pub file_header: Vec<u8>,
    /// Certificates.
    pub tls: TlsFiles,
    /// When files are rotated.
    pub rotation: Option<Rotation>,
}

/// Returns the transport to `target`; an error if this program was built without it.
pub fn open_transport(target: &Target, options: TransportOptions) -> io::Result<Box<dyn Transport>> {
    Ok(match target.address.clone() {
        #[cfg(feature = "sqlite")]
        Address::File(path) if target.format == crate::Format::Sqlite => {
            Box::new(sqlite::Database::new(path, &options.file_header))
        }
        Address::File(path) => Box::new(file::File::new(path, options.file_header, options.rotation)),
        Address::Tcp(receiver) => Box::new(tcp::Tcp::new(receiver)),
        Address::Udp(receiver) if target.format == crate::Format::Ipfix => {
            Box::new(ipfix::Ipfix::new(receiver, options.file_header))
        }
        Address::Udp(receiver) => Box::new(udp::Udp::new(receiver)),
        #[cfg(feature = "tls")]
        Address::Tls(receiver) => Box::new(tls::Tls::new(receiver, options.tls)),
        #[cfg(not(feature = "tls"))]
        Address::Tls(_) => return Err(without_tls()),
        Address::UnixStream(path) => Box::new(unix::UnixConnection::new(path)),
        Address::UnixDatagrams(path) => Box::new(unix::UnixDatagrams::new(path)),
        #[cfg(feature = "postgres")]
        Address::Postgres(address) => Box::new(postgres::Database::new(*address, &options.file_header, options.tls)),
        #[cfg(not(feature = "postgres"))]
        Address::Postgres(_) => return Err(without("PostgreSQL", "postgres")),
        #[cfg(feature = "kafka")]
        Address::Kafka(address) => Box::new(kafka::KafkaProducer::new(*address, options.tls)),
        #[cfg(not(feature = "kafka"))]
        Address::Kafka(_) => return Err(without("Kafka", "kafka")),
        #[cfg(feature = "http")]
        Address::ClickHouse(address) => {
            Box::new(clickhouse::ClickHouse::sender(*address, &options.file_header, options.tls))
        }
        #[cfg(not(feature = "http"))]
        Address::ClickHouse(_) => return Err(without("ClickHouse", "http")),
        #[cfg(feature = "http")]
        Address::Otlp(address) => Box::new(otlp::Otlp::sender(*address, &options.file_header, options.tls)),
        #[cfg(not(feature = "http"))]
        Address::Otlp(_) => return Err(without("OpenTelemetry", "http")),
    })
}

/// Checks a target before it is used. Returns warnings; an error if this program was built without the transport.
pub fn check_target(target: &Target, files: &TlsFiles) -> io::Result<Vec<String>> {
    match &target.address {
        Address::Tls(_) => check_tls(files),
        Address::Postgres(address) => check_postgres(address, files),
        #[cfg(not(feature = "kafka"))]
        Address::Kafka(_) => Err(without("Kafka", "kafka")),
        #[cfg(feature = "kafka")]
        Address::Kafka(address) if address.is_encrypted => check_tls(files),
        #[cfg(not(feature = "http"))]
        Address::ClickHouse(_) => Err(without("ClickHouse", "http")),
        #[cfg(feature = "http")]
        Address::ClickHouse(address) if address.is_encrypted => check_tls(files),
        #[cfg(not(feature = "http"))]
        Address::Otlp(_) => Err(without("OpenTelemetry", "http")),
        #[cfg(feature = "http")]
        Address::Otlp(address) if address.is_encrypted => check_tls(files),
        Address::File(path) => check_file(path, target.format).map(|()| Vec::new()),
        _ => Ok(Vec::new()),
    }
}

/// Fails if netwren must not write to the file. A file that merely cannot be opened now counts as away: that may
/// change.
fn check_file(path: &Path, format: crate::Format) -> io::Result<()> {
    let looked = match format {
        #[cfg(feature = "sqlite")]
        crate::Format::Sqlite => sqlite::check(path),
        _ => file::check(path),
    };
    match looked {
        Err(error) if error.raw_os_error().is_none() => {
            Err(with_object("cannot open", &path.to_string_lossy(), &error))
        }
        _ => Ok(()),
    }
}

#[cfg(feature = "postgres")]
fn check_postgres(address: &crate::PostgresAddress, files: &TlsFiles) -> io::Result<Vec<String>> {
    use crate::SslMode;
    let mut warnings = match address.sslmode {
        SslMode::VerifyFull => check_tls(files)?,
        #[cfg(not(feature = "tls"))]
        SslMode::Require => return Err(without_tls()),
        _ => Vec::new(),
    };
    if std::env::args_os().any(|word| address.is_contained_in(&word.to_string_lossy())) {
        let text = "the password is on the command line, where every user of this host can read it: use PGPASSWORD, \
                    ?passfile=FILE or log.toml";
        warnings.push(format!("{address}: {text}"));
    }
    Ok(warnings)
}

#[cfg(not(feature = "postgres"))]
fn check_postgres(_: &crate::PostgresAddress, _: &TlsFiles) -> io::Result<Vec<String>> {
    Err(without("PostgreSQL", "postgres"))
}

/// Reads the files and checks whether they can be used. Returns a warning if others can read the key. An error names
/// the file and its fault, or reports that this program was built without TLS.
fn check_tls(files: &TlsFiles) -> io::Result<Vec<String>> {
    #[cfg(feature = "tls")]
    return tls::check(files);
    #[cfg(not(feature = "tls"))]
    {
        let _ = files;
        Err(without_tls())
    }
}

/// The error for a receiver that this program was built without.
#[cfg(not(all(feature = "http", feature = "kafka", feature = "postgres")))]
fn without(receiver: &str, feature: &str) -> io::Error {
    let text =
        format!("this netwren was built without {receiver} (cargo feature `{feature}`; `./netwren.sh build` has it)");
    io::Error::new(io::ErrorKind::Unsupported, text)
}

#[cfg(any(not(feature = "tls"), feature = "postgres"))]
fn without_tls() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this netwren was built without TLS (cargo feature `tls`)")
}

/// Most addresses of a name that are tried.
///
/// Bound: addresses of a receiver's name. Beyond: further addresses are not tried. By: the name servers.
const ADDRESSES_MAX: usize = 16;

/// Resolves a receiver `HOST:PORT` to addresses, in the order in which to try them (getaddrinfo(3)).
fn resolve(receiver: &str) -> io::Result<Vec<std::net::SocketAddr>> {
    use std::net::ToSocketAddrs;
    let found = receiver.to_socket_addrs().map_err(|error| with_object("cannot find", receiver, &error))?;
    let found: Vec<_> = found.take(ADDRESSES_MAX).collect();
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("{receiver} has no address")));
    }
    Ok(found)
}

/// Connects to the unix socket at `path`; gives up after a few seconds.
fn connect_unix(path: &std::path::Path) -> io::Result<std::os::unix::net::UnixStream> {
    sys::connection::connect_unix(path, CONNECT).map_err(|errno| io::Error::from_raw_os_error(errno.0))
}

/// Adds the attempt and its object to an error.
fn with_object(what: &str, object: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {object}: {error}"))
}

/// True for errors that mean "try again later".
fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
