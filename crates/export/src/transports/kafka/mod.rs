//! The transport to Kafka: each message becomes a record of a topic, with the host's name as its key.
//!
//! A message is delivered once all replicas in sync have it. Messages are sent together in requests whose bounds do not
//! change until the broker has answered: with the numbers of an idempotent producer, a broker stores a request once,
//! however often it arrives. The store keeps these numbers, so that this also holds after the program was killed. Start
//! reading at [`KafkaProducer`]; docs/adr/0045.

mod broker;
mod crc32c;
mod error_code;
mod partition;
mod producer_state;
mod records;
mod requests;
mod scram;
mod values;

use super::exchange::excerpt;
use super::frozen_request::{FoundMessages, FrozenRequest};
use super::stream::{WRITE_TIMEOUT, closed_error};
use super::{TakenPart, Transport, with_object};
use crate::{Batch, KafkaAddress, TlsFiles};
use broker::Broker;
use error_code::{ErrorCode, Remedy};
use producer_state::ProducerState;
use requests::Topic;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

/// Most bytes of messages in a request, before they are packed. Brokers take 1 MiB by default.
const REQUEST_BYTES_MAX: usize = 900 << 10;
/// Most messages in a request.
const RECORDS_MAX: usize = 1 << 16;
/// A broker that does not answer for this long counts as away.
///
/// Bound: for an answer of a broker to messages. Beyond: the connection is reopened; rows wait. By: the broker, or a
/// program that answers in its place.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a new topic, or a broker that has just started, is waited for.
const START: Duration = Duration::from_secs(5);
/// Pause between questions during that time.
const START_PAUSE: Duration = Duration::from_millis(100);
/// An idle connection is used after this time: brokers close it after ten minutes (`connections.max.idle.ms`).
const IDLE: Duration = Duration::from_secs(240);

/// A producer of messages into one topic.
pub(super) struct KafkaProducer {
    address: KafkaAddress,
    tls: TlsFiles,
    /// The key of all messages.
    host: Vec<u8>,
    session: Option<LeaderConnection>,
    producer: Option<ProducerState>,
    request: Option<FrozenRequest>,
    /// True if the store has the numbers of `producer` and `request`.
    is_noted: bool,
    /// True if the next request may be stored already, under the number of an earlier producer.
    is_repeated: bool,
    /// Most messages in the next request: fewer after a refusal, until the refused message is found.
    records: usize,
    complaint: Option<String>,
    /// The body of the request; the field keeps the memory.
    body: Vec<u8>,
}

/// The connection to the broker that leads the partition.
struct LeaderConnection {
    leader: Broker,
    /// When the request was written whose answer is expected.
    asked: Option<Instant>,
    used: Instant,
}

impl KafkaProducer {
    /// Writes to the topic at `address`.
    pub(super) fn new(address: KafkaAddress, tls: TlsFiles) -> KafkaProducer {
        KafkaProducer {
            address,
            tls,
            host: sys::fs::host_name(),
            session: None,
            producer: None,
            request: None,
            is_noted: false,
            is_repeated: false,
            records: RECORDS_MAX,
            complaint: None,
            body: Vec::new(),
        }
    }

    /// Connects to the first broker that answers.
    fn any_broker(&self) -> io::Result<Broker> {
        let mut failed = io::Error::from(ErrorKind::NotFound);
        for place in &self.address.brokers {
            match Broker::open(place, &self.address, &self.tls) {
                Ok(broker) => return Ok(broker),
                Err(error) => failed = error,
            }
        }
        Err(match self.address.brokers.len() {
            0 | 1 => failed,
            count => io::Error::new(failed.kind(), format!("{failed} ({count} brokers tried)")),
        })
    }

    /// Returns a connection to the broker that leads the partition of our key, and the partition.
    fn leader(&self) -> io::Result<(Broker, i32)> {
        let mut broker = self.any_broker()?;
        let (place, partition) = self.ask_until_started(&mut || {
            let topic = self.topic(&mut broker)?;
            Ok(self.partition(&topic).and_then(|partition| Ok((topic.leader(partition)?.to_owned(), partition))))
        })?;
        let leader = if place == broker.place { broker } else { Broker::open(&place, &self.address, &self.tls)? };
        Ok((leader, partition))
    }

    /// Asks until a new topic, or a broker that has just started, is ready. Gives up after [`START`].
    fn ask_until_started<T>(&self, ask: &mut dyn FnMut() -> io::Result<Result<T, ErrorCode>>) -> io::Result<T> {
        let begun = Instant::now();
        loop {
            match ask()? {
                Ok(answer) => return Ok(answer),
                Err(code) if code.is_of_start() && begun.elapsed() < START => thread::sleep(START_PAUSE),
                Err(code) => return Err(code.error(&self.name())),
            }
        }
    }

