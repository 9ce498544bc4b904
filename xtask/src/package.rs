//! `cargo xtask package deb|rpm|tar|oci`: packages of the built program.
//!
//! packaging/files.toml lists the files of every format and of `./netwren.sh install`. The same files give the same
//! bytes: every member belongs to root and has the time of the release.

mod deb;
mod files;
mod image;
mod rpm;
mod tar;

use crate::root;
use anyhow::{Context, Result, ensure};
pub(crate) use files::gzip;
use files::{Layout, List, PackagedFile};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The formats, and `list`: the files of an installation by hand, a line each: mode, source and path.
pub(crate) const FORMATS: [&str; 5] = ["deb", "rpm", "tar", "oci", "list"];

/// The processors for which the program is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    /// The names that `--arch` takes.
    pub(crate) const NAMES: [&str; 2] = ["x86_64", "aarch64"];

    /// The processor of this name.
    pub(crate) fn of(name: &str) -> Arch {
        if name == "aarch64" { Arch::Aarch64 } else { Arch::X86_64 }
    }

    /// The name in rpm packages and in `uname -m`.
    pub(crate) fn rpm(self) -> &'static str {
        if self == Arch::Aarch64 { "aarch64" } else { "x86_64" }
    }

    /// The name in Debian packages.
    pub(crate) fn debian(self) -> &'static str {
        if self == Arch::Aarch64 { "arm64" } else { "amd64" }
    }

    /// The name in images.
    pub(crate) fn oci(self) -> &'static str {
        self.debian()
    }

    /// `e_machine` of the ELF header (include/uapi/linux/elf-em.h).
    fn elf(self) -> u16 {
        if self == Arch::Aarch64 { 183 } else { 62 }
    }
}

/// What is packaged.
pub(crate) struct Release {
    pub(crate) version: &'static str,
    pub(crate) arch: Arch,
    /// Time of every member, in seconds since 1970.
    pub(crate) time_s: u64,
}

impl Release {
    /// This version, with the time in `SOURCE_DATE_EPOCH`, or else of the commit.
    pub(crate) fn new(arch: Arch) -> Result<Release> {
        let time_s = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(text) => text.parse().with_context(|| format!("SOURCE_DATE_EPOCH: `{text}`"))?,
            Err(_) => {
                let out = Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root::path()).output()?;
                let text = String::from_utf8(out.stdout)?;
                text.trim().parse().context("no commit tells the time: set SOURCE_DATE_EPOCH")?
            }
        };
        Ok(Release { version: env!("CARGO_PKG_VERSION"), arch, time_s })
    }

    /// The time as in e-mails, in UTC.
    pub(crate) fn date(&self) -> String {
        const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let day = usize::try_from(self.time_s / 86_400 % 7).unwrap_or_default();
        let seconds = i64::try_from(self.time_s).unwrap_or_default();
        let text = format!("{:.0}", sys::clock::WallTime { seconds, nanos: 0 }.rfc3339());
        let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        let month = part(5, 7).parse::<usize>().unwrap_or(1);
        let word = |list: &[&'static str], at: usize| list.get(at).copied().unwrap_or_default();
        let (day, month) = (word(&DAYS, day), word(&MONTHS, month.saturating_sub(1)));
        format!("{day}, {} {month} {} {} +0000", part(8, 10), part(0, 4), part(11, 19))
    }
}

/// Builds one package of `binary` in `folder`, and prints its path.
pub(crate) fn run(format: &str, arch: Arch, binary: &Path, folder: &Path) -> Result<()> {
    if format == "list" {
        for file in List::read()?.files(Layout::Prefix, binary)? {
            println!("{:o} {} {}", file.mode, file.source.display(), file.path);
        }
        return Ok(());
    }
    println!("{}", build(format, &Release::new(arch)?, binary, folder)?.display());
    Ok(())
}

/// Builds one package of `binary` in `folder`, and returns its path.
pub(crate) fn build(format: &str, release: &Release, binary: &Path, folder: &Path) -> Result<PathBuf> {
    let (list, arch) = (List::read()?, release.arch);
    is_for(arch, binary)?;
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let version = release.version;
    let write = |name: String, content: Vec<u8>| -> Result<PathBuf> {
        let path = folder.join(name);
        std::fs::write(&path, content).with_context(|| path.display().to_string())?;
        Ok(path)
    };
    match format {
        "deb" => write(format!("netwren_{version}-1_{}.deb", arch.debian()), deb::package(&list, binary, release)?),
        "tar" => write(format!("netwren-{version}-{}-linux.tar.gz", arch.rpm()), archive(&list, binary, release)?),
        "rpm" => rpm::build(&list, binary, release, folder),
        _ => {
            let path = folder.join(format!("netwren-{version}-{}.oci", arch.oci()));
            image::write(&list, binary, release, &path)?;
            Ok(path)
        }
    }
}

/// Packs the image in `folder` into one file with the suffix `.oci.tar`, which skopeo(1) calls oci-archive. Removes the
/// folder.
pub(crate) fn pack_image(folder: &Path, time_s: u64) -> Result<PathBuf> {
    let path = folder.with_extension("oci.tar");
    std::fs::write(&path, image::packed(folder, time_s)?).with_context(|| path.display().to_string())?;
    std::fs::remove_dir_all(folder)?;
    Ok(path)
}

/// The control data of a Debian package that [`build`] made.
pub(crate) fn control_of(package: &[u8]) -> Result<String> {
    deb::read_control(package)
}

/// An archive to unpack anywhere, with the digests of its files.
fn archive(list: &List, binary: &Path, release: &Release) -> Result<Vec<u8>> {
    let mut files = list.files(Layout::Tar, binary)?;
    let own = files.iter().filter(|file| file.kind != files::Kind::Link);
    let sums = own.map(|file| format!("{}  {}\n", hex(&Sha256::digest(&file.content)), file.path));
    let content = sums.collect::<String>().into_bytes();
    let source = PathBuf::from("SHA256SUMS");
    files.push(PackagedFile { path: "SHA256SUMS".into(), mode: 0o644, kind: files::Kind::Data, content, source });
    let folder = format!("netwren-{}-{}-linux/", release.version, release.arch.rpm());
    gzip(&tar::archive(&files, &folder, release.time_s)?)
}

/// An error if the program is for another processor.
fn is_for(arch: Arch, binary: &Path) -> Result<()> {
    let content =
        std::fs::read(binary).with_context(|| format!("{}: ./netwren.sh build makes it", binary.display()))?;
    let machine = content.get(18..20).and_then(|bytes| bytes.try_into().ok()).map(u16::from_le_bytes);
    let is_elf = content.starts_with(b"\x7fELF") && machine == Some(arch.elf());
    ensure!(is_elf, "{} is no program for {}", binary.display(), arch.rpm());
    Ok(())
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
