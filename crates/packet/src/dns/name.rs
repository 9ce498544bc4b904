//! Domain names in a message: labels, and pointers to earlier labels.
use super::DnsError;

/// Maximum size of a name on the wire, RFC 1035 §2.3.4: each label with its length byte, and the root's.
pub const NAME_BYTES_MAX: usize = 255;

/// A name in a message; it was checked when it was created, so reading it cannot fail.
#[derive(Debug, Clone, Copy)]
pub struct Name<'m> {
    message: &'m [u8],
    at: usize,
}

/// One element of a name.
enum NameElement<'m> {
    Root,
    Label(&'m [u8]),
    /// The name continues at this offset.
    Pointer(usize),
}

impl<'m> Name<'m> {
    /// Checks the name that starts at `at`; returns it and the offset after it.
    pub(super) fn parse(message: &'m [u8], at: usize) -> Result<(Name<'m>, usize), DnsError> {
        let mut place = at;
        let mut after = None;
        // Pointers must lead to an offset before the start of the name, or of the part that a pointer led to. So they
        // shrink with each jump, and a name ends after at most as many steps as it may have bytes.
        let mut part = at;
        let mut length = 1;
        loop {
            match read_element(message, place).ok_or(DnsError { what: "a label", at: place })? {
                NameElement::Root => return Ok((Name { message, at }, after.unwrap_or(place + 1))),
                NameElement::Label(label) => {
                    length += 1 + label.len();
                    place += 1 + label.len();
                }
                NameElement::Pointer(to) if to < part => {
                    after = after.or(Some(place + 2));
                    place = to;
                    part = to;
                }
                NameElement::Pointer(_) => return Err(DnsError { what: "a pointer backwards", at: place }),
            }
            if length > NAME_BYTES_MAX {
                return Err(DnsError { what: "a name of at most 255 bytes", at });
            }
        }
    }

    /// The labels from the left, without the root's empty one.
    pub fn labels(self) -> Labels<'m> {
        Labels { message: self.message, at: self.at }
    }

    /// True for the root, the name without labels.
    pub fn is_root(self) -> bool {
        self.labels().next().is_none()
    }

    /// True if both are the same name; upper and lower case ASCII letters are the same letters (RFC 4343).
    pub fn eq_ignore_case(self, other: &Name<'_>) -> bool {
        let (mut ours, mut theirs) = (self.labels(), other.labels());
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return true,
                (Some(a), Some(b)) if a.eq_ignore_ascii_case(b) => {}
                _ => return false,
            }
        }
    }

    /// Appends the name as in a zone file, without the final dot (the root is `.`). A dot or backslash within a label
    /// is escaped with a backslash, bytes that are not printable ASCII become `\DDD` (RFC 4343 §2.1). At most four
    /// times 255 bytes.
    pub fn put_text(self, out: &mut Vec<u8>) {
        if self.is_root() {
            out.push(b'.');
        }
        for (n, label) in self.labels().enumerate() {
            if n > 0 {
                out.push(b'.');
            }
            label.iter().for_each(|&byte| put_byte(out, byte));
        }
    }
}

fn put_byte(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'.' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        b'!'..=b'~' => out.push(byte),
        _ => out.extend_from_slice(&[b'\\', b'0' + byte / 100, b'0' + byte / 10 % 10, b'0' + byte % 10]),
    }
}

fn read_element(message: &[u8], at: usize) -> Option<NameElement<'_>> {
    match *message.get(at)? {
        0 => Some(NameElement::Root),
        length @ 1..=63 => Some(NameElement::Label(message.get(at + 1..at + 1 + usize::from(length))?)),
        // 01 and 10 in the two highest bits are reserved.
        64..=191 => None,
        high => {
            let low = *message.get(at + 1)?;
            Some(NameElement::Pointer(usize::from(high & 0x3f) << 8 | usize::from(low)))
        }
    }
}

/// The labels of a name. Iteration always ends, because the name was checked.
#[derive(Debug, Clone)]
pub struct Labels<'m> {
    message: &'m [u8],
    at: usize,
}

impl<'m> Iterator for Labels<'m> {
    type Item = &'m [u8];

    fn next(&mut self) -> Option<&'m [u8]> {
        loop {
            match read_element(self.message, self.at)? {
                NameElement::Root => return None,
                NameElement::Label(label) => {
                    self.at += 1 + label.len();
                    return Some(label);
                }
                NameElement::Pointer(to) => self.at = to,
            }
        }
    }
}
