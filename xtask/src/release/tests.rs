//! A release as its users see it: apt-get, dnf, rpm, gpg, sha256sum and skopeo read it, and refuse it after a change.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::sign::Key;
use super::{Options, Publisher, assemble, checks, publisher, sbom};
use crate::package::{Arch, Release};
use crate::root;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use testkit::require_tool;

/// A small program takes the real one's place.
const PROGRAM: &str = "/bin/true";

/// A new key in a GnuPG folder of its own.
struct Home(TempDir);

impl Home {
    fn new() -> Home {
        let home = Home(TempDir::new().unwrap());
        home.gpg(&[
            "--passphrase",
            "",
            "--quick-generate-key",
            "netwren test <test@localhost>",
            "ed25519",
            "sign",
            "1d",
        ]);
        home
    }

    fn gpg(&self, args: &[&str]) -> String {
        let options = ["--batch", "--quiet", "--pinentry-mode", "loopback"];
        output(Command::new("gpg").args(options).args(args).env("GNUPGHOME", self.0.path()))
    }

    fn fingerprint(&self) -> String {
        let text = self.gpg(&["--with-colons", "--list-secret-keys"]);
        text.lines().find_map(|line| line.strip_prefix("fpr:")).unwrap().trim_matches(':').to_owned()
    }

    fn publisher(&self, url: &str) -> Publisher {
        let key = Key::find(&self.fingerprint(), Some(self.0.path().to_owned())).unwrap();
        Publisher { key, url: url.to_owned() }
    }

    /// True if the signature is good.
    fn verifies(&self, args: &[&Path]) -> bool {
        let mut gpg = Command::new("gpg");
        gpg.args(["--batch", "--quiet", "--verify"]).args(args).env("GNUPGHOME", self.0.path());
        gpg.output().unwrap().status.success()
    }
}

impl Drop for Home {
    /// Ends the key's agent.
    fn drop(&mut self) {
        let _ = Command::new("gpgconf").args(["--kill", "all"]).env("GNUPGHOME", self.0.path()).status();
    }
}

/// A release for both processors, signed with a new key; its repositories are read from the folder itself.
struct Built {
    folder: TempDir,
    home: Home,
}

