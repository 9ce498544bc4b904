//! Runs one program, drains its output and says what it cost.
//!
//! A binary of its own, and a small one: the kernel books the memory of the process that starts
//! another on the new one's account (vfork shares it until exec), so a peak below that of the
//! starter, here about 2 MiB, cannot be seen; xtask itself is much larger.
//!
//! `weigh KEEP PROGRAM ARGS…`; KEEP is a file for the output, or `-` to count and drop it. Prints
//! status (as waitpid gives it), user µs, system µs, peak KiB, wall µs, bytes.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{Error, Read, Result, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Large enough that the program rarely waits for us.
const BUFFER: usize = 1 << 18;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [keep, program, args @ ..] = args.as_slice() else {
        return Err(Error::other("usage: weigh KEEP|- PROGRAM ARGS…"));
    };
    let mut file = if keep == "-" { None } else { Some(File::create(keep)?) };
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).env("LC_ALL", "C");
    if file.is_none() {
        // Its complaints were seen in the first run, whose output is kept.
        command.stderr(Stdio::null());
    }
    let start = Instant::now();
    let mut child = command.spawn().map_err(|e| Error::new(e.kind(), format!("{program}: {e}")))?;
    let bytes = child.stdout.take().map_or(Ok(0), |out| drain(out, &mut file))?;
    let (status, used) = sys::cost::reap(child.id()).map_err(Error::other)?;
    let wall = start.elapsed().as_micros();
    println!("{status} {} {} {} {wall} {bytes}", used.user_us, used.system_us, used.rss_max_kib);
    Ok(())
}

fn drain(mut out: impl Read, file: &mut Option<File>) -> Result<u64> {
    let mut buffer = vec![0; BUFFER];
    let mut bytes = 0;
    loop {
        let n = out.read(&mut buffer)?;
        if n == 0 {
            return Ok(bytes);
        }
        bytes += n as u64;
        if let Some(file) = file {
            file.write_all(&buffer[..n])?;
        }
    }
}
