//! Builders for filters over the field table.

use record::rows::Sockets;
use record::{Expr, Op, Operand, Test, field_index};

/// A comparison of the field called `field`. An unknown name would never match; a test checks all names.
pub(super) fn test(field: &str, op: Op, operand: Operand) -> Expr {
    Expr::Test(Test { field: field_index::<Sockets>(field).unwrap_or(usize::MAX), op, operand })
}

/// A filter that every row passes (`true`) or none (`false`).
pub(super) fn truth(yes: bool) -> Expr {
    if yes { Expr::And(Vec::new()) } else { Expr::Or(Vec::new()) }
}

/// The negation of a filter.
pub(super) fn not(expr: Expr) -> Expr {
    Expr::Not(Box::new(expr))
}
