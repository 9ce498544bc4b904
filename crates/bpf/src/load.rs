//! Loads programs of an object: relocates them, creates their maps, passes them to the verifier.
//!
//! [`load_with`] runs the phases in order: parse the object; cut each wanted program out of its section and collect the
//! kernel types it refers to ([`ProgramBuilder::new`]); find these types in one pass over the kernel's; resolve the
//! CO-RE relocations ([`ProgramBuilder::relocate`]); insert maps, variables and kernel functions (`link`); load
//! (`load`).
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd};

use sys::bpf::{LOG_BYTES_MAX, MapShape, ProgramShape, load_program};
use sys::caps::{self, Cap};
use sys::{Errno, Host, rights};

use crate::btf::{TypeKind, Types, strip_flavour};
use crate::core_relocations::{self, Relocation, RelocationKind};
use crate::error::BpfError;
use crate::kernel_types::{KernelTypes, WantedTypes, kinds};
use crate::maps::{DeclaredMap, Map, read_declarations};
use crate::object::{ElfRelocation, Object, SymbolKind};
use crate::patch::{CALL, Code, POISON};
use crate::program::{Program, ProgramType};
use crate::relocate::{describe, resolve};

/// `R_BPF_64_64`: an address in a 64-bit constant. `R_BPF_64_32`: a call.
const ADDRESS: u32 = 1;
const CALLED: u32 = 10;
/// `BPF_MAP_TYPE_ARRAY`; `BPF_F_RDONLY_PROG`
const ARRAY: u32 = 2;
const READ_ONLY: u32 = 1 << 7;

/// The programs to load.
#[derive(Debug, Clone, Copy)]
pub struct LoadSpec<'a> {
    /// The object file, embedded with `include_bytes!`.
    pub object: &'a [u8],
    /// Names of the programs to load; others are ignored, and only the maps that these use are created.
    pub programs: &'a [&'a str],
    /// Values for `const volatile` variables. The verifier treats them as constants and drops unreachable code.
    pub constants: &'a [(&'a str, &'a [u8])],
    /// Map sizes that replace the declared ones: entries, or bytes of a ring buffer.
    pub entries: &'a [(&'a str, u32)],
}

/// Loaded programs and their maps. Dropping it unloads them, except those that a [`crate::Link`] still holds.
#[derive(Debug)]
pub struct LoadedObject {
    /// The programs, in the order of [`LoadSpec::programs`].
    programs: Vec<Program>,
    /// The maps that these programs use.
    maps: Vec<Map>,
    /// Global variables, each stored in one of the maps.
    variables: Vec<Variable>,
}

/// The location of a global variable: a range of bytes in the value of a map.
#[derive(Debug)]
struct Variable {
    name: Box<str>,
    /// Index into the maps.
    map: usize,
    offset: usize,
    bytes: usize,
}

/// Loads the programs of `spec`. Reads the kernel's types once. Takes some milliseconds, mostly in the verifier.
pub fn load(host: &Host, spec: &LoadSpec<'_>) -> Result<LoadedObject, BpfError> {
    load_with(&KernelTypes::read(host)?, spec)
}

/// Works like [`load`], with kernel types that the caller has already read.
pub fn load_with(types: &KernelTypes, spec: &LoadSpec<'_>) -> Result<LoadedObject, BpfError> {
    let object = Object::parse(spec.object)?;
    let own = object_types(&object)?;
    let mut wanted = WantedTypes::new();
    let builders = spec.programs.iter().map(|name| ProgramBuilder::new(&object, &own, name, &mut wanted));
    let mut builders = builders.collect::<Result<Vec<_>, _>>()?;
    let kernel = types.find(&mut wanted)?;
    let mut tables = Tables { object: &object, declared: read_declarations(&object, &own)?, spec, open: Vec::new() };
    for builder in &mut builders {
        builder.relocate(&own, &kernel, &wanted)?;
        builder.link(&mut tables, &wanted)?;
    }
    let licence = CString::new(object.licence()).unwrap_or_default();
    let programs = builders.iter().map(|builder| builder.load(&licence, &wanted));
    let programs = programs.collect::<Result<Vec<_>, _>>()?;
    let variables = tables.variables();
    Ok(LoadedObject { programs, maps: tables.open.into_iter().map(|(_, map)| map).collect(), variables })
}

