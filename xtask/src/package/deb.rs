//! A Debian package: an `ar` archive of a version, the control files and the files (deb(5)).

use super::files::{Kind, Layout, List, PackagedFile, gzip};
use super::{Release, tar};
use crate::root;
use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use md5::{Digest, Md5};
use std::fmt::Write;
use std::io::Read;
use std::path::Path;

const MAGIC: &[u8] = b"!<arch>\n";

/// Bytes of a member's header.
const HEADER: usize = 60;

/// The member with the control files.
const CONTROL: &str = "control.tar.gz";

/// The scripts of packaging/deb.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// What lintian reports although it is meant so.
const OVERRIDES: &str = "\
# A static position-independent program has no prerequisites; lintian takes it for a library.
netwren: shared-library-lacks-prerequisites [usr/bin/netwren]
# The package was never in Debian's archive.
netwren: initial-upload-closes-no-bugs [usr/share/doc/netwren/changelog.Debian.gz:1]
";

/// The package's bytes.
pub(super) fn package(list: &List, binary: &Path, release: &Release) -> Result<Vec<u8>> {
    let mut files = list.files(Layout::Deb, binary)?;
    let doc = |name: &str, content: Vec<u8>| PackagedFile {
        path: format!("usr/share/{name}"),
        mode: 0o644,
        kind: Kind::Doc,
        content,
        source: Path::new(name).to_owned(),
    };
    files.push(doc("doc/netwren/changelog.Debian.gz", gzip(changelog(list, release).as_bytes())?));
    files.push(doc("lintian/overrides/netwren", OVERRIDES.into()));
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let control = control(list, &files, release)?;
    let mut out = MAGIC.to_vec();
    for (name, content) in [
        ("debian-binary", b"2.0\n".to_vec()),
        (CONTROL, gzip(&tar::archive(&control, "./", release.time_s)?)?),
        ("data.tar.gz", gzip(&tar::archive(&files, "./", release.time_s)?)?),
    ] {
        let (time_s, size) = (release.time_s, content.len());
        out.extend(format!("{name:<16}{time_s:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 100_644).bytes());
        out.extend(content);
        out.resize(out.len().next_multiple_of(2), b'\n');
    }
    Ok(out)
}

/// The control files.
fn control(list: &List, files: &[PackagedFile], release: &Release) -> Result<Vec<PackagedFile>> {
    let about = &list.about;
    let size_kib = files.iter().map(|file| file.content.len().div_ceil(1024)).sum::<usize>();
    let mut text = format!(
        "Package: {}\nVersion: {}\nArchitecture: {}\nMaintainer: {}\nInstalled-Size: {size_kib}\nSuggests: nftables\n\
         Section: net\nPriority: optional\nDescription: {}\n",
        about.name,
        version(release),
        release.arch.debian(),
        about.maintainer,
        about.summary,
    );
    about.description.lines().for_each(|line| {
        let _ = writeln!(text, " {line}");
    });
    let config = files.iter().filter(|file| file.kind == Kind::Config).map(|file| format!("/{}\n", file.path));
    let sums = files.iter().filter(|file| !matches!(file.kind, Kind::Config | Kind::Link));
    let sums = sums.map(|file| format!("{}  {}\n", super::hex(&Md5::digest(&file.content)), file.path));
    let mut members = vec![
        ("control", 0o644, text.into_bytes()),
        ("conffiles", 0o644, config.collect::<String>().into_bytes()),
        ("md5sums", 0o644, sums.collect::<String>().into_bytes()),
    ];
    for name in SCRIPTS {
        let path = root::path().join("packaging/deb").join(name);
        let script = std::fs::read(&path).with_context(|| path.display().to_string())?;
        members.push((name, 0o755, script));
    }
    let file = |(name, mode, content): (&str, u32, Vec<u8>)| PackagedFile {
        path: name.to_owned(),
        mode,
        kind: Kind::Data,
        content,
        source: Path::new(name).to_owned(),
    };
    Ok(members.into_iter().map(file).collect())
}

fn version(release: &Release) -> String {
    format!("{}-1", release.version)
}

/// Debian's changelog of the package (deb-changelog(5)), which points to the project's own.
fn changelog(list: &List, release: &Release) -> String {
    format!(
        "{} ({}) unstable; urgency=medium\n\n  * Release {}; its changes are in changelog.gz.\n\n -- {}  {}\n",
        list.about.name,
        version(release),
        release.version,
        list.about.maintainer,
        release.date(),
    )
}

/// Reads the control data of a package that [`package`] made.
pub(super) fn read_control(package: &[u8]) -> Result<String> {
    ensure!(package.starts_with(MAGIC), "this is no Debian package");
    let mut rest = package.get(MAGIC.len()..).unwrap_or_default();
    while let Some((header, after)) = rest.split_at_checked(HEADER) {
        let header = std::str::from_utf8(header)?;
        let size: usize = header.get(48..58).unwrap_or_default().trim().parse()?;
        if header.get(..16).unwrap_or_default().trim() == CONTROL {
            let mut files = Vec::new();
            GzDecoder::new(after.get(..size).context("the package is cut")?).read_to_end(&mut files)?;
            return Ok(std::str::from_utf8(tar::member(&files, "./control")?)?.to_owned());
        }
        rest = after.get(size.next_multiple_of(2)..).unwrap_or_default();
    }
    anyhow::bail!("the package lacks {CONTROL}")
}
