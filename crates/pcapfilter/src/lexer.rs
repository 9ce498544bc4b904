//! Splits text into tokens by the longest match, like libpcap's scanner: `10-20` is one name, `tcp[13]` is four
//! tokens.

use crate::error::FilterError;
use crate::words::{self, Word};
use std::net::Ipv6Addr;
use std::str::FromStr;

/// The longest text that is checked for an IPv6 address.
const IPV6_TEXT_MAX: usize = 64;

/// A token and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) what: TokenKind,
    /// Bytes from the beginning of the expression.
    pub(crate) at: usize,
    /// True if a backslash makes it a name.
    pub(crate) is_escaped: bool,
}

/// The kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word(Word),
    /// A number, or a word that stands for one.
    Num(u32),
    /// The name of a host, port or protocol, or a range of ports.
    Name(String),
    /// Two to four numbers separated by dots.
    Ipv4(String),
    Ipv6(String, Ipv6Addr),
    Ether([u8; 6]),
    /// `$12`: an ARCNET address.
    Arcnet,
    /// One of `+-*/%:[]!<>()&|^=`.
    Sign(u8),
    /// `>=`, `<=`, `!=`, `<<`, `>>`: the first byte, then `=` or the same byte again.
    Pair([u8; 2]),
    /// Text that is not a token, with the scanner's error message if it has one.
    Bad(Option<String>),
    End,
}

/// Returns all tokens of an expression; the last one is [`TokenKind::End`]. Never fails: text that is not a token
/// becomes a token that no rule of the grammar accepts.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if b" \r\n\t".contains(byte) {
            at += 1;
            continue;
        }
        let (what, length) = token(text, at);
        let is_bad = matches!(what, TokenKind::Bad(_));
        found.push(Token { what, at, is_escaped: *byte == b'\\' });
        at += length.max(1);
        if is_bad {
            break;
        }
    }
    found.push(Token { what: TokenKind::End, at: at.min(text.len()), is_escaped: false });
    found
}

/// Returns the token at `at`, and its length.
fn token(text: &str, at: usize) -> (TokenKind, usize) {
    let rest = text.get(at..).unwrap_or_default();
    let bytes = rest.as_bytes();
    // The rules are in libpcap's order: if two match the same length, the first one wins.
    let name = name_length(bytes);
    let mut best = (TokenKind::Bad(None), 0);
    let mut offer = |length: usize, what: &dyn Fn(&str) -> TokenKind| {
        if length > best.1 {
            best = (what(rest.get(..length).unwrap_or_default()), length);
        }
    };
    if let Some(word) = rest.get(..name).and_then(words::find) {
        offer(name, &|_| if let Word::Num(number) = word { TokenKind::Num(number) } else { TokenKind::Word(word) });
    }
    if let Some((sign, length)) = sign(bytes) {
        offer(length, &|_| sign.clone());
    }
    offer(arcnet_length(bytes), &|_| TokenKind::Arcnet);
    offer(ether_length(bytes), &|text| TokenKind::Ether(ether(text)));
    offer(number_length(bytes), &|text| number(text).map_or_else(|why| TokenKind::Bad(Some(why)), TokenKind::Num));
    offer(dotted_length(bytes), &|text| TokenKind::Ipv4(text.to_owned()));
    offer(ipv6_length(rest), &|text| match Ipv6Addr::from_str(text) {
        Ok(address) => TokenKind::Ipv6(text.to_owned(), address),
        Err(_) => TokenKind::Bad(Some(format!("bogus IPv6 address {text}"))),
    });
    offer(bogus_ether_length(bytes), &|text| TokenKind::Bad(Some(format!("bogus ethernet address {text}"))));
    offer(name, &|text| TokenKind::Name(text.to_owned()));
    if bytes.first() == Some(&b'\\') {
        let length = rest.find([' ', '!', '(', ')', '\n', '\t']).unwrap_or(rest.len());
        if length > 1 {
            offer(length, &|text| TokenKind::Name(text.get(1..).unwrap_or_default().to_owned()));
        }
    }
    best
}

fn sign(bytes: &[u8]) -> Option<(TokenKind, usize)> {
    let pair = bytes.first_chunk::<2>();
    match pair {
        Some(b"&&") => return Some((TokenKind::Word(Word::And), 2)),
        Some(b"||") => return Some((TokenKind::Word(Word::Or), 2)),
        Some(b"==") => return Some((TokenKind::Sign(b'='), 2)),
        Some(pair @ (b">=" | b"<=" | b"!=" | b"<<" | b">>")) => return Some((TokenKind::Pair(*pair), 2)),
        _ => {}
    }
    match bytes.first()? {
        b'!' => Some((TokenKind::Word(Word::Not), 1)),
        sign if b"+-*/%:[]<>()&|^=".contains(sign) => Some((TokenKind::Sign(*sign), 1)),
        _ => None,
    }
}

