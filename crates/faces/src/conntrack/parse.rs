//! Parses one command line.

use super::addresses::{self, split_port};
use super::args::Args;
use super::labels::{self, Labels};
use super::options::{self, Command, LONGS, switch};
use super::protocols::{PROTOCOLS, Protocol};
use super::stop::Stop;
use super::want::{NatTarget, Side, Status, Want, number, wide, wide_and_rest};
use super::words::{self, output};
use crate::text::warn;
use conntrack::CtTable;
use record::Addr;
use std::rc::Rc;
use sys::Host;

/// A parsed command line.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) command: Option<Command>,
    pub(super) table: CtTable,
    /// Bits from [`switch`].
    pub(super) switches: u32,
    /// 2 (IPv4), 10 (IPv6), or 0 for both.
    pub(super) family: u8,
    pub(super) want: Want,
    /// The protocol named by `-p`; None if it is not one of the eight with switches.
    pub(super) protocol: Option<&'static Protocol>,
    /// Bits from `event`.
    pub(super) events: u32,
    pub(super) buffer_bytes: i64,
    /// Bits from `output`.
    pub(super) output: u32,
    pub(super) labels: Option<Rc<Labels>>,
    pub(super) bug_compatible: bool,
}

impl Line {
    /// True if all of these switches were given.
    pub(super) fn has(&self, bits: u32) -> bool {
        self.switches & bits == bits
    }

    /// True if any of these switches was given.
    pub(super) fn has_any(&self, bits: u32) -> bool {
        self.switches & bits != 0
    }

    /// True if `-o` requests it.
    pub(super) fn shows(&self, bit: u32) -> bool {
        self.output & bit != 0
    }
}

/// Parses the words after the tool's name.
pub(super) fn parse(host: &Host, words: Vec<Vec<u8>>, bug_compatible: bool) -> Result<Line, Stop> {
    let line = Line {
        command: None,
        table: CtTable::Conntrack,
        switches: 0,
        family: 0,
        want: Want::default(),
        protocol: None,
        events: 0,
        buffer_bytes: 0,
        output: 0,
        labels: None,
        bug_compatible,
    };
    let mut reader = Reader { host, args: Args::new(words, LONGS), line, of_protocol: 0 };
    while let Some((code, value)) = reader.args.next()? {
        reader.switch(code, value)?;
    }
    reader.finish()
}

struct Reader<'h> {
    host: &'h Host,
    args: Args,
    line: Line,
    /// Bits of the protocol's switches that were given.
    of_protocol: u32,
}

