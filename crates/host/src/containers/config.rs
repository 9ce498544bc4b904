//! Directories in which the runtimes keep their state, from their configuration; only files of root are read.
//!
//! docker: `data-root` in /etc/docker/daemon.json. podman: `graphroot` and `runroot` of `[storage]` in
//! /etc/containers/storage.conf, or else in /usr/share/containers/storage.conf. containerd: `state` in
//! /etc/containerd/config.toml. Values on a daemon's command line are not considered.
use serde_json::Value as Json;
use sys::Host;

use super::trusted::read_trusted;

/// The state directories of the runtimes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Roots {
    pub(super) docker: Box<str>,
    /// The persistent directory, and the directory that is lost at a reboot.
    pub(super) podman: [Box<str>; 2],
    pub(super) containerd: Box<str>,
}

impl Roots {
    /// Reads the configurations below `root` (empty except in tests). Missing settings get the runtimes' defaults.
    pub(super) fn read(host: &Host, root: &str) -> Roots {
        let file = |path: &str| read_trusted(host, &format!("{root}{path}"));
        let docker = file("/etc/docker/daemon.json")
            .and_then(|text| serde_json::from_slice::<Json>(&text).ok())
            .and_then(|config| directory(config.get("data-root")?.as_str()?));
        let storage = file("/etc/containers/storage.conf").or_else(|| file("/usr/share/containers/storage.conf"));
        let storage = |key| setting(storage.as_deref()?, "storage", key);
        let containerd = file("/etc/containerd/config.toml").and_then(|text| setting(&text, "", "state"));
        Roots {
            docker: docker.unwrap_or_else(|| "/var/lib/docker".into()),
            podman: [
                storage("graphroot").unwrap_or_else(|| "/var/lib/containers/storage".into()),
                storage("runroot").unwrap_or_else(|| "/run/containers/storage".into()),
            ],
            containerd: containerd.unwrap_or_else(|| "/run/containerd".into()),
        }
    }
}

/// The directory under `key` in a section of a TOML file (the empty section is the part before the first one). Supports
/// only the syntax of these files: one setting per line, a string in quotes of either kind, without escapes.
fn setting(text: &[u8], section: &str, key: &str) -> Option<Box<str>> {
    let mut here = "";
    for line in std::str::from_utf8(text).ok()?.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[') {
            here = name.split(']').next().unwrap_or_default().trim();
            continue;
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        if here != section || name.trim() != key {
            continue;
        }
        let value = value.trim();
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        return directory(value.get(1..)?.split(quote).next()?);
    }
    None
}

// Checks that a path is absolute and has no `..`, and removes a trailing slash.
fn directory(path: &str) -> Option<Box<str>> {
    let is_plain = path.starts_with('/') && !path.contains(['\0', '\\']) && path.split('/').all(|part| part != "..");
    is_plain.then(|| path.trim_end_matches('/').into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn roots(files: &[(&str, &str)]) -> Roots {
        let tmp = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = tmp.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Roots::read(&Host::live(), tmp.path().to_str().unwrap())
    }

    #[test]
    fn issue_10_configured_roots_are_read() {
        let roots = roots(&[
            ("etc/docker/daemon.json", r#"{ "log-driver": "none", "data-root": "/srv/docker/" }"#),
            (
                "etc/containers/storage.conf",
                "graphroot = \"/not/here\"\n[storage]\ndriver = \"overlay\"\n# graphroot = \"/no\"\n\
                 graphroot = \"/srv/pods\" # here\nrunroot='/run/pods'\n[storage.options]\ngraphroot = \"/nor/here\"\n",
            ),
            (
                "etc/containerd/config.toml",
                "version = 2\nroot = \"/srv/c\"\nstate = \"/run/k3s/containerd\"\n[grpc]\nstate = \"/no\"\n",
            ),
        ]);
        assert_eq!(&*roots.docker, "/srv/docker");
        assert_eq!(roots.podman.each_ref().map(|root| &**root), ["/srv/pods", "/run/pods"]);
        assert_eq!(&*roots.containerd, "/run/k3s/containerd");
    }

    #[test]
    fn what_makes_no_sense_leaves_the_usual_roots() {
        let usual = roots(&[]);
        assert_eq!(&*usual.docker, "/var/lib/docker");
        assert_eq!(
            usual.podman.each_ref().map(|root| &**root),
            ["/var/lib/containers/storage", "/run/containers/storage"]
        );
        assert_eq!(&*usual.containerd, "/run/containerd");
        for (docker, toml) in [
            ("{", "state = /x\n[storage]\ngraphroot = srv\n"),
            (r#"{"data-root": 7}"#, "state = \"\"\n[storage]\ngraphroot = \"srv\"\n"),
            (r#"{"data-root": "/a/../b"}"#, "state = \"/a/../b\"\n[storage\ngraphroot\n"),
            (r#"{"data-root": "srv"}"#, "[plugins]\nstate = \"/x\"\n[stora]\ngraphroot = \"/x\""),
        ] {
            let files = [
                ("etc/docker/daemon.json", docker),
                ("etc/containers/storage.conf", toml),
                ("etc/containerd/config.toml", toml),
            ];
            assert_eq!(roots(&files), usual, "{docker} {toml}");
        }
    }

    #[test]
    fn root_issue_10_the_configuration_of_another_user_is_not_read() {
        testkit::require_root!();
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("etc/docker");
        std::fs::create_dir_all(&path).unwrap();
        let file = path.join("daemon.json");
        std::fs::write(&file, r#"{"data-root": "/tmp/mine"}"#).unwrap();
        let read = || Roots::read(&Host::live(), tmp.path().to_str().unwrap()).docker;
        assert_eq!(&*read(), "/tmp/mine");
        std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
        assert_eq!(&*read(), "/var/lib/docker");
    }
}
