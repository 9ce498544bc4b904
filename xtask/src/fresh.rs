//! Runs netwren.sh on a minimal machine: a new Debian installation in a folder.

mod boot;

use crate::package::Arch;
use crate::{platforms, root};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The commands to run by default. Exit code 3 of the first is expected: in a separate pid namespace, the owners of
/// listeners that belong to outside processes are missing.
const USUAL: &[&str] = &["./netwren.sh run || test $? = 3", "./netwren.sh test"];

/// The path of the clone inside the installation.
const CLONE: &str = "/root/netwren";

/// The commands that a user runs with the packages, which are in /root/packages. The second Debian package is a later
/// revision with another log.toml.
const PACKAGES: &str = r#"
set -eux
cd /root/packages
is_gone() { ! test -e "$1"; }
tar xzf netwren-*-linux.tar.gz
(cd netwren-*-linux && sha256sum --quiet -c SHA256SUMS && bin/netwren --version && bin/netwren ss -H -ltn)
apt-get -qq update
apt-get -qq install -y --no-install-recommends man-db bash-completion
package=$(echo netwren_*.deb)
apt-get -qq install -y "./$package"
netwren --version
netwren ss -H -ltn
man -w netwren
bash -c '. /usr/share/bash-completion/bash_completion && _completion_loader netwren; complete -p netwren'
netwren log check --help > /dev/null
dpkg -V netwren
echo '# changed by a person' >> /etc/netwren/log.toml
dpkg-deb -R "$package" later
sed -i 's/^\(Version: .*\)-1$/\1-2/' later/DEBIAN/control
echo '# a later default' >> later/etc/netwren/log.toml
dpkg-deb -b later later.deb
apt-get -qq install -y -o Dpkg::Options::=--force-confold ./later.deb
dpkg-query -W -f '${Version}
' netwren | grep -- '-2$'
grep 'by a person' /etc/netwren/log.toml
apt-get -qq remove -y netwren
is_gone /usr/bin/netwren
test -e /etc/netwren/log.toml
apt-get -qq purge -y netwren
is_gone /etc/netwren
"#;

/// The name of [`PACKAGES`] on the page of platforms.
const PACKAGES_NAME: &str =
    "apt-get install, upgrade with a changed log.toml, remove and purge of the Debian package; the archive";

/// Installs the package and what [`BOOTED`] needs.
const BEFORE_BOOT: &str = r#"
set -eux
cd /root/packages
apt-get -qq install -y --no-install-recommends systemd nftables ./netwren_*.deb
"#;

/// The steps of an administrator on the booted system. The configuration is the shipped one, and each
/// datagram matches a rule once.
const BOOTED: &str = r#"
set -eux
trap 'journalctl --no-pager -u netwren-log | tail -40' EXIT
nft -f - <<'END'
table inet netwren {
    chain out { type filter hook output priority 0; udp dport 4739 log prefix "booted " group 1; }
}
END
is_inactive() { ! systemctl is-active netwren-log; }
send() { for _ in $(seq "$1"); do echo x > /dev/udp/127.0.0.1/4739 || true; done; }
has_rows() {
    for _ in $(seq 100); do
        test "$(grep -c '"prefix":"booted "' /var/log/netwren/log.json)" = "$1" && return
        sleep 0.1
    done
    cat /var/log/netwren/log.json
    return 1
}
is_inactive
systemctl start netwren-log
systemctl is-active netwren-log
send 3
has_rows 3
systemctl restart netwren-log &
for _ in 1 2 3 4 5 6 7 8 9 10; do send 10; sleep 0.02; done
wait $!
has_rows 103
mv /var/log/netwren/log.json /var/log/netwren/log.json.old
systemctl reload netwren-log
send 2
has_rows 2
netwren log status --control /run/netwren/log.sock | tee /dev/stderr | grep 'seen 105, delivered 105'
systemctl stop netwren-log
is_inactive
# The agent reads the same groups, and everything else with its own privileges.
sed -i 's/^#\[log\]/[log]/; s/^#group = /group = /; s/^#watch = 60.*/watch = 1/; s/^#follow = 60.*/follow = 1/' \
    /etc/netwren/agent.toml
