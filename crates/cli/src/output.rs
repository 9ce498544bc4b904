//! Which sink a request gets: by format, and by what standard output is.

use crate::exit::Exit;
use crate::flags::request::{Format, Request};
use crate::fold::fold;
use crate::local_time::local_time;
use crate::stdout::Stdout;
use record::Sink;
use sinks::{Csv, FormatOptions, HomeText, HomeTextOptions, Json, LogTail, LogTailOptions, Out, TableWriter, Text};

/// The sink for this request on standard output.
pub(crate) fn sink(request: &Request) -> Box<dyn Sink> {
    if let Some(bundle) = &request.bundle {
        return bundle.sink();
    }
    let terminal = sys::term::is_terminal(1);
    let out = Out::new(Stdout::new());
    let options = FormatOptions {
        header: request.header,
        color: request.color.unwrap_or_else(|| terminal && colour_is_welcome()),
        null_words: request.null_words,
        stats: request.stats,
        cpu_us: Some(cpu_us),
    };
    match request.format {
        Format::LogTail => Box::new(log_tail(request, out, options.color)),
        Format::Home => Box::new(HomeText::new(out, HomeTextOptions { color: options.color, width: terminal_width() })),
        Format::Json => Box::new(Json::new(out, options)),
        Format::Csv => Box::new(Csv::new(out, options)),
        Format::Table if terminal || request.color == Some(true) => Box::new(TableWriter::new(out, options)),
        Format::Table => Box::new(Text::new(out, options)),
    }
}

/// Log records in words, cut where the terminal ends.
fn log_tail(request: &Request, out: Out<Stdout>, color: bool) -> LogTail<Stdout> {
    let clock = |seconds: u64| {
        let at = local_time(i64::try_from(seconds).ok()?)?;
        Some([at.hour, at.minute, at.second])
    };
    LogTail::new(out, LogTailOptions { color, width: terminal_width(), with_netns: request.all_netns, clock })
}

/// Columns of the terminal that standard output is; `None` if it is none.
fn terminal_width() -> Option<usize> {
    let stdout = sys::term::STDOUT;
    sys::term::is_terminal(stdout).then(|| sys::term::width(stdout).unwrap_or(80))
}

/// Prints a text that is no table, as it is.
pub(crate) fn print(text: &str) -> Exit {
    match sys::Out::stdout().write_all(text.as_bytes()) {
        Ok(()) | Err(sys::OutError::Closed) => Exit::Ok,
        Err(error) => {
            crate::messages::say(&error.to_string());
            Exit::Failed
        }
    }
}

/// Prints sentences: on a terminal folded at its width.
pub(crate) fn print_prose(text: &str) -> Exit {
    let stdout = sys::term::STDOUT;
    let width = if sys::term::is_terminal(stdout) { sys::term::width(stdout) } else { None };
    match width {
        Some(width) => print(&fold(text, width)),
        None => print(text),
    }
}

/// Prints what is wrong with the words of a command, or the help that they asked for.
pub(crate) fn refused(error: &clap::Error) -> Exit {
    if error.use_stderr() {
        let _ = error.print();
        return Exit::Usage;
    }
    // clap's own print would not tell that nothing was written.
    print_prose(&error.render().to_string())
}

/// NO_COLOR (https://no-color.org) and dumb terminals want none.
fn colour_is_welcome() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

fn cpu_us() -> u64 {
    let cost = sys::cost::so_far();
    cost.user_us + cost.system_us
}
