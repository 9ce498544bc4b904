//! Facility and severity of messages.

/// Words of the facilities from syslog(3), by number.
const FACILITIES: &[&str] = &[
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp", "ntp",
    "security", "console", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
];
/// Words of the severities by number.
const SEVERITIES: &[&str] = &["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];

/// Facility and severity as one number, the `PRI` of a message (RFC 5424, 6.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority(u8);

impl Default for Priority {
    /// `daemon.notice`. Only the kernel itself uses the facility `kern`.
    fn default() -> Priority {
        Priority(3 * 8 + 5)
    }
}

impl Priority {
    /// Parses a priority: `local0.info`; a facility alone gets the severity `notice`. Numbers are also accepted:
    /// `16.6`. `None` for any other word.
    pub fn parse(words: &str) -> Option<Priority> {
        let (facility, severity) = words.split_once('.').unwrap_or((words, "notice"));
        let number = |word: &str, known: &[&str]| {
            let by_word = known.iter().position(|known| *known == word);
            by_word.or_else(|| word.parse().ok().filter(|number| *number < known.len()))
        };
        let number = number(facility, FACILITIES)? * 8 + number(severity, SEVERITIES)?;
        u8::try_from(number).ok().map(Priority)
    }

    /// Returns facility and severity as one number, 0 to 191.
    pub fn number(self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers() {
        for (words, number) in [
            ("kern.emerg", Some(0)),
            ("daemon.notice", Some(29)),
            ("daemon", Some(29)),
            ("local2.notice", Some(149)),
            ("local7.debug", Some(191)),
            ("16.6", Some(134)),
            ("24.0", None),
            ("daemon.8", None),
            ("", None),
            ("daemon.", None),
            ("-1.0", None),
        ] {
            assert_eq!(Priority::parse(words).map(Priority::number), number, "{words}");
        }
        assert_eq!(Priority::default(), Priority(29));
    }
}
