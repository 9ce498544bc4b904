//! Which crate may name which other crates.

use super::{Findings, members};
use serde_json::Value;

/// A crate's layer and its allowed dependencies.
struct Place {
    name: &'static str,
    /// A crate may name only crates of lower layers, and none of its own layer.
    layer: u8,
    /// Our crates that it may name; `*` means all.
    ours: &'static [&'static str],
    /// Third-party crates that it may name. A new one needs a line here and one in docs/adr/0002.
    theirs: &'static [&'static str],
}

/// The table of ARCHITECTURE.md. Layer 9 is for code that is not shipped.
const HOUSE: &[Place] = &[
    Place { name: "record", layer: 0, ours: &[], theirs: &[] },
    Place { name: "sys", layer: 0, ours: &[], theirs: &["crc32fast", "libc"] },
    Place { name: "netlink", layer: 1, ours: &["sys"], theirs: &[] },
    Place { name: "bpf", layer: 1, ours: &["sys"], theirs: &[] },
    Place { name: "pcapfilter", layer: 1, ours: &[], theirs: &[] },
    Place { name: "packet", layer: 1, ours: &["record"], theirs: &[] },
    Place { name: "sockets", layer: 2, ours: &["record", "sys", "netlink", "bpf"], theirs: &[] },
    Place { name: "conntrack", layer: 2, ours: &["record", "sys", "netlink", "bpf"], theirs: &[] },
    Place { name: "counters", layer: 2, ours: &["record", "sys", "netlink"], theirs: &[] },
    Place { name: "nflog", layer: 2, ours: &["record", "sys", "netlink", "packet"], theirs: &[] },
    Place { name: "capture", layer: 2, ours: &["record", "sys", "packet"], theirs: &["flate2", "ruzstd"] },
    Place { name: "drops", layer: 2, ours: &["record", "sys", "netlink", "bpf"], theirs: &[] },
    Place { name: "profile", layer: 2, ours: &["record", "sys", "bpf"], theirs: &[] },
    Place {
        name: "host",
        layer: 2,
        ours: &["record", "sys", "netlink", "packet", "bpf"],
        theirs: &["hashbrown", "foldhash", "serde_json"],
    },
    Place { name: "flows", layer: 3, ours: &["record"], theirs: &["hashbrown", "foldhash"] },
    Place { name: "owners", layer: 3, ours: &["record"], theirs: &[] },
    Place { name: "doctor", layer: 3, ours: &["record"], theirs: &[] },
    Place { name: "engine", layer: 3, ours: &["record", "sys"], theirs: &["regex", "hashbrown", "foldhash"] },
    Place { name: "sinks", layer: 4, ours: &["record"], theirs: &["anstyle", "unicode-width"] },
    Place {
        name: "export",
        layer: 4,
        ours: &["record", "sys"],
        theirs: &[
            "crc32fast",
            "ruzstd",
            "rusqlite",
            "rustls",
            "postgres-protocol",
            "bytes",
            "fallible-iterator",
            "base64",
            "flate2",
            "hmac",
            "sha2",
        ],
    },
    Place { name: "runtime", layer: 5, ours: &["record", "sys", "host", "sinks"], theirs: &[] },
    Place {
        name: "packet_files",
        layer: 6,
        ours: &["record", "sys", "pcapfilter", "capture", "engine", "sinks", "export", "runtime"],
        theirs: &[],
    },
    Place {
        name: "lookups",
        layer: 6,
        ours: &[
            "record",
            "sys",
            "netlink",
            "packet",
            "bpf",
            "pcapfilter",
            "sockets",
            "conntrack",
            "counters",
            "nflog",
            "capture",
            "drops",
            "host",
            "owners",
            "engine",
            "export",
            "runtime",
        ],
        theirs: &["foldhash"],
    },
    Place {
        name: "shipping",
        layer: 7,
        ours: &["record", "sys", "packet", "nflog", "engine", "sinks", "export", "runtime", "packet_files"],
        theirs: &[],
    },
    Place {
        name: "probes",
        layer: 7,
        ours: &["record", "sys", "conntrack", "counters", "drops", "host", "doctor", "engine", "runtime", "lookups"],
        theirs: &[],
    },
    Place {
        name: "tables",
        layer: 8,
        ours: &[
            "record",
            "sys",
            "sockets",
            "conntrack",
            "host",
            "flows",
            "owners",
            "engine",
            "sinks",
            "lookups",
            "probes",
        ],
        theirs: &[],
    },
    Place {
        name: "faces",
        layer: 8,
        ours: &[
            "record",
            "sys",
            "netlink",
            "packet",
            "pcapfilter",
            "sockets",
            "conntrack",
            "counters",
            "capture",
            "drops",
            "host",
            "flows",
            "owners",
            "engine",
            "sinks",
            "export",
            "runtime",
            "packet_files",
            "lookups",
            "shipping",
        ],
        theirs: &[],
    },
    Place { name: "netwren", layer: 9, ours: &["*"], theirs: &["clap", "toml", "foldhash"] },
    Place { name: "testkit", layer: 10, ours: &["record", "sys", "netlink"], theirs: &["libc"] },
    Place { name: "netwren-tests", layer: 10, ours: &["*"], theirs: &[] },
    Place {
        name: "xtask",
        layer: 11,
        ours: &["*"],
        theirs: &["anyhow", "clap", "clap_mangen", "flate2", "md-5", "regex", "serde_json", "sha2", "toml"],
    },
];

