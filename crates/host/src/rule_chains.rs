//! Chains of nftables, and the hooks from which packets reach them, from the output of `nft -j list ruleset`.

use serde_json::Value as Json;
use std::collections::{HashMap, HashSet};

/// A text member of an object; empty if it is missing or not a text.
pub(crate) fn word<'j>(object: &'j Json, name: &str) -> &'j str {
    object.get(name).and_then(Json::as_str).unwrap_or_default()
}

/// Family and name of the table of a rule, a chain or a map, in nft's format: `inet filter`.
pub(crate) fn table_of(object: &Json) -> String {
    format!("{} {}", word(object, "family"), word(object, "table"))
}

/// A table and one of its chains.
type Chain = (String, String);

/// How chains are reached.
#[derive(Default)]
pub(crate) struct Chains {
    /// Hooks of the chains that have one.
    hooks: HashMap<Chain, String>,
    /// For each chain, the chains with a jump to it.
    jumps: HashMap<Chain, Vec<Chain>>,
    /// Tables with a named verdict map, whose elements can change without a change of rules.
    mapped: HashSet<String>,
}

impl Chains {
    /// Reads the chains, maps and jumps of a listing.
    pub(crate) fn of(objects: &[Json]) -> Chains {
        let mut chains = Chains::default();
        for object in objects {
            if let Some(chain) = object.get("chain") {
                if let Some(hook) = chain.get("hook").and_then(Json::as_str) {
                    let of = (table_of(chain), word(chain, "name").to_owned());
                    chains.hooks.insert(of, hook.to_owned());
                }
            } else if let Some(map) = object.get("map").filter(|map| word(map, "map") == "verdict") {
                chains.mapped.insert(table_of(map));
            } else if let Some(rule) = object.get("rule") {
                let from = (table_of(rule), word(rule, "chain").to_owned());
                let expressions = rule.get("expr").unwrap_or(&Json::Null);
                for_each_target(expressions, &mut |target| {
                    let to = (from.0.clone(), target.to_owned());
                    chains.jumps.entry(to).or_default().push(from.clone());
                });
            }
        }
        chains
    }

    /// The hooks from which this chain is reached; `None` if that may be any hook.
    pub(crate) fn hooks(&self, table: &str, chain: &str) -> Option<Vec<String>> {
        let mut waiting = vec![(table.to_owned(), chain.to_owned())];
        let mut met: HashSet<Chain> = HashSet::new();
        let mut found = Vec::new();
        while let Some(chain) = waiting.pop() {
            if let Some(hook) = self.hooks.get(&chain) {
                found.push(hook.clone());
                // No rule jumps to a chain with a hook.
                continue;
            }
            if self.mapped.contains(&chain.0) {
                return None;
            }
            if met.insert(chain.clone()) {
                waiting.extend(self.jumps.get(&chain).into_iter().flatten().cloned());
            }
        }
        found.sort_unstable();
        found.dedup();
        Some(found)
    }
}

/// Calls `each` with the chains that an expression jumps or goes to, including those in anonymous maps. serde_json
/// limits the depth.
fn for_each_target(expression: &Json, each: &mut dyn FnMut(&str)) {
    match expression {
        Json::Array(parts) => parts.iter().for_each(|part| for_each_target(part, each)),
        Json::Object(members) => {
            for (name, member) in members {
                match member.get("target").and_then(Json::as_str) {
                    Some(target) if matches!(name.as_str(), "jump" | "goto") => each(target),
                    _ => for_each_target(member, each),
                }
            }
        }
        _ => {}
    }
}
