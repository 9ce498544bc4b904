//! Control connections of FTP and TFTP.

use record::Addr;

/// A protocol whose control connection negotiates ports of other connections, which a helper can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlKind {
    /// RFC 959: TCP port 21.
    Ftp,
    /// RFC 1350: UDP port 69; the server answers from another port.
    Tftp,
}

impl ControlKind {
    /// Every kind.
    pub const ALL: [ControlKind; 2] = [ControlKind::Ftp, ControlKind::Tftp];

    /// The name of its helper.
    pub fn name(self) -> &'static str {
        match self {
            ControlKind::Ftp => "ftp",
            ControlKind::Tftp => "tftp",
        }
    }

    /// `tcp` or `udp`.
    pub fn proto(self) -> &'static str {
        match self {
            ControlKind::Ftp => "tcp",
            ControlKind::Tftp => "udp",
        }
    }

    /// The port of its server.
    pub fn port(self) -> u16 {
        match self {
            ControlKind::Ftp => 21,
            ControlKind::Tftp => 69,
        }
    }
}

/// A tracked control connection that no helper follows. IPv4 addresses are not in mapped form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// Its protocol.
    pub kind: ControlKind,
    /// The host that began it.
    pub client: Addr,
    /// The server's address for the client.
    pub server: Addr,
    /// The server's real address after NAT, otherwise the same.
    pub real_server: Addr,
    /// The client's address for the server.
    pub outside: Addr,
    /// The client's ports on both sides of NAT.
    pub client_ports: [u16; 2],
}

/// Most control connections that are recorded per namespace.
///
/// Bound: control connections of FTP and TFTP that `doctor` remembers for a namespace. Beyond: further ones are not
/// checked, counted (exit code 3). By: clients with as many connections.
pub const CONTROLS_MAX: usize = 4096;
