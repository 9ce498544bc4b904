//! The password, from the places where libpq finds it.

use crate::transports::secret_file;
use crate::{PostgresAddress, PostgresHost};
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// Returns the password for a database: from the URL, from PGPASSWORD, or from a line of the file named by `passfile=`
/// or PGPASSFILE, or of ~/.pgpass.
pub(super) fn find_password(address: &PostgresAddress) -> io::Result<String> {
    let given = address.password.clone();
    let by_environment = || std::env::var("PGPASSWORD").ok().filter(|password| !password.is_empty());
    if let Some(password) = given.or_else(by_environment) {
        return Ok(password);
    }
    let usual = || {
        let by_environment = std::env::var_os("PGPASSFILE").map(PathBuf::from);
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pgpass"));
        by_environment.or_else(home).filter(|path| path.exists())
    };
    let Some(path) = address.passfile.clone().or_else(usual) else {
        let text = "the server requests a password: use PGPASSWORD, ?passfile=FILE, ~/.pgpass or USER:PASSWORD@";
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    };
    let found = in_file(&secret_file::read(&path)?, address);
    found.ok_or_else(|| {
        let text = format!("{}: no line HOST:PORT:DATABASE:USER:PASSWORD matches this database", path.display());
        io::Error::new(ErrorKind::PermissionDenied, text)
    })
}

/// Returns the password of the first matching line. `*` matches everything; a backslash escapes `:` and itself.
fn in_file(text: &str, address: &PostgresAddress) -> Option<String> {
    let (host, port) = match &address.host {
        PostgresHost::Tcp(host, port) => (host.clone(), port),
        // Like libpq: sockets in the default directory match `localhost`, others their directory.
        PostgresHost::Unix(path, port) => match path.to_str()? {
            "/run/postgresql" | "/var/run/postgresql" | "/tmp" => ("localhost".to_owned(), port),
            path => (path.to_owned(), port),
        },
    };
    let wanted = [&host, &port.to_string(), &address.database, &address.user];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [known @ .., password] = fields.as_slice() else { return None };
        let fits = known.len() == 4 && known.iter().zip(wanted).all(|(known, wanted)| known == "*" || known == wanted);
        fits.then(|| password.clone())
    })
}

/// Splits a line into four fields and the rest.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => chars.next(),
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                None
            }
            c => Some(c),
        };
        if let (Some(c), Some(field)) = (c, fields.last_mut()) {
            field.push(c);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_first_line_that_fits_counts() {
        let file = "# host:port\nother:5432:d:u:a\n*:5432:d:u:p\\:q:r\\\\s\n*:*:*:*:last\nshort:line\n";
        let password = |url: &str| in_file(file, &PostgresAddress::parse(url).unwrap());
        assert_eq!(password("//u@h/d").as_deref(), Some("p:q:r\\s"));
        assert_eq!(password("//u@other/d").as_deref(), Some("a"));
        assert_eq!(password("//u@h:5433/d").as_deref(), Some("last"));
        assert_eq!(in_file("a:b\n", &PostgresAddress::parse("//u@h/d").unwrap()), None);
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "*:*:*:*:hunter2\n").unwrap();
        let url = format!("//u@h/d?passfile={}", file.path().display());
        let address = PostgresAddress::parse(&url).unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
        let said = find_password(&address).unwrap_err().to_string();
        assert!(said.contains("chmod 600") && !said.contains("hunter2"), "{said}");
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(find_password(&address).unwrap(), "hunter2");
    }
}
