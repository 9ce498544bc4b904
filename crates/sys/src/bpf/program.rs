//! Loading, running and attaching BPF programs.
use std::ffi::CStr;

use super::call::{Command, address, address_mut, bpf, short_name};
use crate::errno::{Errno, SysError};
use crate::fd::Fd;

/// Maximum size of the verifier's log; the important part is at its end.
pub const LOG_BYTES_MAX: usize = 1 << 20;

/// The properties of a program.
#[derive(Debug, Clone, Copy)]
pub struct ProgramShape<'a> {
    /// Name; the kernel stores 15 bytes of it.
    pub name: &'a str,
    /// `enum bpf_prog_type`.
    pub kind: u32,
    /// `enum bpf_attach_type` for attaching it.
    pub attach: u32,
    /// `BPF_F_SLEEPABLE` and similar flags.
    pub flags: u32,
    /// BTF id of the kernel type or function that it will be attached to; 0 if it has no target.
    pub target: u32,
    /// Instructions, 8 bytes each.
    pub instructions: &'a [u8],
    /// Licence; some helpers require a GPL-compatible one.
    pub licence: &'a CStr,
}

#[repr(C)]
struct LoadAttr {
    kind: u32,
    instructions: u32,
    first: u64,
    licence: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    ifindex: u32,
    attach: u32,
    btf: u32,
    function_bytes: u32,
    functions: u64,
    function_count: u32,
    line_bytes: u32,
    lines: u64,
    line_count: u32,
    target: u32,
    target_program: u32,
    rest: u32,
}
const _: () = assert!(size_of::<LoadAttr>() == 120);

/// Verifies and loads a program into the kernel. If `log` is not empty, it receives the verifier's messages (level 1,
/// truncated to its length). The log costs time, so request it only after a first attempt has failed.
pub fn load_program(shape: &ProgramShape<'_>, log: &mut [u8]) -> Result<Fd, SysError> {
    let failed = |errno| SysError::new(Command::ProgLoad.name(), format!("BPF program {}", shape.name), errno);
    let count = u32::try_from(shape.instructions.len() / 8).map_err(|_| failed(Errno::FBIG))?;
    let mut attr = LoadAttr {
        kind: shape.kind,
        instructions: count,
        first: address(shape.instructions),
        licence: shape.licence.as_ptr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_bytes: u32::try_from(log.len()).map_err(|_| failed(Errno::FBIG))?,
        log: address_mut(log),
        kernel_version: 0,
        flags: shape.flags,
        name: short_name(shape.name),
        ifindex: 0,
        attach: shape.attach,
        btf: 0,
        function_bytes: 0,
        functions: 0,
        function_count: 0,
        line_bytes: 0,
        lines: 0,
        line_count: 0,
        target: shape.target,
        target_program: 0,
        rest: 0,
    };
    // EAGAIN: a signal interrupted the verifier, and the call must be repeated.
    let mut tries = 0;
    let fd = loop {
        // SAFETY: LoadAttr is the layout of PROG_LOAD; the addresses are of `count` whole instructions and a
        // NUL-terminated licence to be read, and of `log_bytes` exclusively borrowed bytes to be written.
        match unsafe { bpf(Command::ProgLoad, &mut attr) } {
            Err(Errno::AGAIN) if tries < 5 => tries += 1,
            other => break other.map_err(failed)?,
        }
    };
    // SAFETY: the kernel just returned this descriptor to us alone.
    Ok(unsafe { Fd::take(fd) })
}

#[repr(C)]
struct RunAttr {
    program: u32,
    returned: u32,
    data_in_bytes: u32,
    data_out_bytes: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_in_bytes: u32,
    context_out_bytes: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    rest: u32,
}
const _: () = assert!(size_of::<RunAttr>() == 80);

/// Runs a program of type `syscall` once; it may modify `context`. Returns the program's return value.
pub fn run(program: &Fd, context: &mut [u8]) -> Result<u32, Errno> {
    let mut attr = RunAttr {
        program: program.raw() as u32,
        returned: 0,
        data_in_bytes: 0,
        data_out_bytes: 0,
        data_in: 0,
        data_out: 0,
        repeat: 0,
        duration: 0,
        context_in_bytes: u32::try_from(context.len()).map_err(|_| Errno::INVAL)?,
        context_out_bytes: 0,
        context_in: address_mut(context),
        context_out: 0,
        flags: 0,
        cpu: 0,
        batch: 0,
        rest: 0,
    };
    // SAFETY: RunAttr is the layout of PROG_TEST_RUN; its only address is that of `context`, exclusively borrowed,
    // which the kernel reads and, for programs of this type, writes back.
    unsafe { bpf(Command::ProgRun, &mut attr) }?;
    Ok(attr.returned)
}

/// `BPF_F_TEST_XDP_LIVE_FRAMES`
const LIVE_FRAMES: u32 = 2;
/// `struct xdp_md`: start of the packet, its end and its metadata, then the interface, its queue, the egress
/// interface.
const XDP_CONTEXT: usize = 24;

