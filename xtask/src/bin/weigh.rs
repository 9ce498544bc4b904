//! Runs one program, drains its output and says what it cost.
//!
//! A binary of its own, and a small one: the kernel books the memory of the process that starts
//! another on the new one's account (vfork shares it until exec), so a peak below that of the
//! starter, here about 2 MiB, cannot be seen; xtask itself is much larger.
//!
//! `weigh KEEP PROGRAM ARGS…`; KEEP is a file for the output, or `-` to count and drop it. Prints
//! status (as waitpid gives it), user µs, system µs, peak KiB, wall µs, bytes.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Write};
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
    let (status, used) = wait(child.id())?;
    let micros = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    let (user, system, wall) = (micros(used.ru_utime), micros(used.ru_stime), start.elapsed().as_micros());
    println!("{status} {user} {system} {} {wall} {bytes}", used.ru_maxrss);
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

/// Waits for the child `pid` and takes stock of it.
fn wait(pid: u32) -> Result<(i32, libc::rusage)> {
    // SAFETY: rusage is a plain struct of integers, for which all bits zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    // SAFETY: both pointers are to live locals of the types that wait4 fills.
    while unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut usage) } < 0 {
        let error = Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok((status, usage))
}
