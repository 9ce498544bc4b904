//! Reads the lines of an ulogd.conf: sections with keys and values, each parsed once, without interpreting keys.

/// One section.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// The text between its brackets; empty for lines before the first section.
    pub(super) name: String,
    /// Its keys in order.
    pub(super) settings: Vec<Setting>,
}

/// `key=value`
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// Line number, starting at 1.
    pub(super) line: usize,
    pub(super) key: String,
    /// The value, unquoted.
    pub(super) value: String,
}

/// A problem of the file that prevents the run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    /// Line number.
    pub(super) line: usize,
    pub(super) text: String,
}

impl Complaint {
    pub(super) fn new(line: usize, text: impl Into<String>) -> Complaint {
        Complaint { line, text: text.into() }
    }
}

/// Maximum line length that the tool reads.
const LINE_MAX: usize = 254;

/// Reads the sections of a file, merging sections with equal names. Reports lines that are neither sections nor
/// settings.
pub(super) fn read(text: &str, complaints: &mut Vec<Complaint>) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut here = 0;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.len() > LINE_MAX {
            complaints.push(Complaint::new(number, format!("the line has more than {LINE_MAX} bytes")));
            continue;
        }
        if let Some(name) = section(line) {
            here = sections.iter().position(|known| known.name == name).unwrap_or_else(|| {
                sections.push(Section { name: name.to_owned(), settings: Vec::new() });
                sections.len() - 1
            });
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            let text = format!("`{line}` is neither [section] nor key=value");
            complaints.push(Complaint::new(number, text));
            continue;
        };
        let Some(value) = value_of(value) else {
            complaints.push(Complaint::new(number, format!("the quotation mark of {} is not closed", key.trim())));
            continue;
        };
        let setting = Setting { line: number, key: key.trim().to_owned(), value: value.to_owned() };
        match sections.get_mut(here) {
            Some(section) => section.settings.push(setting),
            None => complaints.push(Complaint::new(number, "a setting above the first [section]")),
        }
    }
    sections
}

/// The name in brackets; text after them is ignored.
fn section(line: &str) -> Option<&str> {
    Some(line.strip_prefix('[')?.split_once(']')?.0.trim())
}

/// Returns the quoted value, or the first word, which a comment may follow. Returns `None` if the closing quotation
/// mark is missing; the tool then uses the name of the key as the value.
fn value_of(text: &str) -> Option<&str> {
    let text = text.trim();
    match text.strip_prefix('"') {
        Some(rest) => rest.split_once('"').map(|(value, _)| value),
        None => Some(text.split_whitespace().next().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_settings() {
        let text = "# ulogd\n\n[global]\nlogfile=\"syslog\"\nstack=a:NFLOG,b:LOGEMU\n[ log ] x\n group = 1 # one\n\
                    file=\"/a b#c\" # d\nbroken\n[global]\nloglevel=3\nlogfile=\"/x\nrmem=\"\n";
        let mut complaints = Vec::new();
        let sections = read(text, &mut complaints);
        let mut shown = Vec::new();
        for section in &sections {
            let settings = section.settings.iter();
            shown.extend(settings.map(|one| (section.name.as_str(), one.line, one.key.as_str(), one.value.as_str())));
        }
        let wanted = [
            ("global", 4, "logfile", "syslog"),
            ("global", 5, "stack", "a:NFLOG,b:LOGEMU"),
            ("global", 11, "loglevel", "3"),
            ("log", 7, "group", "1"),
            ("log", 8, "file", "/a b#c"),
        ];
        assert_eq!(shown, wanted);
        let open = |line, key: &str| Complaint::new(line, format!("the quotation mark of {key} is not closed"));
        let broken = Complaint::new(9, "`broken` is neither [section] nor key=value");
        assert_eq!(complaints, [broken, open(12, "logfile"), open(13, "rmem")]);
    }

    #[test]
    fn nothing_above_the_first_section() {
        let mut complaints = Vec::new();
        assert!(read("a=1\n", &mut complaints).is_empty());
        assert_eq!(complaints, [Complaint::new(1, "a setting above the first [section]")]);
    }
}
