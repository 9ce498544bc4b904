//! Removes tests whose result is known and merges nodes that became equal, until nothing changes.

use crate::facts::PathFacts;
use crate::graph::{Graph, GraphNode, NodeId};
use crate::value::{MemorySlot, Values};
use std::collections::HashMap;

/// Few rounds are needed; each must have removed something.
const ROUNDS_MAX: usize = 12;

/// Returns the root of the improved graph.
pub(crate) fn optimise(graph: &mut Graph, values: &Values, root: NodeId) -> NodeId {
    let mut root = root;
    for _ in 0..ROUNDS_MAX {
        let better = round(graph, values, root);
        if better == root {
            break;
        }
        root = better;
    }
    root
}

/// Follows one edge of a node to the first node whose result is not known from the facts on this path.
fn follow(graph: &Graph, values: &Values, facts: &PathFacts, from: NodeId) -> NodeId {
    let mut to = from;
    while let GraphNode::Test { test, yes, no } = graph.get(to) {
        match facts.outcome(values, test) {
            Some(true) => to = yes,
            Some(false) => to = no,
            None => break,
        }
    }
    to
}

fn round(graph: &mut Graph, values: &Values, root: NodeId) -> NodeId {
    let order = graph.in_order(root);
    let mut known: Vec<Option<PathFacts>> = vec![None; graph.len()];
    let mut edges: HashMap<NodeId, (NodeId, NodeId)> = HashMap::new();
    if let Some(first) = known.get_mut(root.index()) {
        *first = Some(PathFacts::default());
    }
    let mut used = 0;
    for id in &order {
        // Taken, not cloned: no edge leads back to a node that was already visited.
        let Some(facts) = known.get_mut(id.index()).and_then(Option::take) else { continue };
        let mut arrive = |to: NodeId, facts: PathFacts| {
            let there = known.get_mut(to.index());
            match there {
                Some(Some(there)) => there.intersect(&facts),
                Some(there) => *there = Some(facts),
                None => {}
            }
            to
        };
        let ways = match graph.get(*id) {
            GraphNode::Return(_) => continue,
            GraphNode::Store { slot, value, next } => {
                used |= values.slots_of(value);
                let mut facts = facts;
                facts.remove_slot(values, slot);
                let next = arrive(next, facts);
                (next, next)
            }
            GraphNode::Test { test, yes, no } => {
                used |= values.slots_of(test.left) | values.slots_of(test.right);
                let mut other = facts.clone();
                other.add_result(values, test, false);
                let mut facts = facts;
                facts.add_result(values, test, true);
                let yes = follow(graph, values, &facts, yes);
                let no = follow(graph, values, &other, no);
                (arrive(yes, facts), arrive(no, other))
            }
        };
        edges.insert(*id, ways);
    }
    rebuild_nodes(graph, values, &order, &edges, used, root)
}

/// Recreates the nodes with their new edges, beginning with the ends. `used` are the slots that are read.
fn rebuild_nodes(
    graph: &mut Graph,
    values: &Values,
    order: &[NodeId],
    edges: &HashMap<NodeId, (NodeId, NodeId)>,
    used: u32,
    root: NodeId,
) -> NodeId {
    let mut new: HashMap<NodeId, NodeId> = HashMap::with_capacity(order.len());
    for id in order.iter().rev() {
        let node = graph.get(*id);
        let (Some((yes, no)), false) = (edges.get(id), matches!(node, GraphNode::Return(_))) else {
            new.insert(*id, *id);
            continue;
        };
        let yes = new.get(yes).copied().unwrap_or(*yes);
        let no = new.get(no).copied().unwrap_or(*no);
        let made = match node {
            GraphNode::Return(_) => *id,
            GraphNode::Test { test, .. } => graph.test(values, test, yes, no),
            GraphNode::Store { slot, value, .. } if is_unused(values, slot, value, used) => yes,
            GraphNode::Store { slot, value, .. } => graph.store(slot, value, yes),
        };
        new.insert(*id, made);
    }
    new.get(&root).copied().unwrap_or(root)
}

/// True for a store of a constant that is never read. Other stores may reject the packet, because they load from it.
fn is_unused(values: &Values, slot: MemorySlot, value: crate::value::ValueId, used: u32) -> bool {
    values.constant_of(value).is_some() && used & slot.bit() == 0
}
