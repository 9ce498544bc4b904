//! Names of users, from /etc/passwd.
//!
//! Reads only the file: a static binary has no name service switch, so users of a directory service (LDAP, sssd) are
//! shown by number.
use record::{Key, Lookup, Value};
use sys::Host;
use sys::rights::UserIds;

use crate::HostError;
use crate::texts::Texts;

/// Bound: groups of the user of `-Z`. Beyond: further groups are not joined. By: root.
const GROUPS_MAX: usize = 65_536;

/// A user account that a process can switch to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The name.
    pub name: Box<str>,
    /// Its numbers from /etc/passwd, and the groups of /etc/group that list it.
    pub ids: UserIds,
}

impl Account {
    /// Reads /etc/passwd and /etc/group; `None` if /etc/passwd has no user of this name. Does not accept a uid.
    pub fn find(host: &Host, name: &str) -> Result<Option<Account>, HostError> {
        let (mut passwd, mut group) = (Vec::new(), Vec::new());
        host.read_file("/etc/passwd", &mut passwd)?;
        // Without this file a user only has the group in its passwd line.
        let _ = host.read_file("/etc/group", &mut group);
        Ok(Account::parse(&passwd, &group, name.as_bytes()))
    }

    fn parse(passwd: &[u8], group: &[u8], name: &[u8]) -> Option<Account> {
        let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<u32>().ok();
        let line = passwd.split(|&b| b == b'\n').find(|line| line.split(|&b| b == b':').next() == Some(name))?;
        let (uid, length) = entry(line)?;
        let gid = number(line.split(|&b| b == b':').nth(3)?)?;
        let mut groups = vec![gid];
        for line in group.split(|&b| b == b'\n') {
            let mut parts = line.split(|&b| b == b':').skip(2);
            let (Some(Some(one)), Some(members)) = (parts.next().map(number), parts.next()) else { continue };
            let is_member = members.split(|&b| b == b',').any(|member| member == name);
            if is_member && !groups.contains(&one) && groups.len() < GROUPS_MAX {
                groups.push(one);
            }
        }
        let name = String::from_utf8_lossy(line.get(..length)?).into();
        Some(Account { name, ids: UserIds { uid, gid, groups } })
    }
}

/// uid → name.
#[derive(Debug, Default)]
pub struct Users {
    names: Texts<u32>,
}

impl Users {
    /// Reads /etc/passwd. Skips malformed lines; the first line of a uid wins, as in getpwuid(3).
    pub fn read(host: &Host) -> Result<Users, HostError> {
        let mut text = Vec::new();
        host.read_file("/etc/passwd", &mut text)?;
        Ok(Users::parse(text))
    }

    fn parse(text: Vec<u8>) -> Users {
        let mut places = Vec::new();
        let mut start = 0;
        for line in text.split(|&b| b == b'\n') {
            if let Some((uid, length)) = entry(line) {
                // Files are at most 64 MiB long.
                places.push((uid, start as u32, (start + length) as u32));
            }
            start += line.len() + 1;
        }
        Users { names: Texts::new(text, places) }
    }

    /// Names of all users, in the file's order.
    pub fn names(host: &Host) -> Result<Vec<Box<[u8]>>, HostError> {
        let mut text = Vec::new();
        host.read_file("/etc/passwd", &mut text)?;
        let name = |line: &[u8]| entry(line).and_then(|(_, length)| line.get(..length)).map(Box::from);
        Ok(text.split(|&b| b == b'\n').filter_map(name).collect())
    }

    /// The name of a user; `None` if the file does not contain it.
    pub fn name(&self, uid: u32) -> Option<&[u8]> {
        self.names.get(uid)
    }
}

impl Lookup for Users {
    fn value(&self, key: Key) -> Value<'_> {
        match key {
            Key::Id(uid) => Value::text(u32::try_from(uid).ok().and_then(|uid| self.name(uid))),
            _ => Value::Null,
        }
    }
}

// uid and length of the name in `name:password:uid:…`.
fn entry(line: &[u8]) -> Option<(u32, usize)> {
    let mut parts = line.split(|&b| b == b':');
    let name = parts.next()?;
    let uid = std::str::from_utf8(parts.nth(1)?).ok()?.parse().ok()?;
    (!name.is_empty() && !matches!(name.first(), Some(b'#' | b'+' | b'-'))).then_some((uid, name.len()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_account_has_the_groups_that_name_it() {
        let passwd = b"root:x:0:0::/:/\n#net:x:9:9::/:/\nnet:x:72:73::/:/\nbad:x:1:y::/:/\n";
        let group = b"root:x:0:net2\nnet:x:73:net\nadm:x:4:syslog,net\nodd:x:z:net\nshort:x:5\nlog:x:6:net,net";
        let found = |name: &[u8]| Account::parse(passwd, group, name).map(|account| account.ids);
        assert_eq!(found(b"net"), Some(UserIds { uid: 72, gid: 73, groups: vec![73, 4, 6] }));
        assert_eq!(found(b"root").unwrap().groups, [0]);
        for name in [&b"none"[..], b"bad", b"#net", b"", b"ne"] {
            assert_eq!(found(name), None);
        }
    }

    #[test]
    fn a_passwd_file_with_odd_lines() {
        let users = Users::parse(
            b"root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:/\n#c:x:7:7::/:/\n+::::::\n+nis:x:8::::\nbad\n:x:9:9::/:/\n\
              n:x:4294967295:0::/:/\nbig:x:4294967296:0\nneg:x:-1:0\nodd\x1b[31m\xff:x:33:33::/:/"
                .to_vec(),
        );
        assert_eq!(users.name(0), Some(&b"root"[..]));
        assert_eq!(users.name(33), Some(&b"odd\x1b[31m\xff"[..]));
        assert_eq!(users.name(u32::MAX), Some(&b"n"[..]));
        for uid in [7, 8, 9] {
            assert_eq!(users.name(uid), None);
        }
        assert_eq!(users.value(Key::Id(0)), Value::Bytes(b"root"));
        assert_eq!(users.value(Key::Id(1 << 32)), Value::Null);
        assert_eq!(users.value(Key::None), Value::Null);
    }

    #[test]
    fn this_host_has_root() {
        let users = Users::read(&Host::live()).unwrap();
        assert_eq!(users.name(0), Some(&b"root"[..]));
        assert_eq!(users.name(4_000_000_001), None);
    }

    proptest! {
        #[test]
        fn any_bytes(text in "[a-z0-9:\\n#+]{0,80}|\\PC{0,40}") {
            let users = Users::parse(text.into_bytes());
            for uid in users.names.keys() {
                let name = users.name(uid).unwrap();
                prop_assert!(!name.is_empty() && !name.contains(&b':') && !name.contains(&b'\n'));
            }
        }
    }
}
