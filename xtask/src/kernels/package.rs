//! Downloads packages from a distribution's archive, once.

use super::{Kernel, Origin, must};
use crate::package::Arch;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const ARCHIVE: &str = "https://deb.debian.org/debian";
const UBUNTU: &str = "http://archive.ubuntu.com/ubuntu/pool/main/l";

/// The packages of a kernel, unpacked into `folder`.
pub(super) fn fetch(origin: &Origin, arch: Arch, folder: &Path) -> Result<Kernel> {
    let unpacked = folder.join("package");
    if !unpacked.join("boot").exists() {
        let urls = match origin {
            Origin::Debian { suite, package, flavour } => {
                let index = Index::fetch(suite, arch, folder)?;
                vec![index.newest(package, flavour).with_context(|| format!("{suite} has no {package}*{flavour}"))?]
            }
            Origin::Ubuntu(files) => files.iter().map(|file| format!("{UBUNTU}/{file}")).collect(),
        };
        // An interrupted download leaves no folder that looks complete.
        let (file, begun) = (folder.join("kernel.deb"), folder.join("begun"));
        for url in urls {
            println!("kernels: downloading {url}");
            unpack(&url, &file, &begun)?;
        }
        std::fs::rename(begun, &unpacked)?;
    }
    let image = only(&unpacked.join("boot"), "vmlinuz-")?;
    let version = image
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.strip_prefix("vmlinuz-"))
        .context("a kernel's name is not UTF-8")?
        .to_owned();
    let below = ["usr/lib/modules", "lib/modules"].map(|dir| unpacked.join(dir).join(&version));
    let modules = below.into_iter().find(|dir| dir.exists()).context("the package has no modules")?;
    Ok(Kernel { image, modules, version })
}

/// Downloads a package to `file`, and unpacks it into `folder`.
pub(super) fn unpack(url: &str, file: &Path, folder: &Path) -> Result<()> {
    must(Command::new("curl").args(["-sSfL", "-o"]).arg(file).arg(url))?;
    must(Command::new("dpkg-deb").arg("-x").arg(file).arg(folder))?;
    Ok(std::fs::remove_file(file)?)
}

/// The packages of a Debian release.
pub(super) struct Index {
    text: String,
}

impl Index {
    /// Downloads the list into `folder`.
    pub(super) fn fetch(suite: &str, arch: Arch, folder: &Path) -> Result<Index> {
        let (list, arch) = (folder.join("Packages.xz"), arch.debian());
        let url = format!("{ARCHIVE}/dists/{suite}/main/binary-{arch}/Packages.xz");
        must(Command::new("curl").args(["-sSfL", "-o"]).arg(&list).arg(url))?;
        let out = Command::new("xz").arg("-dc").arg(&list).output()?;
        ensure!(out.status.success(), "xz -dc {}: {}", list.display(), out.status);
        Ok(Index { text: String::from_utf8_lossy(&out.stdout).into_owned() })
    }

    /// The address of the newest package whose name is `prefix…flavour`.
    fn newest(&self, prefix: &str, flavour: &str) -> Option<String> {
        let wanted = |entry: &&str| {
            let name = field(entry, "Package").unwrap_or_default();
            let middle = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(flavour));
            middle.is_some_and(|middle| !middle.contains("-cloud") && !middle.contains("-rt"))
        };
        // The archive lists them in ascending order.
        address(self.text.split("\n\n").filter(wanted).last()?)
    }

    /// The addresses of these packages and of all that they depend on. Takes the first of several alternatives, and
    /// leaves out packages that others provide.
    pub(super) fn with_dependencies(&self, names: &[&str]) -> BTreeMap<String, String> {
        let entries = self.text.split("\n\n").filter_map(|entry| Some((field(entry, "Package")?, entry)));
        let entries: BTreeMap<&str, &str> = entries.collect();
        let (mut found, mut open) = (BTreeMap::new(), names.to_vec());
        while let Some(name) = open.pop() {
            let Some(entry) = entries.get(name).filter(|_| !found.contains_key(name)) else { continue };
            found.extend(address(entry).map(|address| (name.to_owned(), address)));
            let needed = field(entry, "Depends").unwrap_or_default();
            open.extend(needed.split(", ").filter_map(|one| one.split([' ', ':', '|']).next()));
        }
        found
    }
}

/// The value of a field of an entry.
fn field<'e>(entry: &'e str, name: &str) -> Option<&'e str> {
    entry.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn address(entry: &str) -> Option<String> {
    Some(format!("{ARCHIVE}/{}", field(entry, "Filename")?))
}

/// The only file in `folder` whose name begins with `prefix`.
fn only(folder: &Path, prefix: &str) -> Result<PathBuf> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let named = |path: &PathBuf| path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(prefix));
    entries.flatten().map(|entry| entry.path()).find(named).with_context(|| format!("no {prefix} in the package"))
}
