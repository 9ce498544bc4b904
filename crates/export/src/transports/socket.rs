//! The connection below the protocol: TCP, a unix socket, or TLS over TCP.

use std::io::{self, Read, Write};
use std::net::TcpStream;
#[cfg(feature = "postgres")]
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// An open connection. A write waits 0.2 s at most.
pub(super) enum Socket {
    Tcp(TcpStream),
    #[cfg(feature = "postgres")]
    Unix(UnixStream),
    #[cfg(feature = "tls")]
    Tls(Box<super::encrypted::TlsSocket>),
}

impl Socket {
    #[cfg(feature = "postgres")]
    pub(super) fn unix(stream: UnixStream) -> io::Result<Socket> {
        stream.set_write_timeout(Some(super::stream::WRITE_TIMEOUT))?;
        Ok(Socket::Unix(stream))
    }

    pub(super) fn set_read_timeout(&self, wait: Duration) -> io::Result<()> {
        // A timeout of zero would mean to wait for ever.
        let wait = Some(wait.max(Duration::from_millis(1)));
        match self {
            Socket::Tcp(stream) => stream.set_read_timeout(wait),
            #[cfg(feature = "postgres")]
            Socket::Unix(stream) => stream.set_read_timeout(wait),
            #[cfg(feature = "tls")]
            Socket::Tls(stream) => stream.stream.set_read_timeout(wait),
        }
    }

    /// True if the connection uses TLS.
    #[cfg(any(feature = "kafka", feature = "postgres"))]
    pub(super) fn is_encrypted(&self) -> bool {
        match self {
            #[cfg(feature = "tls")]
            Socket::Tls(_) => true,
            _ => false,
        }
    }
}

impl Read for Socket {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(place),
            #[cfg(feature = "postgres")]
            Socket::Unix(stream) => stream.read(place),
            #[cfg(feature = "tls")]
            Socket::Tls(stream) => stream.read(place),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            #[cfg(feature = "postgres")]
            Socket::Unix(stream) => stream.write(bytes),
            #[cfg(feature = "tls")]
            Socket::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            #[cfg(feature = "tls")]
            Socket::Tls(stream) => stream.flush(),
            _ => Ok(()),
        }
    }
}
