//! Instructions of classic BPF, programs of them, and how tcpdump prints those.

use std::fmt::Write as _;

/// `struct sock_filter` of include/uapi/linux/filter.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// Class, size and mode, or operation.
    pub code: u16,
    /// Instructions to skip if the comparison holds.
    pub jt: u8,
    /// Instructions to skip if it does not hold.
    pub jf: u8,
    /// A constant, an offset, or a number of instructions to skip.
    pub k: u32,
}

/// A program, for a socket or for [`crate::run`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The instructions in order.
    pub instructions: Vec<Instruction>,
}

/// The most instructions that the kernel accepts (`BPF_MAXINSNS`, include/uapi/linux/bpf_common.h).
///
/// Bound: instructions of a compiled pcap filter. Beyond: the filter is refused. By: the user.
pub const INSTRUCTIONS_MAX: usize = 4096;

/// Codes of include/uapi/linux/bpf_common.h, combined.
pub(crate) mod code {
    pub(crate) const LD_W_ABS: u16 = 0x20;
    pub(crate) const LD_H_ABS: u16 = 0x28;
    pub(crate) const LD_B_ABS: u16 = 0x30;
    pub(crate) const LD_W_IND: u16 = 0x40;
    pub(crate) const LD_H_IND: u16 = 0x48;
    pub(crate) const LD_B_IND: u16 = 0x50;
    pub(crate) const LD_IMM: u16 = 0x00;
    pub(crate) const LD_LEN: u16 = 0x80;
    pub(crate) const LD_MEM: u16 = 0x60;
    pub(crate) const LDX_IMM: u16 = 0x01;
    pub(crate) const LDX_LEN: u16 = 0x81;
    pub(crate) const LDX_MEM: u16 = 0x61;
    pub(crate) const LDX_MSH: u16 = 0xb1;
    pub(crate) const ST: u16 = 0x02;
    pub(crate) const STX: u16 = 0x03;
    pub(crate) const ALU: u16 = 0x04;
    pub(crate) const ADD: u16 = 0x00;
    pub(crate) const SUB: u16 = 0x10;
    pub(crate) const MUL: u16 = 0x20;
    pub(crate) const DIV: u16 = 0x30;
    pub(crate) const OR: u16 = 0x40;
    pub(crate) const AND: u16 = 0x50;
    pub(crate) const LSH: u16 = 0x60;
    pub(crate) const RSH: u16 = 0x70;
    pub(crate) const NEG: u16 = 0x80;
    pub(crate) const MOD: u16 = 0x90;
    pub(crate) const XOR: u16 = 0xa0;
    pub(crate) const X: u16 = 0x08;
    pub(crate) const JMP: u16 = 0x05;
    pub(crate) const JA: u16 = 0x00;
    pub(crate) const JEQ: u16 = 0x10;
    pub(crate) const JGT: u16 = 0x20;
    pub(crate) const JGE: u16 = 0x30;
    pub(crate) const JSET: u16 = 0x40;
    pub(crate) const RET_K: u16 = 0x06;
    pub(crate) const RET_A: u16 = 0x16;
    pub(crate) const TAX: u16 = 0x07;
    pub(crate) const TXA: u16 = 0x87;
}

impl Instruction {
    pub(crate) fn new(code: u16, k: u32) -> Instruction {
        Instruction { code, jt: 0, jf: 0, k }
    }

    /// Returns mnemonic and operand, as libpcap's `bpf_image` writes them.
    fn image(self) -> (&'static str, String) {
        let k = self.k;
        let signed = k as i32;
        match self.code {
            code::RET_K => ("ret", format!("#{signed}")),
            code::RET_A => ("ret", String::new()),
            code::LD_W_ABS => ("ld", format!("[{signed}]")),
            code::LD_H_ABS => ("ldh", format!("[{signed}]")),
            code::LD_B_ABS => ("ldb", format!("[{signed}]")),
            code::LD_LEN => ("ld", "#pktlen".to_owned()),
            code::LD_W_IND => ("ld", format!("[x + {signed}]")),
            code::LD_H_IND => ("ldh", format!("[x + {signed}]")),
            code::LD_B_IND => ("ldb", format!("[x + {signed}]")),
            code::LD_IMM => ("ld", format!("#{k:#x}")),
            code::LDX_IMM => ("ldx", format!("#{k:#x}")),
            code::LDX_LEN => ("ldx", "#pktlen".to_owned()),
            code::LDX_MSH => ("ldxb", format!("4*([{signed}]&0xf)")),
            code::LD_MEM => ("ld", format!("M[{signed}]")),
            code::LDX_MEM => ("ldx", format!("M[{signed}]")),
            code::ST => ("st", format!("M[{signed}]")),
            code::STX => ("stx", format!("M[{signed}]")),
            code::TAX => ("tax", String::new()),
            code::TXA => ("txa", String::new()),
            code if code & 7 == code::JMP => jump_image(code, k),
            code if code & 7 == code::ALU => alu_image(code, k),
            code => ("unimp", format!("{code:#x}")),
        }
    }
}

