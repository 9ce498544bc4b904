//! The switches of ulogd 2.0.8.

use crate::getopt::{self, Getopt, Spec, spec};
use std::path::PathBuf;

/// The meaning of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum UlogdSwitch {
    Help,
    Version,
    Daemon,
    Verbose,
    LogLevel,
    ConfigFile,
    PidFile,
    Uid,
    Info,
}

#[rustfmt::skip]
const SWITCHES: &[Spec<UlogdSwitch>] = &[
    spec(b'h', "help", false, UlogdSwitch::Help), spec(b'V', "version", false, UlogdSwitch::Version),
    spec(b'd', "daemon", false, UlogdSwitch::Daemon), spec(b'v', "verbose", false, UlogdSwitch::Verbose),
    spec(b'l', "loglevel", true, UlogdSwitch::LogLevel), spec(b'c', "configfile", true, UlogdSwitch::ConfigFile),
    spec(b'p', "pidfile", true, UlogdSwitch::PidFile), spec(b'u', "uid", true, UlogdSwitch::Uid),
    spec(b'i', "info", true, UlogdSwitch::Info),
];

/// Debian's path of the file.
const CONFIG_FILE: &str = "/etc/ulogd.conf";

/// The task that the command line selects.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UlogdCall {
    Help,
    Version,
    Run {
        config: PathBuf,
        /// `-p`
        pid_file: Option<PathBuf>,
    },
}

const DAEMON: &str = "-d is not supported: netwren stays in the foreground; start it with a service manager (systemd: \
                      Type=exec, without --daemon and --pidfile) or with & in a script";
const UID: &str = "-u is not supported: start it as that user with CAP_NET_ADMIN (systemd: User=, \
                   AmbientCapabilities=CAP_NET_ADMIN)";
const INFO: &str = "-i is not supported: netwren loads no plugins";

/// Parses the command line; the error is the message.
pub(super) fn parse(words: Vec<Vec<u8>>) -> Result<UlogdCall, String> {
    let (mut config, mut pid_file) = (PathBuf::from(CONFIG_FILE), None);
    let path = |bytes: Vec<u8>| PathBuf::from(String::from_utf8_lossy(&bytes).into_owned());
    let mut getopt = Getopt::new(SWITCHES, words);
    while let Some((what, value)) = getopt.next()? {
        match what {
            UlogdSwitch::Help => return Ok(UlogdCall::Help),
            UlogdSwitch::Version => return Ok(UlogdCall::Version),
            UlogdSwitch::Daemon => return Err(DAEMON.to_owned()),
            UlogdSwitch::Uid => return Err(UID.to_owned()),
            UlogdSwitch::Info => return Err(INFO.to_owned()),
            // Messages always go to stderr.
            UlogdSwitch::Verbose | UlogdSwitch::LogLevel => {}
            UlogdSwitch::ConfigFile => config = path(value),
            UlogdSwitch::PidFile => pid_file = Some(path(value)),
        }
    }
    Ok(UlogdCall::Run { config, pid_file })
}

/// The switches with their dashes, for completion.
pub(super) fn written() -> Vec<String> {
    getopt::written(SWITCHES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<UlogdCall, String> {
        parse(line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect())
    }

    #[test]
    fn switches_by_letter_and_name() {
        let run = |config: &str, pid_file: Option<&str>| {
            Ok(UlogdCall::Run { config: config.into(), pid_file: pid_file.map(PathBuf::from) })
        };
        assert_eq!(asked(""), run("/etc/ulogd.conf", None));
        assert_eq!(asked("-v -l 3 -c /a -p /b"), run("/a", Some("/b")));
        assert_eq!(asked("--configfile=/a --pidfile /b --verbose"), run("/a", Some("/b")));
        assert_eq!((asked("-h"), asked("-V")), (Ok(UlogdCall::Help), Ok(UlogdCall::Version)));
        for (line, words) in [("-d", "Type=exec"), ("-u ulog", "CAP_NET_ADMIN"), ("-i x", "plugins"), ("-x", "x")] {
            assert!(asked(line).is_err_and(|message| message.contains(words)), "{line}");
        }
    }
}