/// Loads the programs of `spec` once for each of `variants`, which are their constants, with shared maps. The programs
/// have no variables except constants. The kernel's types are searched for each variant.
pub(crate) fn load_variants(
    types: &KernelTypes,
    spec: &LoadSpec<'_>,
    variants: &[&[(&str, &[u8])]],
) -> Result<LoadedObject, BpfError> {
    let object = Object::parse(spec.object)?;
    let own = object_types(&object)?;
    let licence = CString::new(object.licence()).unwrap_or_default();
    let specs: Vec<LoadSpec<'_>> = variants.iter().map(|constants| LoadSpec { constants, ..*spec }).collect();
    let mut tables = Tables { object: &object, declared: read_declarations(&object, &own)?, spec, open: Vec::new() };
    let mut programs = Vec::new();
    for spec in &specs {
        tables.spec = spec;
        for name in spec.programs {
            let mut wanted = WantedTypes::new();
            let mut builder = ProgramBuilder::new(&object, &own, name, &mut wanted)?;
            let kernel = types.find(&mut wanted)?;
            builder.relocate(&own, &kernel, &wanted)?;
            builder.link(&mut tables, &wanted)?;
            programs.push(builder.load(&licence, &wanted)?);
        }
        // The program holds its own constants.
        tables.open.retain(|(_, map)| !map.name().starts_with(".rodata"));
    }
    Ok(LoadedObject { programs, maps: tables.open.into_iter().map(|(_, map)| map).collect(), variables: Vec::new() })
}

impl LoadedObject {
    /// All programs, in the order in which they were requested.
    pub(crate) fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// The program with this function name. Fails if `spec` did not name it.
    pub fn program(&self, name: &str) -> Result<&Program, BpfError> {
        let found = self.programs.iter().find(|program| program.name() == name);
        found.ok_or_else(|| BpfError::NoSuch { kind: "program", name: name.into() })
    }

    /// The map with this name. Only maps that a loaded program uses exist.
    pub fn map(&self, name: &str) -> Result<&Map, BpfError> {
        let found = self.maps.iter().find(|map| map.name() == name);
        found.ok_or_else(|| BpfError::NoSuch { kind: "map", name: name.into() })
    }

    /// Reads a global variable of type u64 or u32, such as a counter. One system call.
    pub fn counter(&self, global: &str) -> Result<u64, BpfError> {
        let missing = || BpfError::NoSuch { kind: "variable", name: global.into() };
        let variable = self.variables.iter().find(|variable| &*variable.name == global).ok_or_else(missing)?;
        let map = self.maps.get(variable.map).ok_or_else(missing)?;
        let mut all = vec![0; map.value_bytes()];
        map.get(&0u32.to_ne_bytes(), &mut all)?;
        let bytes = crate::object::slice(&all, variable.offset, variable.bytes).ok_or_else(missing)?;
        match *bytes {
            [a, b, c, d] => Ok(u32::from_ne_bytes([a, b, c, d]).into()),
            [a, b, c, d, e, f, g, h] => Ok(u64::from_ne_bytes([a, b, c, d, e, f, g, h])),
            _ => Err(missing()),
        }
    }
}

/// The types of the object itself (its section `.BTF`), to which its relocations refer.
pub(crate) fn object_types<'a>(object: &Object<'a>) -> Result<Types<'a>, BpfError> {
    match object.section(".BTF") {
        Some((_, section)) => Types::parse_all(section.bytes),
        None => Err(BpfError::Malformed { what: "BPF object file", why: "no types" }),
    }
}

/// An object file that our compiler would not produce.
fn wrong(why: &'static str) -> BpfError {
    BpfError::Malformed { what: "BPF object file", why }
}

