//! FILTER: pcap-filter's language, netwren's own fields, or both in one text.
//!
//! A text that is a valid filter over netwren's fields is treated as one, as in every table. Otherwise comparisons of
//! fields (`info ~ x`) are placeholder words in the pcap-filter expression: the compiler treats them as unknown, and
//! the kernel passes every packet that they might accept.

use crate::commands::plan;
use crate::flags::request::Request;
use crate::flags::shell_line::shell_line;
use engine::{Predicate, filter};
use lookups::filter_names::FilterNames;
use pcapfilter::{ExtraWord, FilterTarget, LinkType, PacketOrigin};
use record::Schema;
use record::Table;
use record::rows::{CapturedPackets, capture_need};
use std::path::Path;

/// The error for a looked-up name combined with `or` or `not`.
const BY_AND: &str = "can be combined with pcap-filter expressions only by `and`";
/// A word that has its own command.
const DROPPED: &str = "dropped";
/// The hint for that word.
const OF_DROPS: &str = "\ndropped packets belong to no interface: `netwren drops --events` shows them with reason and \
     place, `netwren drops -w FILE` writes them, `netwren drops -w - | netwren capture -r -` decodes them";
/// Maximum number of field comparisons in one text.
const WORDS_MAX: usize = 26;
/// Placeholder words for them in the text for the compiler; as short as the shortest comparison, so that columns in
/// errors stay correct.
const WORDS: [ExtraWord; WORDS_MAX] = {
    const NAMES: [&str; WORDS_MAX] = [
        "zqa", "zqb", "zqc", "zqd", "zqe", "zqf", "zqg", "zqh", "zqi", "zqj", "zqk", "zql", "zqm", "zqn", "zqo", "zqp",
        "zqq", "zqr", "zqs", "zqt", "zqu", "zqv", "zqw", "zqx", "zqy", "zqz",
    ];
    let mut words = [ExtraWord { name: "", takes_argument: false }; WORDS_MAX];
    let mut at = 0;
    while at < WORDS_MAX {
        words[at].name = NAMES[at];
        at += 1;
    }
    words
};

/// Returns the target for packets of interfaces whose VLAN tags are all in the packet bytes, as on the wire.
pub(super) fn live_target(link: LinkType, snaplen: u32) -> FilterTarget {
    FilterTarget { link, origin: PacketOrigin::Live { vlan_beside: false }, snaplen, netmask: None }
}

/// Returns the target for Ethernet packets whose outer VLAN tag the kernel keeps outside the packet.
pub(super) fn tagged_target(snaplen: u32) -> FilterTarget {
    FilterTarget { origin: PacketOrigin::LiveTagged, ..live_target(LinkType::Ethernet, snaplen) }
}

/// A filter, split by language.
#[derive(Debug, Default)]
pub(super) struct JoinedFilter {
    /// The part tested by the plan.
    pub(super) fields: String,
    /// The part tested by the kernel or the interpreter; None if the filter uses only netwren's fields.
    pub(super) pcap: Option<PcapFilter>,
}

/// The part in pcap-filter's language.
#[derive(Debug)]
pub(super) struct PcapFilter {
    /// The text, with placeholder words for field comparisons.
    text: String,
    /// The comparisons; `None` for one that the plan tests.
    own: Vec<Option<OwnTest>>,
    names: FilterNames,
}

/// A field comparison within a pcap-filter expression.
pub(super) struct OwnTest {
    pub(super) predicate: Predicate<CapturedPackets>,
    /// The data that its fields need beyond the headers.
    pub(super) need: u64,
}

impl std::fmt::Debug for OwnTest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OwnTest({})", self.need)
    }
}

