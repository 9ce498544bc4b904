//! Loads programs of an object file a number of times and says what it cost: `load OBJECT TIMES PROGRAM…`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bpf::{KernelTypes, Spec, load_with};
use sys::{Host, cost};

fn main() {
    let mut args = std::env::args().skip(1);
    let object = std::fs::read(args.next().expect("OBJECT")).unwrap();
    let times: u64 = args.next().expect("TIMES").parse().unwrap();
    let names: Vec<String> = args.collect();
    let programs: Vec<&str> = names.iter().map(String::as_str).collect();
    let spec = Spec { object: &object, programs: &programs, constants: &[], entries: &[] };
    let host = Host::live();
    for _ in 0..times {
        let begin = cost::so_far();
        let types = KernelTypes::read(&host).unwrap();
        let read = cost::so_far();
        match load_with(&types, &spec) {
            Ok(loaded) => {
                for name in &programs {
                    println!(
                        "{name}: {} instructions verified",
                        loaded.program(name).unwrap().verified_instructions().unwrap()
                    );
                }
            }
            Err(error) => println!("{error}"),
        }
        let end = cost::so_far();
        let (read, load) = (read.since(&begin), end.since(&read));
        println!(
            "types {} + {} µs CPU, rest {} user + {} system µs CPU, wall {} µs, {} system calls",
            read.user_us,
            read.system_us,
            load.user_us,
            load.system_us,
            (read.at_ns + load.at_ns) / 1000,
            read.syscalls + load.syscalls
        );
    }
}