impl Built {
    /// `None` if a tool is missing.
    fn new() -> Option<Built> {
        for tool in ["rpmbuild", "rpmsign", "createrepo_c", "gpg"] {
            if !testkit::tool::require(tool) {
                return None;
            }
        }
        let (folder, home) = (TempDir::new().unwrap(), Home::new());
        let url = format!("file://{}", folder.path().display());
        assemble(folder.path(), &programs(folder.path()), Some(&home.publisher(&url))).unwrap();
        Some(Built { folder, home })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

#[test]
fn a_tag_is_signed() {
    require_tool!("gpg");
    let (home, folder) = (Home::new(), TempDir::new().unwrap());
    let run = |command: &[&str]| {
        let mut git = Command::new(command[0]);
        git.args(["-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false"]);
        output(git.args(&command[1..]).current_dir(&folder).env("GNUPGHOME", home.0.path()))
    };
    run(&["git", "init", "--quiet"]);
    run(&["git", "commit", "--quiet", "--allow-empty", "-m", "a"]);
    let tag = checks::tag_command("0.1.0", Some(&home.fingerprint()));
    run(&tag.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(run(&["git", "verify-tag", "v0.1.0"]).contains("Good signature"));
}

/// A program for each processor. The second is the first with another processor in its header.
fn programs(folder: &Path) -> Vec<(Arch, PathBuf)> {
    let program = std::fs::read(PROGRAM).unwrap();
    let written = |(arch, machine): (Arch, u16)| {
        let mut program = program.clone();
        program[18..20].copy_from_slice(&machine.to_le_bytes());
        let path = folder.join(format!("program-{}", arch.rpm()));
        std::fs::write(&path, program).unwrap();
        (arch, path)
    };
    [(Arch::X86_64, 62), (Arch::Aarch64, 183)].map(written).to_vec()
}

/// Runs a command, which must succeed, and returns what it printed.
#[track_caller]
fn output(command: &mut Command) -> String {
    let (is_good, text) = result(command);
    assert!(is_good, "{command:?}: {text}");
    text
}

fn result(command: &mut Command) -> (bool, String) {
    let out = command.env("LC_ALL", "C").output().unwrap();
    (out.status.success(), String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr))
}

/// Changes one byte in the middle of a file.
fn change(file: &Path) {
    let mut content = std::fs::read(file).unwrap();
    let at = content.len() / 2;
    content[at] ^= 1;
    std::fs::write(file, content).unwrap();
}

/// Every path of a tree with the digest of its content.
fn tree(path: &Path) -> String {
    output(Command::new("sh").args(["-c", "cd \"$0\" && find . -type f -exec sha256sum {} + | sort"]).arg(path))
}

/// apt-get of a system that only has this repository.
struct Apt {
    root: TempDir,
    arch: Arch,
}

impl Apt {
    fn new(built: &Built, arch: Arch) -> Apt {
        let root = TempDir::new().unwrap();
        for folder in ["sources", "parts", "state/lists/partial", "cache/archives/partial", "into"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        std::fs::write(root.path().join("status"), "").unwrap();
        // The file that users install, with the key at another place.
        let text = std::fs::read_to_string(built.path("apt/netwren.sources")).unwrap();
        let key = built.path("apt/netwren.asc");
        let text = text.replace("/etc/apt/keyrings/netwren.asc", key.to_str().unwrap());
        assert!(text.contains("Suites: stable\n"), "{text}");
        std::fs::write(root.path().join("sources/netwren.sources"), text).unwrap();
        Apt { root, arch }
    }

    fn run(&self, args: &[&str]) -> (bool, String) {
        let mut apt = Command::new("apt-get");
        let path = |name: &str| self.root.path().join(name).display().to_string();
        for (name, value) in [
            ("Dir::Etc::main", "/dev/null".to_owned()),
            ("Dir::Etc::parts", path("parts")),
            ("Dir::Etc::preferencesparts", path("parts")),
            ("Dir::Etc::sourcelist", "/dev/null".to_owned()),
            ("Dir::Etc::sourceparts", path("sources")),
            ("Dir::State", path("state")),
            ("Dir::State::status", path("status")),
            ("Dir::Cache", path("cache")),
            ("APT::Architecture", self.arch.debian().to_owned()),
            ("APT::Architectures", self.arch.debian().to_owned()),
            ("APT::Sandbox::User", "root".to_owned()),
            ("APT::Update::Error-Mode", "any".to_owned()),
            ("Acquire::Languages", "none".to_owned()),
            ("Debug::NoLocking", "1".to_owned()),
        ] {
            apt.arg("-o").arg(format!("{name}={value}"));
        }
        result(apt.args(args).current_dir(self.root.path().join("into")))
    }

    #[track_caller]
    fn succeeds(&self, args: &[&str]) -> String {
        let (is_good, text) = self.run(args);
        assert!(is_good, "{args:?}: {text}");
        text
    }

    #[track_caller]
    fn fails(&self, args: &[&str], why: &str) {
        let (is_good, text) = self.run(args);
        assert!(!is_good && text.contains(why), "{args:?}: {text}");
    }
}

#[test]
fn apt_reads_the_repository_and_refuses_a_changed_one() {
    require_tool!("apt-get");
    let Some(built) = Built::new() else { return };
    let version = env!("CARGO_PKG_VERSION");
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let apt = Apt::new(&built, arch);
        let text = apt.succeeds(&["update"]);
        assert!(!text.contains("W:") && !text.contains("Ign:"), "{text}");
        let text = apt.succeeds(&["install", "--simulate", "netwren"]);
        let line = format!("Inst netwren ({version}-1 netwren:{version}/stable [{}])", arch.debian());
        assert!(text.contains(&line), "{text}");
        apt.succeeds(&["download", "netwren"]);
        let name = format!("netwren_{version}-1_{}.deb", arch.debian());
        let downloaded = std::fs::read(apt.root.path().join("into").join(&name)).unwrap();
        assert_eq!(downloaded, std::fs::read(built.path(&name)).unwrap());
        assert!(
            built
                .home
                .verifies(&[&built.path("apt/dists/stable/Release.gpg"), &built.path("apt/dists/stable/Release")])
        );
        change(&built.path("apt/pool/main/n/netwren").join(&name));
        std::fs::remove_file(apt.root.path().join("into").join(&name)).unwrap();
        apt.fails(&["download", "netwren"], "Hash Sum mismatch");
    }
    change(&built.path("apt/dists/stable/InRelease"));
    Apt::new(&built, Arch::X86_64).fails(&["update"], "is not signed");
}

#[test]
fn apt_refuses_a_changed_index() {
    require_tool!("apt-get");
    let Some(built) = Built::new() else { return };
    let place = built.path("apt/dists/stable/main/binary-amd64");
    for index in [place.join("by-hash/SHA256"), place] {
        for file in std::fs::read_dir(index).unwrap().map(|file| file.unwrap().path()).filter(|file| file.is_file()) {
            change(&file);
        }
    }
    Apt::new(&built, Arch::X86_64).fails(&["update"], "Hash Sum mismatch");
    Apt::new(&built, Arch::Aarch64).succeeds(&["update"]);
}

#[test]
fn rpm_verifies_packages_and_index() {
    let Some(built) = Built::new() else { return };
    let database = TempDir::new().unwrap();
    let keys = |args: &[&str]| {
        result(
            Command::new("rpmkeys")
                .arg("--dbpath")
                .arg(database.path())
                .args(args)
                .args(["--define", "_pkgverify_level all"]),
        )
    };
    let name = format!("rpm/netwren-{}-1.{}.rpm", env!("CARGO_PKG_VERSION"), "x86_64");
    let package = built.path(&name);
    let package = package.to_str().unwrap();
    let (is_good, text) = keys(&["--checksig", package]);
    assert!(!is_good && text.contains("SIGNATURES NOT OK"), "without the key: {text}");
    let (is_good, text) = keys(&["--import", built.path("rpm/netwren.asc").to_str().unwrap()]);
    assert!(is_good, "{text}");
    let (is_good, text) = keys(&["--checksig", package]);
    assert!(is_good && text.contains("digests signatures OK"), "{text}");
    change(Path::new(package));
    assert!(!keys(&["--checksig", package]).0);
    let index = built.path("rpm/repodata/repomd.xml");
    let signature = index.with_extension("xml.asc");
    assert!(built.home.verifies(&[&signature, &index]));
    change(&index);
    assert!(!built.home.verifies(&[&signature, &index]));
}

/// An empty system where dnf finds the shell that the package needs for its scripts.
fn system_with_shell() -> TempDir {
    let root = TempDir::new().unwrap();
    let spec = "Name: shell\nVersion: 1\nRelease: 1\nSummary: s\nLicense: MIT\nBuildArch: noarch\nProvides: /bin/sh\n\
                %description\n%files\n";
    let work = TempDir::new().unwrap();
    let path = work.path().join("shell.spec");
    std::fs::write(&path, spec).unwrap();
    let top = format!("_topdir {}", work.path().display());
    output(Command::new("rpmbuild").args(["-bb", "--quiet", "--define", &top]).arg(path));
    let package = work.path().join("RPMS/noarch/shell-1-1.noarch.rpm");
    output(Command::new("rpm").arg("--root").arg(root.path()).args(["-i", "--nodeps"]).arg(package));
    root
}

/// dnf of a system that only has this repository.
fn dnf(built: &Built, root: &Path, args: &[&str]) -> (bool, String) {
    std::fs::create_dir_all(root.join("log")).unwrap();
    let mut dnf = Command::new("dnf");
    dnf.arg("--installroot").arg(root).args([
        "--assumeyes",
        "--releasever",
        "1",
        "--noplugins",
        "--forcearch",
        "x86_64",
    ]);
    for (name, value) in [
        ("reposdir", built.path("rpm").display().to_string()),
        ("cachedir", root.join("cache").display().to_string()),
        ("persistdir", root.join("state").display().to_string()),
        ("logdir", root.join("log").display().to_string()),
        ("metadata_expire", "0".to_owned()),
    ] {
        dnf.arg(format!("--setopt={name}={value}"));
    }
    result(dnf.args(args))
}

#[test]
fn root_dnf_installs_from_the_repository_and_refuses_a_changed_one() {
    testkit::require_root!();
    require_tool!("dnf");
    let Some(built) = Built::new() else { return };
    let root = system_with_shell();
    let install = ["install", "--setopt=tsflags=noscripts", "netwren"];
    let (is_good, text) = dnf(&built, root.path(), &install);
    assert!(is_good, "{text}");
    let installed = std::fs::read(root.path().join("usr/bin/netwren")).unwrap();
    assert_eq!(installed, std::fs::read(built.path("program-x86_64")).unwrap());
    let package = format!("rpm/netwren-{}-1.x86_64.rpm", env!("CARGO_PKG_VERSION"));
    for (file, why) in [(package.as_str(), "incorrect checksum"), ("rpm/repodata/repomd.xml", "Bad GPG signature")] {
        change(&built.path(file));
        let root = system_with_shell();
        let (is_good, text) = dnf(&built, root.path(), &install);
        assert!(!is_good && text.contains(why) && !root.path().join("usr/bin/netwren").exists(), "{file}: {text}");
    }
}

#[test]
fn digests_and_their_signature_are_verified() {
    let Some(built) = Built::new() else { return };
    let check =
        || result(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&built.folder));
    let (is_good, text) = check();
    assert!(is_good, "{text}");
    let version = env!("CARGO_PKG_VERSION");
    let files = |arch: Arch| {
        let (debian, rpm) = (arch.debian(), arch.rpm());
        [
            format!("netwren_{version}-1_{debian}.deb"),
            format!("netwren-{version}-1.{rpm}.rpm"),
            format!("netwren-{version}-{rpm}-linux.tar.gz"),
            format!("netwren-{version}-{debian}.oci.tar"),
        ]
    };
    let mut wanted = [files(Arch::X86_64), files(Arch::Aarch64)].concat();
    wanted.push(format!("netwren-{version}.cdx.json"));
    let found: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_suffix(": OK")).collect();
    assert_eq!(found, wanted.iter().map(String::as_str).collect());
    let (sums, signature) = (built.path("SHA256SUMS"), built.path("SHA256SUMS.asc"));
    assert!(built.home.verifies(&[&signature, &sums]));
    change(&built.path(&wanted[2]));
    assert!(!check().0);
    change(&sums);
    assert!(!built.home.verifies(&[&signature, &sums]));
}