impl JoinedFilter {
    /// Parses the filter of the request. The error is for the user.
    pub(super) fn of(request: &Request) -> Result<JoinedFilter, String> {
        let text = request.shown.filter.trim();
        let bound = filter::parse(text).map(|ast| plan::bind(Schema::from_table::<CapturedPackets>(), request, &ast));
        if let Ok(Ok(_)) = bound {
            return Ok(JoinedFilter { fields: text.to_owned(), pcap: None });
        }
        let comparisons = comparisons(text);
        if comparisons.len() > WORDS_MAX {
            return Err(format!("more than {WORDS_MAX} field comparisons within a pcap-filter expression"));
        }
        let mut joined = JoinedFilter::default();
        let is_chain = is_chain(text, &comparisons);
        let (mut pcap, mut own) = (text.to_owned(), Vec::new());
        for (found, word) in comparisons.iter().zip(WORDS) {
            let test = text.get(found.begin..found.end).unwrap_or_default();
            if is_chain {
                joined.fields.push_str(if joined.fields.is_empty() { "" } else { " and " });
                joined.fields.push_str(test);
            }
            own.push(if is_chain { None } else { Some(own_test(request, test, BY_AND)?) });
            pcap.replace_range(found.begin..found.end, &format!("{:1$}", word.name, found.end - found.begin));
        }
        let part = PcapFilter { text: pcap, own, names: FilterNames::default() };
        let refusal = match (part.check(), bound) {
            (Ok(()), _) => return Ok(JoinedFilter { pcap: Some(part), ..joined }),
            // It parses as a filter over fields, but one field is unknown: that error suggests the right one.
            (Err(_), Ok(Err(unknown))) => unknown.to_string(),
            (Err(refusal), _) => refusal,
        };
        let is_about_drops = text.split(|c: char| !c.is_alphanumeric()).any(|word| word == DROPPED);
        Err(if is_about_drops { refusal + OF_DROPS } else { refusal + &with_interface(request, text) })
    }
}

/// Returns a line that suggests `-i` if the first word of a filter is the name of an interface; else an empty text.
fn with_interface(request: &Request, text: &str) -> String {
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if !is_plain || !Path::new("/sys/class/net").join(name).exists() {
        return String::new();
    }
    let mut of_rest = request.clone();
    rest.trim().clone_into(&mut of_rest.shown.filter);
    if JoinedFilter::of(&of_rest).is_err() {
        return String::new();
    }
    let words: Vec<_> = [name, rest.trim()].into_iter().filter(|word| !word.is_empty()).map(Into::into).collect();
    shell_line(&words).map_or_else(String::new, |words| format!("\ndid you mean: netwren capture -i {words}"))
}

impl PcapFilter {
    /// Compiles the filter. An error has libpcap's words and the column.
    pub(super) fn compile(&self, target: &FilterTarget) -> Result<pcapfilter::Filter, String> {
        self.compile_text(&self.text, target)
    }

    fn compile_text(&self, text: &str, target: &FilterTarget) -> Result<pcapfilter::Filter, String> {
        let words = WORDS.get(..self.own.len()).unwrap_or_default();
        let compiled = pcapfilter::compile_with(text, target, &self.names, words);
        compiled.map_err(|refusal| format!("filter, column {}: {refusal}", refusal.column))
    }

    /// Compiles the filter so that it passes packets that match as they are or inside one VLAN tag.
    pub(super) fn compile_behind_tag(&self, target: &FilterTarget) -> Result<pcapfilter::Filter, String> {
        let text = &self.text;
        self.compile_text(&format!("({text}) or (vlan and ({text}))"), target)
    }

    /// True if the filter text has the word `vlan`.
    pub(super) fn is_about_tags(&self) -> bool {
        self.text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| word == "vlan")
    }

    /// Fails unless the expression compiles for Ethernet, the link type with the most features.
    fn check(&self) -> Result<(), String> {
        self.compile(&live_target(LinkType::Ethernet, u32::MAX)).map(|_| ())
    }

    /// The field comparison of a placeholder word; `None` if the plan tests it.
    pub(super) fn own(&self, word: usize) -> Option<&OwnTest> {
        self.own.get(word)?.as_ref()
    }
}

