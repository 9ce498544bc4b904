//! The list of crates in the program: a software bill of materials in the format CycloneDX 1.5.
//!
//! `cargo tree` decides which crates belong to the program: crates of the released features, on all processors.
//! `cargo metadata` describes them, and Cargo.lock has their digests.

use crate::package::{Release, hex};
use crate::root;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use toml::de::DeTable;

/// The features of released programs, as in `./netwren.sh build`.
const FEATURES: &str = "all-receivers";

const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// Name and version; Cargo.lock has each pair once.
type Crate = (String, String);

/// The crates, each with those that it uses.
type Graph = BTreeMap<Crate, BTreeSet<Crate>>;

/// The document's text.
pub(super) fn text(release: &Release) -> Result<String> {
    let mut document = document(release)?;
    let serial = serial(&document);
    if let Some(document) = document.as_object_mut() {
        document.insert("serialNumber".into(), serial.into());
    }
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn document(release: &Release) -> Result<Value> {
    let (whole, linked) = (graph("normal,build")?, graph("normal")?);
    // It leaves out crates of features that are not listed here.
    let features = format!("netwren/{FEATURES}");
    let json = cargo(&["metadata", "--offline", "--locked", "--format-version", "1", "--features", &features])?;
    let metadata: Value = serde_json::from_str(&json)?;
    let digests = digests()?;
    let mut described = BTreeMap::new();
    for about in metadata["packages"].as_array().into_iter().flatten() {
        let text = |key: &str| about[key].as_str().unwrap_or_default().to_owned();
        described.insert((text("name"), text("version")), about);
    }
    let own = ("netwren".to_owned(), release.version.to_owned());
    let (mut program, mut components, mut dependencies) = (Value::Null, Vec::new(), Vec::new());
    for (name, uses) in &whole {
        let about = described.get(name).with_context(|| format!("cargo metadata lacks {} {}", name.0, name.1))?;
        let is_linked = linked.contains_key(name);
        let component = component(name, about, digests.get(name), is_linked);
        let uses: BTreeSet<String> = uses.iter().map(|name| reference(name, digests.contains_key(name))).collect();
        dependencies.push(json!({ "ref": component["bom-ref"], "dependsOn": uses }));
        if *name == own {
            program = component;
            program["type"] = "application".into();
        } else {
            components.push(component);
        }
    }
    let seconds = i64::try_from(release.time_s)?;
    let tool = json!({ "type": "application", "name": "cargo xtask release", "version": release.version });
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": format!("{:.0}", sys::clock::WallTime { seconds, nanos: 0 }.rfc3339()),
            "tools": { "components": [tool] },
            "component": program,
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// One crate. A crate that only runs during the build has the scope `excluded`.
fn component(name: &Crate, about: &Value, digest: Option<&String>, is_linked: bool) -> Value {
    let licence = about["license"].as_str().unwrap_or_default();
    let licence = licence.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ");
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(name, digest.is_some()),
        "name": name.0,
        "version": name.1,
        "scope": if is_linked { "required" } else { "excluded" },
        "licenses": [{ "expression": licence }],
    });
    // The project's own crates are not on crates.io, where other crates may have their names.
    if let Some(digest) = digest {
        component["purl"] = reference(name, true).into();
        component["hashes"] = json!([{ "alg": "SHA-256", "content": digest }]);
    }
    component
}

/// The crate's name inside the document; for crates of crates.io, their package URL.
fn reference((name, version): &Crate, is_published: bool) -> String {
    // `+` separates build metadata, and has a meaning of its own in URLs.
    let version = version.replace('+', "%2B");
    if is_published { format!("pkg:cargo/{name}@{version}") } else { format!("{name}@{version}") }
}

/// The crates of the program that `cargo tree` finds along edges of these kinds.
fn graph(edges: &str) -> Result<Graph> {
    let mut args = vec!["tree", "--offline", "--locked", "--package", "netwren", "--features", FEATURES];
    args.extend(["--edges", edges, "--prefix", "depth", "--format", "{p}", "--color", "never"]);
    args.extend(TARGETS.iter().flat_map(|target| ["--target", target]));
    parse(&cargo(&args)?)
}

/// Parses lines such as `2libc v0.2.191`: the depth, the name and the version. The last line with a smaller depth is
/// the crate that uses this one.
fn parse(tree: &str) -> Result<Graph> {
    let (mut graph, mut above) = (Graph::new(), Vec::<Crate>::new());
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let unknown = || format!("cargo tree printed `{line}`");
        let at = line.find(|c: char| !c.is_ascii_digit()).with_context(unknown)?;
        let (depth, rest) = line.split_at(at);
        let depth: usize = depth.parse().with_context(unknown)?;
        let mut words = rest.split_whitespace();
        let name = words.next().with_context(unknown)?.to_owned();
        let version = words.next().and_then(|word| word.strip_prefix('v')).with_context(unknown)?.to_owned();
        above.truncate(depth);
        if let Some(user) = above.last() {
            graph.entry(user.clone()).or_default().insert((name.clone(), version.clone()));
        }
        graph.entry((name.clone(), version.clone())).or_default();
        above.push((name, version));
    }
    Ok(graph)
}

/// The SHA-256 digests of Cargo.lock, which has them for crates from crates.io.
fn digests() -> Result<BTreeMap<Crate, String>> {
    let text = std::fs::read_to_string(root::path().join("Cargo.lock")).context("Cargo.lock")?;
    let lock = DeTable::parse(&text).context("Cargo.lock")?.into_inner();
    let packages = lock.get("package").and_then(|value| value.get_ref().as_array()).context("Cargo.lock is empty")?;
    let digest = |package: &DeTable<'_>| {
        let text = |key| package.get(key).and_then(|value| value.get_ref().as_str()).map(str::to_owned);
        Some(((text("name")?, text("version")?), text("checksum")?))
    };
    Ok(packages.iter().filter_map(|package| package.get_ref().as_table().and_then(digest)).collect())
}

fn cargo(args: &[&str]) -> Result<String> {
    root::output(&root::cargo(), args).context("if a crate is missing, run: cargo fetch --locked")
}

/// A UUID made from the document, so that the same document has the same one (RFC 9562, version 8).
fn serial(document: &Value) -> String {
    let mut bytes: Vec<u8> = Sha256::digest(document.to_string()).iter().copied().take(16).collect();
    for (at, mask, version) in [(6, 0x0f, 0x80), (8, 0x3f, 0x80)] {
        if let Some(byte) = bytes.get_mut(at) {
            *byte = *byte & mask | version;
        }
    }
    let digits = hex(&bytes);
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!("urn:uuid:{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}
