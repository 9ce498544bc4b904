#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
//! Tests containers with files that the runtimes wrote, and with files that an attacker could have written instead.
use super::*;
use std::path::{Path, PathBuf};

fn fixture(runtime: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/containers").join(runtime)
}

/// Result of `files` and `groups` of paths, all of them created by root.
fn read_below<'c>(
    host: &Host,
    root: &str,
    files: impl Iterator<Item = (u32, &'c [u8])>,
    groups: Option<&Cgroups>,
) -> Containers {
    Containers::read_by(States::new(host, root), Makers::all_root(host), files, groups)
}

type Shown = (Option<String>, Option<String>, Option<String>);

/// Container, pod and unit of a process with this cgroup file; the runtimes' state is below `root`.
fn shown(root: &Path, file: &[u8]) -> Shown {
    let found = read_below(&Host::live(), root.to_str().unwrap(), [(7, file)].into_iter(), None);
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
        // Version 2 alone, as on current hosts, gives the same result.
        let last = text.split(|&byte| byte == b'\n').find(|line| line.starts_with(b"0::")).unwrap();
        assert_eq!(shown(&fixture(runtime).join("root"), last), shown(&fixture(runtime).join("root"), &text));
    }
}

#[test]
fn issue_15_a_container_is_searched_by_its_name_or_id() {
    let root = fixture("docker-20.10.24").join("root");
    let file = std::fs::read(fixture("docker-20.10.24").join("cgroup")).unwrap();
    let host = Host::live();
    let id_of = |wanted: &str| {
        let states = States::new(&host, root.to_str().unwrap());
        let mut search = ContainerSearch::by(states, Makers::all_root(&host), wanted.as_bytes());
        assert_eq!(search.id_of(b"0::/init.scope\n"), None);
        search.id_of(&file)
    };
    let id = id_of("runner").unwrap();
    assert_eq!(id.len(), 64);
    let text = std::str::from_utf8(&id).unwrap();
    assert_eq!((id_of(&text[..12]), id_of(text)), (Some(id.clone()), Some(id.clone())));
    for other in ["", "runne", "runner2", &text[..11], "lxc.payload.runner", "\x1b[2J"] {
        assert_eq!(id_of(other), None, "{other:?}");
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
        // The same paths as on a host that is not inside a container itself.
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
fn sockets_without_an_owner_are_found_by_their_cgroup() {
    let tmp = tempfile::tempdir().unwrap();
    let unified = tmp.path().join("unified");
    let id = "ab".repeat(32);
    std::fs::create_dir_all(unified.join(format!("system.slice/docker-{id}.scope"))).unwrap();
    std::fs::create_dir_all(tmp.path().join("proc/self")).unwrap();
    let mount = format!("2 1 0:2 / {} rw - cgroup2 none rw\n", unified.display());
    std::fs::write(tmp.path().join("proc/self/mountinfo"), mount).unwrap();
    let host = Host::with_roots(tmp.path().join("proc"), "/sys".into(), "/etc".into());
    let groups = Cgroups::read(&host).unwrap();
    let found =
        Containers::read_by(States::new(&host, "/nonexistent"), Makers::new(&host), std::iter::empty(), Some(&groups));
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
        let found = read_below(host, root.to_str().unwrap(), [(7, &*file)].into_iter(), None);
        found.pods().value(Key::Id(7)) == Value::Bytes(b"store/shop-7d4b9")
    };
    assert!(read(&host));
    host.finish().unwrap();
    assert!(read(&Host::open_replay(&tape).unwrap()));
}

#[test]
fn issue_10_a_recording_holds_who_made_the_groups() {
    use std::os::unix::fs::PermissionsExt;
    let tmp = tempfile::tempdir().unwrap();
    let unified = tmp.path().join("unified");
    let group = |parent: &str, digit: &str| format!("/{parent}/docker-{}.scope", digit.repeat(64));
    let (ours, open) = (group("system.slice", "a"), group("open.slice", "b"));
    for path in [&ours, &open] {
        std::fs::create_dir_all(unified.join(&path[1..])).unwrap();
    }
    for (parent, mode) in [("", 0o755), ("system.slice", 0o755), ("open.slice", 0o777)] {
        std::fs::set_permissions(unified.join(parent), PermissionsExt::from_mode(mode)).unwrap();
    }
    std::fs::create_dir_all(tmp.path().join("proc/self")).unwrap();
    let mount = format!("2 1 0:2 / {} rw - cgroup2 none rw\n", unified.display());
    std::fs::write(tmp.path().join("proc/self/mountinfo"), mount).unwrap();
    let files = [(7, format!("0::{ours}\n")), (8, format!("0::{open}\n"))];
    let read = |host: &Host| {
        let files = files.iter().map(|(pid, file)| (*pid, file.as_bytes()));
        let found = Containers::read_by(States::new(host, "/nonexistent"), Makers::new(host), files, None);
        let names = [7, 8].map(|pid| found.names().value(Key::Id(pid)) == Value::Bytes(b"aaaaaaaaaaaa"));
        (names, found.names().value(Key::Id(8)).is_null(), found.missing())
    };
    let tape = tmp.path().join("tape");
    let host = Host::with_roots(tmp.path().join("proc"), "/sys".into(), "/etc".into()).recording(&tape).unwrap();
    let live = read(&host);
    host.finish().unwrap();
    assert_eq!(live, ([true, false], true, None), "others may write in the second directory");
    assert_eq!(read(&Host::open_replay(&tape).unwrap()), live);
}

/// A directory of the cgroup v2 file system with a process in it; both are removed at the end.
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

/// Mount point of the cgroup v2 file system, if it is mounted.
fn unified() -> Option<PathBuf> {
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap();
    let found = crate::mounts::mounts(&mounts).find(|mount| mount.kind == b"cgroup2");
    if found.is_none() {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: no cgroup2 file system here\n");
    }
    found.map(|mount| PathBuf::from(std::str::from_utf8(&mount.place).unwrap()))
}

/// Result for a live process and its group.
fn placed(grouped: &Grouped) -> (Containers, [Key; 2], Cgroups) {
    use crate::{ProcessParts, Processes};
    let parts = ProcessParts { cgroups: true, ..ProcessParts::default() };
    let pid = grouped.child.id();
    let processes = Processes::read(&Host::live(), &[pid], parts, u64::MAX).unwrap();
    let (host, groups) = (Host::live(), Cgroups::read(&Host::live()).unwrap());
    let states = States::new(&host, "/nonexistent");
    let found = Containers::read_by(states, Makers::new(&host), processes.cgroups(), Some(&groups));
    let group = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&grouped.group).unwrap());
    (found, [Key::Id(pid.into()), Key::Pair(group, 0)], groups)
}