/// A program being prepared for loading.
#[derive(Debug)]
pub(crate) struct ProgramBuilder<'a> {
    name: &'a str,
    /// Derived from the name of the section: what it attaches to, and how.
    program_type: ProgramType<'a>,
    /// The instructions, patched step by step.
    code: Code,
    /// ELF relocations: positions of maps, variables and kernel functions. Offsets count from the program's start.
    places: Vec<(ElfRelocation, CalleeIndex)>,
    /// CO-RE relocations, each with the index of its root type in [`WantedTypes`].
    relocations: Vec<(Relocation<'a>, usize)>,
    /// Index in [`WantedTypes`] of the type that the program attaches to.
    target: Option<usize>,
    /// Things that this kernel lacks, as (kind, name). A poisoned instruction contains the index, so that the
    /// verifier's log leads back to the name.
    missing: Vec<(&'static str, Box<str>)>,
}

/// For a relocation that refers to a kernel function: the function's index in [`WantedTypes`].
type CalleeIndex = Option<usize>;

/// Adds the root type of a relocation to the wanted types, by name and kind; returns its index.
fn want_type(own: &Types<'_>, relocation: &Relocation<'_>, wanted: &mut WantedTypes) -> usize {
    let Some(root) = own.get(relocation.type_id) else { return usize::MAX };
    let name = strip_flavour(own.name(root.name));
    if name.is_empty() || relocation.kind == RelocationKind::LocalTypeId {
        return usize::MAX;
    }
    let kinds = if root.kind.is_enum() { kinds(&[TypeKind::ENUM, TypeKind::ENUM64]) } else { kinds(&[root.kind]) };
    wanted.add(name, kinds)
}

impl<'a> ProgramBuilder<'a> {
    /// Cuts a program out of its section, and adds the kernel types that it needs to `wanted`.
    pub(crate) fn new(
        object: &Object<'a>,
        own: &Types<'a>,
        name: &str,
        wanted: &mut WantedTypes,
    ) -> Result<ProgramBuilder<'a>, BpfError> {
        let missing = || BpfError::NoSuch { kind: "program", name: name.into() };
        let function =
            |s: &&crate::object::Symbol<'_>| s.kind == SymbolKind::Function && s.name == name && s.section != 0;
        let symbol = object.symbols.iter().find(function).ok_or_else(missing)?;
        let section = object.sections.get(symbol.section).ok_or_else(missing)?;
        let program_type = ProgramType::of_section(section.name).ok_or(wrong("a program of an unknown type"))?;
        let code =
            crate::object::slice(section.bytes, symbol.offset, symbol.size).ok_or(wrong("a truncated program"))?;
        if code.len() % 8 != 0 || code.is_empty() {
            return Err(wrong("a program with a truncated instruction"));
        }
        let within = |offset: usize| offset.checked_sub(symbol.offset).filter(|offset| *offset < symbol.size);
        let mut places = Vec::new();
        for place in object.relocations(symbol.section)? {
            let Some(offset) = within(place.offset) else { continue };
            let target = object.symbols.get(place.symbol);
            let outside = target.filter(|target| target.section == 0);
            let callee = outside.map(|target| wanted.add(target.name, kinds(&[TypeKind::FUNCTION])));
            places.push((ElfRelocation { offset, ..place }, callee));
        }
        let ext = object.section(".BTF.ext").map_or(&[][..], |(_, section)| section.bytes);
        let mut found = Vec::new();
        for relocation in if ext.is_empty() { Vec::new() } else { core_relocations::parse(ext, own, section.name)? } {
            let Some(offset) = within(relocation.offset) else { continue };
            found.push((Relocation { offset, ..relocation }, want_type(own, &relocation, wanted)));
        }
        let target = program_type.target().map(|(name, kind, ..)| wanted.add(&name, kinds(&[kind])));
        Ok(ProgramBuilder {
            name: symbol.name,
            program_type,
            code: Code::new(code),
            places,
            relocations: found,
            target,
            missing: Vec::new(),
        })
    }

    /// Writes the kernel's offsets, sizes and type numbers into the instructions; poisons instructions that need
    /// something that this kernel lacks.
    pub(crate) fn relocate(
        &mut self,
        own: &Types<'_>,
        kernel: &Types<'_>,
        wanted: &WantedTypes,
    ) -> Result<(), BpfError> {
        for (relocation, name) in &self.relocations {
            let resolution = resolve(relocation, own, kernel, wanted.types_found(*name))?;
            let nothing = relocation.kind == RelocationKind::TypeId && wanted.types_found(*name).is_empty();
            let fits = self.code.relocate(relocation.offset, &resolution)?;
            if !fits || nothing {
                self.missing.push(describe(relocation, own));
            }
            if !fits {
                self.code.make_unreachable(relocation.offset, self.missing.len() as u32 - 1)?;
            }
        }
        Ok(())
    }

    /// Writes map descriptors, addresses of variables and numbers of kernel functions into the instructions.
    fn link(&mut self, tables: &mut Tables<'_, '_>, wanted: &WantedTypes) -> Result<(), BpfError> {
        for (place, callee) in &self.places {
            let at = place.offset;
            let symbol = tables.object.symbols.get(place.symbol).ok_or(wrong("a relocation without a symbol"))?;
            let found = callee.map(|callee| wanted.types_found(callee).first().map(|(id, _)| *id));
            match (place.kind, found) {
                (CALLED, Some(Some(id))) => self.code.put_call(at, id)?,
                (CALLED, Some(None)) => {
                    self.missing.push(("function", symbol.name.into()));
                    self.code.make_unreachable(at, self.missing.len() as u32 - 1)?;
                }
                // `if (function)`: the address is only tested for zero.
                (ADDRESS, Some(found)) if symbol.weak => self.code.put_number(at, found.is_some().into())?,
                (ADDRESS, None) => {
                    let offset = symbol.offset;
                    let (map, is_value) = tables.open(symbol.section, offset, self.code.addend(at))?;
                    let descriptor = map.inner().as_fd().as_raw_fd();
                    self.code.put_map(at, descriptor, is_value.then_some(offset as u32))?;
                }
                (CALLED, None) if self.code.operation(at) == Some(CALL) => {
                    return Err(wrong("a call of a function in the program"));
                }
                _ => return Err(wrong("a relocation of an unknown kind")),
            }
        }
        Ok(())
    }

    fn load(&self, licence: &std::ffi::CStr, wanted: &WantedTypes) -> Result<Program, BpfError> {
        let (kind, attach, flags) = self.program_type.numbers();
        let target = match (self.target, self.program_type.target()) {
            (Some(number), Some((_, _, kind, name))) => {
                let found = wanted.types_found(number).first().map(|(id, _)| *id);
                found.ok_or_else(|| BpfError::Missing { kind, name: name.into(), since: first_version(name) })?
            }
            _ => 0,
        };
        let instructions = self.code.bytes();
        let shape = ProgramShape { name: self.name, kind, attach, flags, target, instructions, licence };
        let mut loaded = load_program(&shape, &mut []);
        if loaded.as_ref().is_err_and(|error| error.errno == Errno::PERM) && has_rights(self.program_type) {
            // The other meaning of EPERM before 5.11: the limit of locked memory.
            if sys::Kernel::read_running().version() < COUNTED_OTHERWISE && rights::raise_locked_memory().is_ok() {
                loaded = load_program(&shape, &mut []);
            }
        }
        match loaded {
            Ok(fd) => Ok(Program::new(self.name, fd, self.program_type)),
            Err(error) if error.errno.is_denied() && !has_rights(self.program_type) => {
                Err(self.rights_error(error.errno))
            }
            Err(error) => Err(self.explain_refusal(&shape, error.errno)),
        }
    }

    fn rights_error(&self, errno: Errno) -> BpfError {
        BpfError::Denied {
            what: format!("BPF program {}", self.name).into(),
            needs: self.program_type.needed_capabilities(),
            errno,
        }
    }

    /// Loads the refused program again with a log buffer and explains the verifier's log.
    fn explain_refusal(&self, shape: &ProgramShape<'_>, errno: Errno) -> BpfError {
        let mut log = vec![0; LOG_BYTES_MAX];
        if load_program(shape, &mut log).is_err_and(|error| error.errno == Errno::NOSPC) {
            // Before 6.4 a truncated log keeps its beginning, but we need the end.
            log = vec![0; LOG_BYTES_MAX * 16];
            let _ = load_program(shape, &mut log);
        }
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
        if end == 0 && errno == Errno::INVAL {
            // The kernel refused before the verifier ran: it does not know the program type.
            let (name, since) = self.program_type.name_and_version();
            return BpfError::Missing { kind: "program type", name: name.into(), since: Some(since) };
        }
        explain(self.name, &self.missing, errno, log.get(..end).unwrap_or_default())
    }
}

