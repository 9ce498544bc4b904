//! Runs netwren on the kernels of several distributions: each boots for some seconds in an emulator.
//!
//! The release binary runs there as root, and every backend that it reports as available must show the same rows as
//! netlink. Nothing is installed; downloads stay below the target folder. The results are written to
//! docs/kernels.json, and `cargo xtask tidy` compares docs/interfaces.md with them.

mod guest;
mod package;
mod programs;
pub(crate) mod seen;

use crate::package::Arch;
use crate::root;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A kernel and its origin.
struct Release {
    /// The name on the command line.
    name: &'static str,
    arch: Arch,
    origin: Origin,
}

/// The archive of a kernel's packages.
enum Origin {
    /// Debian's archive.
    Debian {
        suite: &'static str,
        /// The prefix of the package's name; the newest matching package is used.
        package: &'static str,
        /// The end of the package's name.
        flavour: &'static str,
    },
    /// Ubuntu's archive, with paths below `pool/main/l`.
    Ubuntu(&'static [&'static str]),
}

/// The oldest supported kernel, the kernels of the two newest Debian releases, and one of Ubuntu, which has a
/// simulated device with devlink traps (netdevsim). On aarch64 also a kernel whose pages have 16 KiB.
const RELEASES: &[Release] = &[
    debian("5.10", Arch::X86_64, "bullseye", "linux-image-5.10.0-", "-amd64"),
    debian("6.1", Arch::X86_64, "bookworm", "linux-image-6.1.0-", "-amd64"),
    Release {
        name: "6.8",
        arch: Arch::X86_64,
        origin: Origin::Ubuntu(&[
            "linux-signed/linux-image-6.8.0-31-generic_6.8.0-31.31_amd64.deb",
            "linux/linux-modules-6.8.0-31-generic_6.8.0-31.31_amd64.deb",
            "linux/linux-modules-extra-6.8.0-31-generic_6.8.0-31.31_amd64.deb",
        ]),
    },
    debian("6.12", Arch::X86_64, "trixie", "linux-image-6.12.", "-amd64"),
    debian("6.1-arm64", Arch::Aarch64, "bookworm", "linux-image-6.1.0-", "-arm64"),
    debian("6.12-arm64", Arch::Aarch64, "trixie", "linux-image-6.12.", "-arm64"),
    debian("6.12-arm64-16k", Arch::Aarch64, "trixie", "linux-image-6.12.", "-arm64-16k"),
];

/// Their names.
pub(crate) const NAMES: &[&str] = &["5.10", "6.1", "6.8", "6.12", "6.1-arm64", "6.12-arm64", "6.12-arm64-16k"];

const fn debian(
    name: &'static str,
    arch: Arch,
    suite: &'static str,
    package: &'static str,
    flavour: &'static str,
) -> Release {
    Release { name, arch, origin: Origin::Debian { suite, package, flavour } }
}

/// Required programs with their packages; the emulator of the architecture is added.
const TOOLS: &[(&str, &str)] = &[
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
    ("dpkg-deb", "dpkg"),
    ("depmod", "kmod"),
    ("nft", "nftables"),
    ("curl", "curl"),
    ("xz", "xz-utils"),
    ("zstd", "zstd"),
    ("devlink", "iproute2"),
    ("dropwatch", "dropwatch"),
];

/// An emulated kernel boots in 15 s, and the whole run takes a minute, four on another architecture; one that has not
/// ended after this time never will.
const RUN_MAX: Duration = Duration::from_secs(600);

/// The emulator of an architecture, its package, and its arguments.
fn emulator(arch: Arch) -> (&'static str, &'static str, &'static [&'static str]) {
    match arch {
        // cx16=off: some kernels do not boot under emulation with it.
        Arch::X86_64 => (
            "qemu-system-x86_64",
            "qemu-system-x86",
            &["-cpu", "max,cx16=off", "-append", "console=ttyS0 quiet panic=-1"],
        ),
        // pauth-impdef: the emulation of the standard's algorithm takes more time than all other code. Two processors,
        // because only then can memory accesses be seen in another order than they were made.
        Arch::Aarch64 => (
            "qemu-system-aarch64",
            "qemu-system-arm",
            &["-M", "virt", "-cpu", "max,pauth-impdef=on", "-smp", "2", "-append", "console=ttyAMA0 quiet panic=-1"],
        ),
    }
}

