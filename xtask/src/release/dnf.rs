//! An rpm repository as a folder, indexed by createrepo_c(8).

use super::{Package, Publisher};
use crate::package::Release;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Writes the repository. Without a publisher it is unsigned, and lacks the files that users install.
pub(super) fn write(
    folder: &Path,
    packages: &[&Package],
    release: &Release,
    publisher: Option<&Publisher>,
) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(release.time_s);
    for package in packages {
        let to = folder.join(package.path.file_name().context("a package has a name")?);
        std::fs::copy(&package.path, &to)?;
        // The index holds the files' times.
        std::fs::File::options().write(true).open(&to)?.set_modified(time)?;
    }
    let mut createrepo = Command::new("createrepo_c");
    createrepo.args(["--quiet", "--no-database", "--checksum", "sha256", "--set-timestamp-to-revision"]);
    createrepo.args(["--revision", &release.time_s.to_string()]).arg(folder);
    let out = createrepo.output().context("createrepo_c(8) is missing; Debian's package is called createrepo-c")?;
    ensure!(out.status.success(), "createrepo_c: {}", String::from_utf8_lossy(&out.stderr));
    let Some(Publisher { key, url }) = publisher else { return Ok(()) };
    let index = folder.join("repodata/repomd.xml");
    key.sign(&index, &index.with_extension("xml.asc"))?;
    std::fs::write(folder.join("netwren.asc"), key.public()?)?;
    let text = format!(
        "[netwren]\nname=netwren\nbaseurl={url}/rpm\nenabled=1\ngpgcheck=1\nrepo_gpgcheck=1\n\
         gpgkey={url}/rpm/netwren.asc\n"
    );
    Ok(std::fs::write(folder.join("netwren.repo"), text)?)
}