/// A test on packet contents. `refusal` is the error for a field that is looked up elsewhere.
pub(super) fn own_test(request: &Request, text: &str, refusal: &str) -> Result<OwnTest, String> {
    let ast = filter::parse(text).map_err(|error| error.to_string())?;
    let expr = plan::bind(Schema::from_table::<CapturedPackets>(), request, &ast).map_err(|error| error.to_string())?;
    let (mut need, mut elsewhere) = (0, None);
    expr.for_each_test(&mut |test| {
        let Some(field) = CapturedPackets::FIELDS.get(test.field) else { return };
        need |= field.need;
        let is_elsewhere = field.lookup().is_some() || field.need & (capture_need::OWNERS | capture_need::ENTRY) != 0;
        elsewhere = elsewhere.or(is_elsewhere.then_some(field.name));
    });
    if let Some(name) = elsewhere {
        return Err(format!("`{name}` {refusal}"));
    }
    let predicate = Predicate::new(&expr.into_conjuncts()).map_err(|bad| format!("{}: {}", bad.pattern, bad.why))?;
    Ok(OwnTest { predicate, need })
}

/// A field comparison in a text.
#[derive(Debug, PartialEq, Eq)]
struct Comparison {
    begin: usize,
    end: usize,
    /// True outside brackets and without a preceding `not`.
    is_plain: bool,
}

/// True if the text joins its parts only by `and`, and all comparisons are among these parts.
fn is_chain(text: &str, comparisons: &[Comparison]) -> bool {
    let mut depth = 0;
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        if let Some(found) = comparisons.iter().find(|found| found.begin == at) {
            at = found.end;
            continue;
        }
        let word = word_at(text, at);
        let is_or = word == "or" || text.get(at..).is_some_and(|rest| rest.starts_with("||"));
        if depth == 0 && is_or {
            return false;
        }
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        at += word.len().max(1);
    }
    comparisons.iter().all(|found| found.is_plain)
}

/// The word at this position: letters, digits, `_` and `.`; empty if there is no word.
fn word_at(text: &str, at: usize) -> &str {
    let rest = text.get(at..).unwrap_or_default();
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    rest.get(..rest.find(|c| !is_inner(c)).unwrap_or(rest.len())).unwrap_or_default()
}

/// All `field op value` comparisons in the text. `len` also exists in pcap-filter with the same meaning and is left to
/// it.
fn comparisons(text: &str) -> Vec<Comparison> {
    let (mut found, mut at, mut depth, mut is_negated) = (Vec::new(), 0, 0, false);
    while let Some(byte) = text.as_bytes().get(at) {
        let word = word_at(text, at);
        let is_field = word != "len" && filter::is_known_name(Schema::from_table::<CapturedPackets>(), word);
        if let Some(end) = Some(at + word.len()).filter(|_| is_field).and_then(|at| end_of_comparison(text, at)) {
            found.push(Comparison { begin: at, end, is_plain: depth == 0 && !is_negated });
            (at, is_negated) = (end, false);
            continue;
        }
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            is_negated = word == "not" || *byte == b'!';
        }
        at += word.len().max(1);
    }
    found
}

/// The end of the operator and the value at this position; `None` without them.
fn end_of_comparison(text: &str, at: usize) -> Option<usize> {
    const SIGNS: [&str; 9] = ["==", "!=", "<=", ">=", "!~", "=", "<", ">", "~"];
    let blank = |at: usize| text.get(at..).map_or(at, |rest| at + rest.len() - rest.trim_start().len());
    let mut at = blank(at);
    let rest = text.get(at..)?;
    at = match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
        Some(sign) => at + sign.len(),
        None if word_at(text, at) == "in" => at + 2,
        None if word_at(text, at) == "not" && word_at(text, blank(at + 3)) == "in" => blank(at + 3) + 2,
        None => return None,
    };
    end_of_value(text, blank(at))
}

