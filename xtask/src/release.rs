//! `cargo xtask release VERSION`: everything that users of a version download.
//!
//! One folder holds the packages of every processor, their digests, the list of crates in the program, and an apt and
//! an rpm repository that only have to be copied to a web server. The same commit and the same programs give the same
//! bytes, except for signatures. docs/releasing.md describes the steps of a release.

mod apt;
mod checks;
mod dnf;
mod sbom;
mod sign;

use crate::package::{self, Arch, Release};
use crate::{bench, root};
use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};
use sign::Key;
use std::path::{Path, PathBuf};
use std::process::Command;

const FORMATS: [&str; 4] = ["deb", "rpm", "tar", "oci"];

const SUMS: &str = "SHA256SUMS";

/// The command line.
pub(crate) struct Options {
    pub(crate) version: String,
    /// The programs to package; if empty, `target/netwren` for this machine.
    pub(crate) binaries: Vec<(Arch, PathBuf)>,
    /// Default: `target/release-VERSION`.
    pub(crate) into: Option<PathBuf>,
    /// Address from which users read the repositories.
    pub(crate) url: Option<String>,
    pub(crate) is_unsigned: bool,
    /// Writes today's date into CHANGELOG.md.
    pub(crate) writes: bool,
    /// Makes the tag.
    pub(crate) tags: bool,
    /// Ends after the checks.
    pub(crate) only_checks: bool,
}

/// The signing key, and the address of the signed repositories.
struct Publisher {
    key: Key,
    url: String,
}

/// A package and its processor.
struct Package {
    arch: Arch,
    format: &'static str,
    path: PathBuf,
}

/// Checks the repository, writes the release, and makes the tag or prints how to.
pub(crate) fn run(options: &Options) -> Result<()> {
    let version = options.version.as_str();
    if options.writes {
        checks::write_date(root::path(), version)?;
    }
    checks::run(root::path(), version, env!("CARGO_PKG_VERSION"), options.tags)?;
    let publisher = publisher(options, Key::from_environment)?;
    println!("release: {version}: the checks passed");
    if options.only_checks {
        return Ok(());
    }
    let binaries = match options.binaries.as_slice() {
        [] => vec![(Arch::of(std::env::consts::ARCH), bench::binary()?)],
        named => named.to_vec(),
    };
    binaries.iter().try_for_each(|(arch, binary)| is_version(version, *arch, binary))?;
    let into = options.into.clone().unwrap_or_else(|| root::path().join(format!("target/release-{version}")));
    assemble(&into, &binaries, publisher.as_ref())?;
    println!("release: {} holds the release", into.display());
    if publisher.is_none() {
        println!("release: nothing is signed: {SUMS}, packages and repositories; users cannot add the repositories");
    }
    let tag = checks::tag_command(version, publisher.as_ref().map(|publisher| publisher.key.id()));
    if !options.tags {
        println!("release: to make the tag: {}", checks::shown(&tag));
        return Ok(());
    }
    let args: Vec<&str> = tag.iter().skip(1).map(String::as_str).collect();
    root::output("git", &args)?;
    println!("release: made the tag v{version}; to publish it: git push origin v{version}");
    Ok(())
}

/// The key and the address; `None` with `--unsigned`.
fn publisher(options: &Options, key: impl FnOnce() -> Result<Option<Key>>) -> Result<Option<Publisher>> {
    if options.is_unsigned {
        return Ok(None);
    }
    let Some(key) = key()? else {
        bail!(
            "nothing is signed: set {} to the fingerprint of a GnuPG key, or use --unsigned for a trial",
            sign::VARIABLE
        );
    };
    let url =
        options.url.as_deref().context("--url is missing: users read the repositories from URL/apt and URL/rpm")?;
    let is_address = ["https://", "http://", "file:///"].iter().any(|scheme| url.starts_with(scheme));
    ensure!(is_address && !url.contains(char::is_whitespace), "--url {url}: an address begins with https://");
    Ok(Some(Publisher { key, url: url.trim_end_matches('/').to_owned() }))
}

/// Refuses an old program. Programs for other processors cannot be asked for their version.
fn is_version(version: &str, arch: Arch, binary: &Path) -> Result<()> {
    if arch.rpm() != std::env::consts::ARCH {
        return Ok(());
    }
    let out = Command::new(binary).arg("--version").output().with_context(|| binary.display().to_string())?;
    let text = String::from_utf8_lossy(&out.stdout);
    let is_it = text.split_whitespace().take(2).eq(["netwren", version]);
    ensure!(is_it, "{} is not netwren {version}: run ./netwren.sh build", binary.display());
    Ok(())
}

/// Writes all files of a release into the folder `into`, replacing an earlier release there.
fn assemble(into: &Path, binaries: &[(Arch, PathBuf)], publisher: Option<&Publisher>) -> Result<()> {
    clear(into)?;
    let mut packages = Vec::new();
    for (arch, binary) in binaries {
        let twice = packages.iter().any(|package: &Package| package.arch == *arch);
        ensure!(!twice, "two programs for {}", arch.rpm());
        let release = Release::new(*arch)?;
        for format in FORMATS {
            let path = package::build(format, &release, binary, into)?;
            let path = if format == "oci" { package::pack_image(&path, release.time_s)? } else { path };
            packages.push(Package { arch: *arch, format, path });
        }
    }
    let (arch, _) = binaries.first().context("no program")?;
    let release = Release::new(*arch)?;
    let of = |format| packages.iter().filter(move |package| package.format == format).collect::<Vec<_>>();
    if let Some(Publisher { key, .. }) = publisher {
        of("rpm").iter().try_for_each(|package| key.sign_rpm(&package.path))?;
    }
    let mut files: Vec<PathBuf> = packages.iter().map(|package| package.path.clone()).collect();
    files.push(into.join(format!("netwren-{}.cdx.json", release.version)));
    if let Some(path) = files.last() {
        std::fs::write(path, sbom::text(&release)?)?;
    }
    let sums = into.join(SUMS);
    std::fs::write(&sums, sums_of(files)?)?;
    if let Some(Publisher { key, .. }) = publisher {
        key.sign(&sums, &into.join(format!("{SUMS}.asc")))?;
    }
    apt::write(&into.join("apt"), &of("deb"), &release, publisher)?;
    dnf::write(&into.join("rpm"), &of("rpm"), &release, publisher)
}

/// Removes an earlier release, and nothing else.
fn clear(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for file in std::fs::read_dir(folder)? {
        let path = file?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == "apt" || name == "rpm" {
            std::fs::remove_dir_all(&path)?;
        } else if name.starts_with(SUMS) || name.starts_with("netwren") && path.is_file() {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// The digests of files in one folder, as sha256sum(1) prints them.
fn sums_of(mut files: Vec<PathBuf>) -> Result<String> {
    files.sort();
    let line = |path: &PathBuf| {
        let content = std::fs::read(path).with_context(|| path.display().to_string())?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(format!("{}  {name}\n", package::hex(&Sha256::digest(&content))))
    };
    files.iter().map(line).collect()
}

#[cfg(test)]
mod tests;
