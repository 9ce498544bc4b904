//! The files and addresses that a contestant writes to, and their placeholders in its configuration.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use testkit::netns::Lab;

/// The namespace, folder and address for one contestant.
pub(crate) struct Place<'p> {
    pub(crate) lab: &'p Lab,
    pub(crate) dir: &'p Path,
    pub(crate) addr: SocketAddr,
}

impl Place<'_> {
    pub(crate) fn file(&self) -> PathBuf {
        self.dir.join("out")
    }

    pub(crate) fn put_in(&self, text: &str) -> String {
        let file = self.file().display().to_string();
        let (host, port) = (self.addr.ip().to_string(), self.addr.port().to_string());
        text.replace("FILE", &file)
            .replace("ADDR", &self.addr.to_string())
            .replace("HOST", &host)
            .replace("PORT", &port)
    }
}
