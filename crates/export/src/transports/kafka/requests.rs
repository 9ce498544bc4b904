//! The requests that a producer needs, in the last versions without tagged fields: brokers since 2.4 know them.

use super::error_code::ErrorCode;
use super::values::{Answer, malformed, put_length, put_string};
use std::io;

/// A request and its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Api {
    pub(super) key: i16,
    pub(super) version: i16,
    name: &'static str,
}

pub(super) const PRODUCE: Api = Api { key: 0, version: 8, name: "Produce" };
pub(super) const METADATA: Api = Api { key: 3, version: 5, name: "Metadata" };
pub(super) const SASL_HANDSHAKE: Api = Api { key: 17, version: 1, name: "SaslHandshake" };
pub(super) const VERSIONS: Api = Api { key: 18, version: 0, name: "ApiVersions" };
pub(super) const PRODUCER: Api = Api { key: 22, version: 1, name: "InitProducerId" };
pub(super) const SASL: Api = Api { key: 36, version: 0, name: "SaslAuthenticate" };

/// How long a broker may wait for its replicas, in milliseconds.
const REPLICAS_MS: i32 = 30_000;
/// The broker answers once all replicas in sync have the batch.
const ACKS_ALL: i16 = -1;
/// A null string.
const NULL: [u8; 2] = (-1i16).to_be_bytes();

/// Returns a request that the broker cannot carry out, from its answer to [`VERSIONS`].
pub(super) fn missing_api(answer: &[u8]) -> io::Result<Option<String>> {
    let mut answer = Answer(answer);
    let code = ErrorCode(answer.i16()?);
    if !code.is_none() {
        return Err(code.error("ApiVersions"));
    }
    let mut known = Vec::new();
    answer.array(|each| {
        known.push((each.i16()?, each.i16()?, each.i16()?));
        Ok(())
    })?;
    let is_missing = |api: &&Api| {
        !known.iter().any(|(key, oldest, newest)| *key == api.key && (*oldest..=*newest).contains(&api.version))
    };
    let missing = [PRODUCE, METADATA, PRODUCER].iter().find(is_missing).map(|api| (api.name, api.version));
    Ok(missing.map(|(name, version)| format!("{name} version {version}")))
}

/// Appends the body of [`METADATA`] for a topic, which is created if the broker allows it.
pub(super) fn put_metadata(out: &mut Vec<u8>, topic: &str) {
    put_length(out, 1);
    put_string(out, topic);
    out.push(1);
}

/// A topic: which broker leads each partition.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Topic {
    /// `HOST:PORT` of each broker, by its number.
    brokers: Vec<(i32, String)>,
    /// Number, error and leader of each partition.
    partitions: Vec<(i32, ErrorCode, i32)>,
    code: ErrorCode,
}

impl Topic {
    /// Reads the answer to [`METADATA`].
    pub(super) fn read(answer: &[u8]) -> io::Result<Topic> {
        let mut topic = Topic::default();
        let mut answer = Answer(answer);
        answer.i32()?;
        answer.array(|each| {
            let (number, host, port) = (each.i32()?, each.string()?, each.i32()?);
            each.string()?;
            let port = u16::try_from(port).map_err(|_| malformed())?;
            let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
            topic.brokers.push((number, format!("{host}:{port}")));
            Ok(())
        })?;
        answer.string()?;
        answer.i32()?;
        answer.array(|each| {
            topic.code = ErrorCode(each.i16()?);
            each.string()?;
            each.i8()?;
            each.array(|each| {
                let (code, number, leader) = (ErrorCode(each.i16()?), each.i32()?, each.i32()?);
                topic.partitions.push((number, code, leader));
                for _ in 0..3 {
                    each.array(|each| each.i32().map(drop))?;
                }
                Ok(())
            })
        })?;
        Ok(topic)
    }

    /// The topic's own error.
    pub(super) fn code(&self) -> ErrorCode {
        self.code
    }

    /// Number of its partitions.
    pub(super) fn partitions(&self) -> u32 {
        u32::try_from(self.partitions.len()).unwrap_or(u32::MAX)
    }

    /// True if there is a partition with this number.
    pub(super) fn has(&self, partition: i32) -> bool {
        self.partitions.iter().any(|(number, ..)| *number == partition)
    }

    /// Returns `HOST:PORT` of the broker that leads a partition, or what is wrong with it.
    pub(super) fn leader(&self, partition: i32) -> Result<&str, ErrorCode> {
        let (_, code, leader) =
            self.partitions.iter().find(|(number, ..)| *number == partition).ok_or(ErrorCode::UNKNOWN_PARTITION)?;
        let broker = self.brokers.iter().find(|(number, _)| number == leader);
        match broker {
            Some((_, address)) => Ok(address),
            None if code.is_none() => Err(ErrorCode::NO_LEADER),
            None => Err(*code),
        }
    }
}

/// Appends the body of [`PRODUCER`]: a new producer without transactions.
pub(super) fn put_producer(out: &mut Vec<u8>) {
    out.extend_from_slice(&NULL);
    out.extend_from_slice(&0i32.to_be_bytes());
}

/// Reads the number and the epoch of a new producer.
pub(super) fn read_producer(answer: &[u8]) -> io::Result<Result<(i64, i16), ErrorCode>> {
    let mut answer = Answer(answer);
    answer.i32()?;
    let code = ErrorCode(answer.i16()?);
    if code.is_none() { Ok(Ok((answer.i64()?, answer.i16()?))) } else { Ok(Err(code)) }
}

