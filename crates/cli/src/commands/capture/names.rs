//! Names in filters: those of this machine's files, and hosts as the system finds them.

use pcapfilter::{NameFiles, NameSource};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};
use sys::Host;

/// Reads each file when a name is asked for that may stand in it, and asks for a host once: the programs for all link
/// types know it by the same addresses, and those that are compiled later need no right to ask.
#[derive(Debug, Default)]
pub(crate) struct HostNames {
    texts: [OnceCell<String>; 4],
    hosts: RefCell<HashMap<String, Vec<IpAddr>>>,
}

/// The files, in the order of `texts`.
const FILES: [&str; 4] = ["/etc/services", "/etc/protocols", "/etc/networks", "/etc/ethers"];

impl HostNames {
    fn text(&self, nth: usize) -> &str {
        let (Some(cell), Some(file)) = (self.texts.get(nth), FILES.get(nth)) else { return "" };
        cell.get_or_init(|| {
            let mut text = Vec::new();
            // Without the file no word is a name.
            let _ = Host::live().read_file(file, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    }
}

impl NameSource for HostNames {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        let ask = || match (name, 0).to_socket_addrs() {
            Ok(found) => found.map(|address| address.ip()).collect(),
            Err(_) => Vec::new(),
        };
        self.hosts.borrow_mut().entry(name.to_owned()).or_insert_with(ask).clone()
    }

    fn network(&self, name: &str) -> Option<u32> {
        NameFiles { networks: self.text(2), ..NameFiles::default() }.network(name)
    }

    fn ethernet(&self, name: &str) -> Option<[u8; 6]> {
        NameFiles { ethers: self.text(3), ..NameFiles::default() }.ethernet(name)
    }

    fn port(&self, name: &str, protocol: &str) -> Option<u16> {
        NameFiles { services: self.text(0), ..NameFiles::default() }.port(name, protocol)
    }

    fn protocol(&self, name: &str) -> Option<u8> {
        NameFiles { protocols: self.text(1), ..NameFiles::default() }.protocol(name)
    }
}
