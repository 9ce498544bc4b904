//! Checks where a request ships rows to, without opening an output.

use crate::ShipRequest;
use export::{Address, Control, Target, check_spool};
use std::fmt::Write;
use std::path::Path;

impl ShipRequest {
    /// Describes what the request would do, line by line.
    pub fn describe(&self) -> String {
        let waits = match &self.spool {
            Some(spool) => format!("queue of up to {} MiB in {}", spool.bytes_max >> 20, spool.dir.display()),
            None => format!("queue of up to {} MiB in memory", self.queue_max >> 20),
        };
        let mut text = String::new();
        for target in &self.targets {
            let _ = writeln!(text, "ships to {target}: {waits}, when full {}", self.when_full.word());
        }
        if let Some(path) = &self.control {
            let _ = writeln!(text, "answers at {}", path.display());
        }
        text
    }

    /// Finds problems that would prevent it from working for this user.
    pub fn find_troubles(&self) -> Vec<String> {
        let mut troubles: Vec<String> = self.targets.iter().filter_map(find_file_trouble).collect();
        if let Some(Err(error)) = self.spool.as_ref().map(|spool| check_spool(&spool.dir)) {
            troubles.push(format!("spool: {error}"));
        }
        if let Some(Err(error)) = self.control.as_deref().map(Control::check_directory) {
            troubles.push(format!("control: {error}"));
        }
        troubles
    }
}

/// The reason why a file cannot be written.
fn find_file_trouble(target: &Target) -> Option<String> {
    let Address::File(path) = &target.address else { return None };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (checked, what) = if path.exists() { (path.as_path(), "to it") } else { (parent, "to its directory") };
    match sys::fs::may_write(checked) {
        Ok(()) => None,
        Err(error) => Some(format!("{target}: cannot write {what}: {}", error.errno)),
    }
}