fn count(bytes: &[u8], is: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| is(byte)).count()
}

fn tail(bytes: &[u8], from: usize) -> &[u8] {
    bytes.get(from..).unwrap_or_default()
}

/// `[A-Za-z0-9]([-_.A-Za-z0-9]*[.A-Za-z0-9])?`
fn name_length(bytes: &[u8]) -> usize {
    if !bytes.first().is_some_and(u8::is_ascii_alphanumeric) {
        return 0;
    }
    let all = count(bytes, |byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
    let cut = bytes.iter().take(all).rev().take_while(|byte| b"-_".contains(byte)).count();
    all - cut
}

/// `[0-9]+` or `0x[0-9A-Fa-f]+`
fn number_length(bytes: &[u8]) -> usize {
    if bytes.first() == Some(&b'0') && matches!(bytes.get(1), Some(b'x' | b'X')) {
        let digits = count(tail(bytes, 2), u8::is_ascii_hexdigit);
        if digits > 0 {
            return digits + 2;
        }
    }
    count(bytes, u8::is_ascii_digit)
}

/// Two to four numbers with dots.
fn dotted_length(bytes: &[u8]) -> usize {
    let mut length = number_length(bytes);
    let mut numbers = usize::from(length > 0);
    while (1..4).contains(&numbers) && bytes.get(length) == Some(&b'.') {
        let next = number_length(tail(bytes, length + 1));
        if next == 0 {
            break;
        }
        length += next + 1;
        numbers += 1;
    }
    if numbers > 1 { length } else { 0 }
}

fn arcnet_length(bytes: &[u8]) -> usize {
    if bytes.first() != Some(&b'$') {
        return 0;
    }
    match count(tail(bytes, 1).get(..2).unwrap_or(tail(bytes, 1)), u8::is_ascii_hexdigit) {
        0 => 0,
        digits => digits + 1,
    }
}

/// Six bytes separated by `:`, `-` or `.`, three groups of four digits separated by `.`, or twelve digits.
fn ether_length(bytes: &[u8]) -> usize {
    let groups = |separator: u8, wanted: usize, digits_min: usize, digits_max: usize| {
        let mut length = 0;
        for group in 0..wanted {
            if group > 0 {
                if bytes.get(length) != Some(&separator) {
                    return 0;
                }
                length += 1;
            }
            let digits = count(tail(bytes, length), u8::is_ascii_hexdigit).min(digits_max);
            if digits < digits_min {
                return 0;
            }
            length += digits;
        }
        length
    };
    let plain = if count(bytes, u8::is_ascii_hexdigit) >= 12 { 12 } else { 0 };
    let pairs = b":-.".iter().map(|separator| groups(*separator, 6, 1, 2));
    pairs.chain([groups(b'.', 3, 4, 4), plain]).max().unwrap_or(0)
}

/// Returns the bytes of an address that [`ether_length`] has accepted.
fn ether(text: &str) -> [u8; 6] {
    let digit = |byte: u8| char::from(byte).to_digit(16).map_or(0, |digit| digit as u8);
    let mut address = [0; 6];
    let mut rest = text.as_bytes();
    for byte in &mut address {
        if let [b':' | b'.' | b'-', after @ ..] = rest {
            rest = after;
        }
        match rest {
            [high, low, after @ ..] if low.is_ascii_hexdigit() => {
                *byte = digit(*high) << 4 | digit(*low);
                rest = after;
            }
            [low, after @ ..] => {
                *byte = digit(*low);
                rest = after;
            }
            [] => {}
        }
    }
    address
}

/// `aa:bb:cc:` …: text that looks like an address but is not one.
fn bogus_ether_length(bytes: &[u8]) -> usize {
    let (mut length, mut groups) = (0, 0);
    loop {
        let digits = count(tail(bytes, length), u8::is_ascii_hexdigit);
        let colons = count(tail(bytes, length + digits), |byte| *byte == b':');
        if !(1..=2).contains(&digits) || colons == 0 {
            break;
        }
        length += digits + colons;
        groups += 1;
    }
    if groups > 1 { length } else { 0 }
}

/// Returns the length of the longest beginning that has the form of an IPv6 address.
fn ipv6_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let all = count(bytes, |byte| byte.is_ascii_hexdigit() || b":.xX".contains(byte)).min(IPV6_TEXT_MAX);
    if !bytes.get(..all).unwrap_or_default().contains(&b':') {
        return 0;
    }
    (2..=all).rev().find(|length| text.get(..*length).is_some_and(is_ipv6)).unwrap_or(0)
}

