//! Values of constants: integers, durations and arithmetic, as far as bounds need them.

use anyhow::{Context, Result, anyhow, bail};
use std::path::{Path, PathBuf};

/// Constants within constants: more is a circle.
const DEPTH_MAX: usize = 8;

/// A declared constant.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub(super) name: String,
    expression: String,
}

/// What a constant is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// Nanoseconds of a duration.
    pub(super) amount: u128,
    is_duration: bool,
}

/// All constants of the product.
pub(super) struct Constants(Vec<(PathBuf, Declared)>);

/// The constant that is declared at the beginning of `text`: `const NAME: TYPE = …;`.
pub(super) fn declared(text: &str) -> Option<Declared> {
    let text = text.trim_start();
    let rest = match text.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => text.strip_prefix("pub ").unwrap_or(text),
    };
    let (head, rest) = rest.strip_prefix("const ")?.split_once('=')?;
    let name = head.split(':').next()?.trim();
    let expression = rest.split_once(';')?.0;
    Some(Declared { name: name.to_owned(), expression: expression.to_owned() })
}

impl Constants {
    pub(super) fn of(texts: &[(PathBuf, String)]) -> Constants {
        let mut all = Vec::new();
        for (file, text) in texts {
            let starts = text.match_indices('\n').map(|(at, _)| at + 1);
            let declared = std::iter::once(0).chain(starts).filter_map(|at| declared(text.get(at..)?));
            all.extend(declared.map(|one| (file.clone(), one)));
        }
        Constants(all)
    }

    /// The value of a constant of this file.
    pub(super) fn value(&self, file: &Path, declared: &Declared) -> Result<Number> {
        let mut number = self.evaluate(file, &declared.expression, DEPTH_MAX)?;
        let unit = [("NS", 1), ("MS", 1_000_000)];
        let has = |unit: &str| declared.name.split('_').any(|word| word == unit);
        if let Some((_, ns)) = unit.iter().find(|(unit, _)| has(unit) && !number.is_duration) {
            number = Number { amount: number.amount * ns, is_duration: true };
        }
        Ok(number)
    }

    fn evaluate(&self, file: &Path, text: &str, depth: usize) -> Result<Number> {
        let depth = depth.checked_sub(1).ok_or_else(|| anyhow!("a circle of constants"))?;
        let mut parser = Parser { constants: self, file, tokens: tokens(text.trim().trim_matches('"'))?, at: 0, depth };
        let number = parser.shift()?;
        if let Some(rest) = parser.peek() {
            bail!("`{}` is more than arithmetic (at `{rest}`)", text.trim());
        }
        Ok(number)
    }

    /// A constant by its name: of the same file, else the only one of its name in the crate, else in the product.
    fn named(&self, file: &Path, path: &str, depth: usize) -> Result<Number> {
        let name = path.rsplit("::").next().unwrap_or(path);
        let most = |word: &str| {
            let bits = word.trim_start_matches(['u', 'i']).replace("size", "64").parse::<u32>().ok()?;
            Some((1_u128 << (bits - u32::from(word.starts_with('i')))) - 1)
        };
        if let Some(amount) = path.strip_suffix("::MAX").and_then(most) {
            return Ok(Number { amount, is_duration: false });
        }
        let within = |folders: usize| {
            let same = |other: &Path| other.iter().take(folders).eq(file.iter().take(folders));
            let found: Vec<_> = self.0.iter().filter(|(other, one)| one.name == name && same(other)).collect();
            (found.len() == 1).then(|| found[0])
        };
        let (at, one) =
            [usize::MAX, 2, 1].into_iter().find_map(within).with_context(|| format!("no constant {path}"))?;
        self.evaluate(at, &one.expression, depth)
    }
}

impl Number {
    /// The number and the phrase that continues it. Whole KiB, MiB and GiB take the place of the word `bytes`.
    pub(super) fn with_phrase(self, phrase: &str) -> String {
        if self.is_duration {
            return format!("{} {phrase}", duration(self.amount));
        }
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        let unit = units.iter().find(|(bits, _)| self.amount >= 1 << bits && self.amount % (1 << bits) == 0);
        match (phrase.strip_prefix("bytes"), unit) {
            (Some(rest), Some((bits, unit))) => format!("{} {unit}{rest}", self.amount >> bits),
            _ => format!("{} {phrase}", with_commas(self.amount)),
        }
    }
}

