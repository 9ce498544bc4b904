//! SCRAM (RFC 5802, RFC 7677): both sides prove that they know the password, and neither sends it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha512};
use std::io::{self, ErrorKind};

/// Most rounds; more would take this process seconds.
///
/// Bound: rounds of SCRAM of a broker (`scram::a_broker_cannot_make_us_hash_for_hours`). Beyond: the connection is
/// closed. By: a program that answers in the broker's place.
const ROUNDS_MAX: u32 = 1_000_000;
/// The beginning of a login without channel binding and without another identity.
const HEAD: &str = "n,,";

/// The hash functions with which brokers store passwords.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    fn digest(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Hash::Sha256 => Sha256::digest(bytes).to_vec(),
            Hash::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }

    fn hmac(self, key: &[u8], text: &[u8]) -> Vec<u8> {
        match self {
            Hash::Sha256 => keyed::<Hmac<Sha256>>(key).map_or(Vec::new(), |mac| finish(mac, text)),
            Hash::Sha512 => keyed::<Hmac<Sha512>>(key).map_or(Vec::new(), |mac| finish(mac, text)),
        }
    }

    /// The password after many rounds (`Hi` of RFC 5802, section 2.2).
    fn stretch(self, password: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
        match self {
            Hash::Sha256 => keyed::<Hmac<Sha256>>(password).map_or(Vec::new(), |mac| stretch(&mac, salt, rounds)),
            Hash::Sha512 => keyed::<Hmac<Sha512>>(password).map_or(Vec::new(), |mac| stretch(&mac, salt, rounds)),
        }
    }
}

/// HMAC takes keys of any length, so this is always there.
fn keyed<M: Mac + KeyInit>(key: &[u8]) -> Option<M> {
    <M as KeyInit>::new_from_slice(key).ok()
}

fn finish(mut mac: impl Mac, text: &[u8]) -> Vec<u8> {
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn stretch<M: Mac + Clone>(mac: &M, salt: &[u8], rounds: u32) -> Vec<u8> {
    let mut round = finish(mac.clone(), &[salt, &1u32.to_be_bytes()].concat());
    let mut sum = round.clone();
    for _ in 1..rounds {
        round = finish(mac.clone(), &round);
        sum = xor(&sum, &round);
    }
    sum
}

fn xor(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter().zip(right).map(|(left, right)| left ^ right).collect()
}

/// A login after its first message.
pub(super) struct Scram {
    hash: Hash,
    nonce: String,
    bare: String,
}

/// A login after its second message.
pub(super) struct Proof {
    /// The second message.
    pub(super) message: String,
    signature: Vec<u8>,
}

impl Scram {
    /// Begins a login with random text that was never used before.
    pub(super) fn new(hash: Hash, user: &str, nonce: &[u8]) -> Scram {
        let nonce = STANDARD.encode(nonce);
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Scram { hash, bare: format!("n={user},r={nonce}"), nonce }
    }

    /// The first message.
    pub(super) fn first_message(&self) -> String {
        format!("{HEAD}{}", self.bare)
    }

    /// Answers the broker's first message.
    pub(super) fn prove(self, answer: &[u8], password: &str) -> io::Result<Proof> {
        let odd = || io::Error::new(ErrorKind::InvalidData, "the broker's answer during login is malformed");
        let text = std::str::from_utf8(answer).map_err(|_| odd())?;
        let value = |key: &str| text.split(',').find_map(|part| part.strip_prefix(key));
        let (nonce, salt, rounds) = (value("r="), value("s="), value("i="));
        let nonce = nonce.filter(|all| all.starts_with(&self.nonce) && all.len() > self.nonce.len()).ok_or_else(odd)?;
        let salt = STANDARD.decode(salt.ok_or_else(odd)?).map_err(|_| odd())?;
        let rounds: u32 = rounds.and_then(|digits| digits.parse().ok()).ok_or_else(odd)?;
        if !(1..=ROUNDS_MAX).contains(&rounds) {
            return Err(io::Error::new(ErrorKind::InvalidData, "the broker requests too many rounds of SCRAM"));
        }
        let last = format!("c={},r={nonce}", STANDARD.encode(HEAD));
        let signed = format!("{},{text},{last}", self.bare);
        let salted = self.hash.stretch(password.as_bytes(), &salt, rounds);
        let key = self.hash.hmac(&salted, b"Client Key");
        let stored = self.hash.digest(&key);
        let proof = xor(&key, &self.hash.hmac(&stored, signed.as_bytes()));
        let signature = self.hash.hmac(&self.hash.hmac(&salted, b"Server Key"), signed.as_bytes());
        Ok(Proof { message: format!("{last},p={}", STANDARD.encode(proof)), signature })
    }
}

impl Proof {
    /// Checks the broker's last message: true if the broker also knows the password.
    pub(super) fn is_answered_by(&self, answer: &[u8]) -> bool {
        let value = answer.split(|byte| *byte == b',').find_map(|part| part.strip_prefix(b"v="));
        value.and_then(|value| STANDARD.decode(value).ok()).is_some_and(|signature| signature == self.signature)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The exchange of RFC 7677, section 3.
    const FIRST: &str = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    const LAST: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    fn login() -> Scram {
        let nonce = "rOprNGfwEbeRWgbNEkqO".to_owned();
        Scram { hash: Hash::Sha256, bare: format!("n=user,r={nonce}"), nonce }
    }

    #[test]
    fn the_example_of_the_rfc() {
        let proof = login().prove(FIRST.as_bytes(), "pencil").unwrap();
        let expected = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        assert_eq!(proof.message, expected);
        assert!(proof.is_answered_by(LAST.as_bytes()));
        for wrong in ["v=AAAA", "e=other-error", "", "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="] {
            assert!(!proof.is_answered_by(wrong.as_bytes()), "{wrong}");
        }
        let other = login().prove(FIRST.as_bytes(), "pencils").unwrap();
        assert!(other.message != expected && !other.is_answered_by(LAST.as_bytes()));
    }

    #[test]
    fn names_are_escaped() {
        assert!(Scram::new(Hash::Sha512, "a=b,c", &[0; 3]).first_message().starts_with("n,,n=a=3Db=2Cc,r=AAAA"));
    }

    #[test]
    fn a_broker_cannot_make_us_hash_for_hours() {
        let nonce = "r=rOprNGfwEbeRWgbNEkqOx";
        for unfair in [
            format!("{nonce},s=AAAA,i=4294967295"),
            format!("{nonce},s=AAAA,i=1000001"),
            format!("{nonce},s=AAAA,i=0"),
            format!("{nonce},s=AAAA"),
            format!("{nonce},s=A,i=4096"),
            "r=rOprNGfwEbeRWgbNEkqO,s=AAAA,i=4096".to_owned(),
            "r=another,s=AAAA,i=4096".to_owned(),
            "\u{ff}".to_owned(),
        ] {
            assert!(login().prove(unfair.as_bytes(), "pencil").is_err(), "{unfair}");
        }
    }
}