/// Translates the verifier's log into an error: a known reason such as a missing helper, or the log's last lines.
pub(crate) fn explain(program: &str, missing: &[(&'static str, Box<str>)], errno: Errno, log: &[u8]) -> BpfError {
    let text = String::from_utf8_lossy(log);
    let number = text.rsplit("unknown#").next().filter(|_| text.contains("unknown#"));
    let digits = number.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
    if let Some(number) = digits.and_then(|digits| digits.parse::<u32>().ok()) {
        let of_ours = number.checked_sub(POISON).and_then(|index| missing.get(index as usize));
        let (kind, name) = match of_ours {
            Some((kind, name)) => (*kind, name.clone()),
            None => ("helper", format!("number {number}").into()),
        };
        let since = first_version(&name);
        return BpfError::Missing { kind, name, since };
    }
    if let Some(name) = not_for_this_program_type(&text) {
        return BpfError::Missing { kind: "helper for this program:", name: name.into(), since: first_version(name) };
    }
    if text.contains("unknown opcode e5") {
        return BpfError::Missing { kind: "instruction", name: "may_goto".into(), since: first_version("may_goto") };
    }
    // Before 5.12 the only atomic instruction was an addition without a result.
    if text.contains("BPF_STX uses reserved fields") {
        return BpfError::Missing { kind: "instruction", name: "cmpxchg".into(), since: first_version("cmpxchg") };
    }
    // The important part is at the end; the very last lines are statistics.
    let told = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("processed "));
    let told: Vec<&str> = told.collect();
    let last = told.get(told.len().saturating_sub(3)..).unwrap_or_default().join("; ");
    let absent: String = missing.iter().map(|(kind, name)| format!(" [missing here: {kind} {name}]")).collect();
    let log = sys::escape_bytes(format!("{last}{absent}").as_bytes());
    BpfError::Refused { program: program.into(), errno, log }
}

// A helper that the kernel has, but not for programs of this type: `unknown func bpf_NAME#46`, since 6.10 `program of
// this type cannot use helper bpf_NAME#46`.
fn not_for_this_program_type(log: &str) -> Option<&str> {
    let rest = ["unknown func ", "cannot use helper "].iter().find_map(|words| log.rsplit_once(words))?.1;
    let (name, _) = rest.split_once('#')?;
    let is_name = name.starts_with("bpf_") && name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric());
    is_name.then_some(name)
}

