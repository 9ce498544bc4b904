//! Derives container, pod and systemd unit from the path of a cgroup. Does no I/O.
//!
//! Sources of the patterns: runtimes name a cgroup `…/docker/<id>` or, with systemd as the cgroup manager,
//! `docker-<id>.scope` (runc, libcontainer/cgroups/systemd, getUnitName; likewise for `libpod` and `cri-containerd`).
//! An id has 64 hexadecimal digits. The kubelet puts pods below `kubepods`, by uid.
use super::makers::Hierarchy;

/// The parts of a path with a meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CgroupPlace<'p> {
    /// Possible containers, innermost first.
    pub(super) containers: Vec<Container<'p>>,
    /// The uid as written in the path: systemd replaces `-` with `_`.
    pub(super) pod_uid: Option<&'p [u8]>,
    /// Innermost systemd unit.
    pub(super) unit: Option<&'p [u8]>,
}

/// A container, as its runtime names the cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container<'p> {
    /// An id of 64 hexadecimal digits, and the runtime if the path shows it.
    Id(&'p [u8], Runtime),
    /// A name of LXC.
    Lxc(&'p [u8]),
    /// Possibly a container of containerd without Kubernetes: namespace and id. Only its state can confirm that.
    Perhaps(&'p [u8], &'p [u8]),
}

/// A container runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runtime {
    Docker,
    Podman,
    /// containerd on behalf of the kubelet.
    Cri,
    /// The path does not show the runtime.
    Unknown,
}

/// Number of digits of an id.
const ID: usize = 64;

/// Decodes a path. Uses only names that `made` believes, which is given the directories above them.
pub(super) fn place<'p>(path: &'p [u8], made: &mut dyn FnMut(&[&'p [u8]]) -> bool) -> CgroupPlace<'p> {
    let parts: Vec<&[u8]> = path.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).collect();
    let pods_at = parts.iter().position(|part| part.starts_with(b"kubepods"));
    let mut place = CgroupPlace::default();
    for (at, part) in parts.iter().enumerate().rev() {
        let in_pod = pods_at.is_some_and(|pods_at| pods_at <= at);
        let (above, whole) = (parts.get(..at).unwrap_or_default(), at + 1 == parts.len());
        let container = container(above, part, in_pod, whole);
        let uid = if in_pod { pod_uid(part) } else { None };
        let unit = if place.unit.is_none() { unit(part) } else { None };
        if (container.is_none() && uid.is_none() && unit.is_none()) || !made(above) {
            continue;
        }
        if container.is_some() {
            // A pod inside a container is not one of this host's pods.
            place.pod_uid = None;
        }
        place.containers.extend(container);
        place.pod_uid = place.pod_uid.or(uid);
        place.unit = place.unit.or(unit);
    }
    place
}

// Recognises a container by the name of a directory and its position.
fn container<'p>(above: &[&'p [u8]], part: &'p [u8], in_pod: bool, whole: bool) -> Option<Container<'p>> {
    if let Some(name) = part.strip_prefix(b"lxc.payload.").filter(|name| !name.is_empty()) {
        return Some(Container::Lxc(name));
    }
    if let Some((id, runtime)) = by_prefix(part) {
        return Some(Container::Id(id, runtime));
    }
    if is_id(part) {
        let runtime = match (in_pod, above.last()) {
            (true, _) => Runtime::Cri,
            (_, Some(&b"docker")) => Runtime::Docker,
            _ => Runtime::Unknown,
        };
        return Some(Container::Id(part, runtime));
    }
    match above {
        [namespace] if whole => Some(Container::Perhaps(namespace, part)),
        _ => None,
    }
}

// Recognises `docker-<id>.scope`, `libpod-<id>`, `kubepods-….slice:cri-containerd:<id>`.
fn by_prefix(part: &[u8]) -> Option<(&[u8], Runtime)> {
    let part = part.strip_suffix(b".scope").unwrap_or(part);
    let (head, id) = part.split_at_checked(part.len().checked_sub(ID)?)?;
    let (word, mark) = head.split_at_checked(head.len().checked_sub(1)?)?;
    let word = if mark == b":" { word.rsplit(|&byte| byte == b':').next()? } else { word };
    let runtime = match word {
        b"docker" => Runtime::Docker,
        b"libpod" => Runtime::Podman,
        b"cri-containerd" => Runtime::Cri,
        _ => return None,
    };
    (is_id(id) && matches!(mark, b"-" | b":")).then_some((id, runtime))
}

