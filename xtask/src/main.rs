//! The project's development commands. `cargo xtask help` lists them.
//!
//! Nothing here is shipped. Errors are anyhow's, because only developers read them.
#![forbid(unsafe_code)]

mod bench;
mod bounds;
#[cfg(test)]
mod deploy;
mod faults;
mod findings;
mod fresh;
mod fuzz;
mod generate;
mod incidents;
mod kernels;
mod lab;
mod objects;
mod package;
mod platforms;
mod release;
mod root;
mod tidy;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};
use std::process::ExitCode;

fn main() -> ExitCode {
    match chore() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn chore() -> Result<()> {
    // The generator's workers are checked first, because there are many of them.
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some(bench::generator::WORKER) => return bench::worker::main(&args.collect::<Vec<_>>()),
        Some(bench::live::WORKER) => return bench::live::worker(args.next().unwrap_or_default().parse()?),
        _ => {}
    }
    let matches = commands().get_matches();
    match matches.subcommand() {
        Some(("tidy", args)) => tidy::run(args.get_flag("report")),
        Some(("gen", _)) => generate::run(),
        Some(("bpf", args)) => objects::run(args.get_flag("any-clang")),
        Some(("fuzz", args)) => fuzz::run(&fuzz_options(args)),
        Some(("fresh", args)) => {
            fresh::run(&strings(args, "release"), &strings(args, "command"), args.get_flag("packages"))
        }
        Some(("platform", args)) => {
            let text = |name| args.get_one::<String>(name).map_or("", String::as_str);
            platforms::note(text("system"), text("command"))
        }
        Some(("kernels", args)) => kernels::run(&strings(args, "kernel"), bench::binary_for),
        Some(("incidents", args)) => {
            let flag = |name| args.get_flag(name);
            incidents::run(incidents::Choice {
                only: strings(args, "name"),
                is_healthy: flag("healthy"),
                is_quick: flag("quick"),
                records: flag("record"),
            })
        }
        Some(("package", args)) => package_files(args),
        Some(("release", args)) => release::run(&release_options(args)?),
        Some(("lab", args)) => lab::run(&lab_options(args)),
        Some(("bench", args)) => bench::run(&bench_options(args)?),
        Some(("faults", args)) => {
            faults::run(args.get_flag("quick"), args.get_one::<String>("scene").map(String::as_str))
        }
        Some((bench::generator::NAME, args)) => bench::generator::main(
            &args
                .get_raw("args")
                .map_or_else(Vec::new, |raw| raw.map(|arg| arg.to_string_lossy().into_owned()).collect()),
        ),
        _ => unreachable!("clap knows only the commands above"),
    }
}

fn package_files(args: &ArgMatches) -> Result<()> {
    let arch = package::Arch::of(args.get_one::<String>("arch").map_or(std::env::consts::ARCH, String::as_str));
    let binary = args.get_one("binary").cloned().unwrap_or_else(|| bench::binary_for(arch));
    let folder = args.get_one("into").cloned().unwrap_or_else(|| root::path().join("target/packages"));
    strings(args, "format").iter().try_for_each(|format| package::run(format, arch, &binary, &folder))
}

fn commands() -> Command {
    Command::new("xtask")
        .bin_name("cargo xtask")
        .about("netwren's chores")
        .subcommand_required(true)
        .subcommand(tidy_command())
        .subcommand(Command::new("gen").about("Writes man pages, completions, docs/schema.md and docs/bounds.md"))
        .subcommand(bpf_command())
        .subcommand(fuzz_command())
        .subcommand(fresh_command())
        .subcommand(kernels_command())
        .subcommand(incidents_command())
        .subcommand(package_command())
        .subcommand(release_command())
        .subcommand(lab_command())
        .subcommand(bench_command())
        .subcommand(faults_command())
        .subcommand(
            Command::new("platform")
                .about("Adds a command that succeeded on a system to docs/platforms.json (what `netwren.sh` runs)")
                .hide(true)
                .arg(Arg::new("system").required(true))
                .arg(Arg::new("command").required(true)),
        )
        .subcommand(
            Command::new(bench::generator::NAME)
                .about("Opens loopback sockets and holds them (what `bench` runs in its namespace)")
                .hide(true)
                .arg(Arg::new("args").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true)),
        )
}

fn tidy_command() -> Command {
    Command::new("tidy")
        .about("Rules that no compiler checks: layers, sizes, words, generated files")
        .arg(Arg::new("report").long("report").num_args(0).help("only print the figures that the rules hold"))
}

