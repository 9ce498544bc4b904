//! Syslog daemons between ulogd2 and the receiver: they forward messages from their socket via TCP with octet
//! counting.

use super::place::Place;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;
use testkit::unpacked::UnpackedProgram;

/// The syslog daemon to use.
#[derive(Clone, Copy)]
pub(crate) enum SyslogDaemon {
    Rsyslog,
    SyslogNg,
}

/// The daemon's socket, used instead of /dev/log.
pub(super) fn socket(place: &Place<'_>) -> PathBuf {
    place.dir.join("log.sock")
}

/// The daemon's command; `None` if it is not installed.
pub(super) fn command(daemon: SyslogDaemon, place: &Place<'_>) -> Result<Option<Command>> {
    match daemon {
        SyslogDaemon::Rsyslog => rsyslog(place),
        SyslogDaemon::SyslogNg => syslog_ng(place),
    }
}

/// Debian's configuration without the limit of messages per second.
const RSYSLOG: &str = r#"global(workDirectory="DIR" net.enableDNS="off")
module(load="imuxsock" SysSock.Use="off")
input(type="imuxsock" socket="DIR/log.sock" ratelimit.interval="0")
action(type="omfwd" target="HOST" port="PORT" protocol="tcp" tcp_framing="octet-counted"
       template="RSYSLOG_SyslogProtocol23Format")
"#;

fn rsyslog(place: &Place<'_>) -> Result<Option<Command>> {
    let Some(rsyslog) = UnpackedProgram::find("rsyslogd") else { return Ok(None) };
    let modules = rsyslog.modules("rsyslog", "imuxsock.so").context("rsyslog has no imuxsock")?;
    let file = config(place, RSYSLOG)?;
    let mut command = environment(&rsyslog, place);
    command.arg("-n").arg("-f").arg(file).arg("-i").arg(place.dir.join("pid")).arg("-M").arg(modules);
    Ok(Some(command))
}

/// If messages wait for the receiver, the daemon makes the writer wait.
const SYSLOG_NG: &str = r#"@version: VERSION
options { use-dns(no); dns-cache(no); };
log {
    source { unix-dgram("DIR/log.sock"); };
    destination { syslog("HOST" port(PORT) transport(tcp)); };
    flags(flow-control);
};
"#;

fn syslog_ng(place: &Place<'_>) -> Result<Option<Command>> {
    let Some(syslog_ng) = UnpackedProgram::find("syslog-ng") else { return Ok(None) };
    let modules = syslog_ng.modules("syslog-ng", "libsyslogformat.so").context("syslog-ng has no syslogformat")?;
    let version = syslog_ng.config_version().context("syslog-ng does not tell its version")?;
    let file = config(place, &SYSLOG_NG.replace("VERSION", &version))?;
    let mut command = environment(&syslog_ng, place);
    command.args(["-F", "--no-caps", "-f"]).arg(file).arg("--module-path").arg(modules);
    for (flag, name) in [("-R", "persist"), ("-p", "pid"), ("-c", "control")] {
        command.arg(flag).arg(place.dir.join(name));
    }
    Ok(Some(command))
}

fn config(place: &Place<'_>, text: &str) -> Result<PathBuf> {
    let file = place.dir.join("daemon.conf");
    std::fs::write(&file, place.put_in(&text.replace("DIR", &place.dir.display().to_string())))?;
    Ok(file)
}

fn environment(daemon: &UnpackedProgram, place: &Place<'_>) -> Command {
    let mut command = place.lab.command("env");
    command.args(daemon.environment_words()).arg(&daemon.program);
    command
}

/// Runs a command with its own /dev, whose `log` is the daemon's socket. Each program of the lab has a separate mount
/// namespace.
const PRIVATE_DEV: &str = r#"set -e
dir=$1; shift
mkdir "$dir/dev"
mount -t tmpfs dev "$dir/dev"
for name in null zero full random urandom; do
    : > "$dir/dev/$name"
    mount --bind "/dev/$name" "$dir/dev/$name"
done
mkdir "$dir/dev/shm"
mount --bind /dev/shm "$dir/dev/shm"
ln -s "$dir/log.sock" "$dir/dev/log"
mount --rbind "$dir/dev" /dev
exec "$@"
"#;

/// Wraps `logs` so that it finds the daemon's socket at /dev/log.
pub(super) fn before(logs: Command, place: &Place<'_>) -> Command {
    let mut command = place.lab.command("sh");
    command.args(["-c", PRIVATE_DEV, "sh"]).arg(place.dir);
    // Skip `ip netns exec NAME`.
    command.args(logs.get_args().skip(3));
    command
}
