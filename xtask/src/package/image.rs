//! A container image as a folder (OCI image layout 1.0): one layer with the program and /etc/passwd.

use super::files::{Kind, Layout, List, PackagedFile, gzip};
use super::{Release, hex, tar};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

const PASSWD: &str = "root:x:0:0:root:/:/usr/bin/netwren\n";

/// Writes the image into the folder `into`, replacing what is there.
pub(super) fn write(list: &List, binary: &Path, release: &Release, into: &Path) -> Result<()> {
    let mut files = list.files(Layout::Image, binary)?;
    let passwd = PASSWD.as_bytes().to_vec();
    let source = PathBuf::from("passwd");
    files.push(PackagedFile { path: "etc/passwd".into(), mode: 0o644, kind: Kind::Data, content: passwd, source });
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let layer = tar::archive(&files, "", release.time_s)?;
    let layer_id = format!("sha256:{}", hex(&Sha256::digest(&layer)));
    let _ = std::fs::remove_dir_all(into);
    let blobs = into.join("blobs/sha256");
    std::fs::create_dir_all(&blobs).with_context(|| blobs.display().to_string())?;
    let put = |media: &str, content: &[u8]| -> Result<Value> {
        let digest = hex(&Sha256::digest(content));
        std::fs::write(blobs.join(&digest), content)?;
        let media = format!("application/vnd.oci.image.{media}");
        Ok(json!({ "mediaType": media, "digest": format!("sha256:{digest}"), "size": content.len() }))
    };
    let layer = put("layer.v1.tar+gzip", &gzip(&layer)?)?;
    let arch = release.arch.oci();
    let labels = json!({
        "org.opencontainers.image.title": list.about.name,
        "org.opencontainers.image.description": list.about.summary,
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.licenses": "Apache-2.0 OR MIT",
    });
    let config = json!({
        "architecture": arch,
        "os": "linux",
        "config": { "Entrypoint": ["/usr/bin/netwren"], "Labels": labels },
        "rootfs": { "type": "layers", "diff_ids": [layer_id] },
    });
    let config = put("config.v1+json", config.to_string().as_bytes())?;
    let media = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({ "schemaVersion": 2, "mediaType": media, "config": config, "layers": [layer] });
    let mut manifest = put("manifest.v1+json", manifest.to_string().as_bytes())?;
    if let Some(manifest) = manifest.as_object_mut() {
        manifest.insert("platform".into(), json!({ "architecture": arch, "os": "linux" }));
        let name = json!({ "org.opencontainers.image.ref.name": release.version });
        manifest.insert("annotations".into(), name);
    }
    let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
    std::fs::write(into.join("index.json"), index.to_string())?;
    Ok(std::fs::write(into.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?)
}

/// The image in `folder` as one archive.
pub(super) fn packed(folder: &Path, time_s: u64) -> Result<Vec<u8>> {
    let mut files = Vec::new();
    for part in ["blobs/sha256", ""] {
        for file in std::fs::read_dir(folder.join(part)).with_context(|| folder.display().to_string())? {
            let source = file?.path();
            if source.is_file() {
                let path = source.strip_prefix(folder)?.to_string_lossy().into_owned();
                let content = std::fs::read(&source)?;
                files.push(PackagedFile { path, mode: 0o644, kind: Kind::Data, content, source });
            }
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    tar::archive(&files, "", time_s)
}