fn bpf_command() -> Command {
    Command::new("bpf")
        .about("Builds the BPF objects that are committed in crates/bpf/objects (clang 14)")
        .arg(Arg::new("any-clang").long("any-clang").num_args(0).help("take whatever clang is there; not for commits"))
}

fn fuzz_command() -> Command {
    Command::new("fuzz")
        .about("Mutated bytes into every parser of outside bytes, on stable")
        .arg(Arg::new("seconds").required(true).value_parser(value_parser!(u64)).help("time for each target"))
        .arg(Arg::new("target").num_args(0..).help("only these targets"))
        .arg(Arg::new("seed").long("seed").value_parser(value_parser!(u64)).help("repeat a run"))
}

fn fresh_command() -> Command {
    Command::new("fresh")
        .about("Clones into a new Debian 12 and 13 and runs netwren.sh there (root; needs debootstrap)")
        .arg(Arg::new("release").num_args(0..).value_parser(["12", "13"]).help("default: both"))
        .arg(
            Arg::new("command")
                .long("command")
                .value_name("COMMAND")
                .action(clap::ArgAction::Append)
                .help("what to run in the clone; default: './netwren.sh run', then './netwren.sh test'"),
        )
        .arg(
            Arg::new("packages")
                .long("packages")
                .num_args(0)
                .conflicts_with("command")
                .help("tries the packages of target/packages instead, also with their services on a booted system"),
        )
}

fn kernels_command() -> Command {
    Command::new("kernels")
        .about("Boots Debian's kernels in an emulator and compares every backend there (needs qemu and busybox)")
        .arg(Arg::new("kernel").num_args(0..).value_parser(kernels::NAMES.to_vec()).help("default: all"))
}

fn incidents_command() -> Command {
    Command::new("incidents")
        .about("Causes faults in network namespaces and shows the findings of doctor; writes docs/incidents.md (root)")
        .arg(Arg::new("name").num_args(0..).help("those whose name or finding has this in it; nothing is written"))
        .arg(Arg::new("healthy").long("healthy").num_args(0).help("healthy hosts under load instead of faults"))
        .arg(Arg::new("record").long("record").num_args(0).help("writes fixtures/incidents: one for each finding"))
        .arg(Arg::new("quick").long("quick").num_args(0).help("those that the tests play; nothing is written"))
}

fn package_command() -> Command {
    let path = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("PATH").value_parser(value_parser!(std::path::PathBuf)).help(help)
    };
    Command::new("package")
        .about("Packages the program that ./netwren.sh build made (rpm needs rpmbuild)")
        .arg(Arg::new("format").required(true).num_args(1..).value_parser(package::FORMATS))
        .arg(Arg::new("arch").long("arch").value_parser(package::Arch::NAMES).help("default: this host's"))
        .arg(path("binary", "the program; default: where ./netwren.sh build leaves it"))
        .arg(path("into", "folder to write to; default: target/packages"))
}

fn release_command() -> Command {
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).num_args(0).help(help);
    Command::new("release")
        .about("Writes packages, digests, the list of crates and apt and rpm repositories (docs/releasing.md)")
        .arg(Arg::new("version").required(true).help("the workspace's version"))
        .arg(
            Arg::new("binary")
                .long("binary")
                .value_name("ARCH=PATH")
                .action(clap::ArgAction::Append)
                .help("a program, for x86_64 or aarch64; default: target/netwren of this machine"),
        )
        .arg(
            Arg::new("into")
                .long("into")
                .value_name("PATH")
                .value_parser(value_parser!(std::path::PathBuf))
                .help("folder to write to; default: target/release-VERSION"),
        )
        .arg(Arg::new("url").long("url").help("address of that folder for users; default: $NETWREN_RELEASE_URL"))
        .arg(flag("unsigned", "signs nothing; otherwise NETWREN_RELEASE_KEY names the GnuPG key"))
        .arg(flag("write", "writes today's date into the top section of CHANGELOG.md"))
        .arg(flag("tag", "makes the tag vVERSION at the end"))
        .arg(flag("check", "only checks that the repository and the key are ready"))
}

fn lab_command() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .default_value(default)
            .value_parser(value_parser!(u64).range(1..=1_000_000))
            .help(help)
    };
    Command::new("lab")
        .about("Makes a trouble on purpose and shows what netwren says of it; writes bench/runs/ (root)")
        .arg(Arg::new("name").required(true).value_parser(lab::NAMES))
        .arg(number("requests", "20000", "requests a round"))
        .arg(number("at-once", "500", "of these at once"))
        .arg(number("rounds", "3", "times that all modes are gone through"))
}

