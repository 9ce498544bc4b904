//! Converts the graph to instructions: registers, the order of blocks, jumps.

mod registers;

use crate::error::FilterError;
use crate::graph::{Compare, Graph, GraphNode, NodeId};
use crate::instruction::{INSTRUCTIONS_MAX, Instruction, Program, code};
use crate::value::Values;
use registers::Registers;
use std::collections::HashMap;

/// The most instructions that a conditional jump can skip.
const SKIP_MAX: usize = 255;

/// The instructions of a node, and its successors.
struct Block {
    node: NodeId,
    body: Vec<Instruction>,
    end: BlockEnd,
}

enum BlockEnd {
    Return(bool),
    Next(NodeId),
    Branch { jump: Instruction, yes: NodeId, no: NodeId },
}

/// Returns the program of a graph. `snaplen` is the return value for accepted packets.
pub(crate) fn emit(graph: &Graph, values: &Values, root: NodeId, snaplen: u32) -> Result<Program, FilterError> {
    let blocks = blocks(graph, values, root)?;
    let mut assembly = Assembly { reversed: Vec::new(), placed: HashMap::new(), near: HashMap::new(), graph, snaplen };
    for block in blocks.into_iter().rev() {
        assembly.place_block(block);
    }
    let mut instructions = assembly.reversed;
    instructions.reverse();
    Ok(Program { instructions })
}

/// Refuses a program that is too long for the kernel.
pub(crate) fn check_length(program: &Program) -> Result<(), FilterError> {
    if program.instructions.len() <= INSTRUCTIONS_MAX {
        return Ok(());
    }
    let has = program.instructions.len();
    Err(FilterError::new(format!("the filter has {has} instructions, the kernel takes {INSTRUCTIONS_MAX}"), 0))
}

fn blocks(graph: &Graph, values: &Values, root: NodeId) -> Result<Vec<Block>, FilterError> {
    let mut entries: HashMap<NodeId, Registers> = HashMap::new();
    let mut blocks = Vec::new();
    for node in graph.in_order(root) {
        let mut registers = entries.remove(&node).unwrap_or_default();
        let mut body = Vec::new();
        let end = match graph.get(node) {
            GraphNode::Return(accepts) => BlockEnd::Return(accepts),
            GraphNode::Store { slot, value, next } => {
                registers.store(values, &mut body, slot, value)?;
                BlockEnd::Next(next)
            }
            GraphNode::Test { test, yes, no } => {
                let operand = registers.compare(values, &mut body, test.left, test.right)?;
                let operation = match test.compare {
                    Compare::Equal => code::JEQ,
                    Compare::Greater => code::JGT,
                    Compare::GreaterOrEqual => code::JGE,
                    Compare::AnyBit => code::JSET,
                };
                let jump = match operand {
                    Some(constant) => Instruction::new(code::JMP | operation, constant),
                    None => Instruction::new(code::JMP | operation | code::X, 0),
                };
                BlockEnd::Branch { jump, yes, no }
            }
        };
        let nexts = match end {
            BlockEnd::Return(_) => [None, None],
            BlockEnd::Next(next) => [Some(next), None],
            BlockEnd::Branch { yes, no, .. } => [Some(yes), Some(no)],
        };
        for next in nexts.into_iter().flatten() {
            entries.entry(next).and_modify(|there| there.intersect(&registers)).or_insert_with(|| registers.clone());
        }
        blocks.push(Block { node, body, end });
    }
    Ok(blocks)
}

/// The instructions from last to first. In this order, the distance to everything already placed is known.
struct Assembly<'g> {
    reversed: Vec<Instruction>,
    /// Index of a block's first instruction.
    placed: HashMap<NodeId, usize>,
    /// Index of an instruction that leads to the block, because the block itself is too far away.
    near: HashMap<NodeId, usize>,
    graph: &'g Graph,
    snaplen: u32,
}

impl Assembly<'_> {
    fn place_block(&mut self, block: Block) {
        match block.end {
            BlockEnd::Return(accepts) => self.push_return(accepts),
            BlockEnd::Next(next) => {
                let distance = self.distance_to(self.placed.get(&next).copied());
                if let Some(distance) = distance.filter(|distance| *distance > 0) {
                    self.reversed.push(Instruction::new(code::JMP | code::JA, distance as u32));
                }
            }
            BlockEnd::Branch { jump, yes, no } => {
                // Placing a jump for one target may move the other out of range, so this repeats.
                while !(self.is_in_reach(yes) && self.is_in_reach(no)) {
                    let far = if self.is_in_reach(yes) { no } else { yes };
                    self.push_relay(far);
                }
                let (jt, jf) = (self.skip(yes), self.skip(no));
                self.reversed.push(Instruction { jt, jf, ..jump });
            }
        }
        self.reversed.extend(block.body.into_iter().rev());
        self.placed.insert(block.node, self.reversed.len().saturating_sub(1));
    }

    fn push_return(&mut self, accepts: bool) {
        self.reversed.push(Instruction::new(code::RET_K, if accepts { self.snaplen } else { 0 }));
    }

    /// Returns the number of instructions between the next one to be pushed and the one at `index`.
    fn distance_to(&self, index: Option<usize>) -> Option<usize> {
        self.reversed.len().checked_sub(index? + 1)
    }

    /// Returns the shortest distance to a block, or to an instruction that leads to it.
    fn shortest_distance(&self, to: NodeId) -> Option<usize> {
        let block = self.distance_to(self.placed.get(&to).copied());
        let near = self.distance_to(self.near.get(&to).copied());
        block.into_iter().chain(near).min()
    }

    fn is_in_reach(&self, to: NodeId) -> bool {
        self.shortest_distance(to).is_some_and(|distance| distance <= SKIP_MAX)
    }

    fn skip(&self, to: NodeId) -> u8 {
        self.shortest_distance(to).and_then(|distance| u8::try_from(distance).ok()).unwrap_or(0)
    }

    /// Places an instruction that jumps far. No code falls through into it, because it comes after a branch, which
    /// always jumps.
    fn push_relay(&mut self, to: NodeId) {
        match self.graph.get(to) {
            GraphNode::Return(accepts) => self.push_return(accepts),
            _ => {
                let distance = self.distance_to(self.placed.get(&to).copied()).unwrap_or(0);
                self.reversed.push(Instruction::new(code::JMP | code::JA, distance as u32));
            }
        }
        self.near.insert(to, self.reversed.len().saturating_sub(1));
    }
}
