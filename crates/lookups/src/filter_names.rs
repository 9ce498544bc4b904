//! Resolves names in filters: from this machine's files, and host names through the system's resolver.

use pcapfilter::{NameFiles, NameSource};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};
use sys::Host;

/// Reads each file at the first lookup of a name that it may contain, and resolves each host once, so that the
/// programs for all link types use the same addresses, and programs compiled later need no privilege for it.
#[derive(Debug, Default)]
pub struct FilterNames {
    texts: [OnceCell<String>; 4],
    hosts: RefCell<HashMap<String, Vec<IpAddr>>>,
}

/// Paths of the files, in the order of `texts`.
const FILES: [&str; 4] = ["/etc/services", "/etc/protocols", "/etc/networks", "/etc/ethers"];

impl FilterNames {
    fn text(&self, nth: usize) -> &str {
        let (Some(cell), Some(file)) = (self.texts.get(nth), FILES.get(nth)) else { return "" };
        cell.get_or_init(|| {
            let mut text = Vec::new();
            // If the file is missing, no word is a name.
            let _ = Host::live().read_file(file, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    }
}

impl NameSource for FilterNames {
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
