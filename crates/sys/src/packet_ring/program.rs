//! Classic BPF programs, which select packets before they are copied.

/// `struct sock_filter` (include/uapi/linux/filter.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Instructions to skip if the comparison is true.
    pub jump_true: u8,
    /// Instructions to skip if the comparison is false.
    pub jump_false: u8,
    /// Operand.
    pub k: u32,
}

/// `BPF_MAXINSNS`: the kernel rejects longer programs.
pub const PROGRAM_MAX: usize = 4096;

/// `BPF_LD | BPF_W | BPF_ABS`
const LOAD_WORD: u16 = 0x20;
/// `BPF_JMP | BPF_JEQ | BPF_K`
const JUMP_EQUAL: u16 = 0x15;
/// `BPF_RET | BPF_K`
const RETURN: u16 = 0x06;
/// `SKF_AD_OFF + SKF_AD_PKTTYPE`, `SKF_AD_OFF + SKF_AD_HATYPE`
const PACKET_TYPE: u32 = (-0x1000_i32 + 4) as u32;
const HARDWARE: u32 = (-0x1000_i32 + 28) as u32;
const ARPHRD_LOOPBACK: u32 = 772;
const OUTGOING: u32 = 4;

const fn instruction(code: u16, k: u32) -> Instruction {
    Instruction { code, jump_true: 0, jump_false: 0, k }
}

/// A program that accepts every packet, truncated to `snaplen` bytes.
pub fn accept_all(snaplen: u32) -> Vec<Instruction> {
    vec![instruction(RETURN, snaplen)]
}

/// The maximum packet length that libpcap and tcpdump capture (`MAXIMUM_SNAPLEN`); packets are never longer.
const SNAPLEN_MAX: u32 = 262_144;

/// True for a program that accepts every packet with all its bytes: a ring needs no program for that.
pub fn accepts_all_whole(program: &[Instruction]) -> bool {
    matches!(program, [only] if *only == instruction(RETURN, only.k) && only.k >= SNAPLEN_MAX)
}

/// A program that accepts no packet.
pub(super) fn reject_all() -> Vec<Instruction> {
    accept_all(0)
}

/// Extends `program` so that a packet on the loopback interface is seen only once, when it arrives; otherwise it is
/// also seen when it leaves.
pub fn without_own_echo(program: &[Instruction]) -> Vec<Instruction> {
    let first = [
        instruction(LOAD_WORD, HARDWARE),
        Instruction { code: JUMP_EQUAL, jump_true: 0, jump_false: 3, k: ARPHRD_LOOPBACK },
        instruction(LOAD_WORD, PACKET_TYPE),
        Instruction { code: JUMP_EQUAL, jump_true: 0, jump_false: 1, k: OUTGOING },
        instruction(RETURN, 0),
    ];
    [&first, program].concat()
}

/// Restricts `program` to packets that this host sent, or to all others.
pub fn one_direction(program: &[Instruction], outgoing: bool) -> Vec<Instruction> {
    let (jump_true, jump_false) = if outgoing { (1, 0) } else { (0, 1) };
    let first = [
        instruction(LOAD_WORD, PACKET_TYPE),
        Instruction { code: JUMP_EQUAL, jump_true, jump_false, k: OUTGOING },
        instruction(RETURN, 0),
    ];
    [&first, program].concat()
}

impl Instruction {
    /// The instruction in the kernel's layout.
    pub(super) fn bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..2].copy_from_slice(&self.code.to_ne_bytes());
        (bytes[2], bytes[3]) = (self.jump_true, self.jump_false);
        bytes[4..].copy_from_slice(&self.k.to_ne_bytes());
        bytes
    }
}
