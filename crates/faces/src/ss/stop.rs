//! Results that end a run before it starts: help, version, errors.

use crate::ss::output::Layout;
use crate::text::warn;

/// The stream for the usage text, which follows the other text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    /// The usage is not printed.
    None,
    /// Stdout, because the user requested it.
    Out,
    /// Stderr, after an error.
    Err,
}

/// Text for both streams, and ss's exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// For stdout.
    pub(super) out: String,
    /// For stderr.
    pub(super) err: String,
    /// The stream for the usage.
    pub(super) usage: Usage,
    /// 0, 1 for a bad operand, 255 for a bad command line.
    pub(super) code: u8,
}

impl Stop {
    /// Prints the text and returns the exit code. After an error the bytes are the tool's own; requested text also
    /// mentions netwren, unless `bug_compatible` is set.
    pub(super) fn tell(mut self, layout: Layout, bug_compatible: bool) -> u8 {
        match self.usage {
            Usage::None => {}
            Usage::Out => self.out += &usage(layout),
            Usage::Err => self.err += &usage(layout),
        }
        if self.usage == Usage::Out && !bug_compatible {
            self.out += BEYOND;
        }
        // A closed stderr is ignored.
        warn(&self.err);
        match sys::Out::stdout().write_all(self.out.as_bytes()) {
            Ok(()) | Err(sys::OutError::Closed) => self.code,
            Err(error) => {
                warn(&format!("ss: {error}\n"));
                1
            }
        }
    }

    /// An error without the usage.
    pub(super) fn fail(line: String, code: u8) -> Stop {
        Stop { out: String::new(), err: line + "\n", usage: Usage::None, code }
    }

    /// An error in the command line, followed by the usage.
    pub(super) fn usage(line: String) -> Stop {
        Stop { usage: Usage::Err, ..Stop::fail(line, 255) }
    }

    /// A feature that ss has and this face does not.
    pub(super) fn unsupported(what: &str, instead: &str) -> Stop {
        Stop::fail(format!("ss: {what} is not supported: {instead}"), 255)
    }

    /// A message that there is nothing to show, which is not an error.
    pub(super) fn nothing(what: &str) -> Stop {
        Stop::fail(format!("ss: {what} to show with such filter."), 0)
    }

    pub(super) fn help() -> Stop {
        Stop { out: String::new(), err: String::new(), usage: Usage::Out, code: 0 }
    }

    pub(super) fn version(layout: Layout, bug_compatible: bool) -> Stop {
        let iproute2 = if layout == Layout::V6_1 { "6.1.0" } else { "6.15.0" };
        let ours = if bug_compatible { "" } else { concat!(", netwren ", env!("CARGO_PKG_VERSION")) };
        let out = format!("ss utility, iproute2-{iproute2}{ours}\n");
        Stop { out, err: String::new(), usage: Usage::None, code: 0 }
    }
}

/// The usage of ss 6.15. The usage of 6.1 leaves out the lines with newer switches.
const USAGE: &str = include_str!("usage.txt");

/// The lines after a requested usage.
const BEYOND: &str = "
This is netwren, in place of ss. Right after ss: --bug-compatible reproduces errors of ss.
The layout follows the installed ss, otherwise 6.15; NETWREN_SS_LAYOUT=6.1 or 6.15 selects one.
netwren's own command: netwren sockets --help
";

/// Switches unknown to 6.1.
pub(super) const SINCE_6_15: &[&str] = &["bound-inactive", "no-queues", "bpf-maps", "bpf-map-id"];

fn usage(layout: Layout) -> String {
    let is_new = |line: &&str| SINCE_6_15.iter().any(|switch| line.contains(&format!("--{switch}")));
    USAGE.split_inclusive('\n').filter(|line| layout == Layout::V6_15 || !is_new(line)).collect()
}
