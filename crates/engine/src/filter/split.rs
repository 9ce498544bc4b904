//! Splitting of a filter for two tables: parts to test before rows are folded, and parts to test afterwards.

use super::ast::{Ast, Node};
use super::error::{Fault, FilterError};
use std::sync::Arc;

/// Splits the top-level `and`: parts of which all names satisfy `is_first` go to the first filter, the others to the
/// second.
///
/// Fails if one part (an `or` or a `not`) needs both tables.
pub fn split(ast: &Ast, is_first: impl Fn(&str) -> bool) -> Result<(Ast, Ast), FilterError> {
    let mut sides: [Vec<Node>; 2] = [Vec::new(), Vec::new()];
    for conjunct in ast.conjuncts() {
        let mut before = None;
        let mut after = None;
        conjunct.root.for_each_test(&mut |test| {
            let side = if is_first(&test.name) { &mut before } else { &mut after };
            side.get_or_insert((test.name.clone(), test.name_span));
        });
        if let (Some((early, _)), Some((late, span))) = (&before, &after) {
            let message = format!(
                "`{early}` is tested before rows are folded and `{late}` afterwards: combine them with `and`, not with \
                 `or` or under one `not`"
            );
            return Err(FilterError::new(&ast.text, *span, Fault::Mixed, message));
        }
        sides[usize::from(before.is_none())].push(conjunct.root);
    }
    let [first, second] = sides.map(|mut parts| {
        let root = if parts.len() == 1 { parts.remove(0) } else { Node::And(parts) };
        Ast { text: Arc::clone(&ast.text), root }
    });
    Ok((first, second))
}