/// The first kernel version with `name`, for the features that the programs here use.
fn first_version(name: &str) -> Option<&'static str> {
    const FIRST_VERSIONS: &[(&str, &str)] = &[
        ("may_goto", "6.9"),
        ("cmpxchg", "5.12"),
        ("bpf_rdonly_cast", "6.2"),
        ("bpf_rcu_read_lock", "6.2"),
        ("bpf_rcu_read_unlock", "6.2"),
        ("task_file", "5.8"),
        ("tcp", "5.9"),
        ("udp", "5.9"),
        ("unix", "5.15"),
        ("sock_send_length", "6.3"),
        ("sock_recv_length", "6.3"),
        ("bpf_get_socket_cookie", "5.12"),
        ("number 158", "5.11"),
        ("number 162", "5.11"),
    ];
    FIRST_VERSIONS.iter().find(|(young, _)| *young == name).map(|(_, since)| *since)
}

fn has_rights(program_type: ProgramType<'_>) -> bool {
    let held = caps::effective().unwrap_or_default();
    let more: &[Cap] = match program_type {
        ProgramType::Cgroup(_) | ProgramType::PeerName(_) => &[Cap::NetAdmin],
        // Loading needs the first, reading kernel memory the second.
        ProgramType::Netfilter => &[Cap::NetAdmin, Cap::Perfmon],
        _ => &[Cap::Perfmon],
    };
    let is_network_admin = program_type != ProgramType::Netfilter || held.contains(Cap::NetAdmin);
    held.contains(Cap::SysAdmin) && is_network_admin
        || held.contains(Cap::Bpf) && more.iter().all(|cap| held.contains(*cap))
}

/// The maps of an object that have been created so far.
struct Tables<'t, 'a> {
    object: &'t Object<'a>,
    declared: Vec<DeclaredMap>,
    spec: &'t LoadSpec<'t>,
    /// Each map with its origin: (section, offset). The variables of a section share one map, at offset 0.
    open: Vec<((usize, usize), Map)>,
}

