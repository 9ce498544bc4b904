//! Parses the `format` file of the tracepoint `skb:kfree_skb`: the offsets of its fields, and the names of its reasons.

/// Offsets of the fields of an event, in bytes from its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TraceFormat {
    /// The number at the start of such events.
    pub(crate) id: u16,
    /// The address in the function that dropped the packet.
    pub(crate) location: usize,
    /// EtherType.
    pub(crate) protocol: usize,
    /// The reason (5.17).
    pub(crate) reason: Option<usize>,
    /// Number and name of each reason.
    pub(crate) reasons: Vec<(u32, Box<str>)>,
}

/// Parses the file; `None` if it is another file. Survives any text.
pub(crate) fn parse(text: &str) -> Option<TraceFormat> {
    let mut format = TraceFormat::default();
    let (mut location, mut protocol, mut id) = (None, None, None);
    for line in text.lines() {
        if let Some(number) = line.strip_prefix("ID: ") {
            id = number.trim().parse().ok();
        }
        if let Some((name, offset)) = field_of(line) {
            match name {
                "location" => location = Some(offset),
                "protocol" => protocol = Some(offset),
                "reason" => format.reason = Some(offset),
                _ => {}
            }
        }
        if let Some((_, words)) = line.split_once("__print_symbolic(REC->reason,") {
            format.reasons = words.split('{').filter_map(reason_of).collect();
        }
    }
    (format.id, format.location, format.protocol) = (id?, location?, protocol?);
    Some(format)
}

/// `field:void * location; offset:16; size:8; signed:0;`, with tabs between.
fn field_of(line: &str) -> Option<(&str, usize)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';');
    let name = parts.next()?.rsplit([' ', '*']).next()?;
    let offset = parts.next()?.trim().strip_prefix("offset:")?.parse().ok()?;
    Some((name, offset))
}

/// ` 3, "NO_SOCKET" }, `
fn reason_of(words: &str) -> Option<(u32, Box<str>)> {
    let (number, rest) = words.split_once(',')?;
    let name = rest.split('"').nth(1)?;
    Some((number.trim().parse().ok()?, name.into()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The file of Linux 6.18, shortened.
    const FORMAT: &str = "name: kfree_skb\nID: 2310\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\t\
        signed:0;\n\n\tfield:void * skbaddr;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:void * location;\toffset:16;\t\
        size:8;\tsigned:0;\n\tfield:unsigned short protocol;\toffset:32;\tsize:2;\tsigned:0;\n\tfield:enum \
        skb_drop_reason reason;\toffset:36;\tsize:4;\tsigned:0;\n\nprint fmt: \"protocol=%u reason: %s\", \
        REC->protocol, __print_symbolic(REC->reason, { 2, \"NOT_SPECIFIED\" }, { 3, \"NO_SOCKET\" })\n";

    #[test]
    fn fields_and_reasons() {
        let reasons = vec![(2, "NOT_SPECIFIED".into()), (3, "NO_SOCKET".into())];
        let format = TraceFormat { id: 2310, location: 16, protocol: 32, reason: Some(36), reasons };
        assert_eq!(parse(FORMAT), Some(format));
        let before = parse(&FORMAT.replace("reason", "other")).unwrap();
        assert_eq!((before.reason, before.reasons), (None, Vec::new()));
        assert_eq!(parse("name: kfree_skb\n"), None);
    }
}
