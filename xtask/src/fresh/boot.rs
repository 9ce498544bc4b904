//! Boots systemd of an installation in a folder, in namespaces of its own, and runs a script there.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Makes the mounts that systemd expects in a container, whose settings of the kernel are read-only, and becomes
/// systemd. The argument is the folder.
const ENTER: &str = r#"
set -eu
root=$1
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do
    : > "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
cd "$root"
mkdir -p tmp/before
pivot_root . tmp/before
umount -l /tmp/before
rmdir /tmp/before
exec env -i container=netwren PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=netwren-script.service
"#;

/// Runs the script once everything has started; its end is the end of the system.
const UNIT: &str = "\
[Unit]
Requires=multi-user.target
After=multi-user.target
SuccessAction=exit
FailureAction=exit
[Service]
Type=oneshot
ExecStart=/bin/bash /root/script
StandardOutput=append:/root/output
StandardError=append:/root/output
TimeoutStartSec=120
";

/// Boots the installation in `root`, which has systemd, and runs `script` there as root.
pub(super) fn run(root: &Path, script: &str) -> Result<()> {
    fs::write(root.join("root/script"), script)?;
    fs::write(root.join("etc/systemd/system/netwren-script.service"), UNIT)?;
    let cgroup = Cgroup::new()?;
    // Within its cgroup, so that the new namespace shows nothing else.
    let mut command = Command::new("sh");
    command.args(["-c", r#"echo $$ > "$1/cgroup.procs"; shift; exec "$@""#, "sh"]).arg(&cgroup.0);
    command.args(["timeout", "180", "unshare", "--mount", "--propagation", "private", "--pid", "--fork"]);
    command.args(["--kill-child", "--net", "--cgroup", "--uts", "--ipc", "--", "sh", "-c", ENTER, "sh"]).arg(root);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let output = fs::read_to_string(root.join("root/output")).unwrap_or_default();
    print!("{output}");
    if !status.success() {
        bail!("the booted system: {status}");
    }
    Ok(())
}

/// A cgroup of version 2, removed on drop.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new() -> Result<Cgroup> {
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let mount = mounts.lines().find(|line| line.contains(" cgroup2 ")).and_then(|line| line.split(' ').nth(1));
        let path = Path::new(mount.context("no cgroup v2 file system is mounted")?)
            .join(format!("netwren-fresh-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Cgroup(path))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Inner cgroups first; the kernel may still be ending their processes.
        let remove =
            r#"for n in 1 2 3 4 5; do find "$0" -depth -type d -exec rmdir {} + && exit; sleep 0.2; done; exit 1"#;
        let status = Command::new("sh").args(["-c", remove]).arg(&self.0).stderr(Stdio::null()).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("fresh: cannot remove {}", self.0.display());
        }
    }
}