#[test]
fn an_image_is_one_file() {
    require_tool!("skopeo");
    require_tool!("rpmbuild");
    require_tool!("createrepo_c");
    let folder = TempDir::new().unwrap();
    assemble(folder.path(), &programs(folder.path()), None).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    for arch in ["amd64", "arm64"] {
        let image = folder.path().join(format!("netwren-{version}-{arch}.oci.tar"));
        let mut skopeo = Command::new("skopeo");
        skopeo.args(["--override-arch", arch, "inspect"]).arg(format!("oci-archive:{}:{version}", image.display()));
        let about: Value = serde_json::from_str(&output(skopeo.env("TMPDIR", folder.path()))).unwrap();
        assert_eq!(about["Architecture"], arch);
    }
}

#[test]
fn the_same_programs_give_the_same_bytes_except_signatures() {
    require_tool!("rpmbuild");
    require_tool!("createrepo_c");
    let [one, other] = [(); 2].map(|()| {
        let folder = TempDir::new().unwrap();
        assemble(folder.path(), &programs(folder.path()), None).unwrap();
        folder
    });
    assert_eq!(tree(one.path()), tree(other.path()));
    let has = |name: &str| one.path().join(name).exists();
    assert!(has("apt/dists/stable/Release") && has("rpm/repodata/repomd.xml"));
    assert!(!has("apt/dists/stable/InRelease") && !has("apt/netwren.sources") && !has("rpm/netwren.repo"));
    // A second run replaces the first, but no other file.
    std::fs::write(one.path().join("notes"), "mine").unwrap();
    std::fs::write(one.path().join("netwren-0.0.1.cdx.json"), "old").unwrap();
    assemble(one.path(), &programs(one.path()), None).unwrap();
    assert!(has("notes") && !has("netwren-0.0.1.cdx.json"));
    // Signed rpm packages are also the same, apart from their signatures.
    let Some(built) = Built::new() else { return };
    let name = format!("netwren-{}-1.x86_64.rpm", env!("CARGO_PKG_VERSION"));
    let read = |folder: &Path, query: &str| {
        output(Command::new("rpm").args(["-qp", "--nosignature", "--qf", query]).arg(folder.join(&name)))
    };
    for query in ["%{SHA256HEADER}", "%{PAYLOADDIGEST}"] {
        assert_eq!(read(built.folder.path(), query), read(one.path(), query));
    }
}