    fn topic(&self, broker: &mut Broker) -> io::Result<Topic> {
        let mut body = Vec::new();
        requests::put_metadata(&mut body, &self.address.topic);
        let answer = broker.ask(requests::METADATA, &body);
        let topic = answer.and_then(|answer| Topic::read(&answer));
        topic.map_err(|error| with_object("no answers from", &broker.place, &error))
    }

    /// The partition of our messages: a request without an answer keeps its own, otherwise the key decides.
    fn partition(&self, topic: &Topic) -> Result<i32, ErrorCode> {
        if !topic.code().is_none() {
            return Err(topic.code());
        }
        match (&self.producer, &self.request) {
            (Some(producer), Some(_)) if topic.has(producer.partition) => Ok(producer.partition),
            _ if topic.partitions() == 0 => Err(ErrorCode::UNKNOWN_PARTITION),
            _ => i32::try_from(partition::partition_of(&self.host, topic.partitions()))
                .map_err(|_| ErrorCode::UNKNOWN_PARTITION),
        }
    }

    /// Gets a new number for this producer, whose sequence begins at 0.
    fn new_producer(&self, leader: &mut Broker, partition: i32) -> io::Result<ProducerState> {
        let mut body = Vec::new();
        requests::put_producer(&mut body);
        let (id, epoch) =
            self.ask_until_started(&mut || requests::read_producer(&leader.ask(requests::PRODUCER, &body)?))?;
        Ok(ProducerState { id, epoch, partition, sequence: 0 })
    }

    /// The topic, for errors.
    fn name(&self) -> String {
        format!("topic {}", self.address.topic)
    }

    /// Writes the request.
    fn begin(&mut self, batch: &Batch) -> io::Result<()> {
        let session = self.session.as_mut().ok_or_else(closed_error)?;
        let (Some(request), Some(producer)) = (&self.request, &self.producer) else { return Err(closed_error()) };
        let messages = request.messages(batch).map(|message| message.strip_suffix(b"\n").unwrap_or(message));
        let time_ms = i64::try_from(sys::clock::wall_ns() / 1_000_000).unwrap_or(i64::MAX);
        let (host, is_packed) = (&self.host, self.address.is_packed);
        self.body.clear();
        requests::put_produce(&mut self.body, &self.address.topic, producer.partition, |out| {
            records::put_batch(out, messages, host, producer, time_ms, is_packed)
        })?;
        session.leader.request(requests::PRODUCE, &self.body);
        (session.asked, session.used) = (Some(Instant::now()), Instant::now());
        Ok(())
    }

    /// Waits a short time for the answer, and evaluates it.
    fn finish(&mut self, batch: &Batch) -> io::Result<TakenPart> {
        let session = self.session.as_mut().ok_or_else(closed_error)?;
        let Some(answer) = session.leader.answer(WRITE_TIMEOUT)? else {
            if session.asked.is_some_and(|asked| asked.elapsed() < SILENCE) {
                return Ok(TakenPart::default());
            }
            let text = format!("no answer from {} for {} s", session.leader.place, SILENCE.as_secs());
            return Err(io::Error::new(ErrorKind::TimedOut, text));
        };
        let (code, words) = requests::read_produced(&answer)?;
        session.asked = None;
        let Some(request) = &mut self.request else { return Err(closed_error()) };
        let remedy = if code.is_none() { Remedy::Taken } else { code.remedy() };
        // The leader may have stored it although others have not.
        request.is_doubtful |= remedy == Remedy::Again;
        let request = *request;
        let bytes = request.bytes(batch);
        match remedy {
            Remedy::Taken => {
                if let Some(producer) = &mut self.producer {
                    producer.advance(request.len());
                }
                self.forget_request();
                self.records = self.records.saturating_mul(2).min(RECORDS_MAX);
                let repeated = if std::mem::take(&mut self.is_repeated) { request.len().into() } else { 0 };
                Ok(TakenPart { bytes, repeated, refused: 0 })
            }
            Remedy::Split if request.len() == 1 => {
                self.forget_request();
                self.records = 2;
                self.complaint = Some(format!("{}: a message was rejected: {}", self.name(), in_words(code, &words)));
                Ok(TakenPart { bytes, refused: 1, ..TakenPart::default() })
            }
            // One of the messages is bad: try fewer at once, so that the others are still delivered.
            Remedy::Split => {
                self.records = (request.len() as usize / 2).max(1);
                self.forget_request();
                Ok(TakenPart::default())
            }
            Remedy::NewProducer => {
                self.producer = None;
                let twice = match request.is_doubtful {
                    true => format!("; {} messages may be stored twice", request.len()),
                    false => String::new(),
                };
                Err(io::Error::other(format!("{}: {}{twice}", self.name(), code.text())))
            }
            Remedy::Again => Err(code.error(&format!("{}{}", self.name(), more(&words)))),
        }
    }