impl Tables<'_, '_> {
    /// The map that a symbol refers to, and whether the symbol is a variable in its value. Creates the map if
    /// necessary.
    fn open(&mut self, section: usize, offset: usize, addend: u32) -> Result<(&Map, bool), BpfError> {
        let place = self.object.sections.get(section).ok_or(wrong("an address in a missing section"))?;
        let (key, is_value) = match place.name {
            // For a symbol of the section itself, the constant contains the rest of the offset.
            ".maps" => ((section, offset + addend as usize), false),
            name if [".rodata", ".data", ".bss"].iter().any(|known| name.starts_with(known)) => ((section, 0), true),
            _ => return Err(wrong("an address in an unknown section")),
        };
        let at = match self.open.iter().position(|(made, _)| *made == key) {
            Some(at) => at,
            None => {
                let map = if is_value { self.variables_map(section)? } else { self.declared_map(key.1)? };
                self.open.push((key, map));
                self.open.len() - 1
            }
        };
        self.open.get(at).map(|(_, map)| (map, is_value)).ok_or(wrong("a missing map"))
    }

    fn declared_map(&self, offset: usize) -> Result<Map, BpfError> {
        let declared =
            self.declared.iter().find(|map| map.offset == offset).ok_or(wrong("an address without a map"))?;
        let mut shape = declared.shape.clone();
        if let Some((_, entries)) = self.spec.entries.iter().find(|(name, _)| *name == shape.name) {
            shape.entries = *entries;
        }
        create(shape)
    }

    /// An array with one entry that contains a whole section of variables.
    fn variables_map(&self, number: usize) -> Result<Map, BpfError> {
        let section = self.object.sections.get(number).ok_or(wrong("variables in a missing section"))?;
        let constant = section.name.starts_with(".rodata");
        let mut value = section.bytes.to_vec();
        value.resize(section.size, 0);
        if constant {
            self.set_constants(number, &mut value)?;
        }
        let map = create(MapShape {
            name: section.name.into(),
            kind: ARRAY,
            key_bytes: 4,
            value_bytes: u32::try_from(section.size).map_err(|_| wrong("too many variables"))?,
            entries: 1,
            flags: if constant { READ_ONLY } else { 0 },
        })?;
        map.put(&0u32.to_ne_bytes(), &value)?;
        if constant {
            // The verifier knows the contents of a frozen map only.
            map.inner().freeze()?;
        }
        Ok(map)
    }

    fn set_constants(&self, number: usize, value: &mut [u8]) -> Result<(), BpfError> {
        for symbol in self.object.symbols.iter().filter(|s| s.section == number && s.kind == SymbolKind::Variable) {
            let Some((_, set)) = self.spec.constants.iter().find(|(name, _)| *name == symbol.name) else { continue };
            let place = symbol.offset.checked_add(symbol.size).and_then(|end| value.get_mut(symbol.offset..end));
            match place {
                Some(place) if place.len() == set.len() => place.copy_from_slice(set),
                _ => return Err(BpfError::NoSuch { kind: "constant of that size", name: symbol.name.into() }),
            }
        }
        Ok(())
    }

    fn variables(&self) -> Vec<Variable> {
        let variable = |symbol: &&crate::object::Symbol<'_>| symbol.kind == SymbolKind::Variable;
        let found = self.object.symbols.iter().filter(variable).filter_map(|symbol| {
            let map = self.open.iter().position(|((section, _), map)| {
                *section == symbol.section && map.inner().shape().kind == ARRAY && map.name().starts_with('.')
            })?;
            Some(Variable { name: symbol.name.into(), map, offset: symbol.offset, bytes: symbol.size })
        });
        found.collect()
    }
}

/// Kernels from this version on count maps against the cgroup's memory, not against RLIMIT_MEMLOCK.
const COUNTED_OTHERWISE: (u32, u32) = (5, 11);

fn create(shape: MapShape) -> Result<Map, BpfError> {
    create_on(shape, sys::Kernel::read_running().version())
}

