//! The program as a graph of decisions: each node compares a value and continues with one of two other nodes.
//!
//! Nodes with the same comparison and the same successors are one node. Edges lead only to nodes that were created
//! earlier, so there are no loops, and every traversal of the graph ends.

use crate::value::{MemorySlot, ValueId, Values};
use std::collections::HashMap;

/// Number of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(u32);

/// The end that rejects the packet.
pub(crate) const REJECT: NodeId = NodeId(0);
/// The end that accepts the packet.
pub(crate) const ACCEPT: NodeId = NodeId(1);

/// How a value is compared. `Any` tests for a common bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Compare {
    Equal,
    Greater,
    GreaterOrEqual,
    AnyBit,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Test {
    pub(crate) left: ValueId,
    pub(crate) compare: Compare,
    pub(crate) right: ValueId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum GraphNode {
    Return(bool),
    Test {
        test: Test,
        yes: NodeId,
        no: NodeId,
    },
    /// Writes a value to scratch memory.
    Store {
        slot: MemorySlot,
        value: ValueId,
        next: NodeId,
    },
}

/// All nodes of a program.
pub(crate) struct Graph {
    list: Vec<GraphNode>,
    numbers: HashMap<GraphNode, NodeId>,
}

impl Graph {
    pub(crate) fn new() -> Graph {
        let mut graph = Graph { list: Vec::new(), numbers: HashMap::new() };
        graph.intern(GraphNode::Return(false));
        graph.intern(GraphNode::Return(true));
        graph
    }

    pub(crate) fn get(&self, id: NodeId) -> GraphNode {
        self.list.get(id.index()).copied().unwrap_or(GraphNode::Return(false))
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    fn intern(&mut self, node: GraphNode) -> NodeId {
        if let Some(id) = self.numbers.get(&node) {
            return *id;
        }
        let id = NodeId(self.list.len() as u32);
        self.list.push(node);
        self.numbers.insert(node, id);
        id
    }

    /// Returns a node for a test. A test that is always or never true becomes no node.
    pub(crate) fn test(&mut self, values: &Values, test: Test, yes: NodeId, no: NodeId) -> NodeId {
        if yes == no {
            return yes;
        }
        match outcome(values, test) {
            Some(true) => yes,
            Some(false) => no,
            None => self.intern(GraphNode::Test { test, yes, no }),
        }
    }

    pub(crate) fn store(&mut self, slot: MemorySlot, value: ValueId, next: NodeId) -> NodeId {
        self.intern(GraphNode::Store { slot, value, next })
    }

    /// Returns the reachable nodes, each before its successors. The "yes" successor comes before the "no" successor.
    pub(crate) fn in_order(&self, root: NodeId) -> Vec<NodeId> {
        let mut seen = vec![false; self.len()];
        let mut done = Vec::new();
        let mut waiting = vec![(root, false)];
        while let Some((id, is_left)) = waiting.pop() {
            if is_left {
                done.push(id);
                continue;
            }
            let Some(seen) = seen.get_mut(id.index()).filter(|seen| !**seen) else { continue };
            *seen = true;
            waiting.push((id, true));
            match self.get(id) {
                GraphNode::Return(_) => {}
                GraphNode::Test { yes, no, .. } => waiting.extend([(yes, false), (no, false)]),
                GraphNode::Store { next, .. } => waiting.push((next, false)),
            }
        }
        done.reverse();
        done
    }
}

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Compare {
    pub(crate) fn compare_values(self, left: u32, right: u32) -> bool {
        match self {
            Compare::Equal => left == right,
            Compare::Greater => left > right,
            Compare::GreaterOrEqual => left >= right,
            Compare::AnyBit => left & right != 0,
        }
    }
}

/// Returns the result of a test of constants. A value compared with itself is not decided here: its load may fail.
fn outcome(values: &Values, test: Test) -> Option<bool> {
    Some(test.compare.compare_values(values.constant_of(test.left)?, values.constant_of(test.right)?))
}