    /// Forgets the request: the broker has stored it, or none of it.
    fn forget_request(&mut self) {
        (self.request, self.is_noted) = (None, false);
    }
}

/// An error with the words of the broker.
fn in_words(code: ErrorCode, words: &str) -> String {
    format!("{}{}", code.text(), more(words))
}

fn more(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(" ({})", excerpt(words)) }
}

impl Transport for KafkaProducer {
    fn open(&mut self) -> io::Result<()> {
        self.close();
        let (mut leader, partition) = self.leader()?;
        if self.producer.is_none_or(|producer| producer.partition != partition) {
            self.producer = Some(self.new_producer(&mut leader, partition)?);
            self.is_noted = false;
            self.is_repeated |= self.request.is_some_and(|request| request.is_doubtful);
        }
        self.session = Some(LeaderConnection { leader, asked: None, used: Instant::now() });
        Ok(())
    }

    fn resume(&mut self, note: &[u8]) -> Option<Range<u64>> {
        let (producer, request) = producer_state::decode(note)?;
        (self.producer, self.request) = (Some(producer), Some(request));
        Some(request.first..request.end)
    }

    fn prepare(&mut self, batch: &Batch, at: usize) -> io::Result<Option<Vec<u8>>> {
        let first = batch.count_complete(at);
        match self.request.map(|request| (request, request.find_in(batch, first))) {
            Some((_, FoundMessages::All)) | None => {}
            Some((request, FoundMessages::None)) => {
                if let Some(producer) = &mut self.producer {
                    producer.advance(request.len());
                }
                self.forget_request();
            }
            Some((request, FoundMessages::Some)) => {
                (self.producer, self.request, self.is_repeated) = (None, None, true);
                return Err(request.torn_error(&self.name()));
            }
        }
        if self.request.is_none() {
            let request = FrozenRequest::cut(batch, first, self.records.min(RECORDS_MAX), REQUEST_BYTES_MAX);
            (self.request, self.is_noted) = (Some(request), false);
        }
        let (Some(producer), Some(request)) = (&self.producer, &self.request) else { return Ok(None) };
        let note = (!self.is_noted).then(|| producer_state::encode(producer, request));
        self.is_noted = true;
        Ok(note)
    }

    fn send(&mut self, batch: &Batch, _: usize) -> io::Result<TakenPart> {
        let session = self.session.as_ref().ok_or_else(closed_error)?;
        if session.asked.is_none() {
            self.begin(batch)?;
        }
        self.finish(batch)
    }

    fn check(&mut self) -> io::Result<()> {
        let session = self.session.as_mut().ok_or_else(closed_error)?;
        if session.asked.is_some() {
            return Ok(());
        }
        let named = |error: io::Error, place: &str| with_object("the connection has ended to", place, &error);
        session.leader.check_open().map_err(|error| named(error, &session.leader.place))?;
        if session.used.elapsed() >= IDLE {
            session.leader.begin_again();
            session.leader.ask(requests::VERSIONS, &[]).map_err(|error| named(error, &session.leader.place))?;
            session.used = Instant::now();
        }
        Ok(())
    }

    fn take_refusal_reason(&mut self) -> Option<String> {
        self.complaint.take()
    }

    fn close(&mut self) {
        let is_unanswered = self.session.take().is_some_and(|session| session.asked.is_some());
        if let Some(request) = self.request.as_mut().filter(|_| is_unanswered) {
            request.is_doubtful = true;
        }
    }
}

/// Reads bytes as each answer of a broker; for the fuzzer.
pub fn fuzz_kafka_answers(data: &[u8]) {
    let _ = requests::missing_api(data);
    let _ = requests::read_producer(data);
    let _ = requests::read_handshake(data);
    let _ = requests::read_sasl(data);
    let _ = requests::read_produced(data);
    if let Ok(topic) = Topic::read(data) {
        let _ = topic.leader(0);
    }
    if let Some((producer, request)) = producer_state::decode(data) {
        assert_eq!(producer_state::encode(&producer, &request), data, "what is written is read");
    }
}
