//! The parts of a DNS message: header, questions, records.
use super::{DnsError, Name};

/// The record types used here.
pub mod rtype {
    /// A canonical name.
    pub const CNAME: u16 = 5;
    /// A pointer: the host name of an address.
    pub const PTR: u16 = 12;
}

/// Classes.
pub mod class {
    /// The internet.
    pub const IN: u16 = 1;
}

/// Response codes.
pub mod rcode {
    /// Success.
    pub const NO_ERROR: u8 = 0;
    /// The name does not exist.
    pub const NX_DOMAIN: u8 = 3;
}

/// Size of the header: id u16, flags u16, and four counts u16.
const HEADER: usize = 12;

const FLAG_RESPONSE: u16 = 0x8000;
const FLAG_TRUNCATED: u16 = 0x0200;

/// A DNS message; borrows its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Message<'m> {
    bytes: &'m [u8],
    header: &'m [u8; HEADER],
    /// Offset of the records: the questions are checked once.
    records_at: usize,
}

impl<'m> Message<'m> {
    /// Checks header and questions. Records are checked when they are read.
    pub fn parse(bytes: &'m [u8]) -> Result<Message<'m>, DnsError> {
        let header = bytes.first_chunk().ok_or(DnsError { what: "a header", at: bytes.len() })?;
        let mut message = Message { bytes, header, records_at: HEADER };
        let mut questions = message.questions();
        for question in &mut questions {
            question?;
        }
        message.records_at = questions.at;
        Ok(message)
    }

    /// Number that matches an answer to its question.
    pub fn id(&self) -> u16 {
        self.word(0)
    }

    /// True for a response.
    pub fn is_response(&self) -> bool {
        self.word(1) & FLAG_RESPONSE != 0
    }

    /// True if the answer was truncated to fit into a datagram.
    pub fn is_truncated(&self) -> bool {
        self.word(1) & FLAG_TRUNCATED != 0
    }

    /// See [`rcode`].
    pub fn rcode(&self) -> u8 {
        (self.word(1) & 0xf) as u8
    }

    /// The questions, which an answer also contains.
    pub fn questions(&self) -> Questions<'m> {
        Questions { bytes: self.bytes, at: HEADER, left: self.word(2) }
    }

    /// The records of all three sections in order. Ends at the first malformed record, with an error.
    pub fn records(&self) -> Records<'m> {
        let left = [self.word(3), self.word(4), self.word(5)];
        Records { bytes: self.bytes, at: self.records_at, left }
    }

    fn word(&self, n: usize) -> u16 {
        let at = n * 2;
        self.header.get(at..at + 2).and_then(|b| b.try_into().ok()).map_or(0, u16::from_be_bytes)
    }
}

/// One question.
#[derive(Debug, Clone, Copy)]
pub struct Question<'m> {
    /// The name asked about.
    pub name: Name<'m>,
    /// See [`rtype`].
    pub rtype: u16,
    /// See [`class`].
    pub class: u16,
}

/// Section of a message that contains a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Answers to the question.
    Answer,
    /// Authoritative name servers.
    Authority,
    /// Additional information.
    Additional,
}

/// One resource record.
#[derive(Debug, Clone, Copy)]
pub struct Record<'m> {
    /// The section that contains it.
    pub section: Section,
    /// Its owner.
    pub name: Name<'m>,
    /// See [`rtype`].
    pub rtype: u16,
    /// See [`class`].
    pub class: u16,
    /// Time to live in seconds.
    pub ttl_s: u32,
    /// Its data.
    pub data: &'m [u8],
    message: &'m [u8],
    data_at: usize,
}

impl<'m> Record<'m> {
    /// The name in the data of a PTR or CNAME record; it must fill the data completely.
    pub fn target(&self) -> Result<Name<'m>, DnsError> {
        let (name, after) = Name::parse(self.message, self.data_at)?;
        if after != self.data_at + self.data.len() {
            return Err(DnsError { what: "a name as long as its record", at: self.data_at });
        }
        Ok(name)
    }
}

/// The questions of a message. Ends at the first malformed question, with an error.
#[derive(Debug, Clone)]
pub struct Questions<'m> {
    bytes: &'m [u8],
    at: usize,
    left: u16,
}

impl<'m> Iterator for Questions<'m> {
    type Item = Result<Question<'m>, DnsError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let question = self.read_question();
        if question.is_err() {
            self.left = 0;
        }
        Some(question)
    }
}

impl<'m> Questions<'m> {
    fn read_question(&mut self) -> Result<Question<'m>, DnsError> {
        let (name, after) = Name::parse(self.bytes, self.at)?;
        let [t0, t1, c0, c1] = read_fixed(self.bytes, after, "type and class")?;
        self.at = after + 4;
        Ok(Question { name, rtype: u16::from_be_bytes([t0, t1]), class: u16::from_be_bytes([c0, c1]) })
    }
}

/// The records of a message.
#[derive(Debug, Clone)]
pub struct Records<'m> {
    bytes: &'m [u8],
    at: usize,
    /// Number of records left in each section.
    left: [u16; 3],
}

impl<'m> Iterator for Records<'m> {
    type Item = Result<Record<'m>, DnsError>;

    fn next(&mut self) -> Option<Self::Item> {
        const SECTIONS: [Section; 3] = [Section::Answer, Section::Authority, Section::Additional];
        let (left, section) = self.left.iter_mut().zip(SECTIONS).find(|(left, _)| **left > 0)?;
        *left -= 1;
        let record = self.record(section);
        if record.is_err() {
            self.left = [0; 3];
        }
        Some(record)
    }
}

impl<'m> Records<'m> {
    fn record(&mut self, section: Section) -> Result<Record<'m>, DnsError> {
        let (name, after) = Name::parse(self.bytes, self.at)?;
        let [t0, t1, c0, c1, l0, l1, l2, l3, n0, n1] = read_fixed(self.bytes, after, "the head of a record")?;
        let data_at = after + 10;
        let length = usize::from(u16::from_be_bytes([n0, n1]));
        let data = self.bytes.get(data_at..data_at + length);
        let data = data.ok_or(DnsError { what: "the data of a record", at: data_at })?;
        self.at = data_at + length;
        Ok(Record {
            section,
            name,
            rtype: u16::from_be_bytes([t0, t1]),
            class: u16::from_be_bytes([c0, c1]),
            ttl_s: u32::from_be_bytes([l0, l1, l2, l3]),
            data,
            message: self.bytes,
            data_at,
        })
    }
}

fn read_fixed<const N: usize>(bytes: &[u8], at: usize, what: &'static str) -> Result<[u8; N], DnsError> {
    bytes.get(at..at + N).and_then(|b| b.try_into().ok()).ok_or(DnsError { what, at })
}