#[test]
fn root_a_living_process_in_a_group_like_dockers() {
    testkit::require_root!();
    let Some(mount) = unified() else { return };
    let id = format!("{:064x}", std::process::id());
    let parent = format!("nw-test-{}", std::process::id());
    let grouped = Grouped::new(&mount, &[&parent, &format!("docker-{id}.scope")]);
    let (found, keys, _) = placed(&grouped);
    for key in keys {
        assert_eq!(found.names().value(key), Value::Bytes(&id.as_bytes()[..12]));
        assert_eq!(found.units().value(key), Value::Bytes(format!("docker-{id}.scope").as_bytes()));
        assert_eq!(found.pods().value(key), Value::Null);
    }
    assert_eq!(found.missing(), None);
}

/// Like a directory that was delegated to a user.
#[test]
fn root_issue_10_a_group_that_another_user_named_is_no_container_and_no_unit() {
    testkit::require_root!();
    let Some(mount) = unified() else { return };
    let id = format!("{:064x}", std::process::id());
    let parent = format!("nw-nobody-{}", std::process::id());
    let uid = "c0ffee00-1234-4abc-8def-0123456789ab";
    let names =
        [format!("docker-{id}.scope"), "lxc.payload.db".into(), "sshd.service".into(), format!("kubepods-pod{uid}")];
    for name in names {
        let grouped = Grouped::new(&mount, &[&parent, &name]);
        for directory in [mount.join(&parent), grouped.group.clone()] {
            std::os::unix::fs::chown(directory, Some(65_534), Some(65_534)).unwrap();
        }
        let (found, [process, group], groups) = placed(&grouped);
        for key in [process, group] {
            let told = [found.names().value(key), found.pods().value(key), found.units().value(key)];
            assert_eq!(told, [Value::Null; 3], "{name}");
        }
        let Key::Pair(id, 0) = group else { panic!("a group") };
        assert_eq!(groups.path(id), Some(format!("/{parent}/{name}").as_bytes()));
        drop(grouped);
    }
}

