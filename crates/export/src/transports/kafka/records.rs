//! A batch of records, version 2: what brokers store as it is (`DefaultRecordBatch` in Kafka).

use super::crc32c::crc32c;
use super::producer_state::ProducerState;
use super::values::{put_length, put_varint, varint_len};
use flate2::{Compression, write::GzEncoder};
use std::io::{self, Write};

/// The version of the format.
const MAGIC: u8 = 2;
/// `CompressionType.GZIP`.
const GZIP: u16 = 1;
/// Bytes before the checksum's range: base offset 8, length 4, leader epoch 4, magic 1, checksum 4.
const CHECKED_AT: usize = 21;
/// Offset of the length, which counts the bytes after it.
const LENGTH_AT: usize = 8;
/// Offset of the checksum.
const SUM_AT: usize = 17;

/// Appends a batch with a record for each message, all with the same key.
pub(super) fn put_batch<'m>(
    out: &mut Vec<u8>,
    messages: impl Iterator<Item = &'m [u8]>,
    key: &[u8],
    producer: &ProducerState,
    time_ms: i64,
    is_packed: bool,
) -> io::Result<()> {
    let mut records = Vec::new();
    let mut count = 0;
    for message in messages {
        put_record(&mut records, count, key, message);
        count += 1;
    }
    let begin = out.len();
    out.extend_from_slice(&0i64.to_be_bytes());
    put_length(out, 0);
    out.extend_from_slice(&(-1i32).to_be_bytes());
    out.push(MAGIC);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(if is_packed { GZIP } else { 0 }).to_be_bytes());
    out.extend_from_slice(&(count as i32 - 1).to_be_bytes());
    out.extend_from_slice(&time_ms.to_be_bytes());
    out.extend_from_slice(&time_ms.to_be_bytes());
    out.extend_from_slice(&producer.id.to_be_bytes());
    out.extend_from_slice(&producer.epoch.to_be_bytes());
    out.extend_from_slice(&producer.sequence.to_be_bytes());
    out.extend_from_slice(&(count as i32).to_be_bytes());
    if is_packed {
        let mut packer = GzEncoder::new(&mut *out, Compression::fast());
        packer.write_all(&records)?;
        packer.finish()?;
    } else {
        out.extend_from_slice(&records);
    }
    let batch = out.get_mut(begin..).unwrap_or_default();
    let length = i32::try_from(batch.len() - LENGTH_AT - 4).unwrap_or(i32::MAX);
    let sum = crc32c(batch.get(CHECKED_AT..).unwrap_or_default());
    for (at, number) in [(LENGTH_AT, length.to_be_bytes()), (SUM_AT, sum.to_be_bytes())] {
        if let Some(place) = batch.get_mut(at..at + 4) {
            place.copy_from_slice(&number);
        }
    }
    Ok(())
}

fn put_record(out: &mut Vec<u8>, index: i64, key: &[u8], value: &[u8]) {
    let (key_len, value_len) = (key.len() as i64, value.len() as i64);
    // Attributes, the difference to the batch's time and the number of headers are 0.
    let lengths = 3 + varint_len(index) + varint_len(key_len) + varint_len(value_len);
    put_varint(out, lengths as i64 + key_len + value_len);
    out.extend_from_slice(&[0, 0]);
    put_varint(out, index);
    put_varint(out, key_len);
    out.extend_from_slice(key);
    put_varint(out, value_len);
    out.extend_from_slice(value);
    out.push(0);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Read;

    const PRODUCER: ProducerState = ProducerState { id: 7, epoch: 1, partition: 0, sequence: 40 };

    fn batch(is_packed: bool) -> Vec<u8> {
        let mut out = vec![b'x'; 3];
        let messages = [&b"{\"a\":1}"[..], b"{}"].into_iter();
        put_batch(&mut out, messages, b"host", &PRODUCER, 0x0102, is_packed).unwrap();
        out.split_off(3)
    }

    #[test]
    fn each_byte_has_its_place() {
        let found = batch(false);
        let head = "0000000000000000 00000050 ffffffff 02 SSSSSSSS 0000 00000001 0000000000000102 0000000000000102 \
                    0000000000000007 0001 00000028 00000002";
        let records = "22 00 00 00 08686f7374 0e7b2261223a317d 00 \
                       18 00 00 02 08686f7374 047b7d 00";
        let sum: String = found[SUM_AT..CHECKED_AT].iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = format!("{head}{records}").replace(' ', "").replace("SSSSSSSS", &sum);
        let text: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, expected);
        assert_eq!(crc32c(&found[CHECKED_AT..]).to_be_bytes(), found[SUM_AT..CHECKED_AT]);
    }

    #[test]
    fn packed_records_are_the_same() {
        let (plain, packed) = (batch(false), batch(true));
        assert_eq!(packed[CHECKED_AT..CHECKED_AT + 2], [0, 1]);
        let at = CHECKED_AT + 40;
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&packed[at..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain[at..]);
    }
}
