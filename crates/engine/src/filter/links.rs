//! Addresses with their interface in a filter: `peer = fe80::2%eth0` means `peer = fe80::2 and iface = "eth0"`.

use super::ast::{Cmp, Comparison, Literal, Node};
use super::literal;
use crate::words;
use record::Schema;

/// Returns the comparison without interfaces in its addresses, with tests of the interface in their place. `None` if
/// no value has an interface, or if the name stands for no address whose interface the table shows.
pub(super) fn without_interfaces(table: Schema, test: &Comparison) -> Option<Node> {
    let is_negated = matches!(test.cmp, Cmp::Ne | Cmp::NotIn);
    if !is_negated && !matches!(test.cmp, Cmp::Eq | Cmp::In) {
        return None;
    }
    let on_links: Vec<(Literal, Literal)> = test.values.iter().filter_map(split).collect();
    if on_links.is_empty() {
        return None;
    }
    let fields = words::fields(table, &test.name).into_iter().filter_map(|index| table.field(index));
    let field = fields.into_iter().find(|field| !field.link_names.is_empty())?;
    let mut parts = Vec::new();
    let others: Vec<Literal> = test.values.iter().filter(|value| split(value).is_none()).cloned().collect();
    if !others.is_empty() {
        parts.push(Node::Test(Comparison { values: others, ..test.clone() }));
    }
    for (addr, iface) in on_links {
        let is_there = comparison_node(test, &test.name, Cmp::Eq, addr.clone());
        let on_link = is_on(field.link_names, field.link_numbers, test, &iface);
        parts.push(match is_negated {
            false => Node::And(vec![is_there, on_link]),
            true => {
                let is_elsewhere = comparison_node(test, &test.name, Cmp::Ne, addr);
                Node::Or(vec![is_elsewhere, Node::And(vec![is_there, Node::Not(Box::new(on_link))])])
            }
        });
    }
    Some(join_parts(parts, if is_negated { Node::And } else { Node::Or }))
}

/// The only part, or all of them under `join`.
fn join_parts(mut parts: Vec<Node>, join: fn(Vec<Node>) -> Node) -> Node {
    if parts.len() == 1 { parts.remove(0) } else { join(parts) }
}

/// The test of the interface: by its number if it is one, and the table shows numbers.
fn is_on(names: &[&str], numbers: &[&str], test: &Comparison, iface: &Literal) -> Node {
    let is_number = !numbers.is_empty() && iface.bytes.iter().all(u8::is_ascii_digit);
    let fields = if is_number { numbers } else { names };
    let iface = Literal { quoted: !is_number, ..iface.clone() };
    join_parts(fields.iter().map(|name| comparison_node(test, name, Cmp::Eq, iface.clone())).collect(), Node::Or)
}

/// A comparison at the place of `test`.
fn comparison_node(test: &Comparison, name: &str, cmp: Cmp, value: Literal) -> Node {
    Node::Test(Comparison { name: name.into(), cmp, values: vec![value], is_list: false, ..test.clone() })
}

/// Splits `fe80::2%eth0`, `[fe80::2%eth0]:80` and, as ss writes it, `[fe80::2]%eth0:80` into the address (with the
/// port, if there is one) and the interface.
fn split(value: &Literal) -> Option<(Literal, Literal)> {
    let text = value.as_str()?;
    let (host, rest) = text.split_once('%')?;
    let (iface, after) = match (host.strip_prefix('['), host.strip_suffix(']')) {
        (Some(_), None) => rest.split_once(']').map(|(iface, port)| (iface, format!("]{port}")))?,
        // An interface may be called `eth0:1`: what follows the last colon is the port.
        (Some(_), Some(_)) if rest.contains(':') => {
            rest.rsplit_once(':').map(|(iface, port)| (iface, format!(":{port}")))?
        }
        _ => (rest, String::new()),
    };
    let is_address = literal::prefix(host.trim_matches(['[', ']'])).is_some();
    if iface.is_empty() || !is_address {
        return None;
    }
    let with = |text: &str| Literal { bytes: text.as_bytes().into(), ..value.clone() };
    Some((with(&format!("{host}{after}")), with(iface)))
}