/// Runs an XDP program on `count` copies of a frame, as if they had arrived on an interface of the calling thread's
/// namespace. Frames that the program passes go up the stack (Linux 5.18). Benches use it as a packet source that is
/// several times as fast as a sending socket.
pub fn inject(program: &Fd, frame: &[u8], ifindex: u32, count: u32) -> Result<(), Errno> {
    let bytes = u32::try_from(frame.len()).map_err(|_| Errno::INVAL)?;
    let mut context = [0; XDP_CONTEXT];
    context[4..8].copy_from_slice(&bytes.to_ne_bytes());
    context[12..16].copy_from_slice(&ifindex.to_ne_bytes());
    let mut attr = RunAttr {
        program: program.raw() as u32,
        returned: 0,
        data_in_bytes: bytes,
        data_out_bytes: 0,
        data_in: address(frame),
        data_out: 0,
        repeat: count,
        duration: 0,
        context_in_bytes: XDP_CONTEXT as u32,
        context_out_bytes: 0,
        context_in: address(&context),
        context_out: 0,
        flags: LIVE_FRAMES,
        cpu: 0,
        batch: 0,
        rest: 0,
    };
    // SAFETY: RunAttr is the layout of PROG_TEST_RUN; both addresses are those of borrowed bytes of the stated
    // lengths, which the kernel only reads.
    unsafe { bpf(Command::ProgRun, &mut attr) }?;
    Ok(())
}

#[repr(C)]
struct RawTracepointAttr {
    name: u64,
    program: u32,
    rest: u32,
}

/// Attaches a program to the raw tracepoint for which it was loaded. Dropping the result detaches it.
pub fn attach_raw_tracepoint(program: &Fd) -> Result<Fd, Errno> {
    let mut attr = RawTracepointAttr { name: 0, program: program.raw() as u32, rest: 0 };
    // SAFETY: RawTracepointAttr is the layout of RAW_TRACEPOINT_OPEN and holds no address: a program that was loaded
    // with a target needs no name.
    let fd = unsafe { bpf(Command::RawTracepointOpen, &mut attr) }?;
    // SAFETY: the kernel just returned this descriptor to us alone.
    Ok(unsafe { Fd::take(fd) })
}

#[repr(C)]
struct LinkAttr {
    program: u32,
    target: u32,
    attach: u32,
    flags: u32,
    iterator: u64,
    iterator_bytes: u32,
    rest: u32,
}
const _: () = assert!(size_of::<LinkAttr>() == 32);

fn link(mut attr: LinkAttr) -> Result<Fd, Errno> {
    // SAFETY: LinkAttr is the layout of LINK_CREATE; its address is 0 or, from `attach_iterator`, the address of
    // `iterator_bytes` borrowed bytes.
    let fd = unsafe { bpf(Command::LinkCreate, &mut attr) }?;
    // SAFETY: the kernel just returned this descriptor to us alone.
    Ok(unsafe { Fd::take(fd) })
}

/// Attaches a program to a cgroup (a cgroup v2 directory) with a link. Dropping the result ends the link.
pub fn attach_to(program: &Fd, target: &Fd, attach: u32) -> Result<Fd, Errno> {
    let (program, target) = (program.raw() as u32, target.raw() as u32);
    link(LinkAttr { program, target, attach, flags: 0, iterator: 0, iterator_bytes: 0, rest: 0 })
}

/// Prepares an iterator program for [`open_iterator`]. `which` is a `union bpf_iter_link_info` that restricts it (to a
/// task or a map), or empty.
pub fn attach_iterator(program: &Fd, attach: u32, which: &[u8]) -> Result<Fd, Errno> {
    let iterator_bytes = u32::try_from(which.len()).map_err(|_| Errno::INVAL)?;
    let program = program.raw() as u32;
    link(LinkAttr { program, target: 0, attach, flags: 0, iterator: address(which), iterator_bytes, rest: 0 })
}

/// The attachment point of a netfilter program in the calling thread's network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetfilterPlace {
    /// `NFPROTO_IPV4` (2) or `NFPROTO_IPV6` (10).
    pub family: u32,
    /// `enum nf_inet_hooks`: 0 PRE_ROUTING, 1 LOCAL_IN, 2 FORWARD, 3 LOCAL_OUT, 4 POST_ROUTING.
    pub hook: u32,
    /// Programs with a lower priority see a packet first. Each priority can be used by one program; a second gets
    /// EBUSY.
    pub priority: i32,
}

#[repr(C)]
struct NetfilterLinkAttr {
    program: u32,
    target: u32,
    attach: u32,
    flags: u32,
    family: u32,
    hook: u32,
    priority: i32,
    netfilter_flags: u32,
}
const _: () = assert!(size_of::<NetfilterLinkAttr>() == 32);