fn is_id(part: &[u8]) -> bool {
    part.len() == ID && part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

// Recognises `pod<uid>` or `kubepods-burstable-pod<uid>.slice`; a static pod's uid has no dashes.
fn pod_uid(part: &[u8]) -> Option<&[u8]> {
    let part = part.split(|&byte| byte == b':').next()?;
    let name = part.strip_suffix(b".slice").unwrap_or(part);
    let word = name.rsplit(|&byte| byte == b'-').find(|word| word.starts_with(b"pod"))?;
    // If the uid contains dashes, the word with `pod` is not the last one.
    let start = name.windows(word.len()).rposition(|window| window == word)?;
    let uid = name.get(start + 3..)?;
    let fits = (32..=36).contains(&uid.len()) && uid.iter().all(|b| b.is_ascii_hexdigit() || matches!(b, b'-' | b'_'));
    fits.then_some(uid)
}

// systemd prefixes names that would be mistaken for something else with `_` (cg_escape).
fn unit(part: &[u8]) -> Option<&[u8]> {
    const KINDS: [&[u8]; 5] = [b".service", b".scope", b".socket", b".mount", b".swap"];
    let part = part.strip_prefix(b"_").unwrap_or(part);
    KINDS.iter().any(|kind| part.len() > kind.len() && part.ends_with(kind)).then_some(part)
}

/// The paths in a file /proc/PID/cgroup with their hierarchies, most informative first: version 2, systemd's own
/// hierarchy, the others. The flag is true for the first two, which contain systemd's units.
///
/// A path never contains a line break: the kernel refuses such names of groups (cgroup_mkdir).
pub(super) fn paths(file: &[u8]) -> impl Iterator<Item = (Hierarchy<'_>, &[u8], bool)> {
    let line = |line| {
        let mut parts = <[u8]>::splitn(line, 3, |&byte| byte == b':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let rank = match (number, controllers) {
            (b"0", b"") => 0,
            (_, b"name=systemd") => 1,
            _ => 2,
        };
        Some((rank, controllers, path)).filter(|(.., path)| *path != b"/")
    };
    let mut found: Vec<(u8, &[u8], &[u8])> = file.split(|&byte| byte == b'\n').filter_map(line).collect();
    found.sort_by_key(|(rank, ..)| *rank);
    found.into_iter().map(|(rank, controllers, path)| (controllers, path, rank < 2))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    const HEX: &str = "01be9fb0c4dd8ca41f4bd0d667a6d8c08950d230f0ee38e79db38548de6d145e";

    fn all(path: &str) -> CgroupPlace<'_> {
        place(path.as_bytes(), &mut |_| true)
    }

    /// The innermost certain container, otherwise the innermost possible one.
    fn first(path: &str) -> Option<Container<'_>> {
        let containers = all(path).containers;
        let sure = containers.iter().find(|container| !matches!(container, Container::Perhaps(..)));
        sure.or(containers.first()).copied()
    }

    #[test]
    fn issue_10_names_below_another_users_directory_are_not_trusted() {
        let path = format!("/system.slice/docker-{HEX}.scope/kubepods/user.slice/libpod-{HEX}.scope/sshd.service");
        let found = place(path.as_bytes(), &mut |above| !above.contains(&&b"user.slice"[..]));
        assert_eq!(found.containers, [Container::Id(HEX.as_bytes(), Runtime::Docker)]);
        assert_eq!(found.unit, Some(format!("docker-{HEX}.scope").as_bytes()));
        assert_eq!(place(path.as_bytes(), &mut |_| false), CgroupPlace::default());
    }

    #[test]
    fn containers_by_path() {
        let id = |runtime| Some(Container::Id(HEX.as_bytes(), runtime));
        for (path, expected) in [
            ("/docker/ID", id(Runtime::Docker)),
            ("/system.slice/docker-ID.scope", id(Runtime::Docker)),
            ("/docker/ID/system.slice/nginx.service", id(Runtime::Docker)),
            ("/machine.slice/libpod-ID.scope/container", id(Runtime::Podman)),
            ("/libpod_parent/libpod-ID", id(Runtime::Podman)),
            ("/libpod_parent/conmon", Some(Container::Perhaps(b"libpod_parent", b"conmon"))),
            (
                "/machine.slice/libpod-conmon-ID.scope",
                Some(Container::Perhaps(b"machine.slice", b"libpod-conmon-ID.scope")),
            ),
            ("/kubepods/burstable/podc0ffee00-1234-4abc-8def-0123456789ab/ID", id(Runtime::Cri)),
            ("/system.slice/containerd.service/kubepods-burstable-podx.slice:cri-containerd:ID", id(Runtime::Cri)),
            ("/a/b/ID", id(Runtime::Unknown)),
            ("/lxc.payload.box/x", Some(Container::Lxc(b"box"))),
            ("/lxc.monitor.box", None),
            ("/lxc.payload.", None),
            ("/user.slice/user-0.slice/session-1.scope", None),
            ("/ID0", None),
            ("/", None),
            ("", None),
        ] {
            let path = path.replace("ID", HEX);
            let expected = match expected {
                Some(Container::Perhaps(a, b)) if b.starts_with(b"libpod-conmon") => {
                    let _ = b;
                    let rest = path.split('/').next_back().unwrap().as_bytes();
                    assert_eq!(first(&path), Some(Container::Perhaps(a, rest)));
                    continue;
                }
                other => other,
            };
            assert_eq!(first(&path), expected, "{path}");
        }
    }

    #[test]
    fn pods_by_path() {
        let dashed = "c0ffee00-1234-4abc-8def-0123456789ab";
        let under = dashed.replace('-', "_");
        for (path, expected) in [
            (format!("/kubepods/besteffort/pod{dashed}/{HEX}"), Some(dashed)),
            (format!("/kubepods/pod{dashed}"), Some(dashed)),
            (format!("/kubepods.slice/kubepods-pod{under}.slice/cri-containerd-{HEX}.scope"), Some(&*under)),
            (format!("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{under}.slice"), Some(&*under)),
            (format!("/x/kubepods-burstable-pod{under}.slice:cri-containerd:{HEX}"), Some(&*under)),
            ("/kubepods/podc0ffee0012344abc8def0123456789ab".to_owned(), Some("c0ffee0012344abc8def0123456789ab")),
            (format!("/docker/pod{dashed}"), None),
            (format!("/kubepods/pod{dashed}/{HEX}/kubepods/pod{}", dashed.replace("c0ffee", "c0ffff")), Some(dashed)),
            (format!("/docker/{HEX}/kubepods/pod{dashed}"), None),
            ("/kubepods/podx".to_owned(), None),
            ("/kubepods/burstable".to_owned(), None),
        ] {
            assert_eq!(all(&path).pod_uid, expected.map(str::as_bytes), "{path}");
        }
    }

    #[test]
    fn units_by_path() {
        for (path, expected) in [
            ("/system.slice/ssh.service", Some("ssh.service")),
            ("/system.slice/system-getty.slice/getty@tty1.service", Some("getty@tty1.service")),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/pipewire.service", Some("pipewire.service")),
            ("/user.slice/user-0.slice/session-1.scope", Some("session-1.scope")),
            ("/system.slice/_cgroup.service", Some("cgroup.service")),
            ("/system.slice/docker.service/sub", Some("docker.service")),
            ("/.service", None),
            ("/user.slice", None),
        ] {
            assert_eq!(all(path).unit, expected.map(str::as_bytes), "{path}");
        }
    }

    #[test]
    fn version_two_first_then_systemd() {
        let file = b"12:pids:/a\n1:name=systemd:/b\n0::/c:d\n3:cpu:/\nbad\n4:x\n11:devices:/c:d\n";
        let found: Vec<_> = paths(file).collect();
        assert_eq!(
            found,
            [
                (&b""[..], &b"/c:d"[..], true),
                (b"name=systemd", b"/b", true),
                (b"pids", b"/a", false),
                (b"devices", b"/c:d", false)
            ]
        );
        assert_eq!(paths(b"0::/\n").count(), 0);
    }

    proptest! {
        #[test]
        fn any_path(text in "[/:a-f0-9_.-]{0,100}|(/(pod|kubepods|docker-|\\.scope|\\.slice|[a-f0-9]{64}|[^/]{0,9})*)\
            {0,8}") {
            let found = all(&text);
            for part in [found.pod_uid, found.unit].into_iter().flatten() {
                prop_assert!(part.len() <= text.len());
            }
            paths(text.as_bytes()).for_each(drop);
        }
    }
}
