//! Seccomp programs: classic BPF over the number and the arguments of a system call.
use crate::errno::Errno;
use crate::syscall::call;

/// `struct seccomp_data` (include/uapi/linux/seccomp.h): number, architecture, instruction pointer, six arguments.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;
/// Offset of the low half within an argument.
const LOW: u32 = if cfg!(target_endian = "little") { 0 } else { 4 };

/// `AUDIT_ARCH_…` (include/uapi/linux/audit.h); `None` for an unknown architecture, for which no program is built.
const OWN_ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else if cfg!(target_arch = "riscv64") {
    Some(0xc000_00f3)
} else {
    None
};

const SECCOMP_SET_MODE_FILTER: libc::c_ulong = 1;
const FLAG_ALL_THREADS: libc::c_ulong = 1;
/// Without this flag, kernels before 5.16 slow the whole program down to mitigate attacks that do not matter here.
const FLAG_SPECULATION: libc::c_ulong = 4;

/// A list of allowed calls; all others are denied.
pub(super) struct CallProgram {
    steps: Vec<libc::sock_filter>,
}

fn step(code: u32, yes: u8, no: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: yes, jf: no, k }
}

fn load(offset: u32) -> libc::sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

fn return_value(value: u32) -> libc::sock_filter {
    step(libc::BPF_RET | libc::BPF_K, 0, 0, value)
}

fn return_errno(errno: Errno) -> libc::sock_filter {
    return_value(libc::SECCOMP_RET_ERRNO | (errno.0 as u32 & libc::SECCOMP_RET_DATA))
}

impl CallProgram {
    /// A program that allows nothing yet; `None` on an unknown architecture.
    pub(super) fn new() -> Option<CallProgram> {
        let own = OWN_ARCHITECTURE?;
        let steps = vec![
            load(ARCHITECTURE),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, own),
            return_errno(Errno::NOSYS),
            load(NUMBER),
        ];
        Some(CallProgram { steps })
    }

    /// Allows a call.
    pub(super) fn allow(&mut self, number: libc::c_long) {
        self.steps.push(step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number as u32));
        self.steps.push(return_value(libc::SECCOMP_RET_ALLOW));
    }

    /// Denies a call with this error.
    pub(super) fn refuse(&mut self, number: libc::c_long, errno: Errno) {
        self.steps.push(step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number as u32));
        self.steps.push(return_errno(errno));
    }

    /// Allows a call if its argument number `place` is one of `values`, and denies it otherwise. At most 100 values.
    pub(super) fn allow_values(&mut self, number: libc::c_long, place: u32, values: &[u32]) {
        self.check_argument(number, place, values, libc::BPF_JEQ);
    }

    /// Allows a call if its argument number `place` has one of these bits, and denies it otherwise.
    pub(super) fn allow_bits(&mut self, number: libc::c_long, place: u32, bits: u32) {
        self.check_argument(number, place, &[bits], libc::BPF_JSET);
    }

    fn check_argument(&mut self, number: libc::c_long, place: u32, values: &[u32], test: u32) {
        let values = values.get(..100).unwrap_or(values);
        // The load, two steps per value, the denial.
        let skip = (2 + 2 * values.len()) as u8;
        self.steps.push(step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, skip, number as u32));
        self.steps.push(load(ARGUMENTS + 8 * place + LOW));
        for value in values {
            self.steps.push(step(libc::BPF_JMP | test | libc::BPF_K, 0, 1, *value));
            self.steps.push(return_value(libc::SECCOMP_RET_ALLOW));
        }
        self.steps.push(return_errno(Errno::PERM));
    }

    /// Installs the program permanently, in all threads or in the calling one. Needs [`super::forbid_new`].
    pub(super) fn install(mut self, in_all_threads: bool) -> Result<(), Errno> {
        self.steps.push(return_errno(Errno::PERM));
        let program =
            libc::sock_fprog { len: self.steps.len() as libc::c_ushort, filter: self.steps.as_ptr().cast_mut() };
        let threads = if in_all_threads { FLAG_ALL_THREADS } else { 0 };
        let set = |flags: libc::c_ulong| {
            // SAFETY: `program` points to `len` live steps; the kernel copies and checks them.
            call("seccomp", || unsafe {
                libc::syscall(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &raw const program)
            })
        };
        let done = match set(threads | FLAG_SPECULATION) {
            // The flag does not exist before Linux 4.17.
            Err(Errno::INVAL) => set(threads),
            done => done,
        };
        // A positive result is the number of a thread that could not adopt the program.
        if done? > 0 { Err(Errno::BUSY) } else { Ok(()) }
    }
}