/// Attaches a netfilter program (Linux 6.4) with a link. Dropping the result ends the link.
pub fn attach_netfilter(program: &Fd, attach: u32, place: NetfilterPlace) -> Result<Fd, Errno> {
    let NetfilterPlace { family, hook, priority } = place;
    let program = program.raw() as u32;
    let mut attr =
        NetfilterLinkAttr { program, target: 0, attach, flags: 0, family, hook, priority, netfilter_flags: 0 };
    // SAFETY: NetfilterLinkAttr is the layout of LINK_CREATE for this program type and holds no address.
    let fd = unsafe { bpf(Command::LinkCreate, &mut attr) }?;
    // SAFETY: the kernel just returned this descriptor to us alone.
    Ok(unsafe { Fd::take(fd) })
}

#[repr(C)]
struct IteratorAttr {
    link: u32,
    flags: u32,
}

/// Starts a pass of an iterator: the result is a file, and each read returns whole records.
pub fn open_iterator(link: &Fd) -> Result<Fd, Errno> {
    let mut attr = IteratorAttr { link: link.raw() as u32, flags: 0 };
    // SAFETY: IteratorAttr is the layout of ITER_CREATE and holds no address.
    let fd = unsafe { bpf(Command::IterCreate, &mut attr) }?;
    // SAFETY: the kernel just returned this descriptor to us alone.
    Ok(unsafe { Fd::take(fd) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::packet_ring::{PacketRing, RingKind, RingRequest, accept_all};
    use testkit::root::root_or_skip;

    /// r0 = 7; *(u32 *)(r1 + 4) = 9 through r2; exit.
    const SEVEN: [[u8; 8]; 4] = [
        [0xb7, 0, 0, 0, 7, 0, 0, 0],
        [0xb7, 2, 0, 0, 9, 0, 0, 0],
        [0x63, 0x21, 4, 0, 0, 0, 0, 0],
        [0x95, 0, 0, 0, 0, 0, 0, 0],
    ];
    const SYSCALL: u32 = 31;
    const SLEEPABLE: u32 = 1 << 4;

    fn shape(instructions: &[u8]) -> ProgramShape<'_> {
        ProgramShape {
            name: "nw_seven",
            kind: SYSCALL,
            attach: 0,
            flags: SLEEPABLE,
            target: 0,
            instructions,
            licence: c"Dual BSD/GPL",
        }
    }

    #[test]
    fn root_a_program_runs_and_writes_its_context() {
        if !root_or_skip("BPF programs") {
            return;
        }
        let program = load_program(&shape(SEVEN.as_flattened()), &mut []).unwrap();
        let mut context = [0; 8];
        assert_eq!(run(&program, &mut context).unwrap(), 7);
        assert_eq!(context, [0, 0, 0, 0, 9, 0, 0, 0]);
        assert_eq!(run(&program, &mut context[..4]).unwrap_err(), Errno::INVAL, "less than it touches");
        let own = super::super::loaded_programs().unwrap();
        assert!(own.iter().any(|program| &*program.name == "nw_seven"));
        assert_eq!(attach_raw_tracepoint(&program).unwrap_err(), Errno::INVAL);
    }

    /// Injects frames addressed to another host: a packet socket sees them, and the stack drops them.
    #[test]
    fn root_frames_come_in_as_many_as_were_asked_for() {
        if !root_or_skip("BPF programs") {
            return;
        }
        let pass = [[0xb7, 0, 0, 0, 2, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
        let shape = ProgramShape { name: "nw_pass", kind: 6, flags: 0, ..shape(pass.as_flattened()) };
        let program = load_program(&shape, &mut []).unwrap();
        let seen = std::thread::scope(|scope| {
            let seen = scope.spawn(|| {
                // SAFETY: unshare takes an integer; this thread ends soon and shares nothing that depends on the
                // namespace.
                assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
                let up = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap();
                assert!(up.success());
                let request = RingRequest {
                    ifindex: 1,
                    kind: RingKind::Slots { slot_bytes: 256, whole: None },
                    ring_bytes: 1 << 20,
                    program: &accept_all(96),
                    promiscuous: false,
                    ignore_outgoing: false,
                };
                let mut ring = PacketRing::open(&request).unwrap();
                assert_eq!(inject(&program, &[2; 10], 1, 1).unwrap_err(), Errno::INVAL, "no Ethernet header");
                inject(&program, &[2; 60], 1, 1000).unwrap();
                assert_eq!(ring.take_many(u64::MAX, |frame| frame.len == 60), 1000);
                ring.statistics().unwrap().packets
            });
            seen.join().unwrap()
        });
        assert_eq!(seen, 1000);
    }

    #[test]
    fn root_the_verifier_says_why() {
        if !root_or_skip("BPF programs") {
            return;
        }
        let endless = SEVEN[..3].as_flattened();
        let mut log = vec![0; 4096];
        let error = load_program(&shape(endless), &mut log).unwrap_err();
        assert_eq!(error.to_string(), "cannot load BPF program nw_seven: invalid argument");
        assert!(String::from_utf8_lossy(&log).contains("last insn is not an exit"));
    }
}
