//! Service names in comparisons of ports: `local_port = https`, `peer = 10.1.2.3:https`.

use super::ast::{Ast, Cmp, Comparison, Literal, Node};
use super::literal;
use super::names::{PortsKind, ports};
use record::Schema;
use std::sync::Arc;

/// Returns the ports of a service name in ascending order; empty for an unknown name.
pub type ServicePorts<'a> = dyn FnMut(&str) -> Vec<u16> + 'a;

/// Returns the filter with port numbers in place of the service names that it compares ports of `table` with. A name
/// with several ports (one per protocol) stands for any of them; after `<` or `>`, which need one port, such a name
/// stays and does not bind. `ports_of` is called once for each word that is not a number.
pub fn name_ports(table: Schema, ast: &Ast, ports_of: &mut ServicePorts<'_>) -> Ast {
    Ast { text: Arc::clone(&ast.text), root: node(table, &ast.root, ports_of) }
}

/// Returns the tree with port numbers in place of service names.
fn node(table: Schema, from: &Node, ports_of: &mut ServicePorts<'_>) -> Node {
    let mut all = |parts: &[Node]| parts.iter().map(|part| node(table, part, ports_of)).collect();
    match from {
        Node::And(parts) => Node::And(all(parts)),
        Node::Or(parts) => Node::Or(all(parts)),
        Node::Not(part) => Node::Not(Box::new(node(table, part, ports_of))),
        Node::Test(test) => Node::Test(comparison(table, test, ports_of)),
    }
}

/// Returns the comparison with port numbers in place of service names. A name with several ports becomes a list.
fn comparison(table: Schema, test: &Comparison, ports_of: &mut ServicePorts<'_>) -> Comparison {
    let Some(ports) = ports(table, &test.name).filter(|_| !test.cmp.is_match()) else { return test.clone() };
    let of_ends = ports == PortsKind::OfEnds;
    let values: Vec<Literal> =
        test.values.iter().flat_map(|value| ports_of_literal(value, of_ends, ports_of)).collect();
    let (cmp, is_list) = match (test.cmp, values.len() == test.values.len()) {
        (cmp, true) => (cmp, test.is_list),
        (Cmp::Eq | Cmp::In, false) => (Cmp::In, true),
        (Cmp::Ne | Cmp::NotIn, false) => (Cmp::NotIn, true),
        (_, false) => return test.clone(),
    };
    Comparison { values, cmp, is_list, ..test.clone() }
}

/// Returns the literal itself, or one literal for each port of its name.
fn ports_of_literal(value: &Literal, of_ends: bool, ports_of: &mut ServicePorts<'_>) -> Vec<Literal> {
    let text = value.as_str().unwrap_or("");
    let (host, name) = match text.rsplit_once(':') {
        // `[2001:db8::1]:https`, `*:https`, `:https`; `2001:db8::beef` is an address.
        Some((host, name)) if of_ends && (host.starts_with('[') || !host.contains(':')) => (Some(host), name),
        _ if of_ends => return vec![value.clone()],
        _ => (None, text),
    };
    if value.is_null() || !is_name(name) {
        return vec![value.clone()];
    }
    let with = |port: u16| {
        let text = host.map_or_else(|| port.to_string(), |host| format!("{host}:{port}"));
        Literal { bytes: text.into_bytes().into(), ..value.clone() }
    };
    let ports = ports_of(name);
    if ports.is_empty() { vec![value.clone()] } else { ports.into_iter().map(with).collect() }
}

/// True for text that is neither a number nor a range of numbers.
fn is_name(text: &str) -> bool {
    let is_number = |text: &str| literal::parse_plain(text).is_ok();
    let is_range = text.split_once('-').is_some_and(|(low, high)| is_number(low) && is_number(high));
    !text.is_empty() && !is_number(text) && !is_range
}
