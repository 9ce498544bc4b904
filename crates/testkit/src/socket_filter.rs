//! Attaches classic BPF programs to sockets.

use sys::{Fd, SysError, socket};

/// include/uapi/asm-generic/socket.h
const SO_ATTACH_FILTER: i32 = 26;

/// Code, the two jumps and the constant of an instruction (`struct sock_filter`).
type Instruction = (u16, u8, u8, u32);

/// Attaches a program, which the kernel then verifies.
pub fn attach_filter(socket: &Fd, program: &[Instruction]) -> Result<(), SysError> {
    let mut bytes = Vec::new();
    for (code, jt, jf, k) in program {
        bytes.extend_from_slice(&code.to_ne_bytes());
        bytes.extend_from_slice(&[*jt, *jf]);
        bytes.extend_from_slice(&k.to_ne_bytes());
    }
    // `struct sock_fprog`: number of instructions, padding, address.
    let mut wanted = program.len().to_ne_bytes().to_vec();
    wanted.extend_from_slice(&(bytes.as_ptr() as usize).to_ne_bytes());
    socket::set_bytes(socket, socket::SOL_SOCKET, SO_ATTACH_FILTER, &wanted)
}

/// Attaches a program to a separate socket that receives nothing.
pub fn try_filter(program: &[Instruction]) -> Result<(), SysError> {
    const AF_INET: i32 = 2;
    const SOCK_DGRAM: i32 = 2;
    attach_filter(&socket::open(AF_INET, SOCK_DGRAM, 0)?, program)
}
