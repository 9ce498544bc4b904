//! A model of the kernel's side of bytecode, for tests: which programs it accepts and what they do.
//!
//! After net/ipv4/inet_diag.c of 6.18: inet_diag_bc_audit, valid_cc, inet_diag_bc_run.
use super::{AUTO, CGROUP_COND, D_COND, D_EQ, D_GE, D_LE, DEV_COND, JMP, MARK_COND, S_COND, S_EQ, S_GE, S_LE};
use crate::address_families::{AF_INET, AF_INET6};

/// Properties of a socket that bytecode can test.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tuple {
    pub(super) family: u8,
    pub(super) local: [u8; 16],
    pub(super) peer: [u8; 16],
    pub(super) sport: u16,
    pub(super) dport: u16,
    pub(super) ifindex: u32,
    pub(super) mark: u32,
    pub(super) cgroup: u64,
    pub(super) autobound: bool,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

// Required size of the operation in bytes, including its own header.
fn size_of_op(program: &[u8], at: usize) -> Result<usize, String> {
    let there = program.len() - at;
    let size = match program[at] {
        JMP | AUTO => 4,
        S_GE | S_LE | D_GE | D_LE | S_EQ | D_EQ | DEV_COND => 8,
        MARK_COND | CGROUP_COND => 12,
        S_COND | D_COND if there >= 12 => {
            let (addr, most) = match program[at + 4] {
                AF_INET => (4, 32),
                AF_INET6 => (16, 128),
                family => return Err(format!("family {family}")),
            };
            if program[at + 5] > most {
                return Err("prefix too long".into());
            }
            12 + addr
        }
        code => return Err(format!("operation {code}")),
    };
    if size > there { Err("operand beyond the end".into()) } else { Ok(size) }
}

/// Fails if the kernel would reject the program.
pub(super) fn audit(program: &[u8]) -> Result<(), String> {
    if program.len() < 4 {
        return Err("shorter than one operation".into());
    }
    let mut starts = vec![program.len()];
    let mut at = 0;
    while at < program.len() {
        starts.push(at);
        let size = size_of_op(program, at)?;
        let left = program.len() - at;
        for distance in [usize::from(program[at + 1]), usize::from(u16_at(program, at + 2))] {
            if distance < size || distance > left + 4 || distance % 4 != 0 {
                return Err(format!("jump of {distance} at {at}, {left} bytes left"));
            }
        }
        at += usize::from(program[at + 1]);
    }
    if at != program.len() {
        return Err("the last operation leads beyond the end".into());
    }
    let mut at = 0;
    while at < program.len() {
        let to = at + usize::from(u16_at(program, at + 2));
        if to < program.len() && !starts.contains(&to) {
            return Err(format!("jump from {at} into the middle at {to}"));
        }
        at += usize::from(program[at + 1]);
    }
    Ok(())
}

fn same_bits(a: &[u8], b: &[u8], bits: u8) -> bool {
    (0..usize::from(bits)).all(|bit| (a[bit / 8] ^ b[bit / 8]) >> (7 - bit % 8) & 1 == 0)
}

fn host_matches(cond: &[u8], family: u8, addr: &[u8; 16], port: u16) -> bool {
    let wanted = i32::from_ne_bytes(cond[4..8].try_into().unwrap());
    if wanted != -1 && wanted != i32::from(port) {
        return false;
    }
    let (cond_family, bits, prefix) = (cond[0], cond[1], &cond[8..]);
    if cond_family != family {
        let mapped = addr[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
        return family == AF_INET6 && cond_family == AF_INET && mapped && same_bits(&addr[12..], prefix, bits);
    }
    same_bits(addr, prefix, bits)
}

/// Runs a program that has passed the audit.
pub(super) fn run(program: &[u8], tuple: &Tuple) -> bool {
    let (mut at, end) = (0, program.len());
    while at < end {
        let op = &program[at..];
        let yes = match op[0] {
            JMP => false,
            S_EQ => tuple.sport == u16_at(op, 6),
            S_GE => tuple.sport >= u16_at(op, 6),
            S_LE => tuple.sport <= u16_at(op, 6),
            D_EQ => tuple.dport == u16_at(op, 6),
            D_GE => tuple.dport >= u16_at(op, 6),
            D_LE => tuple.dport <= u16_at(op, 6),
            S_COND => host_matches(&op[4..], tuple.family, &tuple.local, tuple.sport),
            D_COND => host_matches(&op[4..], tuple.family, &tuple.peer, tuple.dport),
            DEV_COND => tuple.ifindex == u32_at(op, 4),
            MARK_COND => tuple.mark & u32_at(op, 8) == u32_at(op, 4),
            AUTO => tuple.autobound,
            CGROUP_COND => tuple.cgroup == u64::from_ne_bytes(op[4..12].try_into().unwrap()),
            code => panic!("operation {code}"),
        };
        at += if yes { usize::from(op[1]) } else { usize::from(u16_at(op, 2)) };
    }
    at == end
}