/// Creates a map; removes the limit of locked memory if the kernel counts maps against it.
fn create_on(shape: MapShape, kernel: (u32, u32)) -> Result<Map, BpfError> {
    let what: Box<str> = format!("BPF map {}", shape.name).into();
    let errno = match Map::create(shape.clone()) {
        Err(BpfError::Io(error)) if error.errno.is_denied() => error.errno,
        other => return other,
    };
    let held = caps::effective().unwrap_or_default();
    if !held.contains(Cap::SysAdmin) && !held.contains(Cap::Bpf) {
        return Err(BpfError::Denied { what, needs: "CAP_BPF and CAP_PERFMON", errno });
    }
    if kernel >= COUNTED_OTHERWISE {
        // The rights are present: a security module, or a host setting that forbids bpf(2), is the cause.
        return Err(BpfError::Denied { what, needs: "bpf(2), which is blocked on this host", errno });
    }
    let _ = rights::raise_locked_memory();
    Map::create(shape).map_err(|error| match error {
        BpfError::Io(error) if error.errno == Errno::PERM => BpfError::Locked { what },
        other => other,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use sys::fault::{Fault, arm, disarm_all};

    #[test]
    fn root_locked_memory_is_raised_once_and_then_reported() {
        if !testkit::root::root_or_skip("BPF maps") {
            return;
        }
        let create = |refusals, kernel| {
            arm("bpf_map_create", 0, refusals, Fault::Fails(Errno::PERM));
            let shape = MapShape { name: "nw".into(), kind: 2, key_bytes: 4, value_bytes: 8, entries: 1, flags: 0 };
            let made = create_on(shape, kernel).map(drop).map_err(|error| error.to_string());
            disarm_all();
            made
        };
        assert_eq!(create(1, (5, 10)), Ok(()));
        let locked = "cannot create BPF map nw: the limit of locked memory is reached (kernels before 5.11 count BPF \
                      maps; raise `ulimit -l`)";
        assert_eq!(create(2, (5, 10)), Err(locked.into()));
        assert!(create(1, (6, 1)).unwrap_err().contains("which is blocked on this host"));
    }

    #[test]
    fn words_of_the_verifier() {
        let missing = [("field", "sock.sk_ino".into()), ("function", "bpf_rdonly_cast".into())];
        let explain = |log: &str| explain("walk", &missing, Errno::INVAL, log.as_bytes()).to_string();
        let field = explain("3: (85) call unknown#195887104\ninvalid func unknown#195887104\nprocessed 4 insns\n");
        assert_eq!(field, "this kernel has no field sock.sk_ino");
        assert_eq!(
            explain("invalid func unknown#195887105\n"),
            "this kernel has no function bpf_rdonly_cast (available since Linux 6.2)"
        );
        assert_eq!(
            explain("invalid func unknown#162\n"),
            "this kernel has no helper number 162 (available since Linux 5.11)"
        );
        assert_eq!(
            explain("unknown opcode e5\n"),
            "this kernel has no instruction may_goto (available since Linux 6.9)"
        );
        let exchange = "this kernel has no instruction cmpxchg (available since Linux 5.12)";
        assert_eq!(explain("9: (c3) if r0\nBPF_STX uses reserved fields\nprocessed 0 insns\n"), exchange);
        let helper = "this kernel has no helper for this program: bpf_get_socket_cookie (available since Linux 5.12)";
        assert_eq!(explain("56: (85) call bpf_get_socket_cookie#46\nunknown func bpf_get_socket_cookie#46\n"), helper);
        assert_eq!(explain("program of this type cannot use helper bpf_get_socket_cookie#46\n"), helper);
        assert!(explain("unknown func \u{1b}[31m#46\n").starts_with("the kernel refused"));
        let other = explain("0: R1=ctx()\n1: (61) r0 = 5\nR2 \u{1b}[31minvalid\nprocessed 2 insns (limit 1000000)\n");
        assert_eq!(
            other,
            "the kernel refused BPF program walk: invalid argument: 0: R1=ctx(); 1: (61) r0 = 5; R2 \\u{1b}[31minvalid \
             [missing here: field sock.sk_ino] [missing here: function bpf_rdonly_cast]"
        );
        assert!(explain("").starts_with("the kernel refused"));
    }

    #[test]
    fn poison_has_the_number_that_the_log_shows() {
        assert_eq!(POISON, 195_887_104);
    }
}
