//! Generates the committed files that depend on flags and field tables: man pages, completions, schema.

use crate::findings::Findings;
use crate::{bounds, platforms, root};
use anyhow::{Context, Result};
use clap::Command;
use record::Show;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Path below the root → content.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Folders that contain only generated files; files that are no longer generated are removed.
const OWNED: &[&str] = &["docs/man", "docs/completions"];

/// Writes changed files and removes files that are no longer generated.
pub(crate) fn run() -> Result<()> {
    let files = files()?;
    for stale in stale(&files) {
        println!("gen: removed {}", stale.display());
        std::fs::remove_file(root::path().join(stale))?;
    }
    for (path, content) in &files {
        let full = root::path().join(path);
        if std::fs::read(&full).is_ok_and(|old| old == *content) {
            continue;
        }
        if let Some(folder) = full.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&full, content).with_context(|| full.display().to_string())?;
        println!("gen: wrote {}", path.display());
    }
    Ok(())
}

/// Lists the files that `run` would change.
pub(crate) fn check() -> Result<Findings> {
    let files = files()?;
    let differs =
        files.iter().filter(|(path, content)| std::fs::read(root::path().join(path)).ok().as_ref() != Some(*content));
    let mut findings: Findings =
        differs.map(|(path, _)| format!("{}: not what `cargo xtask gen` makes", path.display())).collect();
    findings.extend(
        stale(&files).iter().map(|path| format!("{}: no longer generated (run `cargo xtask gen`)", path.display())),
    );
    Ok(findings)
}

fn files() -> Result<Files> {
    let mut files = Files::new();
    let command = cli::commands();
    pages(&command, &mut files)?;
    files.insert("docs/man/netwren-filters.7".into(), filters_page().into_bytes());
    completions(&mut files);
    files.insert("docs/schema.md".into(), cli::schema_markdown().into_bytes());
    files.insert("docs/bounds.md".into(), bounds::page()?.into_bytes());
    files.insert("docs/platforms.md".into(), platforms::page()?.into_bytes());
    Ok(files)
}

/// A page for the program and a page for each command below it: netwren.1, netwren-sockets.1.
fn pages(command: &Command, files: &mut Files) -> Result<()> {
    let mut command = command.clone();
    command.build();
    let mut rest = vec![(command.get_name().to_owned(), command)];
    while let Some((name, command)) = rest.pop() {
        let below = command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
        rest.extend(below.map(|sub| (format!("{name}-{}", sub.get_name()), sub.clone())));
        let mut page = Vec::new();
        let title = clap_mangen::Man::new(command.clone().display_name(&name)).title(name.to_uppercase());
        title.source(concat!("netwren ", env!("CARGO_PKG_VERSION"))).manual("netwren").render(&mut page)?;
        page.extend(more(&name, &command).bytes());
        files.insert(Path::new("docs/man").join(format!("{name}.1")), page);
    }
    Ok(())
}

/// netwren-filters(7): the unchanged text of `netwren help filters`.
fn filters_page() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let text: Vec<String> = cli::filters_help().lines().map(roff).collect();
    format!(
        ".TH NETWREN\\-FILTERS 7 \"\" \"netwren {version}\" netwren\n.SH NAME\nnetwren\\-filters \\- the filter \
         language\n.SH DESCRIPTION\n.nf\n{}\n.fi\n.SH \"SEE ALSO\"\n\\fBnetwren\\fR(1), \
         \\fBnetwren\\-sockets\\fR(1)\n",
        text.join("\n")
    )
}

/// The sections that clap does not generate.
fn more(name: &str, command: &Command) -> String {
    let environment = if name == "netwren" { environment() } else { String::new() };
    let fields = name.strip_prefix("netwren-").and_then(cli::fields_of).map(|fields| section_of(&fields));
    environment + &fields.unwrap_or_default() + &EXIT_STATUS.replace(ONE, &one(name, command))
}

/// The environment variables that netwren reads, without the variables of the tools that it emulates.
fn environment() -> String {
    let mut section = String::from(".SH ENVIRONMENT\n");
    for variable in cli::VARIABLES {
        let parts = variable.help.split('*').enumerate();
        let help: String = parts
            .map(|(i, part)| if i % 2 == 1 { format!("\\fB{}\\fR", part.replace('-', "\\-")) } else { part.to_owned() })
            .collect();
        section += &format!(".TP\n\\fB{}\\fR\n{help}\n", variable.name);
    }
    section
}

/// Placeholder in [`EXIT_STATUS`] for exit code 1.
const ONE: &str = "@1";

/// The meaning of exit code 1 for the command; empty if the command never exits with 1.
fn one(name: &str, command: &Command) -> String {
    let takes_exit_code = command.get_arguments().any(|arg| arg.get_long() == Some("exit-code"));
    let meaning = match name {
        "netwren-nat-stateless-plan" => {
            "the port cannot be published, or another setting conflicts with it: nothing was applied"
        }
        "netwren-nat-stateless-verify" => "packets are not rewritten in both directions, or no port is published",
        "netwren" => "\\fB\\-\\-exit\\-code\\fR was given and no row matched; or see the command's page",
        _ if takes_exit_code => "\\fB\\-\\-exit\\-code\\fR was given and no row matched",
        _ => return String::new(),
    };
    format!(".TP\n1\n{meaning}\n")
}

/// The exit codes, as in crates/runtime/src/exit.rs.
const EXIT_STATUS: &str = "\
.SH \"EXIT STATUS\"
.TP
0
success, also if the reader of the output closed it
@1.TP
2
the command line or the filter is wrong
.TP
3
the result is incomplete; stderr says what is missing
.TP
4
nothing could be read or written
.PP
Commands named after other tools (\\fBnetwren ss\\fR, \\fBnetwren netstat\\fR, …) use the exit codes of these tools.
";

/// The field table as a section.
fn section_of(fields: &[cli::FieldInfo]) -> String {
    let mut section = String::from(".SH FIELDS\nNames for filters and \\fB\\-\\-columns\\fR, and JSON keys.\n");
    for field in fields {
        let shown = match field.show {
            Show::Default => "",
            Show::Unusual => " (if a row has one; always in JSON)",
            Show::Wide => " (with \\-o wide, and in JSON)",
            Show::Asked => " (only on request)",
        };
        section += &format!(".TP\n\\fB{}\\fR\n{}{shown}\n", roff(field.name), roff(field.doc));
    }
    section
}

/// Escapes text for roff.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('-', "\\-").replace('\'', "\\(aq");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

fn completions(files: &mut Files) {
    for (name, script) in cli::completion_scripts() {
        files.insert(Path::new("docs/completions").join(name), script.into());
    }
}

/// Files in the owned folders that are no longer generated.
fn stale(files: &Files) -> Vec<PathBuf> {
    let found = OWNED.iter().flat_map(|folder| {
        let entries = std::fs::read_dir(root::path().join(folder)).into_iter().flatten().flatten();
        entries.map(move |entry| Path::new(folder).join(entry.file_name()))
    });
    found.filter(|path| !files.contains_key(path)).collect()
}
