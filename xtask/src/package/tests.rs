//! The packages as their own tools see them: installed, upgraded, removed and read by dpkg, rpm, tar, skopeo and umoci.

use super::{Arch, run};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use testkit::tool::require;

/// A small program takes the real one's place, because compressing a debug build takes a minute.
const PROGRAM: &str = "/bin/true";

fn arch() -> Arch {
    Arch::of(std::env::consts::ARCH)
}

/// The only file or folder in `folder` after a package was built there.
fn packaged(format: &str, program: &Path, folder: &Path) -> PathBuf {
    run(format, arch(), program, folder).unwrap();
    let found: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

/// Runs a command, which must succeed, and returns what it printed.
#[track_caller]
fn output(command: &mut Command) -> String {
    let out = command.output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{command:?}: {text}");
    text
}

/// Every path of a tree with the digest of its content.
fn tree(path: &Path) -> String {
    output(Command::new("sh").args(["-c", "cd \"$0\" && find . -type f -exec sha256sum {} + | sort"]).arg(path))
}

#[test]
fn the_same_files_give_the_same_bytes() {
    for format in ["deb", "tar", "oci", "rpm"] {
        if format == "rpm" && !require("rpmbuild") {
            continue;
        }
        let [one, other] = [(); 2].map(|()| TempDir::new().unwrap());
        for folder in [&one, &other] {
            packaged(format, Path::new(PROGRAM), folder.path());
        }
        assert_eq!(tree(one.path()), tree(other.path()), "{format}");
    }
}

#[test]
fn root_a_debian_package_is_installed_upgraded_removed_and_purged() {
    testkit::require_root!();
    if !require("dpkg-deb") {
        return;
    }
    let (built, root) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let program = testkit::program::netwren();
    let package = packaged("deb", program, built.path());
    let inside = |path: &str| root.path().join(path);
    std::fs::create_dir_all(inside("var/lib/dpkg/updates")).unwrap();
    std::fs::create_dir_all(inside("var/lib/dpkg/info")).unwrap();
    std::fs::write(inside("var/lib/dpkg/status"), "").unwrap();
    let dpkg = |args: &[&str]| {
        let at = format!("--root={}", root.path().display());
        let options = ["--force-script-chrootless", "--force-not-root", "--force-confold", at.as_str()];
        output(Command::new("dpkg").args(options).args(args))
    };
    let path = package.to_str().unwrap();
    dpkg(&["-i", path]);
    assert_eq!(std::fs::read(inside("usr/bin/netwren")).unwrap(), std::fs::read(program).unwrap());
    assert!(output(Command::new(inside("usr/bin/netwren")).arg("--version")).starts_with("netwren "));
    for file in [
        "usr/share/man/man1/netwren.1.gz",
        "usr/share/man/man7/netwren-filters.7.gz",
        "usr/share/bash-completion/completions/netwren",
        "usr/share/zsh/vendor-completions/_netwren",
        "usr/lib/systemd/system/netwren-log.service",
        "usr/lib/systemd/system/netwren-agent.service",
        "usr/share/doc/netwren/changelog.Debian.gz",
    ] {
        assert!(inside(file).is_file(), "{file}");
    }
    for face in faces::FACES {
        let link = inside("usr/lib/netwren/faces").join(face.name);
        assert_eq!(std::fs::canonicalize(&link).unwrap(), std::fs::canonicalize(inside("usr/bin/netwren")).unwrap());
    }
    assert!(output(Command::new(inside("usr/lib/netwren/faces/ss")).arg("-h")).starts_with("Usage: "));
    assert_eq!(dpkg(&["--verify", "netwren"]), "");
    // A person's configuration survives an upgrade and a removal, but not a purge.
    let config = inside("etc/netwren/log.toml");
    std::fs::write(&config, "group = 7\n").unwrap();
    dpkg(&["-i", path]);
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "group = 7\n");
    dpkg(&["-r", "netwren"]);
    assert!(config.is_file() && !inside("usr/bin/netwren").exists());
    dpkg(&["-P", "netwren"]);
    assert!(!config.exists());
}

