//! Sources of names, from /etc/nsswitch.conf.
use sys::Host;

use crate::words::words;

/// The supported sources for one type of name. Others (NIS, mDNS, LDAP …) are not queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamePlaces {
    /// The file in /etc.
    pub files: bool,
    /// Name servers.
    pub dns: bool,
}

impl NamePlaces {
    /// The sources of one type of name: `hosts`, `services`, `ethers`. Without a line for it: files, and name servers
    /// for hosts.
    pub fn read(host: &Host, kind: &str) -> NamePlaces {
        let mut text = Vec::new();
        // A missing file counts as empty.
        let _ = host.read_file("/etc/nsswitch.conf", &mut text);
        NamePlaces::parse(&text, kind)
    }

    pub(crate) fn parse(text: &[u8], kind: &str) -> NamePlaces {
        let default = NamePlaces { files: true, dns: kind == "hosts" };
        text.split(|&b| b == b'\n').find_map(|line| places(line, kind)).unwrap_or(default)
    }
}

// Parses `hosts: files [NOTFOUND=return] dns # comment`.
fn places(line: &[u8], kind: &str) -> Option<NamePlaces> {
    let line = line.split(|&b| b == b'#').next()?.trim_ascii_start();
    let rest = line.strip_prefix(kind.as_bytes())?.trim_ascii_start().strip_prefix(b":")?;
    let has = |wanted: &[&[u8]]| words(rest).any(|word| wanted.contains(&word));
    // systemd's resolver and the name servers of resolv.conf give the same answers: it is one of them, or uses them.
    Some(NamePlaces { files: has(&[b"files"]), dns: has(&[b"dns", b"resolve"]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_file() {
        let text = b"# hosts: x\npasswd: files\n  hosts :\tfiles myhostname [NOTFOUND=return] dns # files\nhosts: no\n\
                     services: db\nethers:files\n";
        let read = |kind| {
            let places = NamePlaces::parse(text, kind);
            (places.files, places.dns)
        };
        assert_eq!(read("hosts"), (true, true));
        assert_eq!(read("services"), (false, false));
        assert_eq!(read("ethers"), (true, false));
        assert_eq!(read("networks"), (true, false));
        let resolved = NamePlaces::parse(b"hosts: resolve [!UNAVAIL=return] files\n", "hosts");
        assert_eq!(resolved, NamePlaces { files: true, dns: true });
        assert_eq!(NamePlaces::parse(b"", "hosts"), NamePlaces { files: true, dns: true });
        assert_eq!(NamePlaces::parse(b"hosts: files\n", "hosts"), NamePlaces { files: true, dns: false });
    }
}