printf '[Socket]\nListenStream=127.0.0.1:4740\nAccept=yes\n' > /run/systemd/system/accept.socket
printf '[Service]\nExecStart=/bin/true\n' > /run/systemd/system/accept@.service
systemctl daemon-reload
systemctl start accept.socket
systemctl start netwren-agent
systemctl is-active netwren-agent
part_has() {
    for _ in $(seq 200); do
        grep -q "$2" "/var/log/netwren/$1.json" && return
        sleep 0.1
        send 1
        (exec 3<> /dev/tcp/127.0.0.1/4740) 2> /dev/null || true
    done
    journalctl --no-pager -u netwren-agent | tail -40
    netwren agent status
    return 1
}
part_has log '"prefix":"booted "'
part_has listeners '"local_port":4740'
part_has drops '"reason":"NO_SOCKET"'
part_has counters '"name":"UdpNoPorts"'
part_has flows '_port":4740'
systemctl reload netwren-agent
before=$(grep -c '"prefix":"booted "' /var/log/netwren/log.json)
systemctl restart netwren-agent &
for _ in 1 2 3 4 5 6 7 8 9 10; do send 10; sleep 0.02; done
wait $!
has_rows $((before + 100))
netwren agent status
journalctl --no-pager -u netwren-agent | grep 'continues with groups 5, 1'
systemctl stop netwren-agent
"#;

/// The name of [`BOOTED`] on the page of platforms.
const BOOTED_NAME: &str =
    "systemctl start, restart, reload and stop of netwren-log and netwren-agent, which ship rows to their files";

/// Builds each release (`12`, `13`; empty means both), clones the repository into it and runs the commands there; or
/// tries the packages of target/packages, without a clone.
pub(crate) fn run(releases: &[String], commands: &[String], tries_packages: bool) -> Result<()> {
    ensure!(testkit::root::is_privileged(), "fresh needs root: it makes a root for the new Debian");
    ensure!(testkit::tool::is_installed("debootstrap"), "fresh needs debootstrap: apt-get install debootstrap");
    let usual = || USUAL.iter().map(|command| (*command).to_owned()).collect();
    let commands: Vec<String> = if commands.is_empty() { usual() } else { commands.to_vec() };
    for release in ["12", "13"] {
        if releases.is_empty() || releases.iter().any(|wanted| wanted == release) {
            let tried = if tries_packages { packages(release) } else { one(release, &commands) };
            tried.with_context(|| format!("Debian {release}"))?;
        }
    }
    Ok(())
}

fn one(release: &str, commands: &[String]) -> Result<()> {
    let debian = Debian::new(release)?;
    debian.clone_repository()?;
    for command in commands {
        println!("fresh: Debian {release}: {command}");
        debian.shell(&format!("cd {CLONE} && {command}"))?;
        println!("fresh: Debian {release}: {command}: ok");
        platforms::note(&format!("Debian {release}"), command)?;
    }
    Ok(())
}

/// Tries the packages as a user would.
fn packages(release: &str) -> Result<()> {
    let built = root::path().join("target/packages");
    let debian = Debian::new(release)?;
    let to = debian.root.join("root/packages");
    fs::create_dir_all(&to)?;
    let arch = Arch::of(std::env::consts::ARCH);
    let endings = [format!("_{}.deb", arch.debian()), format!("-{}-linux.tar.gz", arch.rpm())];
    for file in fs::read_dir(&built).with_context(|| format!("{}: ./netwren.sh package deb tar", built.display()))? {
        let path = file?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if endings.iter().any(|ending| name.ends_with(ending)) {
            fs::copy(&path, to.join(&name))?;
        }
    }
    println!("fresh: Debian {release}: packages");
    debian.shell(PACKAGES)?;
    println!("fresh: Debian {release}: packages: ok");
    platforms::note(&format!("Debian {release}"), PACKAGES_NAME)?;
    debian.shell(BEFORE_BOOT)?;
    println!("fresh: Debian {release}: the service on the booted system");
    boot::run(&debian.root, BOOTED)?;
    println!("fresh: Debian {release}: the service on the booted system: ok");
    platforms::note(&format!("Debian {release}"), BOOTED_NAME)
}

