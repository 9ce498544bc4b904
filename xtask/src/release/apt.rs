//! An apt repository as a folder (<https://wiki.debian.org/DebianRepository/Format>).

use super::{Package, Publisher};
use crate::package::{self, Release, gzip};
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::Path;

const SUITE: &str = "stable";
const POOL: &str = "pool/main/n/netwren";

/// Writes the repository. Without a publisher it is unsigned, and lacks the files that users install.
pub(super) fn write(
    folder: &Path,
    packages: &[&Package],
    release: &Release,
    publisher: Option<&Publisher>,
) -> Result<()> {
    let (pool, dists) = (folder.join(POOL), folder.join("dists").join(SUITE));
    std::fs::create_dir_all(&pool)?;
    let mut indexes = Vec::new();
    for package in packages {
        let content = std::fs::read(&package.path)?;
        let name = package.path.file_name().context("a package has a name")?.to_string_lossy();
        std::fs::write(pool.join(&*name), &content)?;
        let index = stanza(&content, &name)?.into_bytes();
        let place = format!("main/binary-{}", package.arch.debian());
        indexes.push((format!("{place}/Packages.gz"), gzip(&index)?));
        indexes.push((format!("{place}/Packages"), index));
    }
    indexes.sort();
    for (path, content) in &indexes {
        let path = dists.join(path);
        let digests = path.with_file_name("by-hash").join("SHA256");
        std::fs::create_dir_all(&digests)?;
        std::fs::write(digests.join(package::hex(&Sha256::digest(content))), content)?;
        std::fs::write(&path, content)?;
    }
    let archs: Vec<&str> = packages.iter().map(|package| package.arch.debian()).collect();
    let list = dists.join("Release");
    std::fs::write(&list, release_file(&archs, &indexes, release))?;
    let Some(Publisher { key, url }) = publisher else { return Ok(()) };
    key.sign_text(&list, &dists.join("InRelease"))?;
    key.sign(&list, &dists.join("Release.gpg"))?;
    std::fs::write(folder.join("netwren.asc"), key.public()?)?;
    // Without `Architectures`, apt reads the indexes of the processors that the system has.
    let sources = format!(
        "Types: deb\nURIs: {url}/apt\nSuites: {SUITE}\nComponents: main\nSigned-By: /etc/apt/keyrings/netwren.asc\n"
    );
    Ok(std::fs::write(folder.join("netwren.sources"), sources)?)
}

/// A package's entry in the index.
fn stanza(content: &[u8], name: &str) -> Result<String> {
    let control = package::control_of(content).with_context(|| name.to_owned())?;
    let digest = package::hex(&Sha256::digest(content));
    Ok(format!("{}\nFilename: {POOL}/{name}\nSize: {}\nSHA256: {digest}\n", control.trim_end(), content.len()))
}

/// The list of all indexes. A copied folder is never signed again, so it has no `Valid-Until`. Indexes are also found
/// by their digest: a client that reads while files are copied gets a list and its own indexes.
fn release_file(archs: &[&str], indexes: &[(String, Vec<u8>)], release: &Release) -> String {
    let mut text = format!(
        "Origin: netwren\nLabel: netwren\nSuite: {SUITE}\nCodename: {SUITE}\nVersion: {}\nDate: {}\n\
         Architectures: {}\nComponents: main\nDescription: releases of netwren\nAcquire-By-Hash: yes\nSHA256:\n",
        release.version,
        // apt takes no other name of this time zone.
        release.date().replace("+0000", "UTC"),
        archs.join(" "),
    );
    for (path, content) in indexes {
        let _ = writeln!(text, " {} {:>9} {path}", package::hex(&Sha256::digest(content)), content.len());
    }
    text
}
