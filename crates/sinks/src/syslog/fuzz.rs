//! The entry point of the fuzzer: messages from any bytes keep their frame.

use super::{Message, Origin, Priority, Rfc5424, frame_octets};
use record::{Column, Columns, Kind, Value};

/// Writes a message whose host name, cells and text are parts of `data`, and checks that it is one line of UTF-8
/// within its frame, with its elements in the right places.
pub fn fuzz_syslog_formats(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == 0);
    let mut part = || parts.next().unwrap_or_default();
    let hostname = String::from_utf8_lossy(part());
    let columns = Columns(["prefix", "user"].map(|name| Column { name: name.into(), kind: Kind::Text }).to_vec());
    let origin = Origin { hostname: &hostname, pid: 1, priority: Priority::default() };
    let mut writer = Rfc5424::new(&origin, "log", &columns);
    let (cells, text) = ([Value::nonempty(part()), Value::Bytes(part())], part());
    let mut stream = Vec::new();
    for text in [Some(text), None] {
        let message = Message { time_ns: 0, sequence_id: 1, msgid: "input", cells: &cells, text };
        frame_octets(&mut stream, |out| writer.put(&message, out));
    }
    let mut rest = std::str::from_utf8(&stream).unwrap_or("\0");
    assert!(!rest.chars().any(char::is_control), "a control byte went through, or what is not UTF-8");
    while !rest.is_empty() {
        let framed = rest.split_once(' ').and_then(|(length, rest)| rest.split_at_checked(length.parse().ok()?));
        let (message, behind) = framed.unwrap_or_default();
        let elements = message.splitn(7, ' ').last().and_then(elements);
        assert_eq!(elements, Some(2), "{message}");
        rest = behind;
    }
}

/// Counts the elements at the beginning; `None` if one is cut off.
fn elements(text: &str) -> Option<usize> {
    let (mut count, mut in_value, mut in_element) = (0, false, false);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' if !in_element => (in_element, count) = (true, count + 1),
            _ if !in_element => break,
            b'"' => in_value = !in_value,
            b'\\' if in_value => _ = bytes.next()?,
            b']' if in_value => return None,
            b']' => in_element = false,
            _ => {}
        }
    }
    (!in_element).then_some(count)
}
