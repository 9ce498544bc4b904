//! Lines of /proc/net/packet (net/packet/af_packet.c, packet_seq_show) and /proc/net/netlink
//! (net/netlink/af_netlink.c, netlink_native_seq_show).
//!
//! ```text
//! sk               RefCnt Type Proto  Iface R Rmem   User   Inode
//! 0000000011111111 3      3    0003   2     1 0      0      12345
//! sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode
//! 0000000022222222 0   1234       00000011 0        0        0     2        0        12346
//! ```
use netlink::DecodeError;
use record::rows::{FamilyExtras, PacketPart, PacketType, Socket};

use crate::backends::netlink::netlink_diag::{self, put_groups};
use crate::backends::netlink::packet_diag;
use crate::backends::proc::line::Words;

/// Decodes one line of /proc/net/packet, without its newline, with the additional fields of packet sockets in `extras`.
///
/// The file lacks rings, fanout, memberships, filters and cookies: see [`crate::PROC_LACKS_PACKET`].
pub fn parse_proc_packet_line<'b>(
    line: &'b [u8],
    netns_id: u64,
    extras: &'b mut FamilyExtras<'b>,
) -> Result<Socket<'b>, DecodeError> {
    let mut words = Words::new(line);
    words.word("sk")?;
    words.decimal("RefCnt")?;
    let kind = PacketType(convert_number(words.decimal("Type")?, "Type")?);
    let ethertype = convert_number(words.hex("Proto")?, "Proto")?;
    let ifindex = convert_number(words.decimal("Iface")?, "Iface")?;
    let running = words.decimal("R")?;
    let rqueue = convert_number(words.decimal("Rmem")?, "Rmem")?;
    let uid = convert_number(words.decimal("User")?, "User")?;
    let inode = convert_number(words.decimal("Inode")?, "Inode")?;
    let part = PacketPart { flags: Some(u32::from(running != 0)), ..PacketPart::new(kind, ethertype) };
    *extras = FamilyExtras { packet: Some(part), ..FamilyExtras::EMPTY };
    let row = packet_diag::empty_socket();
    Ok(Socket { ifindex, rqueue, wqueue: Some(0), uid: Some(uid), inode, netns_id, extras: Some(extras), ..row })
}

/// Decodes one line of /proc/net/netlink, without its newline, with the additional fields of netlink sockets in
/// `extras` and its groups as words in `text`. The file only shows the first 32 groups.
pub fn parse_proc_netlink_line<'b>(
    line: &'b [u8],
    netns_id: u64,
    extras: &'b mut FamilyExtras<'b>,
    text: &'b mut Vec<u8>,
) -> Result<Socket<'b>, DecodeError> {
    let mut words = Words::new(line);
    words.word("sk")?;
    let protocol = convert_number(words.decimal("Eth")?, "Eth")?;
    let portid = convert_number(words.decimal("Pid")?, "Pid")?;
    let groups: u32 = convert_number(words.hex("Groups")?, "Groups")?;
    let rqueue = convert_number(words.decimal("Rmem")?, "Rmem")?;
    let wqueue = convert_number(words.decimal("Wmem")?, "Wmem")?;
    let dump = words.decimal("Dump")?;
    words.decimal("Locks")?;
    let drops = convert_number(words.decimal("Drops")?, "Drops")?;
    let inode = convert_number(words.decimal("Inode")?, "Inode")?;
    let bitmap = usize::try_from(groups).unwrap_or(0).to_ne_bytes();
    put_groups(text, &bitmap);
    let part = netlink_diag::empty_part(protocol, portid);
    let part =
        record::rows::NetlinkPart { groups_text: text, flags: Some(u32::from(dump != 0)), drops: Some(drops), ..part };
    *extras = FamilyExtras { netlink: Some(part), ..FamilyExtras::EMPTY };
    let row = netlink_diag::empty_socket();
    Ok(Socket { rqueue, wqueue: Some(wqueue), inode, netns_id, extras: Some(extras), ..row })
}

fn convert_number<N: TryFrom<u64>>(number: u64, column: &'static str) -> Result<N, DecodeError> {
    N::try_from(number).map_err(|_| DecodeError::Word(column))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_as_the_kernel_writes_them() {
        let mut extras = FamilyExtras::default();
        let line = b"00000000c0ffee00 3      10   0800   2     1 832    1000   12345 ";
        let row = parse_proc_packet_line(line, 7, &mut extras).unwrap();
        assert_eq!((row.ifindex, row.rqueue, row.uid, row.inode, row.netns_id), (2, 832, Some(1000), 12345, 7));
        let part = row.extras.unwrap().packet.unwrap();
        assert_eq!((part.kind.name(), part.ethertype, part.flags), ("packet", 0x800, Some(1)));
        let (mut extras, mut text) = (FamilyExtras::default(), Vec::new());
        let line = b"00000000c0ffee00 15  4294963120 00000003 64       0        0     2        5        777";
        let row = parse_proc_netlink_line(line, 7, &mut extras, &mut text).unwrap();
        assert_eq!((row.rqueue, row.wqueue, row.inode, row.uid), (64, Some(0), 777, None));
        let part = row.extras.unwrap().netlink.unwrap();
        assert_eq!((part.protocol.name(), part.portid, part.drops), ("kobject_uevent", 4_294_963_120, Some(5)));
        assert_eq!(part.groups_text, b"1,2");
    }

    #[test]
    fn what_is_no_line() {
        for (line, column) in [
            ("", "sk"),
            ("sk RefCnt Type", "RefCnt"),
            ("0 3 300 0003 2 1 0 0 1", "Type"),
            ("0 3 3 10003 2 1 0 0 1", "Proto"),
            ("0 3 3 0003 2 1 0 0", "Inode"),
        ] {
            let mut extras = FamilyExtras::default();
            let error = parse_proc_packet_line(line.as_bytes(), 0, &mut extras).unwrap_err();
            assert_eq!(error, DecodeError::Word(column), "{line}");
        }
        for (line, column) in [("0 256 0 0 0 0 0 0 0 0", "Eth"), ("0 0 0 g 0 0 0 0 0 0", "Groups"), ("0 0 0", "Groups")]
        {
            let (mut extras, mut text) = (FamilyExtras::default(), Vec::new());
            let error = parse_proc_netlink_line(line.as_bytes(), 0, &mut extras, &mut text).unwrap_err();
            assert_eq!(error, DecodeError::Word(column), "{line}");
        }
    }
}
