//! The values in the two registers, and the instructions that load values into them.

use crate::ast::Operator;
use crate::error::FilterError;
use crate::instruction::{Instruction, code};
use crate::interpret::MEMORY_WORDS;
use crate::value::{MemorySlot, Size, Value, ValueId, Values, code_of};

/// Words of scratch memory below this one are slots; those from here on store intermediate results.
const FIRST_TEMPORARY: usize = 8;

/// The values in the registers, where known.
#[derive(Clone, Default)]
pub(super) struct Registers {
    a: Option<ValueId>,
    x: Option<ValueId>,
    /// Words of scratch memory in use for intermediate results.
    temporaries: usize,
}

type EmitResult = Result<(), FilterError>;

impl Registers {
    /// Keeps only what is true on both paths.
    pub(super) fn intersect(&mut self, other: &Registers) {
        self.a = self.a.filter(|_| self.a == other.a);
        self.x = self.x.filter(|_| self.x == other.x);
    }

    /// Writes `value` to `slot`.
    pub(super) fn store(
        &mut self,
        values: &Values,
        body: &mut Vec<Instruction>,
        slot: MemorySlot,
        value: ValueId,
    ) -> EmitResult {
        if self.x == Some(value) && self.a != Some(value) {
            body.push(Instruction::new(code::STX, slot.0.into()));
        } else {
            self.load_a(values, body, value)?;
            body.push(Instruction::new(code::ST, slot.0.into()));
        }
        self.a = self.a.filter(|a| !values.reads_slot(*a, slot));
        self.x = self.x.filter(|x| !values.reads_slot(*x, slot));
        Ok(())
    }

    /// Loads both operands of a comparison. Returns the right one if it is a constant.
    pub(super) fn compare(
        &mut self,
        values: &Values,
        body: &mut Vec<Instruction>,
        left: ValueId,
        right: ValueId,
    ) -> Result<Option<u32>, FilterError> {
        if let Some(constant) = values.constant_of(right) {
            self.load_a(values, body, left)?;
            return Ok(Some(constant));
        }
        self.load_both(values, body, left, right)?;
        Ok(None)
    }

    /// Loads `left` into A and `right` into X.
    fn load_both(&mut self, values: &Values, body: &mut Vec<Instruction>, left: ValueId, right: ValueId) -> EmitResult {
        if is_simple(values, right) {
            self.load_a(values, body, left)?;
            return self.load_x(values, body, right);
        }
        self.load_a(values, body, right)?;
        let word = FIRST_TEMPORARY + self.temporaries;
        if word >= MEMORY_WORDS {
            return Err(FilterError::new("too many registers needed to evaluate expression", 0));
        }
        body.push(Instruction::new(code::ST, word as u32));
        self.temporaries += 1;
        self.load_a(values, body, left)?;
        self.temporaries -= 1;
        body.push(Instruction::new(code::LDX_MEM, word as u32));
        self.x = Some(right);
        Ok(())
    }

    fn load_a(&mut self, values: &Values, body: &mut Vec<Instruction>, value: ValueId) -> EmitResult {
        if self.a == Some(value) {
            return Ok(());
        }
        if self.x == Some(value) {
            body.push(Instruction::new(code::TXA, 0));
            self.a = Some(value);
            return Ok(());
        }
        let instruction = match values.get(value) {
            Value::Constant(constant) => Instruction::new(code::LD_IMM, constant),
            Value::Length => Instruction::new(code::LD_LEN, 0),
            Value::Slot(slot) => Instruction::new(code::LD_MEM, slot.0.into()),
            Value::HeaderLength(_) => {
                self.load_x(values, body, value)?;
                Instruction::new(code::TXA, 0)
            }
            Value::Load { size, base, offset } => {
                if let Some(base) = base {
                    self.load_x(values, body, base)?;
                }
                Instruction::new(load_code(size, base.is_some()), offset)
            }
            Value::Negate(inner) => {
                self.load_a(values, body, inner)?;
                Instruction::new(code::ALU | code::NEG, 0)
            }
            Value::Binary(operator, left, right) => self.operation(values, body, operator, left, right)?,
        };
        body.push(instruction);
        self.a = Some(value);
        Ok(())
    }

    /// Loads the operands and returns the instruction of the operation.
    fn operation(
        &mut self,
        values: &Values,
        body: &mut Vec<Instruction>,
        operator: Operator,
        left: ValueId,
        right: ValueId,
    ) -> Result<Instruction, FilterError> {
        let operation = code::ALU | code_of(operator);
        // The kernel rejects a program that divides by a constant zero or shifts too far.
        let is_refused = |constant: u32| match operator {
            Operator::Div | Operator::Mod => constant == 0,
            Operator::ShiftLeft | Operator::ShiftRight => constant > 31,
            _ => false,
        };
        if let Some(constant) = values.constant_of(right).filter(|constant| !is_refused(*constant)) {
            self.load_a(values, body, left)?;
            return Ok(Instruction::new(operation, constant));
        }
        let is_symmetric =
            matches!(operator, Operator::Add | Operator::Mul | Operator::And | Operator::Or | Operator::Xor);
        if is_symmetric && is_simple(values, left) {
            self.load_both(values, body, right, left)?;
        } else {
            self.load_both(values, body, left, right)?;
        }
        Ok(Instruction::new(operation | code::X, 0))
    }

    /// Loads a value into X. Preserves A if the value is simple.
    fn load_x(&mut self, values: &Values, body: &mut Vec<Instruction>, value: ValueId) -> EmitResult {
        if self.x == Some(value) {
            return Ok(());
        }
        let instruction = match values.get(value) {
            _ if self.a == Some(value) => Instruction::new(code::TAX, 0),
            Value::Constant(constant) => Instruction::new(code::LDX_IMM, constant),
            Value::Length => Instruction::new(code::LDX_LEN, 0),
            Value::Slot(slot) => Instruction::new(code::LDX_MEM, slot.0.into()),
            Value::HeaderLength(offset) => Instruction::new(code::LDX_MSH, offset),
            _ => {
                self.load_a(values, body, value)?;
                Instruction::new(code::TAX, 0)
            }
        };
        body.push(instruction);
        self.x = Some(value);
        Ok(())
    }
}

/// True if the value can be loaded into X without A.
fn is_simple(values: &Values, value: ValueId) -> bool {
    matches!(values.get(value), Value::Constant(_) | Value::Length | Value::Slot(_) | Value::HeaderLength(_))
}

fn load_code(size: Size, is_indirect: bool) -> u16 {
    match (size, is_indirect) {
        (Size::Byte, false) => code::LD_B_ABS,
        (Size::Half, false) => code::LD_H_ABS,
        (Size::Word, false) => code::LD_W_ABS,
        (Size::Byte, true) => code::LD_B_IND,
        (Size::Half, true) => code::LD_H_IND,
        (Size::Word, true) => code::LD_W_IND,
    }
}