fn jump_image(code: u16, k: u32) -> (&'static str, String) {
    let name = match code & 0xf0 {
        code::JA => return ("ja", String::new()),
        code::JEQ => "jeq",
        code::JGT => "jgt",
        code::JGE => "jge",
        _ => "jset",
    };
    (name, if code & code::X == 0 { format!("#{k:#x}") } else { "x".to_owned() })
}

fn alu_image(code: u16, k: u32) -> (&'static str, String) {
    let (name, is_hexadecimal) = match code & 0xf0 {
        code::ADD => ("add", false),
        code::SUB => ("sub", false),
        code::MUL => ("mul", false),
        code::DIV => ("div", false),
        code::MOD => ("mod", false),
        code::AND => ("and", true),
        code::OR => ("or", true),
        code::XOR => ("xor", true),
        code::LSH => ("lsh", false),
        code::RSH => ("rsh", false),
        _ => return ("neg", String::new()),
    };
    let constant = if is_hexadecimal { format!("#{k:#x}") } else { format!("#{}", k as i32) };
    (name, if code & code::X == 0 { constant } else { "x".to_owned() })
}

impl Program {
    /// Formats the program like `tcpdump -d`: one readable instruction per line.
    #[must_use]
    pub fn to_assembly(&self) -> String {
        let mut text = String::new();
        for (at, instruction) in self.instructions.iter().enumerate() {
            let (name, operand) = instruction.image();
            let target = |skip: u32| at as u64 + 1 + u64::from(skip);
            // Writing to a String does not fail.
            _ = match instruction.code & 0xf7 {
                0x05 => writeln!(text, "({at:03}) {:<8} {}", "ja", target(instruction.k)),
                code if code & 7 == code::JMP => {
                    let (jt, jf) = (target(instruction.jt.into()), target(instruction.jf.into()));
                    writeln!(text, "({at:03}) {name:<8} {operand:<16} jt {jt}\tjf {jf}")
                }
                _ => writeln!(text, "({at:03}) {name:<8} {operand}"),
            };
        }
        text
    }

    /// Formats the program like `tcpdump -dd`: a fragment of C.
    #[must_use]
    pub fn to_c(&self) -> String {
        let mut text = String::new();
        for Instruction { code, jt, jf, k } in &self.instructions {
            _ = writeln!(text, "{{ {code:#x}, {jt}, {jf}, 0x{k:08x} }},");
        }
        text
    }

    /// Formats the program like `tcpdump -ddd`: the number of instructions, then decimal numbers.
    #[must_use]
    pub fn to_numbers(&self) -> String {
        let mut text = format!("{}\n", self.instructions.len());
        for Instruction { code, jt, jf, k } in &self.instructions {
            _ = writeln!(text, "{code} {jt} {jf} {k}");
        }
        text
    }

    /// Parses the output of [`Program::to_numbers`] and `tcpdump -ddd`. Returns None for any other text.
    #[must_use]
    pub fn from_numbers(text: &str) -> Option<Program> {
        let mut lines = text.lines();
        let number: usize = lines.next()?.trim().parse().ok()?;
        let instruction = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let code = words.next()?.parse().ok()?;
            let jt = words.next()?.parse().ok()?;
            let jf = words.next()?.parse().ok()?;
            Some(Instruction { code, jt, jf, k: words.next()?.parse().ok()? })
        };
        let instructions = lines.map(instruction).collect::<Option<Vec<_>>>()?;
        (instructions.len() == number).then_some(Program { instructions })
    }
}
