//! Signatures by GnuPG. The private key stays in GnuPG: netwren only knows its name.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable with the id or the fingerprint of the key.
pub(super) const VARIABLE: &str = "NETWREN_RELEASE_KEY";

/// A private key in GnuPG's folder.
pub(super) struct Key {
    id: String,
    /// GnuPG's folder; `None` for the one of the environment (`GNUPGHOME`).
    home: Option<PathBuf>,
}

impl Key {
    /// The key that the environment names; `None` if it names no key.
    pub(super) fn from_environment() -> Result<Option<Key>> {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        if text.is_empty() { Ok(None) } else { Key::find(&text, None).map(Some) }
    }

    /// The key with this id or fingerprint. Errors do not repeat `text`: it may be a private key by mistake.
    pub(super) fn find(text: &str, home: Option<PathBuf>) -> Result<Key> {
        let id = text.replace(' ', "").trim_start_matches("0x").to_owned();
        let is_id = (16..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        ensure!(is_id, "{VARIABLE} must be the id or fingerprint of a key: 16 or more hexadecimal digits");
        let key = Key { id, home };
        let out = key.gpg().args(["--list-secret-keys", &key.id]).output().context("gpg(1) is missing")?;
        ensure!(out.status.success(), "GnuPG has no private key {}; import it, or set GNUPGHOME", key.id);
        Ok(key)
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Signs the file, and writes the armoured signature to `to`.
    pub(super) fn sign(&self, file: &Path, to: &Path) -> Result<()> {
        self.write(&["--armor", "--detach-sign"], file, to)
    }

    /// Writes the file's text with its signature to `to`.
    pub(super) fn sign_text(&self, file: &Path, to: &Path) -> Result<()> {
        self.write(&["--clear-sign"], file, to)
    }

    fn write(&self, how: &[&str], file: &Path, to: &Path) -> Result<()> {
        let mut gpg = self.gpg();
        gpg.args(["--digest-algo", "SHA512", "--local-user", &self.id, "--output"]).arg(to).args(how).arg(file);
        succeeds(&mut gpg).map(drop)
    }

    /// The public key, armoured.
    pub(super) fn public(&self) -> Result<Vec<u8>> {
        let mut gpg = self.gpg();
        gpg.args(["--armor", "--export-options", "export-minimal", "--export", &self.id]);
        succeeds(&mut gpg)
    }

    /// Puts a signature into the package. rpm's own name of gpg is not installed everywhere.
    pub(super) fn sign_rpm(&self, package: &Path) -> Result<()> {
        let mut rpmsign = self.with_home("rpmsign");
        rpmsign.args(["--define", &format!("_gpg_name {}", self.id), "--define", "_gpg_digest_algo sha512"]);
        rpmsign.args(["--define", &format!("__gpg {}", gpg_path()?.display()), "--addsign"]).arg(package);
        succeeds(&mut rpmsign).map(drop)
    }

    fn gpg(&self) -> Command {
        let mut gpg = self.with_home("gpg");
        gpg.args(["--batch", "--yes", "--quiet", "--no-tty"]);
        gpg
    }

    fn with_home(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        if let Some(home) = &self.home {
            command.env("GNUPGHOME", home);
        }
        command
    }
}

fn gpg_path() -> Result<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut paths = std::env::split_paths(&folders).map(|folder| folder.join("gpg"));
    paths.find(|path| path.is_file()).context("gpg(1) is missing")
}

/// Runs the command and returns what it printed.
fn succeeds(command: &mut Command) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command.output().with_context(|| format!("cannot run {name}"))?;
    ensure!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr).trim_end());
    Ok(out.stdout)
}