#[test]
fn lintian_has_no_complaint() {
    if !require("lintian") {
        return;
    }
    let built = TempDir::new().unwrap();
    let package = packaged("deb", Path::new(PROGRAM), built.path());
    let mut command = Command::new("lintian");
    command.args(["--allow-root", "--tag-display-limit", "0", "--fail-on", "error,warning"]).arg(package);
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    // What it says about the program is said about another one here.
    let is_about_program = |line: &str| line.contains("[usr/bin/netwren]");
    let others: Vec<_> = text.lines().filter(|line| !is_about_program(line)).collect();
    assert_eq!(others, Vec::<&str>::new());
}

#[test]
fn root_an_rpm_is_installed_and_verified() {
    testkit::require_root!();
    if !require("rpmbuild") {
        return;
    }
    let (built, root) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let package = packaged("rpm", Path::new(PROGRAM), built.path());
    let rpm = |args: &[&str]| output(Command::new("rpm").arg("--root").arg(root.path()).args(args));
    rpm(&["--initdb"]);
    rpm(&["-i", "--nodeps", "--noscripts", package.to_str().unwrap()]);
    assert_eq!(rpm(&["-V", "--nodeps", "netwren"]), "");
    assert_eq!(rpm(&["-qc", "netwren"]).trim(), "/etc/netwren/agent.toml\n/etc/netwren/log.toml");
    assert_eq!(std::fs::read(root.path().join("usr/bin/netwren")).unwrap(), std::fs::read(PROGRAM).unwrap());
    for file in ["share/zsh/site-functions/_netwren", "lib/netwren/faces/netstat"] {
        assert!(root.path().join("usr").join(file).is_file(), "{file}");
    }
}

#[test]
fn an_archive_holds_its_digests() {
    let (built, into) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let archive = packaged("tar", Path::new(PROGRAM), built.path());
    output(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(into.path()));
    let folder = std::fs::read_dir(into.path()).unwrap().next().unwrap().unwrap().path();
    assert!(folder.file_name().unwrap().to_str().unwrap().starts_with("netwren-"));
    output(Command::new("sha256sum").args(["--check", "--strict", "--quiet", "SHA256SUMS"]).current_dir(&folder));
    for file in ["share/man/man1/netwren.1", "bin/netwren", "lib/netwren/faces/conntrack"] {
        assert!(folder.join(file).is_file(), "{file}");
    }
}

#[test]
fn root_an_image_is_read_by_other_tools() {
    testkit::require_root!();
    if !require("skopeo") || !require("umoci") {
        return;
    }
    let (built, into) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let image = packaged("oci", Path::new(PROGRAM), built.path());
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("{}:{version}", image.display());
    let seen = output(Command::new("skopeo").arg("inspect").arg(format!("oci:{name}")));
    let seen: serde_json::Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(seen["Architecture"], arch().oci());
    assert_eq!(seen["Labels"]["org.opencontainers.image.version"], version);
    let bundle = into.path().join("bundle");
    output(Command::new("umoci").args(["unpack", "--image", &name]).arg(&bundle));
    assert_eq!(std::fs::read(bundle.join("rootfs/usr/bin/netwren")).unwrap(), std::fs::read(PROGRAM).unwrap());
    let config: serde_json::Value =
        serde_json::from_slice(&std::fs::read(bundle.join("config.json")).unwrap()).unwrap();
    assert_eq!(config["process"]["args"], serde_json::json!(["/usr/bin/netwren"]));
}

#[test]
fn a_program_for_another_processor_is_refused() {
    let other = if arch() == Arch::X86_64 { Arch::Aarch64 } else { Arch::X86_64 };
    let folder = TempDir::new().unwrap();
    let error = run("deb", other, Path::new(PROGRAM), folder.path()).unwrap_err();
    assert!(error.to_string().contains("is no program for"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn every_file_of_the_list_has_its_place() {
    let list = super::List::read().unwrap();
    for layout in [super::Layout::Deb, super::Layout::Rpm, super::Layout::Tar, super::Layout::Image] {
        let files = list.files(layout, Path::new(PROGRAM)).unwrap();
        assert!(files.iter().all(|file| !file.path.starts_with('/') && !file.path.contains("//")));
        assert!(files.windows(2).all(|pair| pair[0].path < pair[1].path));
    }
}
