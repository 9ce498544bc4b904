//! Downloads a kernel from a distribution's archive, once.

use super::{Kernel, Origin, must};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

const ARCHIVE: &str = "https://deb.debian.org/debian";
const UBUNTU: &str = "http://archive.ubuntu.com/ubuntu/pool/main/l";

/// The packages of a kernel, unpacked into `folder`.
pub(super) fn fetch(origin: &Origin, folder: &Path) -> Result<Kernel> {
    let unpacked = folder.join("package");
    if !unpacked.join("boot").exists() {
        let urls = match origin {
            Origin::Debian { suite, package } => vec![format!("{ARCHIVE}/{}", newest(suite, package, folder)?)],
            Origin::Ubuntu(files) => files.iter().map(|file| format!("{UBUNTU}/{file}")).collect(),
        };
        // An interrupted download leaves no folder that looks complete.
        let (file, begun) = (folder.join("kernel.deb"), folder.join("begun"));
        for url in urls {
            println!("kernels: downloading {url}");
            curl(&url, &file)?;
            must(Command::new("dpkg-deb").arg("-x").arg(&file).arg(&begun))?;
            std::fs::remove_file(&file)?;
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

/// The path of the newest package in the archive whose name is `prefix…-amd64`.
fn newest(suite: &str, prefix: &str, folder: &Path) -> Result<String> {
    let list = folder.join("Packages.xz");
    curl(&format!("{ARCHIVE}/dists/{suite}/main/binary-amd64/Packages.xz"), &list)?;
    let out = Command::new("xz").arg("-dc").arg(&list).output()?;
    ensure!(out.status.success(), "xz -dc {}: {}", list.display(), out.status);
    let text = String::from_utf8_lossy(&out.stdout);
    let wanted = |entry: &&str| {
        let name = entry.strip_prefix("Package: ").or_else(|| entry.split("\nPackage: ").nth(1));
        let name = name.and_then(|rest| rest.lines().next()).unwrap_or_default();
        let flavour = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix("-amd64"));
        flavour.is_some_and(|middle| !middle.contains("-cloud") && !middle.contains("-rt"))
    };
    // The archive lists them in ascending order.
    let entry = text.split("\n\n").filter(wanted).last().with_context(|| format!("{suite} has no {prefix}*"))?;
    let path = entry.lines().find_map(|line| line.strip_prefix("Filename: "));
    Ok(path.context("a package without a file")?.to_owned())
}

fn curl(url: &str, to: &Path) -> Result<()> {
    must(Command::new("curl").args(["-sSfL", "-o"]).arg(to).arg(url))
}

/// The only file in `folder` whose name begins with `prefix`.
fn only(folder: &Path, prefix: &str) -> Result<PathBuf> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let named = |path: &PathBuf| path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(prefix));
    entries.flatten().map(|entry| entry.path()).find(named).with_context(|| format!("no {prefix} in the package"))
}