fn duration(ns: u128) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns")];
    let (size, unit) = units.into_iter().find(|(size, _)| ns >= *size).unwrap_or((1, "ns"));
    let tenths = ns * 10 / size;
    if tenths % 10 == 0 { format!("{} {unit}", tenths / 10) } else { format!("{}.{} {unit}", tenths / 10, tenths % 10) }
}

fn with_commas(amount: u128) -> String {
    let digits = amount.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Numbers, names and operators.
fn tokens(text: &str) -> Result<Vec<String>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        let words = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let length = match rest {
            _ if words > 0 => words,
            _ if rest.starts_with("<<") || rest.starts_with(">>") => 2,
            _ if rest.starts_with(['+', '-', '*', '/', '(', ')']) => 1,
            _ => bail!("`{rest}` is more than arithmetic"),
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

struct Parser<'c> {
    constants: &'c Constants,
    file: &'c Path,
    tokens: Vec<String>,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    /// Takes the next token if it is among `wanted`.
    fn take(&mut self, wanted: &[&str]) -> Option<String> {
        let token = self.peek().filter(|token| wanted.contains(token))?.to_owned();
        self.at += 1;
        Some(token)
    }

    fn shift(&mut self) -> Result<Number> {
        let mut left = self.sum()?;
        while let Some(sign) = self.take(&["<<", ">>"]) {
            let by = u32::try_from(self.sum()?.amount)?;
            left = with(left, if sign == "<<" { left.amount.checked_shl(by) } else { left.amount.checked_shr(by) })?;
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Number> {
        let mut left = self.product()?;
        while let Some(sign) = self.take(&["+", "-"]) {
            let right = self.product()?.amount;
            left =
                with(left, if sign == "+" { left.amount.checked_add(right) } else { left.amount.checked_sub(right) })?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Number> {
        let mut left = self.cast()?;
        while let Some(sign) = self.take(&["*", "/"]) {
            let right = self.cast()?;
            let amount =
                if sign == "*" { left.amount.checked_mul(right.amount) } else { left.amount.checked_div(right.amount) };
            left = Number { is_duration: left.is_duration || right.is_duration, ..with(left, amount)? };
        }
        Ok(left)
    }

    fn cast(&mut self) -> Result<Number> {
        let number = self.term()?;
        while self.take(&["as"]).is_some() {
            self.at += 1;
        }
        Ok(number)
    }

    fn term(&mut self) -> Result<Number> {
        if self.take(&["("]).is_some() {
            let number = self.shift()?;
            return self.take(&[")"]).map(|_| number).context("a parenthesis is missing");
        }
        let word = self.peek().context("an expression ends early")?.to_owned();
        self.at += 1;
        let units =
            [("from_secs", 1_000_000_000), ("from_millis", 1_000_000), ("from_micros", 1_000), ("from_nanos", 1)];
        let name = word.rsplit("::").next().unwrap_or(&word);
        if let Some((_, ns)) = units.iter().find(|(unit, _)| *unit == name) {
            let number = self.term()?;
            return Ok(Number { is_duration: true, ..with(number, number.amount.checked_mul(*ns))? });
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return literal(&word);
        }
        self.constants.named(self.file, &word, self.depth)
    }
}

fn with(number: Number, amount: Option<u128>) -> Result<Number> {
    Ok(Number { amount: amount.context("an expression overflows")?, ..number })
}

/// `65_536`, `0x10`, `4u64`.
fn literal(word: &str) -> Result<Number> {
    let plain = word.replace('_', "");
    let plain = ["usize", "u64", "u32", "u16", "i32", "u8"]
        .iter()
        .fold(&*plain, |text, end| text.strip_suffix(end).unwrap_or(text));
    let amount = match plain.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16),
        None => plain.parse(),
    };
    Ok(Number { amount: amount.with_context(|| format!("`{word}` is no number"))?, is_duration: false })
}
