//! The field tables as documents: `--columns help` and docs/schema.md.

use crate::command::Commands;
use record::{Kind, Schema, Show};
use std::fmt::Write;

/// The content of docs/schema.md: the tables of all commands with every field.
pub(crate) fn markdown(commands: Commands) -> String {
    let mut page = String::from(
        "# Schema\n\n\
         Generated from the field tables by `cargo xtask gen`; do not edit. Names are column headers, filter words \
         and\n\
         JSON keys alike. Units are in the name; absent is `null` in JSON, `-` in text, empty in CSV.\n\
         *default* fields are shown unasked, *wide* ones also with `-o wide` and in JSON, *asked* ones by\n\
         `--columns`: they are fetched from the kernel only then. A table that is too wide for a terminal leaves out \
         columns,\n\
         the last ones first unless it says which stay; those that `--columns` and `--sort` name leave last.\n\n\
         Owners in text and CSV are `PROCESS[PID].FD`, with `,` between them; `,`, `[` and `]` of a process name are \
         written\n\
         `\\x2c`, `\\x5b`, `\\x5d`. In CSV, text from outside that begins with `=`, `+`, `-`, `@`, tab, CR or `'` has \
         one\n\
         apostrophe in front (a spreadsheet would compute it otherwise); numbers have none.\n",
    );
    let mut written: Vec<&str> = Vec::new();
    for table in commands.iter().flat_map(|command| command.tables) {
        if !written.contains(&table.name()) {
            written.push(table.name());
            table_markdown(*table, &mut page);
        }
    }
    page.push_str(
        "\n## groups (`--by`)\n\nThe keys, then `count`, then `sum_x`, `max_x`, `avg_x` for each field of --sum, \
         --max, --avg.\nThe largest come first: by the first of these, without them by `count`.\nA word for an end \
         (`peer`, `local`, `src`, `dst` and so on) is the address of that end, and so is `client`; name the port as \
         well to group by both (`peer_addr,peer_port`).\nAn address may have the length of a prefix, and is then its \
         network in CIDR notation: `peer_addr/24`, `client/16`.\nA single length goes for IPv4 and IPv6, above 32 for \
         IPv6 alone; `peer_addr/24/64` has one for each.\nOf packets, log records and single drops, whose senders \
         choose how many groups there are, 65,536 are kept at once, fewer with long texts.\nBeyond that the smallest \
         are counted together in the line \
         whose keys are all null, which is said (exit code 3): no group with more than\none in 32,768 of all rows is \
         among them in the end, and no line lacks more rows than that.\n\n## accounting\n\nThe last \
         JSON object with `--stats`: \
         `{\"accounting\":{seen, emitted, filtered, grouped, duplicates, cut, failed, lost, why:[{count, text}], via, \
         cpu_ms}}`.\nWith `--watch` each round begins with `{\"round\":{\"n\":1,\"time\":\"…\"}}`.\n",
    );
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
    page.push_str(&kept_words(table.keeps()));
}

/// A sentence about the columns of a table that stay on a narrow terminal.
fn kept_words(keeps: &[&str]) -> String {
    let Some((first, rest)) = keeps.split_first() else { return String::new() };
    let rest: String = rest.iter().map(|name| format!(", `{name}`")).collect();
    format!("\nStay longest on a narrow terminal, the first longest of all: `{first}`{rest}.\n")
}

fn shown_word(show: Show) -> &'static str {
    match show {
        Show::Default => "default",
        Show::Wide => "wide",
        Show::Asked => "asked",
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
        Kind::Text => "text from outside".into(),
        Kind::Name(words) => format!("one of {}", words.join(", ")),
        Kind::Bool => "true, false".into(),
        Kind::Owners | Kind::Objects(_) => {
            format!("list of {{{}}}", kind.members().iter().map(|member| member.name).collect::<Vec<_>>().join(", "))
        }
        Kind::Texts => "list of texts".into(),
        Kind::Thousandths => "number with three decimals".into(),
        Kind::Endpoint => "address:port ([address]:port for IPv6), or the address alone".into(),
        Kind::Words(&[]) => "list of words from outside".into(),
        Kind::Words(words) => format!("list of some of {}", words.join(", ")),
        Kind::Bytes | Kind::DurationUs | Kind::DurationMs | Kind::DurationS | Kind::BitsPerSecond => kind.unit().into(),
    }
}
