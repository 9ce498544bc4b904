//! Parts of the URLs of databases and brokers.

/// The parts of `//[USER@]RECEIVER/PATH[?QUERY]`.
pub(crate) struct UrlParts<'u> {
    pub(crate) user: Option<&'u str>,
    pub(crate) receiver: &'u str,
    pub(crate) path: &'u str,
    pub(crate) query: &'u str,
}

impl UrlParts<'_> {
    /// Splits the text after the scheme and its colon.
    pub(crate) fn split(rest: &str) -> Option<UrlParts<'_>> {
        let url = rest.strip_prefix("//")?;
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let (authority, path) = place.split_once('/')?;
        let (user, receiver) = authority.rsplit_once('@').map_or((None, authority), |(user, at)| (Some(user), at));
        Some(UrlParts { user, receiver, path, query })
    }
}

/// A receiver as `HOST:PORT`, with brackets around an IPv6 address; `None` without a host.
pub(crate) fn receiver_of(text: &str, default: u16) -> Option<String> {
    let (host, port) = host_and_port(text, default)?;
    let is_name = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c.is_control());
    is_name.then(|| if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

/// Splits an address into host and port. Without a port it is `default`; an IPv6 address is in brackets.
pub(crate) fn host_and_port(receiver: &str, default: u16) -> Option<(&str, u16)> {
    let (host, port) = match receiver.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, port.strip_prefix(':').or(port.is_empty().then_some(""))?)
        }
        None => receiver.split_once(':').unwrap_or((receiver, "")),
    };
    let port = if port.is_empty() { Some(default) } else { port.parse().ok().filter(|port| *port != 0) };
    Some((host, port?))
}

/// The host of a `HOST:PORT`, without the brackets of an IPv6 address.
pub(crate) fn host_of(place: &str) -> &str {
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// True for the local host.
pub(crate) fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Decodes percent-encoding: `%2F` becomes `/`.
pub(crate) fn decode_percent(text: &str) -> Result<String, String> {
    let wrong = || "in a URL, % must be followed by two hexadecimal digits, and bytes must be UTF-8 without zeros";
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, tail) = tail.split_at_checked(2).ok_or_else(wrong)?;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'));
        bytes.push(digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or_else(wrong)?);
        rest = tail;
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or_else(|| wrong().to_owned())
}