/// A root folder that is removed on drop.
struct Debian {
    root: PathBuf,
    /// The environment of everything that runs inside.
    env: Vec<(&'static str, String)>,
}

/// The script that runs first, in separate mount and pid namespaces. Its arguments are the folder, the folder of the
/// tests' locks, and the command. The folder becomes the root by pivot_root: with chroot alone, any process that
/// enters the mount namespace would see this machine's root, and this machine's mounts would be listed. Terminals
/// (/dev/pts) and cgroups (/sys/fs/cgroup) are separate mounts. The installation shares the kernel's settings with
/// this machine, so its tests take turns with tests elsewhere.
const ENTER: &str = r#"
set -eu
root=$1; locks=$2; shift 2
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mkdir -p "$root/tmp/${locks##*/}"
mount --bind "$locks" "$root/tmp/${locks##*/}"
cd "$root"
mkdir -p tmp/before
pivot_root . tmp/before
umount -l /tmp/before
rmdir /tmp/before
exec "$@"
"#;

impl Debian {
    fn new(release: &str) -> Result<Debian> {
        let suite = if release == "12" { "bookworm" } else { "trixie" };
        let parent = std::env::var_os("NETWREN_FRESH_DIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
        let root = parent.join(format!("netwren-fresh-{suite}-{}", std::process::id()));
        fs::create_dir_all(&root)?;
        let mut debian = Debian { root, env: Vec::new() };
        println!("fresh: debootstrap {suite} into {}", debian.root.display());
        debootstrap(suite, &debian.root)?;
        debian.network()?;
        Ok(debian)
    }

    /// Copies this machine's name resolution, certificates, proxies and client settings.
    fn network(&mut self) -> Result<()> {
        for file in ["etc/resolv.conf", "etc/hosts"] {
            let from = Path::new("/").join(file);
            if from.exists() {
                fs::copy(&from, self.root.join(file)).with_context(|| from.display().to_string())?;
            }
        }
        for name in ["http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"] {
            if let Ok(value) = std::env::var(name) {
                self.env.push((name, value));
            }
        }
        let settings = cargo_home().join("config.toml");
        if settings.exists() {
            fs::create_dir_all(self.root.join("root/.cargo"))?;
            fs::copy(&settings, self.root.join("root/.cargo/config.toml"))?;
        }
        self.certificates()
    }

    /// Certificates that this machine trusts in addition to Debian's.
    fn certificates(&self) -> Result<()> {
        let (from, to) =
            (Path::new("/usr/local/share/ca-certificates"), self.root.join("usr/local/share/ca-certificates"));
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(from).into_iter().flatten().flatten() {
            if entry.path().is_file() {
                fs::copy(entry.path(), to.join(entry.file_name()))?;
            }
        }
        Ok(())
    }

    /// Makes an ordinary clone of the committed files, using this machine's git.
    fn clone_repository(&self) -> Result<()> {
        let to = self.root.join(CLONE.trim_start_matches('/'));
        let status =
            Command::new("git").args(["clone", "--quiet", "--no-hardlinks"]).arg(root::path()).arg(&to).status()?;
        ensure!(status.success(), "git clone: {status}");
        Ok(())
    }

    /// Runs a command inside. Its mounts and processes are in separate namespaces, so they disappear however the
    /// command ends.
    fn shell(&self, command: &str) -> Result<()> {
        let mut inside = Command::new("unshare");
        inside.args(["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--"]);
        inside.args(["sh", "-c", ENTER, "sh"]).arg(&self.root).arg(testkit::lock::shared_dir());
        inside.args(["bash", "-c", command]).stdin(Stdio::null()).env_clear();
        inside.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        inside.env("HOME", "/root").env("LC_ALL", "C.UTF-8").envs(self.env.iter().map(|(k, v)| (*k, v.as_str())));
        let status = inside.status()?;
        if !status.success() {
            bail!("{command}: {status}");
        }
        Ok(())
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        // Never cross a mount point, wherever it came from: that would delete the machine's own /dev.
        let status = Command::new("rm").args(["-rf", "--one-file-system"]).arg(&self.root).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("fresh: cannot remove {}", self.root.display());
        }
    }
}

fn debootstrap(suite: &str, root: &Path) -> Result<()> {
    let mut command = Command::new("debootstrap");
    command.args(["--variant=minbase", suite]).arg(root).arg(mirror()).stdout(Stdio::null());
    let status = command.status()?;
    ensure!(status.success(), "debootstrap {suite}: {status} (see {}/debootstrap/debootstrap.log)", root.display());
    Ok(())
}

/// The archive named in this machine's own apt sources.
fn mirror() -> String {
    let usual = "http://deb.debian.org/debian".to_owned();
    let files = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"];
    let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
    let words = texts.flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    words
        .into_iter()
        .find(|word| word.starts_with("http") && word.trim_end_matches('/').ends_with("/debian"))
        .unwrap_or(usual)
}

fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/root".into())).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}