/// Eight groups, or fewer with `::`; the last two may be an IPv4 address.
fn is_ipv6(text: &str) -> bool {
    let groups = |part: &str| -> Option<(usize, bool)> {
        if part.is_empty() {
            return Some((0, false));
        }
        let mut number = 0;
        let mut parts = part.split(':').peekable();
        while let Some(group) = parts.next() {
            let is_last = parts.peek().is_none();
            if is_last && group.contains('.') {
                let is_whole = dotted_length(group.as_bytes()) == group.len() && group.split('.').count() == 4;
                return is_whole.then_some((number + 2, true));
            }
            if !(1..=4).contains(&group.len()) || !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return None;
            }
            number += 1;
        }
        Some((number, false))
    };
    match text.split_once("::") {
        None => groups(text).is_some_and(|(number, _)| number == 8),
        Some((before, after)) => match (groups(before), groups(after)) {
            (Some((first, false)), Some((second, _))) => first + second <= 7,
            _ => false,
        },
    }
}

/// Decimal, octal after `0`, hexadecimal after `0x`.
fn number(text: &str) -> Result<u32, String> {
    let overflow = || format!("number {text} overflows 32 bits");
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (text.get(2..).unwrap_or_default(), 16),
        [b'0', _, ..] => (text.get(1..).unwrap_or_default(), 8),
        _ => (text, 10),
    };
    if radix == 8 && digits.bytes().any(|digit| digit > b'7') {
        return Err(format!("number {text} contains non-octal digit"));
    }
    u32::from_str_radix(digits, radix).map_err(|_| overflow())
}

/// The error for a token that no rule accepts.
pub(crate) fn unexpected(token: &Token) -> FilterError {
    match &token.what {
        TokenKind::Bad(Some(why)) => FilterError::new(why.clone(), token.at),
        _ => FilterError::syntax(token.at),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn kinds(text: &str) -> String {
        let show = |token: Token| match token.what {
            TokenKind::Word(word) => format!("{word:?}"),
            TokenKind::Num(number) => number.to_string(),
            TokenKind::Name(name) => format!("name:{name}"),
            TokenKind::Ipv4(text) => format!("v4:{text}"),
            TokenKind::Ipv6(text, _) => format!("v6:{text}"),
            TokenKind::Ether(bytes) => format!("ether:{bytes:x?}"),
            TokenKind::Arcnet => "arcnet".to_owned(),
            TokenKind::Sign(sign) => char::from(sign).to_string(),
            TokenKind::Pair(pair) => String::from_utf8_lossy(&pair).into_owned(),
            TokenKind::Bad(why) => format!("bad:{}", why.unwrap_or_default()),
            TokenKind::End => ".".to_owned(),
        };
        tokens(text).into_iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_longest_match_counts() {
        for (text, wanted) in [
            ("portrange 10-20", "Kind(Portrange) name:10-20 ."),
            ("10.0.0.1 10.1 1.2.3.4.5", "v4:10.0.0.1 v4:10.1 name:1.2.3.4.5 ."),
            (
                "::1 fe80::1:2 1:2:3:4:5:6:7:8 ::ffff:1.2.3.4",
                "v6:::1 v6:fe80::1:2 v6:1:2:3:4:5:6:7:8 v6:::ffff:1.2.3.4 .",
            ),
            ("0:1:2:a:b:ff", "ether:[0, 1, 2, a, b, ff] ."),
            ("0011.2233.4455 001122334455", "ether:[0, 11, 22, 33, 44, 55] ether:[0, 11, 22, 33, 44, 55] ."),
            ("tcp[tcpflags]&tcp-syn!=0", "Proto(Tcp) [ 13 ] & 2 != 0 ."),
            ("0x1F 017 089", "31 15 bad:number 089 contains non-octal digit ."),
            ("4294967296", "bad:number 4294967296 overflows 32 bits ."),
            ("1:2:", "bad:bogus ethernet address 1:2: ."),
            ("::300.1.1.1", "bad:bogus IPv6 address ::300.1.1.1 ."),
            ("\\tcp $a é", "name:tcp arcnet bad: ."),
            ("es-is a-_", "Proto(Esis) name:a - bad: ."),
        ] {
            assert_eq!(kinds(text), wanted, "{text}");
        }
    }
}
