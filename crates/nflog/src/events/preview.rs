//! Shows the records of a batch before they are handed out.
use netlink::Messages;
use netlink::datagrams::DatagramFrames;
use record::rows::LogRecord;

use crate::events::netlink::record::{decode_into, is_record, read_packet};

/// Gets every record of a batch before the first is handed out, so that look-ups for many records can be combined.
pub trait Preview {
    /// A record of a group that is followed.
    fn record(&self, record: &LogRecord<'_>);

    /// The end of a batch that had records, of any group. A replay calls it for the same batches as the recorded run
    /// did.
    fn end(&self);
}

/// Shows the records in `block` to `preview`, which decodes each of them once more.
pub(crate) fn show(block: &[u8], groups: &[u16], preview: &dyn Preview) {
    let mut has_records = false;
    for frame in DatagramFrames::new(block).map_while(Result::ok) {
        for message in Messages::new(frame.bytes).map_while(Result::ok).filter(is_record) {
            let (netns_id, received_ns) = (frame.netns_id, frame.wall_ns);
            let mut row = LogRecord { time_ns: received_ns, netns_id, received_ns, ..LogRecord::default() };
            if decode_into(message.payload, &mut row, &mut 0).is_ok() {
                has_records = true;
                read_packet(&mut row);
                if groups.contains(&row.group) {
                    preview.record(&row);
                }
            }
        }
    }
    if has_records {
        preview.end();
    }
}