/// Crates that the tests of any crate may use.
const IN_TESTS: &[&str] = &["testkit", "proptest", "snapbox", "serde_json", "tempfile"];

pub(super) fn check(metadata: &Value) -> Findings {
    members(metadata).flat_map(check_crate).collect()
}

fn check_crate(package: &Value) -> Findings {
    let name = package["name"].as_str().unwrap_or_default();
    let Some(place) = HOUSE.iter().find(|place| place.name == name) else {
        return vec![format!(
            "{name}: no place in the layer table (xtask/src/tidy/layers.rs); a new crate needs an ADR"
        )];
    };
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies.filter_map(|dependency| wrong_edge(place, dependency)).collect()
}

fn wrong_edge(from: &Place, dependency: &Value) -> Option<String> {
    let to = dependency["name"].as_str().unwrap_or_default();
    let in_tests = dependency["kind"].as_str() == Some("dev");
    if in_tests && IN_TESTS.contains(&to) {
        return None;
    }
    let Some(target) = HOUSE.iter().find(|place| place.name == to) else {
        let fine = from.theirs.contains(&to);
        return (!fine).then(|| format!("{} names {to}, which its line in the layer table does not list", from.name));
    };
    let listed = from.ours.contains(&to) || from.ours == ["*"];
    let down = target.layer < from.layer;
    (!(listed && down))
        .then(|| format!("{} (layer {}) may not name {to} (layer {})", from.name, from.layer, target.layer))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    fn found(name: &str, dependencies: Value) -> Findings {
        check(&json!({"packages": [{"name": name, "source": null, "dependencies": dependencies}]}))
    }

    #[test]
    fn edges() {
        assert!(found("engine", json!([{"name": "record", "kind": null}, {"name": "regex", "kind": null}])).is_empty());
        assert!(found("record", json!([{"name": "proptest", "kind": "dev"}])).is_empty());
        assert_eq!(found("sockets", json!([{"name": "host", "kind": null}])).len(), 1);
        assert_eq!(found("record", json!([{"name": "libc", "kind": null}])).len(), 1);
        assert_eq!(found("sinks", json!([{"name": "engine", "kind": "dev"}])).len(), 1);
        assert_eq!(found("stranger", json!([])).len(), 1);
    }

    #[test]
    fn listed_edges_point_down() {
        for place in HOUSE.iter().filter(|place| place.ours != ["*"]) {
            for to in place.ours {
                let target = HOUSE.iter().find(|target| target.name == *to);
                assert!(target.is_some_and(|target| target.layer < place.layer), "{} → {to}", place.name);
            }
        }
    }
}
