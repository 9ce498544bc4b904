//! Completes lists of fields: `a,+b,-c`, `a:desc`.

use super::proposal::{Proposal, Proposals};
use record::{FieldInfo, Kind, Show};

/// The proposals for an option's value that is a list of fields.
pub(super) fn proposals(option: &str, fields: &[FieldInfo], current: &str) -> Proposals {
    let begun = current.rfind(',').map_or(0, |comma| comma + 1);
    let (mut written, mut word) = current.split_at_checked(begun).unwrap_or(("", current));
    if option == "columns" && word.starts_with(['+', '-']) {
        (written, word) = current.split_at_checked(begun + 1).unwrap_or((written, word));
    }
    if let Some((field, _)) = word.split_once(':').filter(|_| option == "sort") {
        let orders = ["asc", "desc"].map(|order| Proposal::named(format!("{written}{field}:{order}")));
        return Proposals::Words(orders.to_vec());
    }
    let fits = |field: &&FieldInfo| match option {
        "by" => !field.kind.is_list(),
        "sum" | "max" | "avg" => field.kind.is_number() && !matches!(field.kind, Kind::Port | Kind::Id | Kind::Hex),
        _ => true,
    };
    // Too many to propose for an empty word.
    let is_proposed = |field: &&FieldInfo| !word.is_empty() || field.show != Show::Asked;
    let mut words: Vec<Proposal> = fields
        .iter()
        .filter(fits)
        .filter(is_proposed)
        .map(|field| Proposal::new(field.name, field.doc).behind(written))
        .collect();
    if option == "columns" && written.is_empty() {
        words.push(Proposal::new("all", "every field"));
        words.push(Proposal::new("help", "describe the fields"));
    }
    if option == "sort" {
        words.push(Proposal::new("count", "with --by: the number of rows").behind(written));
    }
    Proposals::Parts(words)
}