/// Boots each of `wanted` (empty means all those for which there is a program) with the program of its architecture,
/// which `binary` returns; fails if one of them fails.
pub(crate) fn run(wanted: &[String], binary: impl Fn(Arch) -> PathBuf) -> Result<()> {
    let is_wanted = |release: &&Release| match wanted {
        [] => binary(release.arch).exists(),
        names => names.iter().any(|name| name == release.name),
    };
    let releases: Vec<&Release> = RELEASES.iter().filter(is_wanted).collect();
    let emulators = releases.iter().map(|release| emulator(release.arch)).map(|(tool, package, _)| (tool, package));
    for (tool, package) in TOOLS.iter().copied().chain(emulators) {
        ensure!(testkit::tool::is_installed(tool), "kernels needs {tool}: apt-get install {package}");
    }
    let mut bad = Vec::new();
    for release in releases {
        let binary = binary(release.arch);
        ensure!(binary.exists(), "{}: no such file; ./netwren.sh build makes it", binary.display());
        println!("kernels: {}", release.name);
        let said = one(release, &binary).with_context(|| format!("kernel {}", release.name))?;
        bad.extend(said.into_iter().filter(|line| line.contains("DIFFERENT")));
    }
    ensure!(bad.is_empty(), "not as by netlink:\n{}", bad.join("\n"));
    Ok(())
}

fn one(release: &Release, binary: &Path) -> Result<Vec<String>> {
    let folder = root::path().join("target/kernels").join(release.name);
    std::fs::create_dir_all(&folder)?;
    let kernel = package::fetch(&release.origin, release.arch, &folder)?;
    let programs = programs::Programs::of(release.arch)?;
    let initrd = guest::initrd(&kernel, binary, &programs, &folder)?;
    let console = boot(release.arch, &kernel.image, &initrd, &folder.join("console"))?;
    let said: Vec<String> =
        console.lines().filter_map(|line| line.trim_end().strip_prefix(guest::SAYS)).map(str::to_owned).collect();
    said.iter().for_each(|line| println!("kernels: {}: {line}", release.name));
    ensure!(said.iter().any(|line| line == "end"), "it did not come to its end: see {}/console", folder.display());
    seen::write(release.name, seen::of_lines(&kernel.version, &said))?;
    Ok(said)
}

/// Boots a kernel and waits until it powers off; returns the output of the console.
fn boot(arch: Arch, image: &Path, initrd: &Path, console: &Path) -> Result<String> {
    let log = std::fs::File::create(console)?;
    let (emulator, _, args) = emulator(arch);
    let mut machine = Command::new(emulator)
        .args(["-m", "1024", "-nographic", "-no-reboot", "-nic", "none"])
        .args(args)
        .arg("-kernel")
        .arg(image)
        .arg("-initrd")
        .arg(initrd)
        .stdin(Stdio::null())
        .stdout(log)
        .spawn()?;
    let end = Instant::now() + RUN_MAX;
    while machine.try_wait()?.is_none() {
        if Instant::now() > end {
            machine.kill()?;
            machine.wait()?;
            bail!("still running after {} s: see {}", RUN_MAX.as_secs(), console.display());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(String::from_utf8_lossy(&std::fs::read(console)?).into_owned())
}

/// The unpacked packages of a kernel.
struct Kernel {
    /// The compressed kernel.
    image: PathBuf,
    /// `lib/modules/VERSION` inside the unpacked package.
    modules: PathBuf,
    /// VERSION, as printed by uname.
    version: String,
}

/// Runs a command that must succeed.
fn must(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
