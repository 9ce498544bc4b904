//! Runs one program, drains its output and says what it cost.
//!
//! A process of its own, and a small one: the kernel books the memory of the process that
//! starts another on the new one's account (vfork shares it until exec), so a peak below
//! this program's own 2 to 3 MiB cannot be seen, and the bench itself is much larger.

use super::os;
use anyhow::{Context, Result};
use serde_json::json;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Hidden command.
pub(crate) const NAME: &str = "weigh";

/// Large enough that the program rarely waits for us.
const BUFFER: usize = 1 << 18;

/// `KEEP PROGRAM ARGS…`; KEEP is a file for the output, or `-` to count and drop it.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let [keep, program, args @ ..] = args else { anyhow::bail!("usage: weigh KEEP|- PROGRAM ARGS…") };
    let mut file = if keep == "-" { None } else { Some(File::create(keep).with_context(|| keep.clone())?) };
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).env("LC_ALL", "C");
    if file.is_none() {
        // Its complaints were seen in the first run, whose output is kept.
        command.stderr(Stdio::null());
    }
    let start = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot run {program}"))?;
    let mut out = child.stdout.take().context("stdout was asked for")?;
    let mut buffer = vec![0; BUFFER];
    let mut bytes = 0_u64;
    loop {
        let n = out.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        bytes += n as u64;
        if let Some(file) = &mut file {
            file.write_all(&buffer[..n])?;
        }
    }
    let used = os::wait(child.id())?;
    let wall_us = start.elapsed().as_micros() as u64;
    let result = json!({
        "status": used.status, "user_us": used.user_us, "system_us": used.system_us,
        "rss_kib": used.rss_kib, "wall_us": wall_us, "bytes": bytes,
    });
    println!("{result}");
    Ok(())
}
