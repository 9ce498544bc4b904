//! An rpm package, built by rpmbuild(8) from a list of files.

use super::Release;
use super::files::{Kind, Layout, List};
use anyhow::{Context, Result, ensure};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the package in `folder` and returns its path.
pub(super) fn build(list: &List, binary: &Path, release: &Release, folder: &Path) -> Result<PathBuf> {
    let work = folder.join("rpm");
    let _ = std::fs::remove_dir_all(&work);
    let files = work.join("files");
    let mut spec = spec(list, release);
    for file in list.files(Layout::Rpm, binary)? {
        let path = files.join(&file.path);
        let parent = path.parent().context("a file has a folder")?;
        std::fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        if file.kind == Kind::Link {
            std::os::unix::fs::symlink(String::from_utf8(file.content)?, &path)?;
            let _ = writeln!(spec, "/{}", file.path);
            continue;
        }
        std::fs::write(&path, &file.content)?;
        let kind = match file.kind {
            Kind::Config => "%config(noreplace) ",
            Kind::Doc => "%doc ",
            Kind::License => "%license ",
            Kind::Program | Kind::Man | Kind::Unit | Kind::Data | Kind::Link => "",
        };
        let _ = writeln!(spec, "%attr({:o}, root, root) {kind}/{}", file.mode, file.path);
    }
    let place = work.join("netwren.spec");
    std::fs::write(&place, spec)?;
    let mut command = Command::new("rpmbuild");
    command.arg("-bb").arg("--quiet").args(["--target", release.arch.rpm()]);
    for (name, value) in [
        ("_topdir", work.display().to_string()),
        ("_rpmdir", work.join("built").display().to_string()),
        ("packaged_files", files.display().to_string()),
        ("_buildhost", "netwren".into()),
        ("use_source_date_epoch_as_buildtime", "1".into()),
        ("clamp_mtime_to_source_date_epoch", "1".into()),
        ("source_date_epoch_from_changelog", "0".into()),
    ] {
        command.args(["--define", &format!("{name} {value}")]);
    }
    let out = command.arg(&place).env("SOURCE_DATE_EPOCH", release.time_s.to_string()).output();
    let out = out.context("rpmbuild(8) is missing; Debian's package is called rpm")?;
    ensure!(out.status.success(), "rpmbuild: {}", String::from_utf8_lossy(&out.stderr));
    let name = format!("netwren-{}-1.{}.rpm", release.version, release.arch.rpm());
    let (from, to) = (work.join("built").join(release.arch.rpm()).join(&name), folder.join(&name));
    std::fs::rename(&from, &to).with_context(|| from.display().to_string())?;
    std::fs::remove_dir_all(&work)?;
    Ok(to)
}

/// The description of the package up to its list of files. The program is static and already stripped, so rpmbuild
/// looks for no libraries and makes no package of debug symbols.
fn spec(list: &List, release: &Release) -> String {
    let about = &list.about;
    format!(
        "%define debug_package %{{nil}}\n%define __strip /bin/true\n%define _build_id_links none\n\
         %define __brp_compress %{{nil}}\n\
         Name: {}\nVersion: {}\nRelease: 1\nSummary: {}\nLicense: Apache-2.0 OR MIT\nPackager: {}\nAutoReqProv: no\n\
         %description\n{}\n%install\nmkdir -p %{{buildroot}}\ncp -a %{{packaged_files}}/. %{{buildroot}}/\n\
         %post\nif [ -d /run/systemd/system ]; then\n    systemctl daemon-reload || :\n\
         \x20   if [ \"$1\" -gt 1 ]; then systemctl try-restart netwren-log.service netwren-agent.service \
         || :; fi\nfi\n\
         %preun\nif [ \"$1\" = 0 ] && [ -d /run/systemd/system ]; then\n\
         \x20   systemctl disable --now netwren-log.service netwren-agent.service || :\nfi\n\
         %files\n",
        about.name, release.version, about.summary, about.maintainer, about.description,
    )
}
