//! `--explain`: the plan in words, before it runs.

use crate::plan::{Grouping, Plan, RowWork};
use record::text::{TimestampWriter, put_far_time};
use record::{Addr, EndpointTest, Expr, FilterPushdown, Kind, LookupId, Offer, Op, Operand, Schema, Table, Test};

/// Describes the run: the backend, each part of the filter and where it is tested, the steps after it, the kernel
/// fields that are read, and the lookups that are filled. Returns several lines, each with a newline.
pub fn explain<T: Table>(plan: &Plan<T>, offer: &Offer) -> String {
    let mut lines = vec![format!("table    {}", T::NAME), format!("backend  {}", offer.backend)];
    lines.extend(offer.explain.iter().map(|line| format!("         {line}")));
    for (place, part) in plan.demand.conjuncts.iter().enumerate() {
        let who = match offer.pushdown.get(place) {
            Some(FilterPushdown::Exact) => "kernel",
            Some(FilterPushdown::Inexact) => "kernel, then netwren",
            Some(FilterPushdown::Unsupported) | None => "netwren",
        };
        lines.push(format!("filter   {}  [{who}]", expr_text(Schema::from_table::<T>(), part)));
    }
    if plan.demand.conjuncts.is_empty() {
        lines.push("filter   none".to_owned());
    }
    lines.extend(steps(plan).into_iter().map(|step| format!("then     {step}")));
    let names: Vec<&str> = plan.columns.0.iter().map(|c| &*c.name).collect();
    lines.push(format!("columns  {}", names.join(" ")));
    lines.push(format!("reads    {}", fields_text::<T>(plan, |field| field.need & !offer.lacks == field.need)));
    let missing = fields_text::<T>(plan, |field| field.need & offer.lacks != 0);
    if !missing.is_empty() {
        lines.push(format!("lacks    {missing}  (this backend has no such field)"));
    }
    let lookups = lookups_text(plan);
    if !lookups.is_empty() {
        lines.push(format!("fills    {lookups}"));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Describes each step for rows that passed the filter.
fn steps<T: Table>(plan: &Plan<T>) -> Vec<String> {
    let mut steps = Vec::new();
    match &plan.work {
        RowWork::Stream => steps.push("write rows as they arrive".to_owned()),
        RowWork::Sort(order) => steps.push(format!("keep the rows, order by {}", order_text(plan, &order.keys))),
        RowWork::Group(Grouping { keys, order, .. }) => {
            let all: Vec<&str> = plan.columns.0.iter().map(|c| &*c.name).collect();
            let (names, folded) = all.split_at_checked(keys.len()).unwrap_or((&all, &[]));
            steps.push(match names {
                [] => "count all rows".to_owned(),
                names => format!("count by {}", names.join(", ")),
            });
            if let [_count, folds @ ..] = folded {
                if !folds.is_empty() {
                    steps.push(format!("fold into {}", folds.join(", ")));
                }
            }
            steps.push(format!("order by {}", order_text(plan, &order.keys)));
        }
    }
    if let Some(limit) = plan.limit {
        let how = if plan.is_streaming() { "stop reading after" } else { "show the first" };
        steps.push(format!("{how} {limit}"));
    }
    steps
}

/// Describes the order of the result. The order of rows may use fields that are not shown.
fn order_text<T: Table>(plan: &Plan<T>, keys: &[(usize, bool)]) -> String {
    let name = |place: usize| plan.columns.0.get(place).map_or("a field that is not shown", |c| &c.name);
    let key = |&(place, down): &(usize, bool)| format!("{}{}", name(place), if down { " descending" } else { "" });
    keys.iter().map(key).collect::<Vec<_>>().join(", ")
}

/// Returns the names of the demanded fields that are `wanted`, each with the kernel's name for it.
fn fields_text<T: Table>(plan: &Plan<T>, wanted: impl Fn(&record::Field<T>) -> bool) -> String {
    let fields = plan.demand.fields.iter().filter_map(|&i| T::FIELDS.get(i));
    let text = |field: &record::Field<T>| match field.kernel {
        "" => field.name.to_owned(),
        kernel => format!("{} ({kernel})", field.name),
    };
    fields.filter(|field| wanted(field)).map(text).collect::<Vec<_>>().join(", ")
}

/// Returns the lookups that the plan fills before it reads; each is a separate table that is read once.
fn lookups_text<T: Table>(plan: &Plan<T>) -> String {
    let all = [
        (LookupId::Owners, "owners of sockets"),
        (LookupId::Users, "user names"),
        (LookupId::Ifaces, "interface names"),
        (LookupId::Cgroups, "cgroup paths"),
        (LookupId::Netns, "names of network namespaces"),
        (LookupId::Hosts, "host names"),
        (LookupId::Cmdlines, "command lines"),
        (LookupId::Containers, "containers"),
        (LookupId::Pods, "pods"),
        (LookupId::Units, "systemd units"),
        (LookupId::ContainerPids, "PIDs in containers"),
        (LookupId::Contexts, "security contexts"),
        (LookupId::LocalPorts, "ranges of local ports"),
        (LookupId::PacketDelays, "delays of packet sockets"),
    ];
    let needed = all.iter().filter(|(id, _)| plan.needs_lookup(*id));
    needed.map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
}

/// Writes a bound filter in the filter language; numbers are in the field's own unit.
pub fn expr_text(table: Schema, expr: &Expr) -> String {
    let nested = |part: &Expr| match part {
        Expr::And(_) | Expr::Or(_) => format!("({})", expr_text(table, part)),
        _ => expr_text(table, part),
    };
    let joined = |parts: &[Expr], word: &str| parts.iter().map(nested).collect::<Vec<_>>().join(word);
    match expr {
        Expr::And(parts) if parts.is_empty() => "true".to_owned(),
        Expr::Or(parts) if parts.is_empty() => "false".to_owned(),
        Expr::And(parts) => joined(parts, " and "),
        Expr::Or(parts) => joined(parts, " or "),
        Expr::Not(part) => format!("not {}", nested(part)),
        Expr::Test(test) => test_text(table, test),
    }
}

/// Writes one comparison: field, operator, value. Several values are written with `in`, like in a user's filter.
fn test_text(table: Schema, test: &Test) -> String {
    let field = table.field(test.field);
    let name = field.map_or("?", |f| f.name);
    let (name, kind, operand) = match &test.operand {
        Operand::Member { name: member, kind, operand } => (format!("{name}.{member}"), Some(*kind), &**operand),
        operand => (name.to_owned(), field.map(|f| f.kind), operand),
    };
    let many = match operand {
        Operand::Ranges(_) | Operand::Prefixes(_) => true,
        Operand::Endpoints(ends) => ends.len() != 1,
        Operand::Words(words) => words.len() != 1,
        _ => false,
    };
    let op = match (test.op, many) {
        (Op::Eq, true) => "in",
        (Op::Ne, true) => "not in",
        (Op::Eq, false) => "=",
        (Op::Ne, false) => "!=",
        (Op::Lt, _) => "<",
        (Op::Le, _) => "<=",
        (Op::Gt, _) => ">",
        (Op::Ge, _) => ">=",
        (Op::Match, _) => "~",
        (Op::NotMatch, _) => "!~",
    };
    let operand = match kind {
        Some(Kind::Time) => operand_text(operand, timestamp),
        Some(Kind::Thousandths) => operand_text(operand, |n| format!("{}.{:03}", n / 1000, n % 1000)),
        _ => operand_text(operand, |n| n.to_string()),
    };
    let operand = match test.operand {
        Operand::Field(other) => table.field(other).map_or("?", |field| field.name).to_owned(),
        _ => operand,
    };
    format!("{name} {op} {operand}")
}

/// Formats a point in time as RFC 3339.
fn timestamp(ns: u64) -> String {
    String::from_utf8_lossy(TimestampWriter::new().text(ns)).into_owned()
}

/// Writes the operand of a comparison; `number` formats its numbers.
fn operand_text(operand: &Operand, number: impl Fn(u64) -> String) -> String {
    let list = |items: Vec<String>| format!("({})", items.join(", "));
    match operand {
        Operand::Null => "null".to_owned(),
        Operand::Bool(yes) => yes.to_string(),
        Operand::Number(n) => number(*n),
        Operand::FarTime(time) => {
            let mut text = Vec::new();
            put_far_time(&mut text, *time);
            String::from_utf8_lossy(&text).into_owned()
        }
        Operand::Ranges(ranges) => {
            let one = |(low, high): &(u64, u64)| match low == high {
                true => number(*low),
                false => format!("{}-{}", number(*low), number(*high)),
            };
            list(ranges.iter().map(one).collect())
        }
        Operand::Masked { value, mask } => format!("{value:#x}/{mask:#x}"),
        Operand::Addr(addr) => addr.to_string(),
        Operand::Prefixes(prefixes) => list(prefixes.iter().map(|p| p.to_string()).collect()),
        Operand::Words(words) => match &words[..] {
            [word] => quote(word),
            words => list(words.iter().map(|w| quote(w)).collect()),
        },
        Operand::Endpoints(ends) => match &ends[..] {
            [end] => endpoint_text(end),
            ends => list(ends.iter().map(endpoint_text).collect()),
        },
        Operand::Regex(pattern) => format!("\"{}\"", pattern.escape_debug()),
        Operand::Glob(pattern) => format!("glob {}", quote(pattern)),
        // Not reached: the test writes the operand of the member.
        Operand::Member { name, .. } => (*name).to_owned(),
        // Not reached: the test names the field.
        Operand::Field(_) => String::new(),
    }
}

fn endpoint_text(end: &EndpointTest) -> String {
    let addr = end.prefix.map_or_else(String::new, |prefix| match (prefix.addr(), end.ports) {
        (Addr::V6(_), Some(_)) => format!("[{prefix}]"),
        _ => prefix.to_string(),
    });
    match end.ports {
        None => addr,
        Some((low, high)) if low == high => format!("{addr}:{low}"),
        Some((low, high)) => format!("{addr}:{low}-{high}"),
    }
}

/// Returns a plain word unchanged, anything else quoted and escaped.
fn quote(word: &[u8]) -> String {
    let is_plain = !word.is_empty() && word.iter().all(|b| b.is_ascii_alphanumeric() || b"_-./@:".contains(b));
    let text = word.escape_ascii();
    if is_plain { text.to_string() } else { format!("\"{text}\"") }
}

#[cfg(test)]
mod tests;
