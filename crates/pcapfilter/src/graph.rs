//! The program as a graph of decisions: each node compares a value and goes on to one of two others.
//!
//! Nodes that compare alike and go on alike are one node. Edges only lead to nodes that were made before, so there is
//! no loop, and everything that walks the graph ends.

use crate::value::{MemorySlot, ValueId, Values};
use std::collections::HashMap;

/// Number of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(u32);

/// The end that drops the packet.
pub(crate) const REJECT: NodeId = NodeId(0);
/// The end that takes the packet.
pub(crate) const ACCEPT: NodeId = NodeId(1);

/// How a value is compared; `Any` asks for a common bit.
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

    /// A node that tests; what is always or never true is none.
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

    /// The nodes that can be reached, each before those that it leads to; of two ways the one for "yes" first.
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
    pub(crate) fn holds(self, left: u32, right: u32) -> bool {
        match self {
            Compare::Equal => left == right,
            Compare::Greater => left > right,
            Compare::GreaterOrEqual => left >= right,
            Compare::AnyBit => left & right != 0,
        }
    }
}

/// What a test of constants says. A value compared with itself is left to the run: it may not be loadable.
fn outcome(values: &Values, test: Test) -> Option<bool> {
    Some(test.compare.holds(values.constant_of(test.left)?, values.constant_of(test.right)?))
}
