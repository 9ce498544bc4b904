//! Builds pcapng files for tests: sections, interfaces, packets with options, and statistics, in either byte order.

use crate::capture_read::udp;

/// Code and value of an option.
pub(crate) type MadeOption<'o> = (u16, &'o [u8]);

/// A file under construction.
#[derive(Default)]
pub(crate) struct Made {
    pub(crate) bytes: Vec<u8>,
    is_big_endian: bool,
}

impl Made {
    /// Adds a section with this byte order and options.
    pub(crate) fn section(mut self, is_big_endian: bool, options: &[MadeOption<'_>]) -> Made {
        self.is_big_endian = is_big_endian;
        let head = [self.u32(0x1a2b_3c4d), self.u16(1), self.u16(0), self.u32(u32::MAX), self.u32(u32::MAX)].concat();
        self.block(0x0a0d_0d0a, &head, options)
    }

    /// Adds an interface without a snapshot length.
    pub(crate) fn iface(self, link_type: u16, options: &[MadeOption<'_>]) -> Made {
        let head = [self.u16(link_type), self.u16(0), self.u32(0)].concat();
        self.block(1, &head, options)
    }

    /// Adds a packet: a datagram to this port.
    pub(crate) fn packet(self, iface: u32, stamp: u64, dport: u16, options: &[MadeOption<'_>]) -> Made {
        let frame = udp(dport, b"abc");
        let len = frame.len() as u32;
        let numbers = [iface, (stamp >> 32) as u32, stamp as u32, len, len].map(|number| self.u32(number)).concat();
        self.block(6, &[&numbers[..], &padded(&frame)].concat(), options)
    }

    /// Adds statistics of an interface: pairs of option code and count.
    pub(crate) fn statistics(self, iface: u32, counts: &[(u16, u64)]) -> Made {
        let head = [self.u32(iface), self.u32(0), self.u32(7)].concat();
        let values: Vec<(u16, Vec<u8>)> = counts.iter().map(|(code, count)| (*code, self.u64(*count))).collect();
        let options: Vec<MadeOption<'_>> = values.iter().map(|(code, value)| (*code, value.as_slice())).collect();
        self.block(5, &head, &options)
    }

    /// Adds a block of any type.
    pub(crate) fn block(mut self, kind: u32, body: &[u8], options: &[MadeOption<'_>]) -> Made {
        let mut all = body.to_vec();
        for (code, value) in options {
            all.extend([self.u16(*code), self.u16(value.len() as u16)].concat());
            all.extend(padded(value));
        }
        if !options.is_empty() {
            all.extend([0; 4]);
        }
        let length = self.u32(all.len() as u32 + 12);
        self.bytes.extend([self.u32(kind), length.clone(), all, length].concat());
        self
    }

    pub(crate) fn u16(&self, number: u16) -> Vec<u8> {
        if self.is_big_endian { number.to_be_bytes().to_vec() } else { number.to_le_bytes().to_vec() }
    }

    pub(crate) fn u32(&self, number: u32) -> Vec<u8> {
        if self.is_big_endian { number.to_be_bytes().to_vec() } else { number.to_le_bytes().to_vec() }
    }

    pub(crate) fn u64(&self, number: u64) -> Vec<u8> {
        if self.is_big_endian { number.to_be_bytes().to_vec() } else { number.to_le_bytes().to_vec() }
    }
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(4), 0);
    padded
}

/// Two interfaces with every kind of metadata: `wan` with nanoseconds, `lan` with microseconds.
pub(crate) fn rich(is_big_endian: bool) -> Made {
    let made = Made::default().section(is_big_endian, &[(2, b"a host"), (1, b"of the file")]);
    let (flags, dropped) = (made.u32(2), made.u64(3));
    let made = made.iface(1, &[(2, b"wan"), (3, b"to the world"), (9, &[9])]).iface(1, &[(2, b"lan")]);
    let names = [&made.u16(1), &made.u16(7), &[10, 0, 0, 1, b'a', b'b', 0, 0][..], &[0; 4]].concat();
    made.block(4, &names, &[])
        .packet(0, 1_700_000_000_000_000_001, 1000, &[(1, b"a first comment"), (2, &flags), (4, &dropped)])
        .packet(1, 1_700_000_000_000_002, 2000, &[])
        .packet(0, 1_700_000_000_000_003_000, 3000, &[(1, b"another one")])
        .statistics(0, &[(4, 100), (5, 7), (7, 2)])
        .statistics(0, &[(4, 120), (5, 9), (7, 4)])
        .statistics(1, &[(7, 1)])
}
