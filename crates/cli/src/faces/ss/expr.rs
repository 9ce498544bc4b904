//! Parts of a filter in the words of the field table.

use record::rows::Sockets;
use record::{Expr, Op, Operand, Test, field_index};

/// A comparison by the field's name. A name that does not exist would never match; a test looks at all of them.
pub(super) fn test(field: &str, op: Op, operand: Operand) -> Expr {
    Expr::Test(Test { field: field_index::<Sockets>(field).unwrap_or(usize::MAX), op, operand })
}

/// A filter that every row passes, or none.
pub(super) fn truth(yes: bool) -> Expr {
    if yes { Expr::And(Vec::new()) } else { Expr::Or(Vec::new()) }
}

/// The negation of a filter.
pub(super) fn not(expr: Expr) -> Expr {
    Expr::Not(Box::new(expr))
}
