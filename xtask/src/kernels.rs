//! Runs netwren on the kernels of several distributions: each boots for some seconds in an emulator.
//!
//! The release binary runs there as root, and every backend that it reports as available must show the same rows as
//! netlink. Nothing is installed; downloads stay below the target folder. The results are written to
//! docs/kernels.json, and `cargo xtask tidy` compares docs/interfaces.md with them.

mod guest;
mod package;
pub(crate) mod seen;

use crate::root;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A kernel and its origin.
struct Release {
    /// The name on the command line.
    name: &'static str,
    origin: Origin,
}

/// The archive of a kernel's packages.
enum Origin {
    /// Debian's archive.
    Debian {
        suite: &'static str,
        /// The prefix of the package's name; the newest matching package is used.
        package: &'static str,
    },
    /// Ubuntu's archive, with paths below `pool/main/l`.
    Ubuntu(&'static [&'static str]),
}

/// The oldest supported kernel, the kernels of the two newest Debian releases, and one of Ubuntu, which has a
/// simulated device with devlink traps (netdevsim).
const RELEASES: &[Release] = &[
    Release { name: "5.10", origin: Origin::Debian { suite: "bullseye", package: "linux-image-5.10.0-" } },
    Release { name: "6.1", origin: Origin::Debian { suite: "bookworm", package: "linux-image-6.1.0-" } },
    Release {
        name: "6.8",
        origin: Origin::Ubuntu(&[
            "linux-signed/linux-image-6.8.0-31-generic_6.8.0-31.31_amd64.deb",
            "linux/linux-modules-6.8.0-31-generic_6.8.0-31.31_amd64.deb",
            "linux/linux-modules-extra-6.8.0-31-generic_6.8.0-31.31_amd64.deb",
        ]),
    },
    Release { name: "6.12", origin: Origin::Debian { suite: "trixie", package: "linux-image-6.12." } },
];

/// Their names.
pub(crate) const NAMES: &[&str] = &["5.10", "6.1", "6.8", "6.12"];

/// Required programs with their packages.
const TOOLS: &[(&str, &str)] = &[
    ("qemu-system-x86_64", "qemu-system-x86"),
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

/// An emulated kernel boots in 15 s; one that has not ended after this time never will.
const BOOT_MAX: Duration = Duration::from_secs(240);

/// Boots each of `wanted` (empty means all) with `binary`; fails if one of them fails.
pub(crate) fn run(wanted: &[String], binary: &Path) -> Result<()> {
    for (tool, package) in TOOLS {
        ensure!(testkit::tool::is_installed(tool), "kernels needs {tool}: apt-get install {package}");
    }
    ensure!(binary.exists(), "{}: no such file; ./netwren.sh build makes it", binary.display());
    let mut bad = Vec::new();
    for release in RELEASES {
        if wanted.is_empty() || wanted.iter().any(|name| name == release.name) {
            println!("kernels: {}", release.name);
            let said = one(release, binary).with_context(|| format!("kernel {}", release.name))?;
            bad.extend(said.into_iter().filter(|line| line.contains("DIFFERENT")));
        }
    }
    ensure!(bad.is_empty(), "not as by netlink:\n{}", bad.join("\n"));
    Ok(())
}

fn one(release: &Release, binary: &Path) -> Result<Vec<String>> {
    let folder = root::path().join("target/kernels").join(release.name);
    std::fs::create_dir_all(&folder)?;
    let kernel = package::fetch(&release.origin, &folder)?;
    let initrd = guest::initrd(&kernel, binary, &folder)?;
    let console = boot(&kernel.image, &initrd, &folder.join("console"))?;
    let said: Vec<String> =
        console.lines().filter_map(|line| line.trim_end().strip_prefix(guest::SAYS)).map(str::to_owned).collect();
    said.iter().for_each(|line| println!("kernels: {}: {line}", release.name));
    ensure!(said.iter().any(|line| line == "end"), "it did not come to its end: see {}/console", folder.display());
    seen::write(release.name, seen::of_lines(&kernel.version, &said))?;
    Ok(said)
}

/// Boots a kernel and waits until it powers off; returns the output of the console.
fn boot(image: &Path, initrd: &Path, console: &Path) -> Result<String> {
    let log = std::fs::File::create(console)?;
    // cx16=off: some kernels do not boot under emulation with it.
    let mut machine = Command::new("qemu-system-x86_64")
        .args(["-m", "1024", "-cpu", "max,cx16=off", "-nographic", "-no-reboot", "-nic", "none"])
        .args(["-append", "console=ttyS0 quiet panic=-1"])
        .arg("-kernel")
        .arg(image)
        .arg("-initrd")
        .arg(initrd)
        .stdin(Stdio::null())
        .stdout(log)
        .spawn()?;
    let end = Instant::now() + BOOT_MAX;
    while machine.try_wait()?.is_none() {
        if Instant::now() > end {
            machine.kill()?;
            machine.wait()?;
            bail!("still running after {} s: see {}", BOOT_MAX.as_secs(), console.display());
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
