//! What a run says of itself is true: its exit code, its rights, what it wrote.

use crate::run::{Ran, clean, command};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use sys::sandbox::{Limit, confine};
use testkit::netns::Lab;

/// A folder that every user may enter, removed at the end.
fn open_folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn as_nobody(program: &Path, args: &[&str]) -> Ran {
    let mut command = Command::new(program);
    clean(&mut command).args(args);
    confine(&mut command, &[Limit::User { uid: 65_534, gid: 65_534 }]).unwrap();
    Ran::of(command.output().unwrap())
}

/// A copy with rights of its own would open, write and load what any caller names.
#[test]
fn root_issue_10_lent_rights_are_refused() {
    testkit::require_root!();
    let dir = open_folder();
    let mounted_without = Command::new("findmnt").args(["-no", "OPTIONS", "-T"]).arg(dir.path()).output();
    if mounted_without.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("nosuid")) {
        eprintln!("skipped: {} is mounted nosuid", dir.path().display());
        return;
    }
    let copy = |name: &str, mode: u32| -> PathBuf {
        let to = dir.path().join(name);
        std::fs::copy(testkit::program::netwren(), &to).unwrap();
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(mode)).unwrap();
        to
    };
    let mut lent = vec![copy("setuid", 0o4755), copy("setgid", 0o2755)];
    if testkit::tool::have("setcap") {
        let with_caps = copy("caps", 0o755);
        let set = Command::new("setcap").arg("cap_net_admin+ep").arg(&with_caps).status().unwrap();
        if set.success() {
            lent.push(with_caps);
        }
    }
    let tape = dir.path().join("tape").display().to_string();
    for program in &lent {
        for args in [&["sockets", "--record", &tape][..], &["ss", "-tln"], &["--help"], &[]] {
            let ran = as_nobody(program, args);
            assert_eq!(ran.stdout, "", "{program:?} {args:?}");
            ran.says(4, &["started with more rights than its caller has"]);
        }
    }
    assert!(!Path::new(&tape).exists());
    as_nobody(&copy("plain", 0o755), &["sockets", "--columns", "help"]).ok();
    assert_eq!(
        Command::new(&lent[0]).args(["sockets", "--columns", "help"]).stdout(Stdio::null()).status().unwrap().code(),
        Some(0)
    );
}

/// nft(8) is root's: not the first one that PATH leads to, and without what the environment says.
#[test]
fn root_issue_10_nft_is_called_by_its_path_and_without_our_environment() {
    testkit::require_root!();
    let lab = Lab::new("nftpath");
    let (fake, said) = (lab.dir().join("nft"), lab.dir().join("said"));
    let script = format!("#!/bin/sh\necho \"$0\" >> {0}\n/usr/bin/env >> {0}\ncat > /dev/null\n", said.display());
    std::fs::write(&fake, script).unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let args = ["nat", "stateless", "plan", "-p", "192.0.2.1:80:10.0.0.2:80", "--apply", "--yes"];
    let run = |limits: &[Limit]| {
        let mut command = command(&args);
        command.env("PATH", lab.dir()).env("LD_LIBRARY_PATH", "/nonexistent").env("EVIL", "yes");
        let all = [&[Limit::Network(lab.path())][..], limits].concat();
        confine(&mut command, &all).unwrap();
        Ran::of(command.output().unwrap())
    };
    let ran = run(&[]);
    assert!(!said.exists(), "the nft of PATH ran: {}", ran.stderr);
    let Some(place) = ["/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"].iter().find(|place| Path::new(place).exists())
    else {
        return ran.says(4, &["nft is not installed"]);
    };
    run(&[Limit::Cover { with: fake, place: place.into() }]);
    let said = std::fs::read_to_string(&said).expect("nft was called by its path");
    assert!(said.starts_with('/') && said.contains("LC_ALL=C"), "{said}");
    assert!(!said.contains("EVIL") && !said.contains("LD_LIBRARY_PATH"), "{said}");
}
