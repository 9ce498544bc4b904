//! Names of label bits, from the file that iptables and conntrack share.
use record::text::put_u64;
use sys::{Host, SysError};

/// The path that libxtables uses.
const FILE: &str = "/etc/xtables/connlabel.conf";

/// Number of label bits of an entry (XT_CONNLABEL_MAXBIT + 1).
const BITS: usize = 128;

/// Maximum length of a name; longer ones are ignored.
const NAME_MAX: usize = 64;

/// Label names, indexed by bit.
#[derive(Debug, Clone, Default)]
pub struct LabelNames {
    names: Vec<Option<Box<[u8]>>>,
}

impl LabelNames {
    /// Reads /etc/xtables/connlabel.conf. Fails if the file does not exist.
    pub fn read(host: &Host) -> Result<LabelNames, SysError> {
        let mut text = Vec::new();
        host.read_file(FILE, &mut text)?;
        Ok(LabelNames::parse(&text))
    }

    /// Parses lines of a number and a name; `#` starts a comment. Other lines are skipped; the first name of a bit
    /// wins.
    pub fn parse(text: &[u8]) -> LabelNames {
        let mut names: Vec<Option<Box<[u8]>>> = vec![None; BITS];
        for line in text.split(|byte| *byte == b'\n') {
            let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            let (Some(bit), Some(name)) = (words.next(), words.next()) else { continue };
            let bit = std::str::from_utf8(bit).ok().and_then(|bit| bit.parse::<usize>().ok());
            // A comma would split the name into two words.
            let fits = name.len() <= NAME_MAX && !name.contains(&b',');
            if let Some(place @ None) = bit.filter(|_| fits).and_then(|bit| names.get_mut(bit)) {
                *place = Some(name.into());
            }
        }
        LabelNames { names }
    }

    /// The name of a bit.
    pub fn name(&self, bit: usize) -> Option<&[u8]> {
        self.names.get(bit)?.as_deref()
    }

    /// Writes the set bits of `CTA_LABELS` as words joined by commas: the name of each bit, or its number if it has no
    /// name.
    pub fn put_words(&self, out: &mut Vec<u8>, bits: &[u8]) {
        let set = (0..bits.len() * 8).filter(|bit| bits.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1));
        for (i, bit) in set.enumerate() {
            if i > 0 {
                out.push(b',');
            }
            match self.name(bit) {
                Some(name) => out.extend_from_slice(name),
                None => put_u64(out, bit as u64),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_numbers_and_nonsense() {
        let file = b"# bits\n0 audit\n  5\tweb # served\n5 again\n7\nx y\n200 far\n9 a,b\n127 last\n";
        let names = LabelNames::parse(file);
        assert_eq!((names.name(0), names.name(5), names.name(7)), (Some(&b"audit"[..]), Some(&b"web"[..]), None));
        let mut out = Vec::new();
        names.put_words(&mut out, &[0x21, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80]);
        assert_eq!(out, b"audit,web,9,last");
        out.clear();
        LabelNames::default().put_words(&mut out, &[0x21]);
        assert_eq!(out, b"0,5");
    }
}