fn options(is_unsigned: bool, url: Option<&str>) -> Options {
    Options {
        version: "0.1.0".to_owned(),
        binaries: Vec::new(),
        into: None,
        url: url.map(str::to_owned),
        is_unsigned,
        writes: false,
        tags: false,
        only_checks: false,
    }
}

#[test]
fn a_release_without_a_key_has_to_be_asked_for() {
    let refused = |options: &Options| publisher(options, || Ok(None)).err().unwrap().to_string();
    assert!(refused(&options(false, None)).starts_with("nothing is signed: set NETWREN_RELEASE_KEY"));
    assert!(publisher(&options(true, None), || Ok(None)).unwrap().is_none());
}

#[test]
fn a_key_is_named_and_never_shown() {
    let secret = "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlFgEZVsomething";
    let error = Key::find(secret, None).err().unwrap();
    let text = format!("{error:?}");
    assert!(text.contains("must be the id or fingerprint") && !text.contains("something"), "{text}");
    require_tool!("gpg");
    let home = Home::new();
    let find = |text: &str| Key::find(text, Some(home.0.path().to_owned()));
    assert!(find("0123456789ABCDEF").err().unwrap().to_string().contains("no private key 0123456789ABCDEF"));
    let key = |_: &str| find(&home.fingerprint()).map(Some);
    let error = |url| publisher(&options(false, url), || key("")).err().unwrap().to_string();
    assert!(error(None).contains("--url is missing"));
    assert!(error(Some("example.org")).contains("begins with https://"));
    let found = publisher(&options(false, Some("https://example.org/netwren/")), || key("")).unwrap().unwrap();
    assert_eq!((found.url.as_str(), found.key.id()), ("https://example.org/netwren", home.fingerprint().as_str()));
}

