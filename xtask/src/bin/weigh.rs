//! Runs one program, drains its output and prints its cost.
//!
//! This is a separate, small binary, because the kernel counts the memory of the starting process as the new program's
//! peak (vfork shares the memory until exec). Peaks below the starting process's memory, here about 2 MiB, cannot be
//! seen; xtask itself is much larger.
//!
//! `weigh KEEP PROGRAM ARGS…`: KEEP is a file for the output, `-` to count and drop it, or `@N` to do the same but
//! interrupt the program after N rounds (an empty line ends each). Prints status (as returned by waitpid), user µs,
//! system µs, peak KiB, wall µs, bytes.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{Error, Read, Result, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Large enough that the program rarely waits for this process.
const BUFFER: usize = 1 << 18;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [keep, program, args @ ..] = args.as_slice() else {
        return Err(Error::other("usage: weigh KEEP|-|@N PROGRAM ARGS…"));
    };
    let rounds = keep.strip_prefix('@').map(str::parse).transpose().map_err(Error::other)?;
    let mut file = if keep == "-" || rounds.is_some() { None } else { Some(File::create(keep)?) };
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).env("LC_ALL", "C");
    if file.is_none() {
        // Its messages were visible in the first run, whose output is kept.
        command.stderr(Stdio::null());
    }
    let start = Instant::now();
    let mut child = command.spawn().map_err(|e| Error::new(e.kind(), format!("{program}: {e}")))?;
    let pid = child.id();
    let mut rounds = Rounds { left: rounds, line_is_empty: false };
    let mut each = |bytes: &[u8]| {
        if rounds.ended_in(bytes) {
            interrupt(pid)?
        }
        file.as_mut().map_or(Ok(()), |file| file.write_all(bytes))
    };
    let bytes = child.stdout.take().map_or(Ok(0), |out| drain(out, &mut each))?;
    let (status, used) = sys::cost::reap(child.id()).map_err(Error::other)?;
    let wall = start.elapsed().as_micros();
    println!("{status} {} {} {} {wall} {bytes}", used.user_us, used.system_us, used.rss_max_kib);
    Ok(())
}

/// Counts rounds by the empty lines that end them.
struct Rounds {
    left: Option<u32>,
    line_is_empty: bool,
}

impl Rounds {
    /// True once, when the last requested round has ended in these bytes.
    fn ended_in(&mut self, bytes: &[u8]) -> bool {
        let Some(left) = self.left else { return false };
        let mut ended = 0;
        for byte in bytes {
            ended += u32::from(*byte == b'\n' && self.line_is_empty);
            self.line_is_empty = *byte == b'\n';
        }
        self.left = left.checked_sub(ended).filter(|left| *left > 0);
        self.left.is_none()
    }
}

/// Sends SIGINT, as Ctrl-C does.
fn interrupt(pid: u32) -> Result<()> {
    let status = Command::new("kill").args(["-INT", &pid.to_string()]).status()?;
    if status.success() { Ok(()) } else { Err(Error::other("kill failed")) }
}

fn drain(mut out: impl Read, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<u64> {
    let mut buffer = vec![0; BUFFER];
    let mut bytes = 0;
    loop {
        let n = out.read(&mut buffer)?;
        if n == 0 {
            return Ok(bytes);
        }
        bytes += n as u64;
        each(&buffer[..n])?;
    }
}
