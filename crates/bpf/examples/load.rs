//! Loads programs of an object file a number of times and prints the cost: `load OBJECT TIMES PROGRAM…`.
use bpf::{KernelTypes, LoadSpec, load_with};
use std::error::Error;
use std::io::Write;
use sys::{Host, cost};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(path), Some(times)) = (args.next(), args.next()) else {
        return Err("load OBJECT TIMES PROGRAM…".into());
    };
    let (object, times) = (std::fs::read(path)?, times.parse::<u64>()?);
    let names: Vec<String> = args.collect();
    let programs: Vec<&str> = names.iter().map(String::as_str).collect();
    let spec = LoadSpec { object: &object, programs: &programs, constants: &[], entries: &[] };
    let (host, mut out) = (Host::live(), std::io::stdout().lock());
    for _ in 0..times {
        let begin = cost::measure();
        let types = KernelTypes::read(&host)?;
        let read = cost::measure();
        let loaded = load_with(&types, &spec)?;
        let end = cost::measure();
        for name in &programs {
            writeln!(out, "{name}: {} instructions verified", loaded.program(name)?.verified_instructions()?)?;
        }
        let (read, load) = (read.since(&begin), end.since(&read));
        writeln!(
            out,
            "types {} + {} µs CPU, rest {} user + {} system µs CPU, wall {} µs, {} system calls",
            read.user_us,
            read.system_us,
            load.user_us,
            load.system_us,
            (read.at_ns + load.at_ns) / 1000,
            read.syscalls + load.syscalls
        )?;
    }
    Ok(())
}