fn faults_command() -> Command {
    Command::new("faults")
        .about("Lets receivers, disks and programs fail and counts what is lost; writes bench/runs/ (root)")
        .arg(Arg::new("name").required(true).value_parser(faults::NAMES))
        .arg(Arg::new("quick").long("quick").num_args(0).help("short troubles; nothing is written"))
        .arg(Arg::new("scene").long("scene").help("those whose name has this in it; nothing is written"))
}

fn bench_command() -> Command {
    Command::new("bench")
        .about("Measures netwren against ss, netstat and lstf; writes bench/runs/ (root)")
        .arg(Arg::new("name").num_args(0..).value_parser(bench::NAMES).help("default: all"))
        .arg(
            Arg::new("rows")
                .long("rows")
                .value_delimiter(',')
                .value_parser(value_parser!(u64).range(2..=1_000_000))
                .help("numbers of sockets; default 10,1000,10000,100000,250000,1000000"),
        )
        .arg(
            Arg::new("runs")
                .long("runs")
                .value_parser(value_parser!(u32).range(1..))
                .help("default 9; 3 from 1000000 rows on"),
        )
        .arg(
            Arg::new("against")
                .long("against")
                .value_name("NETWREN")
                .value_parser(value_parser!(std::path::PathBuf))
                .help("another netwren in the peers' place: what a change costs"),
        )
        .arg(Arg::new("quick").long("quick").num_args(0).help("3 runs, up to 10000 rows, no files: a smoke test"))
        .arg(Arg::new("only").long("only").value_name("TEXT").help(
            "the parts in whose name TEXT stands, no files; of log: rsyslog, pcap, databases, steady, alone, price, \
             sessions; of capture: latency RATE, steady, idle, nowhere, to a file, text, last, filter",
        ))
        .arg(
            Arg::new("v6").long("v6").value_parser(value_parser!(u64).range(..=100)).help("percent of IPv6; default 0"),
        )
}

fn strings(args: &ArgMatches, name: &str) -> Vec<String> {
    args.get_many::<String>(name).map_or_else(Vec::new, |found| found.cloned().collect())
}

fn fuzz_options(args: &ArgMatches) -> fuzz::Options {
    fuzz::Options {
        seconds: args.get_one("seconds").copied().unwrap_or(3),
        only: strings(args, "target"),
        seed: args.get_one("seed").copied(),
    }
}

fn release_options(args: &ArgMatches) -> Result<release::Options> {
    let binaries = strings(args, "binary").iter().map(|text| binary_of(text)).collect::<Result<_>>()?;
    let from_environment = || std::env::var("NETWREN_RELEASE_URL").ok().filter(|url| !url.is_empty());
    Ok(release::Options {
        version: strings(args, "version").concat(),
        binaries,
        into: args.get_one("into").cloned(),
        url: args.get_one("url").cloned().or_else(from_environment),
        is_unsigned: args.get_flag("unsigned"),
        writes: args.get_flag("write"),
        tags: args.get_flag("tag"),
        only_checks: args.get_flag("check"),
    })
}

/// Parses ARCH=PATH.
fn binary_of(text: &str) -> Result<(package::Arch, std::path::PathBuf)> {
    let named = text.split_once('=').filter(|(arch, _)| package::Arch::NAMES.contains(arch));
    let (arch, path) = named.with_context(|| format!("--binary {text}: write x86_64=PATH or aarch64=PATH"))?;
    Ok((package::Arch::of(arch), path.into()))
}

fn lab_options(args: &ArgMatches) -> lab::Options {
    let number = |name| args.get_one::<u64>(name).copied().unwrap_or(1);
    lab::Options {
        name: strings(args, "name").concat(),
        requests: number("requests"),
        at_once: number("at-once"),
        rounds: u32::try_from(number("rounds")).unwrap_or(1),
    }
}

fn bench_options(args: &ArgMatches) -> Result<bench::Options> {
    let quick = args.get_flag("quick");
    let rows = args.get_many("rows").map(|rows| rows.copied().collect());
    let usual = || if quick { vec![10, 1_000, 10_000] } else { vec![10, 1_000, 10_000, 100_000, 250_000, 1_000_000] };
    let runs = args.get_one("runs").copied().or(quick.then_some(3));
    let v6 = args.get_one("v6").copied().unwrap_or(0);
    let against = args.get_one::<std::path::PathBuf>("against").map(|file| file.canonicalize()).transpose()?;
    let only = args.get_one::<String>("only").cloned();
    Ok(bench::Options {
        names: strings(args, "name"),
        rows: rows.unwrap_or_else(usual),
        runs,
        against,
        v6,
        quick,
        only,
    })
}