#[test]
fn issue_10_a_state_that_can_be_read_must_have_the_container() {
    let (outer, inner) = ("01".repeat(32), "ab".repeat(32));
    let tmp = tempfile::tempdir().unwrap();
    let file = |path: &str| format!("0::{}\n", path.replace("OUTER", &outer).replace("INNER", &inner));
    let name = |path: &str| shown(tmp.path(), file(path).as_bytes()).0;
    assert_eq!(name("/system.slice/docker-INNER.scope"), some("abababababab"), "docker is not here");
    let containers = tmp.path().join("var/lib/docker/containers");
    std::fs::create_dir_all(containers.join(&outer)).unwrap();
    std::fs::write(containers.join(&outer).join("config.v2.json"), r#"{"Name":"/outer"}"#).unwrap();
    assert_eq!(name("/system.slice/docker-INNER.scope"), None);
    assert_eq!(name("/docker/OUTER/docker/INNER"), some("outer"), "a runtime inside");
    std::fs::create_dir_all(containers.join(&inner)).unwrap();
    assert_eq!(name("/docker/OUTER/docker/INNER"), some("outer"), "its root made a group with another's name");
    std::fs::remove_dir(containers.join(&inner)).unwrap();
    // Repeats this with podman's list, and with containerd's tasks.
    assert_eq!(name("/machine.slice/libpod-INNER.scope"), some("abababababab"), "podman is not here");
    let storage = tmp.path().join("var/lib/containers/storage/overlay-containers");
    std::fs::create_dir_all(&storage).unwrap();
    std::fs::write(storage.join("containers.json"), format!(r#"[{{"id":"{outer}","names":["web"]}}]"#)).unwrap();
    assert_eq!((name("/libpod_parent/libpod-OUTER"), name("/libpod_parent/libpod-INNER")), (some("web"), None));
    let tasks = tmp.path().join("run/containerd/io.containerd.runtime.v2.task/k8s.io");
    assert_eq!(name("/kubepods/podx/INNER"), some("abababababab"), "containerd is not here");
    std::fs::create_dir_all(tasks.join(&outer)).unwrap();
    assert_eq!((name("/kubepods/podx/OUTER"), name("/kubepods/podx/INNER")), (some("010101010101"), None));
}

#[test]
fn issue_10_without_the_cgroup_file_system_no_name_is_trusted_and_that_is_reported() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(tmp.path().join("self")).unwrap();
    std::fs::write(tmp.path().join("self/mountinfo"), "").unwrap();
    let host = Host::with_roots(tmp.path().into(), "/sys".into(), "/etc".into());
    let file = format!("0::/system.slice/docker-{}.scope\n", "ab".repeat(32));
    let found = Containers::read_by(
        States::new(&host, "/nonexistent"),
        Makers::new(&host),
        [(7, file.as_bytes())].into_iter(),
        None,
    );
    assert_eq!(found.names().value(Key::Id(7)), Value::Null);
    assert!(found.missing().unwrap().ends_with(": 1"));
}
