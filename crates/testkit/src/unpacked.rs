//! Programs that were unpacked with their libraries and modules, but not installed.

use crate::tool;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program, and the `usr` folder that contains it.
#[derive(Debug, Clone)]
pub struct UnpackedProgram {
    /// The file.
    pub program: PathBuf,
    usr: PathBuf,
}

impl UnpackedProgram {
    /// Searches like [`tool::find`], then in `target/tools`; also accepts an installed program.
    pub fn find(name: &str) -> Option<UnpackedProgram> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let tools = target.unwrap_or_else(|| crate::program::workspace().join("target")).join("tools/usr");
        let unpacked = || ["bin", "sbin"].map(|dir| tools.join(dir).join(name)).into_iter().find(|file| file.is_file());
        let program = tool::find(name).or_else(unpacked)?;
        let usr = program.parent().and_then(Path::parent)?.to_owned();
        Some(UnpackedProgram { program, usr })
    }

    /// Folders called `name` in `usr/lib` and in its per-architecture folders.
    pub fn lib_dirs(&self, name: &str) -> Vec<PathBuf> {
        let libs = [self.usr.join("lib"), self.usr.with_file_name("lib")];
        let below = libs.iter().flat_map(|lib| fs::read_dir(lib).into_iter().flatten().map_while(Result::ok));
        let of_arch = below.map(|dir| dir.path()).filter(|dir| dir.to_string_lossy().ends_with("-linux-gnu"));
        let dirs: Vec<PathBuf> = of_arch.chain([self.usr.join("lib")]).map(|dir| dir.join(name)).collect();
        dirs.into_iter().filter(|dir| dir.is_dir()).collect()
    }

    /// The folder below `name` with this file, in which a program keeps its modules.
    pub fn modules(&self, name: &str, file: &str) -> Option<PathBuf> {
        let dirs = self.lib_dirs(name);
        let below = dirs.iter().flat_map(|dir| fs::read_dir(dir).into_iter().flatten().map_while(Result::ok));
        let below: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
        dirs.into_iter().chain(below).find(|dir| dir.join(file).is_file())
    }

    /// False if it was only unpacked.
    pub fn is_installed(&self) -> bool {
        self.usr == Path::new("/usr")
    }

    /// The assignments for env(1) that it needs; empty for an installed program.
    pub fn environment_words(&self) -> Vec<String> {
        if self.is_installed() {
            return Vec::new();
        }
        let dirs = [self.lib_dirs(""), self.lib_dirs("syslog-ng")].concat();
        let dirs: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
        vec![format!("LD_LIBRARY_PATH={}", dirs.join(":"))]
    }

    /// The program with that environment.
    pub fn command(&self) -> Command {
        let mut command = Command::new("env");
        command.args(self.environment_words()).arg(&self.program);
        command
    }

    /// The version that syslog-ng requires at the start of its configuration.
    pub fn config_version(&self) -> Option<String> {
        let out = self.command().arg("--version").output().ok()?;
        let text = String::from_utf8(out.stdout).ok()?;
        text.lines().find_map(|line| line.strip_prefix("Config version: ")).map(str::to_owned)
    }
}