impl Reader<'_> {
    fn switch(&mut self, code: u16, value: Option<Vec<u8>>) -> Result<(), Stop> {
        let Ok(letter) = u8::try_from(code) else {
            let value = value.unwrap_or_default();
            if let Some(protocol) = self.line.protocol {
                self.of_protocol |= protocol.take(code, &value, &mut self.line.want)?;
            }
            return Ok(());
        };
        if Command::of(letter, false).is_some() {
            return self.command(letter, &value);
        }
        if matches!(letter, b'n' | b'g' | b'j') {
            return self.nat(letter, &value);
        }
        if letter == b'>' {
            return self.label_del(value);
        }
        let value = value.unwrap_or_default();
        match letter {
            b's' | b'd' | b'r' | b'q' | b'[' | b']' | b'{' | b'}' => self.address(letter, &value),
            b'p' => self.protocol(&value),
            b'f' => self.family_switch(&value),
            b'u' => self.status(&value),
            b'e' => {
                self.line.switches |= switch::EVENT_MASK;
                words::events(&value, &mut self.line.events)
            }
            b'o' => self.output(&value),
            b'l' | b'<' => self.label(letter, &value),
            b'a' => {
                warn("WARNING: ignoring -a, deprecated option.\n");
                Ok(())
            }
            _ => {
                self.number(letter, &value);
                Ok(())
            }
        }
    }

    fn command(&mut self, letter: u8, glued: &Option<Vec<u8>>) -> Result<(), Stop> {
        let table = match self.args.word_behind(glued) {
            None => CtTable::Conntrack,
            Some(word) => {
                let tables = [CtTable::Expect, CtTable::Conntrack, CtTable::Dying, CtTable::Unconfirmed];
                let found = tables.into_iter().find(|table| table.name().as_bytes().starts_with(&word));
                found.ok_or_else(|| Stop::about("unknown type `%'", &word))?
            }
        };
        let special = matches!(table, CtTable::Dying | CtTable::Unconfirmed);
        if special && letter != b'L' {
            return Err(Stop::usage("Can't do that command with tables `dying' and `unconfirmed'"));
        }
        let Some(command) = Command::of(letter, table == CtTable::Expect) else {
            let name = options::long_name(letter);
            return Err(Stop::usage(format!("Can't do --{name} on expectations")));
        };
        if self.line.command.is_some() {
            return Err(Stop::usage("Invalid commands combination"));
        }
        self.line.command = Some(command);
        self.line.table = table;
        Ok(())
    }

    fn set_family(&mut self, family: u8) -> Result<(), Stop> {
        if self.line.family != 0 && self.line.family != family {
            return Err(Stop::usage("mismatched address family"));
        }
        self.line.family = family;
        Ok(())
    }

    fn address(&mut self, letter: u8, word: &[u8]) -> Result<(), Stop> {
        let parsed = addresses::parse(letter, word)?;
        self.set_family(parsed.family())?;
        let want = &mut self.line.want;
        let place = |side: &mut Side, is_src: bool, addr: Addr| {
            if is_src {
                side.src = Some(addr);
            } else {
                side.dst = Some(addr);
            }
        };
        let (side, is_src, bit) = match letter {
            b's' => (&mut want.orig, true, switch::ORIG_SRC),
            b'd' => (&mut want.orig, false, switch::ORIG_DST),
            b'r' => (&mut want.reply, true, switch::REPLY_SRC),
            b'q' => (&mut want.reply, false, switch::REPLY_DST),
            b'[' => (&mut want.expected, true, switch::EXP_SRC),
            b']' => (&mut want.expected, false, switch::EXP_DST),
            b'{' => (&mut want.mask, true, switch::MASK_SRC),
            _ => (&mut want.mask, false, switch::MASK_DST),
        };
        place(side, is_src, parsed.addr);
        self.line.switches |= bit;
        if let Some(mask) = parsed.mask {
            place(&mut want.mask, is_src, mask);
            self.line.switches |= if is_src { switch::MASK_SRC } else { switch::MASK_DST };
        }
        Ok(())
    }

    fn nat(&mut self, letter: u8, glued: &Option<Vec<u8>>) -> Result<(), Stop> {
        self.line.switches |= match letter {
            b'n' => switch::SRC_NAT,
            b'g' => switch::DST_NAT,
            _ => switch::ANY_NAT,
        };
        let Some(word) = self.args.word_behind(glued) else { return Ok(()) };
        let (address, port) = split_port(&word)?;
        // This applies with and without `bug_compatible`: the tool and its kernel request accept no port without an
        // address.
        let addr = addresses::parse(letter, &address)?;
        self.set_family(addr.family())?;
        let target = NatTarget { addr: Some(addr.addr), port };
        if letter != b'g' {
            self.line.want.snat = target;
        }
        if letter != b'n' {
            self.line.want.dnat = target;
        }
        Ok(())
    }

    fn protocol(&mut self, word: &[u8]) -> Result<(), Stop> {
        self.line.switches |= switch::PROTO;
        let by_name = PROTOCOLS.iter().find(|one| one.name.as_bytes().eq_ignore_ascii_case(word));
        let number = match by_name {
            Some(protocol) => Some(protocol.number),
            None => super::protocol_names::number(self.host, word).or_else(|| by_number(word)),
        };
        let Some(number) = number else { return Err(Stop::about("`%' unsupported protocol", word)) };
        // A name that is only in /etc/protocols has no switches, even if its number belongs to a protocol that has.
        let numeric = by_number(word).is_some();
        self.line.protocol = by_name.or_else(|| PROTOCOLS.iter().find(|one| numeric && one.number == number));
        self.line.want.proto = Some(number);
        if let Some(protocol) = self.line.protocol {
            self.args.add(protocol.longs());
        }
        Ok(())
    }

    fn family_switch(&mut self, word: &[u8]) -> Result<(), Stop> {
        self.line.switches |= switch::FAMILY;
        match word {
            _ if word.starts_with(b"ipv4") => self.set_family(2),
            _ if word.starts_with(b"ipv6") => self.set_family(10),
            _ => Err(Stop::about("`%' unsupported protocol", word)),
        }
    }

    fn status(&mut self, list: &[u8]) -> Result<(), Stop> {
        self.line.switches |= switch::STATUS;
        let mut status = self.line.want.status.unwrap_or_default();
        words::status(list, &mut status)?;
        self.line.want.status = Some(status);
        // The tool stores the status in place of the mark.
        if let (Some(mark), true) = (&mut self.line.want.mark, self.line.bug_compatible) {
            mark.0 = status.set;
        }
        Ok(())
    }

    fn output(&mut self, list: &[u8]) -> Result<(), Stop> {
        self.line.switches |= switch::OUTPUT;
        words::outputs(list, &mut self.line.output)?;
        if self.line.shows(output::LABELS) {
            self.read_labels();
        }
        if self.line.shows(output::SAVE) && self.line.output != output::SAVE {
            return Err(Stop::other("cannot combine save output with any other output type, use -o save only"));
        }
        Ok(())
    }

    fn read_labels(&mut self) {
        if self.line.labels.is_none() {
            self.line.labels = Labels::read(self.host);
        }
    }

    fn label(&mut self, letter: u8, list: &[u8]) -> Result<(), Stop> {
        self.line.switches |= if letter == b'l' { switch::LABEL } else { switch::ADD_LABEL };
        self.read_labels();
        self.one_change_of_labels()?;
        let bits = labels::bits(self.line.labels.as_deref(), list)?;
        let want = &mut self.line.want;
        labels::join(if letter == b'l' { &mut want.labels } else { &mut want.labels_changed }, bits);
        Ok(())
    }

    fn label_del(&mut self, glued: Option<Vec<u8>>) -> Result<(), Stop> {
        self.line.switches |= switch::DEL_LABEL;
        self.read_labels();
        self.one_change_of_labels()?;
        let behind = self.args.word_behind(&glued);
        // The tool ignores a value attached to the switch, and removes all labels.
        let list = if self.line.bug_compatible { behind } else { behind.or(glued) };
        if let Some(list) = list {
            let bits = labels::bits(self.line.labels.as_deref(), &list)?;
            labels::join(&mut self.line.want.labels_changed, bits);
        }
        Ok(())
    }

    fn one_change_of_labels(&self) -> Result<(), Stop> {
        if self.line.has(switch::ADD_LABEL | switch::DEL_LABEL) {
            return Err(Stop::other("cannot use --label-add and --label-del at the same time"));
        }
        Ok(())
    }

    fn number(&mut self, letter: u8, value: &[u8]) {
        let (line, want) = (&mut self.line.switches, &mut self.line.want);
        match letter {
            b't' => (*line, want.timeout_s) = (*line | switch::TIMEOUT, Some(number(value) as u32)),
            b'w' => (*line, want.zone) = (*line | switch::ZONE, Some(wide(value) as u16)),
            b'(' => (*line, want.orig_zone) = (*line | switch::ORIG_ZONE, Some(wide(value) as u16)),
            b')' => (*line, want.reply_zone) = (*line | switch::REPLY_ZONE, Some(wide(value) as u16)),
            b'i' => (*line, want.id) = (*line | switch::ID, Some(wide(value) as u32)),
            // Has no effect: kernels since 2.6.37 report a security context instead.
            b'c' => *line |= switch::SECMARK,
            b'z' => *line |= switch::ZERO,
            b'b' => {
                *line |= switch::BUFFER_SIZE;
                self.line.buffer_bytes = number(value);
            }
            b'm' => {
                *line |= switch::MARK;
                let (mark, rest) = wide_and_rest(value);
                let mask = rest.strip_prefix(b"/").map_or(u32::MAX, |mask| wide(mask) as u32);
                want.mark = Some((mark as u32, mask));
            }
            _ => {}
        }
    }

    fn finish(mut self) -> Result<Line, Stop> {
        let command = self.line.command;
        let of_both = matches!(
            command,
            Some(Command::List | Command::Update | Command::Delete | Command::Get | Command::Flush | Command::Event)
        );
        if self.line.family == 0 && !of_both {
            self.line.family = 2;
        }
        if self.line.has(switch::ANY_NAT) && self.line.has_any(switch::SRC_NAT | switch::DST_NAT) {
            return Err(Stop::usage("cannot specify `--src-nat' or `--dst-nat' with `--any-nat'"));
        }
        options::check(command, self.line.switches)?;
        if let (Some(protocol), true) = (self.line.protocol, command != Some(Command::Help)) {
            protocol.check(command, self.of_protocol)?;
        }
        self.line.want.family = self.line.family;
        Ok(self.line)
    }
}

/// Parses a protocol number, 0 to 255.
fn by_number(word: &[u8]) -> Option<u8> {
    let (number, rest) = wide_and_rest(word);
    (rest.is_empty() && !word.is_empty()).then(|| u8::try_from(number).ok()).flatten()
}

/// Status bits for the kernel to compare: value and mask.
pub(super) fn kernel_status(status: Status, bug_compatible: bool) -> (u32, u32) {
    match status {
        Status { set, unset: 0 } => (set, set),
        // The tool leaves the required bits out of the mask, so that nothing matches.
        Status { set, unset } if bug_compatible => (set, unset),
        Status { set, unset } => (set, set | unset),
    }
}