/// Appends the body of [`PRODUCE`] for one partition; `put` appends the batch.
pub(super) fn put_produce(
    out: &mut Vec<u8>,
    topic: &str,
    partition: i32,
    put: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
) -> io::Result<()> {
    out.extend_from_slice(&NULL);
    out.extend_from_slice(&ACKS_ALL.to_be_bytes());
    out.extend_from_slice(&REPLICAS_MS.to_be_bytes());
    put_length(out, 1);
    put_string(out, topic);
    put_length(out, 1);
    out.extend_from_slice(&partition.to_be_bytes());
    let at = out.len();
    put_length(out, 0);
    put(out)?;
    let length = i32::try_from(out.len() - at - 4).unwrap_or(i32::MAX);
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// Reads the error of the answer to [`PRODUCE`], with the broker's words, which may be empty.
pub(super) fn read_produced(answer: &[u8]) -> io::Result<(ErrorCode, String)> {
    let mut found = None;
    Answer(answer).array(|topic| {
        topic.string()?;
        topic.array(|partition| {
            partition.i32()?;
            let code = ErrorCode(partition.i16()?);
            for _ in 0..3 {
                partition.i64()?;
            }
            partition.array(|record| {
                record.i32()?;
                record.string().map(drop)
            })?;
            found = Some((code, partition.string()?.to_owned()));
            Ok(())
        })
    })?;
    found.ok_or_else(malformed)
}

/// Reads the answer to [`SASL_HANDSHAKE`]: its error, and the mechanisms that the broker knows.
pub(super) fn read_handshake(answer: &[u8]) -> io::Result<(ErrorCode, Vec<String>)> {
    let mut answer = Answer(answer);
    let (code, mut known) = (ErrorCode(answer.i16()?), Vec::new());
    answer.array(|each| {
        known.push(each.string()?.to_owned());
        Ok(())
    })?;
    Ok((code, known))
}

/// Reads the answer to [`SASL`]: the broker's error and words, or its part of the login.
pub(super) fn read_sasl(answer: &[u8]) -> io::Result<Result<&[u8], (ErrorCode, String)>> {
    let mut answer = Answer(answer);
    let (code, words) = (ErrorCode(answer.i16()?), answer.string()?);
    if code.is_none() { Ok(Ok(answer.bytes()?)) } else { Ok(Err((code, words.to_owned()))) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn strings(out: &mut Vec<u8>, all: &[&str]) {
        put_length(out, all.len());
        all.iter().for_each(|one| put_string(out, one));
    }

    #[test]
    fn a_topic_is_read() {
        let mut answer = Vec::new();
        let mut numbers = |all: &[i32]| all.iter().for_each(|number| answer.extend_from_slice(&number.to_be_bytes()));
        numbers(&[0, 2, 1]);
        put_string(&mut answer, "a.example");
        answer.extend_from_slice(&9092i32.to_be_bytes());
        answer.extend_from_slice(&NULL);
        answer.extend_from_slice(&2i32.to_be_bytes());
        put_string(&mut answer, "2001:db8::1");
        answer.extend_from_slice(&9093i32.to_be_bytes());
        put_string(&mut answer, "rack");
        put_string(&mut answer, "cluster");
        for number in [1i32, 1] {
            answer.extend_from_slice(&number.to_be_bytes());
        }
        answer.extend_from_slice(&[0, 0]);
        put_string(&mut answer, "t");
        answer.push(0);
        put_length(&mut answer, 3);
        for (code, number, leader) in [(0i16, 0i32, 2i32), (5, 1, -1), (9, 2, 1)] {
            answer.extend_from_slice(&code.to_be_bytes());
            for value in [number, leader, 1, 2, 1, 2, 0] {
                answer.extend_from_slice(&value.to_be_bytes());
            }
        }
        let topic = Topic::read(&answer).unwrap();
        assert_eq!((topic.partitions(), topic.code().is_none()), (3, true));
        assert_eq!((topic.leader(0), topic.leader(2)), (Ok("[2001:db8::1]:9093"), Ok("a.example:9092")));
        assert_eq!((topic.leader(1), topic.leader(3)), (Err(ErrorCode(5)), Err(ErrorCode::UNKNOWN_PARTITION)));
        for length in 0..answer.len() {
            assert!(Topic::read(&answer[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn old_brokers_are_recognized() {
        let answer = |produce: i16| {
            let mut bytes = vec![0, 0];
            put_length(&mut bytes, 3);
            for number in [0, 0, produce, 3, 0, 13, 22, 0, 5] {
                bytes.extend_from_slice(&number.to_be_bytes());
            }
            missing_api(&bytes).unwrap()
        };
        assert_eq!((answer(8), answer(7).as_deref()), (None, Some("Produce version 8")));
        assert!(missing_api(&[0, 35]).unwrap_err().to_string().contains("error 35"));
    }

    #[test]
    fn refusals_have_the_words_of_the_broker() {
        let mut answer = Vec::new();
        put_length(&mut answer, 1);
        put_string(&mut answer, "t");
        put_length(&mut answer, 1);
        answer.extend_from_slice(&3i32.to_be_bytes());
        answer.extend_from_slice(&87i16.to_be_bytes());
        answer.extend_from_slice(&[255; 24]);
        put_length(&mut answer, 1);
        answer.extend_from_slice(&0i32.to_be_bytes());
        answer.extend_from_slice(&NULL);
        put_string(&mut answer, "no key");
        answer.extend_from_slice(&0i32.to_be_bytes());
        assert_eq!(read_produced(&answer).unwrap(), (ErrorCode(87), "no key".to_owned()));
        let mut shake = vec![0, 33];
        strings(&mut shake, &["PLAIN", "OAUTHBEARER"]);
        assert_eq!(read_handshake(&shake).unwrap().1, ["PLAIN", "OAUTHBEARER"]);
    }
}
