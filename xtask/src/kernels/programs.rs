//! The programs of the emulated machine: busybox, and the tools that netwren is compared with.

use super::must;
use super::package::{Index, unpack};
use crate::package::Arch;
use crate::root;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library that makes a program write each line at once.
const STDBUF: &str = "usr/libexec/coreutils/libstdbuf.so";

/// Packages of the programs for another architecture. iproute2, which has devlink, needs too many others: only a kernel
/// with a simulated device makes use of it.
const PACKAGES: &[&str] = &["busybox-static", "coreutils", "dropwatch", "nftables"];

/// The place from which the programs are copied.
pub(super) enum Programs {
    /// This host has them installed.
    Installed,
    /// A folder with unpacked packages of another architecture.
    Unpacked(PathBuf),
}

impl Programs {
    /// The programs for an architecture; downloads them if it is another than this host's.
    pub(super) fn of(arch: Arch) -> Result<Programs> {
        if std::env::consts::ARCH == arch.rpm() {
            return Ok(Programs::Installed);
        }
        let folder = root::path().join("target/kernels").join(format!("programs-{}", arch.debian()));
        if !folder.exists() {
            let begun = folder.with_extension("begun");
            fs::create_dir_all(&begun)?;
            for url in Index::fetch("bookworm", arch, &begun)?.with_dependencies(PACKAGES).into_values() {
                println!("kernels: downloading {url}");
                unpack(&url, &begun.join("package.deb"), &begun)?;
            }
            // An interrupted download leaves no folder that looks complete.
            fs::rename(begun, &folder)?;
        }
        Ok(Programs::Unpacked(folder))
    }

    /// Copies them, and the libraries that they need, to the root of the machine.
    pub(super) fn copy_to(&self, tree: &Path) -> Result<()> {
        fs::create_dir_all(tree.join("lib"))?;
        match self {
            Programs::Installed => {
                for name in ["busybox", "nft", "devlink", "dropwatch"] {
                    let program = testkit::tool::find(name).with_context(|| format!("{name} is gone"))?;
                    copy_with_libraries(&program, name, tree)?;
                }
                fs::copy(Path::new("/").join(STDBUF), tree.join("lib/libstdbuf.so"))?;
            }
            Programs::Unpacked(folder) => {
                for program in ["bin/busybox", "usr/sbin/nft", "usr/bin/dropwatch"] {
                    let name = Path::new(program).file_name().context("a program without a name")?;
                    fs::copy(folder.join(program), tree.join("bin").join(name)).context(program)?;
                }
                fs::copy(folder.join(STDBUF), tree.join("lib/libstdbuf.so"))?;
                // The libraries are directly in these folders; the folders below contain modules of other programs.
                let script = "cd \"$1\" && for dir in lib/*-linux-gnu* usr/lib/*-linux-gnu*; do \
                    mkdir -p \"$2/$dir\" && find \"$dir\" -maxdepth 1 -name '*.so*' -exec cp -d {} \"$2/$dir\" \\; ; \
                    done; cp lib/ld-linux-* \"$2/lib\"";
                must(Command::new("sh").args(["-c", script, "sh"]).arg(folder).arg(tree))?;
            }
        }
        Ok(())
    }
}

/// Copies a program of this host together with its shared libraries.
fn copy_with_libraries(program: &Path, name: &str, tree: &Path) -> Result<()> {
    let listed = Command::new("ldd").arg(program).output().context("ldd")?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
        let to = tree.join(library.trim_start_matches('/'));
        fs::create_dir_all(to.parent().context("a library in no folder")?)?;
        fs::copy(library, to)?;
    }
    fs::copy(program, tree.join("bin").join(name))?;
    Ok(())
}
