//! What the fuzzer calls.

use super::{bind, parse, split};
use record::rows::{Flows, Sockets};

/// Parses `data`, binds it to every table, splits it and checks that what is printed parses to the same tree.
/// Must never panic but for a tree that changed.
pub fn fuzz_filter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let ast = match parse(text) {
        Ok(ast) => ast,
        Err(error) => {
            let _ = error.to_string();
            return;
        }
    };
    let printed = ast.to_string();
    // Printing may lengthen a text beyond what is read at all.
    if printed.len() <= super::FilterError::TEXT_MAX {
        assert_eq!(parse(&printed).map(|again| again.root).ok().as_ref(), Some(&ast.root), "{printed}");
    }
    for error in [bind::<Sockets>(&ast).err(), bind::<Flows>(&ast).err()].into_iter().flatten() {
        let _ = error.to_string();
    }
    let _ = split(&ast, super::knows::<Sockets>);
}