/// The end of a value: a bare word, quoted text, or a list in brackets.
fn end_of_value(text: &str, begin: usize) -> Option<usize> {
    let (mut quote, mut is_escaped) = (None, false);
    let is_list = text.get(begin..)?.starts_with('(');
    for (at, c) in text.get(begin..)?.char_indices().map(|(at, c)| (begin + at, c)) {
        match (quote, c) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), c) if c == open => {
                quote = None;
                if !is_list {
                    return Some(at + 1);
                }
            }
            (Some(_), _) => {}
            (None, '"' | '\'') if is_list || at == begin => quote = Some(c),
            (None, ')') if is_list => return Some(at + 1),
            (None, c) if !is_list && (c.is_whitespace() || c == ')') => return (at > begin).then_some(at),
            _ => {}
        }
    }
    (!is_list && quote.is_none() && begin < text.len()).then_some(text.len())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn joined(text: &str) -> Result<JoinedFilter, String> {
        let mut request = Request::of_line("").unwrap();
        request.shown.filter = text.to_owned();
        JoinedFilter::of(&request)
    }

    #[test]
    fn each_language_is_known_by_itself() {
        for fields in ["", "proto = udp and dport = 53", "len > 100", "src in 10.0.0.0/8 or not iface = lo"] {
            let joined = joined(fields).unwrap();
            assert!(joined.fields == fields && joined.pcap.is_none(), "{fields}");
        }
        for pcap in ["port 53", "tcp port 443 and len > 100", "ip[0] & 0xf != 5", "host 10.0.0.1 or 10.0.0.2", "tcp"] {
            let joined = joined(pcap).unwrap();
            assert_eq!((joined.fields.as_str(), joined.pcap.unwrap().text.as_str()), ("", pcap));
        }
    }

    #[test]
    fn dropped_packets_are_found_elsewhere() {
        for text in ["dropped", "port 53 and dropped", "dropped = true"] {
            assert!(joined(text).unwrap_err().ends_with(OF_DROPS), "{text}");
        }
        assert!(!joined("port dropped1").unwrap_err().contains("netwren drops"));
    }

    #[test]
    fn both_in_one_text_are_joined() {
        for (text, fields, pcap) in [
            ("port 443 and info ~ x", "info ~ x", "port 443 and zqa     "),
            (
                "ttl<5 && port 443 and iface in (lo, eth0)",
                "ttl<5 and iface in (lo, eth0)",
                "zqa   && port 443 and zqb                ",
            ),
            ("port 53 and info ~ 'a or (b'", "info ~ 'a or (b'", "port 53 and zqa             "),
            ("(port 53 or 54) and ttl = 1", "ttl = 1", "(port 53 or 54) and zqa    "),
            ("port 53 or info ~ x", "", "port 53 or zqa     "),
            ("port 53 and not info ~ x", "", "port 53 and not zqa     "),
            ("port 53 and (ttl = 1)", "", "port 53 and (zqa    )"),
            ("port 53 and ttl not in (1, 2)", "ttl not in (1, 2)", "port 53 and zqa              "),
        ] {
            let joined = joined(text).unwrap();
            let part = joined.pcap.unwrap();
            assert_eq!((joined.fields.as_str(), part.text.as_str()), (fields, pcap), "{text}");
            assert!(part.own.iter().all(|own| own.is_none() != fields.is_empty()), "{text}");
        }
    }

    #[test]
    fn a_refusal_has_its_words_and_column() {
        for (text, says) in [
            ("port 53 and", "filter, column 12: can't parse filter expression: syntax error"),
            ("tcp port http-nope", "filter, column"),
            ("port 53 or src_process = x", "`src_process` can be combined with pcap-filter expressions only by `and`"),
            ("port 53 or netns = x", "`netns` can be combined with pcap-filter expressions only by `and`"),
            ("dprot = 22", "dport"),
            ("port 53 or ttl = many", "many"),
            ("lo", "\ndid you mean: netwren capture -i lo"),
            ("lo port 80", "\ndid you mean: netwren capture -i lo 'port 80'"),
        ] {
            let said = joined(text).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