#[test]
fn the_list_of_crates_is_the_lock_file_without_crates_of_tests() {
    let document: Value = serde_json::from_str(&sbom::text(&Release::new(Arch::X86_64).unwrap()).unwrap()).unwrap();
    let lock = std::fs::read_to_string(root::path().join("Cargo.lock")).unwrap();
    let components = document["components"].as_array().unwrap();
    let names: BTreeSet<String> = components
        .iter()
        .map(|component| {
            let [name, version] = ["name", "version"].map(|key| component[key].as_str().unwrap());
            let head = format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n");
            let (_, entry) = lock.split_once(&head).unwrap_or_else(|| panic!("Cargo.lock lacks {name} {version}"));
            let entry = entry.split("\n\n").next().unwrap();
            let digest = entry.lines().find_map(|line| line.strip_prefix("checksum = "));
            assert_eq!(component["hashes"][0]["content"].as_str(), digest.map(|digest| digest.trim_matches('"')));
            assert_eq!(component["purl"].is_string(), digest.is_some(), "{name}");
            assert!(!component["licenses"][0]["expression"].as_str().unwrap().is_empty(), "{name}");
            name.to_owned()
        })
        .collect();
    let references: BTreeSet<&str> =
        components.iter().map(|component| component["bom-ref"].as_str().unwrap()).collect();
    assert_eq!(references.len(), components.len(), "each crate once");
    for name in ["record", "libc", "rustls", "postgres-protocol", "libsqlite3-sys", "cc"] {
        assert!(names.contains(name), "{name}");
    }
    for name in ["netwren", "xtask", "testkit", "tempfile", "proptest", "snapbox", "clap_mangen", "anyhow"] {
        assert!(!names.contains(name), "{name}");
    }
    let scope = |name: &str| components.iter().find(|component| component["name"] == name).unwrap()["scope"].clone();
    assert_eq!((scope("libc"), scope("cc")), ("required".into(), "excluded".into()));
    // The program leads to every crate, and to no other.
    let dependencies = document["dependencies"].as_array().unwrap();
    let (mut reached, mut next) =
        (BTreeSet::new(), vec![document["metadata"]["component"]["bom-ref"].as_str().unwrap()]);
    while let Some(name) = next.pop() {
        if reached.insert(name) {
            let entry = dependencies.iter().find(|entry| entry["ref"] == name).unwrap();
            next.extend(entry["dependsOn"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()));
        }
    }
    assert!(reached.remove(concat!("netwren@", env!("CARGO_PKG_VERSION"))));
    assert_eq!(reached, references);
}
