//! The field tables as documents: `--columns help` and docs/schema.md.

use crate::command::Commands;
use record::{Kind, Schema, Show};
use std::fmt::Write;

/// The end of the page; GROUPS_MAX stands for the number.
const GROUPS: &str = "\n## groups (`--by`)\n\n\
     The keys, then `count`, then `sum_x`, `max_x`, `avg_x` for each field of --sum, --max, --avg.\n\
     The largest groups come first: by the first of these columns, or by `count`.\n\
     The name of an endpoint (`peer`, `local`, `src`, `dst`, `client` and so on) means its address; name the port \
     as well to group by both (`peer_addr,peer_port`).\n\
     A prefix length after an address groups by network, in CIDR notation: `peer_addr/24`, `client/16`.\n\
     A single length applies to IPv4 and IPv6, above 32 to IPv6 only; `peer_addr/24/64` has one for each.\n\
     Remote senders choose how many groups of packets, log records and single drops there are. netwren keeps \
     GROUPS_MAX of them at once, fewer with long texts.\n\
     It counts the smallest groups beyond that together, in a row whose keys are all null, reports this and exits \
     with 3: no group with more than\n\
     one in 32,768 of all rows ends up there, and no group lacks more rows than that.\n\n\
     ## accounting\n\nThe last JSON object with `--stats`: \
     `{\"accounting\":{seen, emitted, filtered, grouped, duplicates, cut, failed, lost, why:[{count, text}], via, \
     cpu_ms}}`.\n\
     With `--watch` each round begins with `{\"round\":{\"n\":1,\"time\":\"…\"}}`.\n";

/// The content of docs/schema.md: the tables of all commands with every field.
pub(crate) fn markdown(commands: Commands) -> String {
    let mut page = String::from(
        "# Schema\n\n\
         Generated from the field tables by `cargo xtask gen`; do not edit. Names are column headers, filter words \
         and\n\
         JSON keys. A name ends in its unit; a missing value is `null` in JSON, `-` in text and empty in CSV.\n\
         *default* fields are always shown, *wide* ones also with `-o wide` and in JSON. *unusual* ones are wide, and\n\
         in an aligned table also if a row has a value that is not *false*. *on request* ones are shown only with\n\
         `--columns`: the kernel is asked for them only then. A table that is too wide for the terminal leaves out\n\
         columns, the last ones first unless noted otherwise; columns named by `--columns` and `--sort` go last.\n\n\
         Owners in text and CSV are `PROCESS[PID].FD`, separated by `,`; `,`, `[` and `]` in a process name are \
         written\n\
         `\\x2c`, `\\x5b`, `\\x5d`. In CSV, untrusted text that begins with `=`, `+`, `-`, `@`, tab, CR or `'` is \
         preceded\n\
         by an apostrophe (a spreadsheet would evaluate it otherwise); numbers are not.\n",
    );
    let mut written: Vec<&str> = Vec::new();
    for table in commands.iter().flat_map(|command| command.tables) {
        if !written.contains(&table.name()) {
            written.push(table.name());
            table_markdown(*table, &mut page);
        }
    }
    page.push_str(&GROUPS.replace("GROUPS_MAX", &engine::GROUPS_MAX.to_string()));
    page
}

fn table_markdown(table: Schema, page: &mut String) {
    let _ =
        write!(page, "\n## {}\n\n| field | shown | kind | kernel | meaning |\n|---|---|---|---|---|\n", table.name());
    for field in table.fields() {
        let kernel = if field.kernel.is_empty() { String::new() } else { format!("`{}`", field.kernel) };
        let kind = kind_words(field.kind);
        let _ = writeln!(page, "| `{}` | {} | {kind} | {kernel} | {} |", field.name, shown_word(field.show), field.doc);
    }
    page.push_str(&kept_words(table.kept_columns()));
}

/// A sentence about the columns of a table that stay on a narrow terminal.
fn kept_words(keeps: &[&str]) -> String {
    let Some((first, rest)) = keeps.split_first() else { return String::new() };
    let rest: String = rest.iter().map(|name| format!(", `{name}`")).collect();
    format!("\nColumns that stay longest on a narrow terminal, the most persistent first: `{first}`{rest}.\n")
}

fn shown_word(show: Show) -> &'static str {
    match show {
        Show::Default => "default",
        Show::Unusual => "unusual",
        Show::Wide => "wide",
        Show::Asked => "on request",
    }
}

fn kind_words(kind: Kind) -> String {
    match kind {
        Kind::Count => "count".into(),
        Kind::Port => "port".into(),
        Kind::Time => "time (RFC 3339, UTC, nanoseconds)".into(),
        Kind::Id => "number".into(),
        Kind::Hex => "number (hexadecimal in text)".into(),
        Kind::Addr => "address".into(),
        Kind::Text => "text".into(),
        Kind::Name(words) => format!("one of {}", words.join(", ")),
        Kind::Bool => "true, false".into(),
        Kind::Owners | Kind::Objects(_) => {
            format!("list of {{{}}}", kind.members().iter().map(|member| member.name).collect::<Vec<_>>().join(", "))
        }
        Kind::Texts => "list of texts".into(),
        Kind::Thousandths => "number with three decimals".into(),
        Kind::Endpoint => "address:port ([address]:port for IPv6), or the address alone".into(),
        Kind::Words(&[]) => "list of words".into(),
        Kind::Words(words) => format!("list of any of {}", words.join(", ")),
        Kind::Bytes | Kind::DurationUs | Kind::DurationMs | Kind::DurationS | Kind::BitsPerSecond => {
            kind.unit_name().into()
        }
    }
}
