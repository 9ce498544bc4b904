#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
//! Containers by what the runtimes wrote, and by what somebody could have written in their place.
use super::*;
use std::path::{Path, PathBuf};

fn fixture(runtime: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/containers").join(runtime)
}

type Shown = (Option<String>, Option<String>, Option<String>);

/// Container, pod and unit of a process with this cgroup file, the runtimes' state being below `root`.
fn shown(root: &Path, file: &[u8]) -> Shown {
    let found = Containers::read_below(&Host::live(), root.to_str().unwrap(), [(7, file)].into_iter(), None);
    let text = |placed: &Placed| match placed.value(Key::Id(7)) {
        Value::Bytes(text) => Some(String::from_utf8(text.to_vec()).unwrap()),
        _ => None,
    };
    (text(found.names()), text(found.pods()), text(found.units()))
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn what_each_runtime_wrote() {
    for (runtime, file, container, pod) in [
        ("docker-20.10.24", "cgroup", some("runner"), None),
        ("podman-4.3.1", "cgroup", some("runner"), None),
        ("containerd-1.6.20", "cgroup-plain", some("plain1"), None),
        ("containerd-1.6.20", "cgroup-pod", some("cart"), some("store/shop-7d4b9")),
        ("containerd-1.6.20", "cgroup-sandbox", some("57d33c36d76b"), some("store/shop-7d4b9")),
        ("lxc-5.0.2", "cgroup", some("shopbox"), None),
        ("lxc-5.0.2", "cgroup-monitor", None, None),
    ] {
        let text = std::fs::read(fixture(runtime).join(file)).unwrap();
        assert!(!text.is_empty(), "{runtime} {file}");
        let (seen, seen_pod, unit) = shown(&fixture(runtime).join("root"), &text);
        assert_eq!((seen, seen_pod, unit), (container, pod, None), "{runtime} {file}");
        // Version 2 alone, as on hosts of today, tells the same.
        let last = text.split(|&byte| byte == b'\n').find(|line| line.starts_with(b"0::")).unwrap();
        assert_eq!(shown(&fixture(runtime).join("root"), last), shown(&fixture(runtime).join("root"), &text));
    }
}

#[test]
fn what_systemd_wrote() {
    for (file, unit) in
        [("cgroup", "shop.service"), ("cgroup-instance", "cart@two.service"), ("cgroup-init", "init.scope")]
    {
        let text = std::fs::read_to_string(fixture("systemd-252").join(file)).unwrap();
        let nowhere = Path::new("/nonexistent");
        assert_eq!(shown(nowhere, text.as_bytes()), (some("sysd"), None, some(unit)), "{file}");
        // The same on a host without the container around it.
        let outside = text.replace("/lxc.payload.sysd", "");
        assert_eq!(shown(nowhere, outside.as_bytes()), (None, None, some(unit)), "{file}");
    }
}

#[test]
fn without_state_files_the_id_is_shown_and_the_uid() {
    let nowhere = Path::new("/nonexistent");
    for (runtime, file, container, pod) in [
        ("docker-20.10.24", "cgroup", some("01be9fb0c4dd"), None),
        ("podman-4.3.1", "cgroup", some("e77c510c524f"), None),
        ("containerd-1.6.20", "cgroup-plain", None, None),
        ("containerd-1.6.20", "cgroup-pod", some("2f161cd5242d"), some("c0ffee00-1234-4abc-8def-0123456789ab")),
    ] {
        let text = std::fs::read(fixture(runtime).join(file)).unwrap();
        assert_eq!(shown(nowhere, &text), (container, pod, None), "{runtime} {file}");
    }
}

#[test]
fn state_files_that_make_no_sense() {
    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let tmp = tempfile::tempdir().unwrap();
    let place = tmp.path().join("var/lib/docker/containers").join(ID);
    std::fs::create_dir_all(&place).unwrap();
    let config = place.join("config.v2.json");
    let cgroup = format!("0::/docker/{ID}\n");
    let name = |text: &[u8]| {
        std::fs::write(&config, text).unwrap();
        shown(tmp.path(), cgroup.as_bytes()).0
    };
    let long = format!(r#"{{"Name":"/{}"}}"#, "x".repeat(100_000));
    assert_eq!(name(br#"{"Name":"/\u001b[31m\nx"}"#), some("\x1b[31m\nx"), "a sink escapes it");
    assert_eq!(name(long.as_bytes()).unwrap().len(), 253);
    for text in [&b""[..], b"{", b"[]", br#"{"Name":7}"#, br#"{"Name":""}"#, b"\xff", &b"[".repeat(100_000)] {
        assert_eq!(name(text), some("0123456789ab"), "{}", text.escape_ascii());
    }
    std::fs::File::create(&config).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(shown(tmp.path(), cgroup.as_bytes()).0, some("0123456789ab"), "a terabyte of nothing");
    std::fs::remove_file(&config).unwrap();
    std::fs::create_dir(&config).unwrap();
    assert_eq!(shown(tmp.path(), cgroup.as_bytes()).0, some("0123456789ab"), "a directory");
}

#[test]
fn sockets_that_nobody_holds_are_found_by_their_cgroup() {
    let tmp = tempfile::tempdir().unwrap();
    let unified = tmp.path().join("unified");
    let id = "ab".repeat(32);
    std::fs::create_dir_all(unified.join(format!("system.slice/docker-{id}.scope"))).unwrap();
    std::fs::create_dir_all(tmp.path().join("proc/self")).unwrap();
    let mount = format!("2 1 0:2 / {} rw - cgroup2 none rw\n", unified.display());
    std::fs::write(tmp.path().join("proc/self/mountinfo"), mount).unwrap();
    let host = Host::with_roots(tmp.path().join("proc"), "/sys".into(), "/etc".into());
    let groups = Cgroups::read(&host).unwrap();
    let found = Containers::read_below(&host, "/nonexistent", std::iter::empty(), Some(&groups));
    let (group, _) = groups.each().find(|(_, path)| path.ends_with(b".scope")).unwrap();
    assert_eq!(found.names().value(Key::Pair(group, 0)), Value::Bytes(b"abababababab"));
    assert_eq!(found.units().value(Key::Pair(group, 0)), Value::Bytes(format!("docker-{id}.scope").as_bytes()));
    assert_eq!(found.names().value(Key::Pair(group, 1)), Value::Null);
    assert_eq!(found.names().value(Key::Id(group)), Value::Null);
}

#[test]
fn a_recording_holds_the_state_files() {
    let tmp = tempfile::tempdir().unwrap();
    let tape = tmp.path().join("tape");
    let runtime = fixture("containerd-1.6.20");
    let file = std::fs::read(runtime.join("cgroup-pod")).unwrap();
    let host = Host::live().recording(&tape).unwrap();
    let root = runtime.join("root");
    let read = |host: &Host| {
        let found = Containers::read_below(host, root.to_str().unwrap(), [(7, &*file)].into_iter(), None);
        found.pods().value(Key::Id(7)) == Value::Bytes(b"store/shop-7d4b9")
    };
    assert!(read(&host));
    host.finish().unwrap();
    assert!(read(&Host::replaying(&tape).unwrap()));
}

/// A directory of the cgroup v2 file system, and a process in it; both gone at the end.
struct Grouped {
    group: PathBuf,
    child: std::process::Child,
}

impl Grouped {
    fn new(mount: &Path, parts: &[&str]) -> Grouped {
        let group = parts.iter().fold(mount.to_owned(), |path, part| path.join(part));
        std::fs::create_dir_all(&group).unwrap();
        let child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        std::fs::write(group.join("cgroup.procs"), child.id().to_string()).unwrap();
        Grouped { group, child }
    }
}

impl Drop for Grouped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let empty = || std::fs::remove_dir(&self.group).is_ok();
        if !std::thread::panicking() {
            testkit::wait_until("the group is empty", empty);
        }
        let _ = self.group.parent().map(std::fs::remove_dir);
    }
}

#[test]
fn root_a_living_process_in_a_group_like_dockers() {
    use crate::{ProcessParts, Processes};
    testkit::require_root!();
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap();
    let Some(mount) = crate::mounts::mounts(&mounts).find(|mount| mount.kind == b"cgroup2") else {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: no cgroup2 file system here\n");
        return;
    };
    let mount = PathBuf::from(std::str::from_utf8(&mount.place).unwrap());
    let id = format!("{:064x}", std::process::id());
    let parent = format!("nw-test-{}", std::process::id());
    let grouped = Grouped::new(&mount, &[&parent, &format!("docker-{id}.scope")]);
    let parts = ProcessParts { cgroups: true, ..ProcessParts::default() };
    let pid = grouped.child.id();
    let processes = Processes::read(&Host::live(), &[pid], parts, u64::MAX).unwrap();
    let groups = Cgroups::read(&Host::live()).unwrap();
    let found = Containers::read_below(&Host::live(), "/nonexistent", processes.cgroups(), Some(&groups));
    let group = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&grouped.group).unwrap());
    for key in [Key::Id(pid.into()), Key::Pair(group, 0)] {
        assert_eq!(found.names().value(key), Value::Bytes(&id.as_bytes()[..12]));
        assert_eq!(found.units().value(key), Value::Bytes(format!("docker-{id}.scope").as_bytes()));
        assert_eq!(found.pods().value(key), Value::Null);
    }
}
