//! Prints the figures that the rules hold, as a table.

use super::code::function_lengths;
use super::items::{SourceFile, test_files};
use super::phrases::{Rate, Rates};
use super::{folders, sizes, wrappers};

/// Prints one line for each figure.
pub(super) fn print(sources: &[SourceFile], rates: &Rates) {
    println!("| figure | now |\n|---|--:|");
    for (figure, now) in [crate_lines(sources), types(sources), phrases(rates), functions(sources)].concat() {
        println!("| {figure} | {now} |");
    }
}

type Line = (String, String);

fn crate_lines(sources: &[SourceFile]) -> Vec<Line> {
    let lines = sizes::lines(sources);
    let of = |krate: &str| lines.get(krate).copied().unwrap_or_default().to_string();
    let product: usize = lines.values().sum();
    let mut figures: Vec<Line> =
        ["cli", "faces", "sinks"].map(|krate| (format!("lines of `{krate}`, tests excluded"), of(krate))).into();
    figures.push(("lines of the product, tests excluded".to_owned(), product.to_string()));
    figures
}

fn types(sources: &[SourceFile]) -> Vec<Line> {
    let wrappers = wrappers::names(sources);
    let names = wrappers.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let circles = folders::check(sources).len();
    vec![
        (format!("types that wrap a Source or a Stream: {names}"), wrappers.len().to_string()),
        ("circles of folders".to_owned(), circles.to_string()),
    ]
}

fn phrases(rates: &Rates) -> Vec<Line> {
    let line =
        |name: &str, rate: Rate| (format!("odd phrases in 1,000 lines: {name}"), format!("{:.1}", rate.per_thousand()));
    let worst = rates.documents.iter().max_by(|a, b| a.1.per_thousand().total_cmp(&b.1.per_thousand()));
    let mut lines = vec![line("comments", rates.comments.0)];
    lines.extend(worst.map(|(name, rate, _)| line(&format!("documents, at most ({name})"), *rate)));
    lines.extend(rates.user_texts.iter().map(|(name, rate, _)| line(name, *rate)));
    lines
}

fn functions(sources: &[SourceFile]) -> Vec<Line> {
    let tests = test_files(sources);
    let product = sources.iter().filter(|source| source.is_product(&tests));
    let mut lengths: Vec<usize> =
        product.flat_map(|source| function_lengths(&source.code)).map(|(_, length)| length).collect();
    lengths.sort_unstable();
    let at = |percent: usize| lengths.get((lengths.len() * percent / 100).min(lengths.len().saturating_sub(1)));
    let [median, p99, max] = [50, 99, 100].map(|percent| at(percent).copied().unwrap_or_default());
    vec![("lines of a function: median, 99th percentile, longest".to_owned(), format!("{median}, {p99}, {max}"))]
}
