//! `capture --by`: a flood from random addresses does not exhaust memory and does not hide genuine senders.

use crate::capture::{command, rings};
use crate::going::Going;
use std::net::{Ipv4Addr, UdpSocket};
use testkit::netns::Lab;

const PORT: u16 = 7300;
/// Number of senders with one packet each, and number of packets of the genuine sender.
const SENDERS: u32 = 200_000;
const GENUINE: u32 = 4_000;

#[test]
fn root_a_flood_of_senders_is_bounded_and_hides_no_group() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("capgroups");
    lab.nft(&format!(
        "table inet t {{\n chain i {{ type filter hook input priority 0\n udp dport {PORT} drop\n }}\n }}"
    ));
    let filter = format!("udp dst port {PORT}");
    let words =
        ["-i", "lo", "--by", "src,sport", "--sum", "len", "--buffer", "256MiB", "-o", "json", "--stats", &filter];
    let going: Going<String> = Going::spawn(command(&lab, &words), |line| line);
    testkit::wait_until("the ring is there", || rings(&lab) == 1);
    lab.run_inside(|| {
        let from = |at: u32| UdpSocket::bind((Ipv4Addr::from(0x7f10_0000 + at), 4000)).unwrap();
        let to = (Ipv4Addr::LOCALHOST, PORT);
        let mut genuine = None;
        for sender in 0..SENDERS {
            from(1 + sender).send_to(b"0123456789", to).unwrap();
            // The genuine sender starts when the flood has filled all groups.
            if sender >= SENDERS / 2 && sender % (SENDERS / 2 / GENUINE) == 0 {
                let socket = genuine.get_or_insert_with(|| UdpSocket::bind((Ipv4Addr::new(127, 9, 9, 9), 99)).unwrap());
                socket.send_to(b"0123456789", to).unwrap();
            }
        }
    });
    let (lines, ran) = going.end();
    let all = SENDERS + GENUINE;
    assert!(ran.stderr.contains(&format!("{all} packets received, 0 dropped by the ring")), "{}", ran.stderr);
    let mut groups: Vec<serde_json::Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let accounting = groups.pop().unwrap();
    assert!(groups.len() <= 65_537, "{} groups", groups.len());
    let number = |group: &serde_json::Value, key: &str| group[key].as_u64().unwrap();
    let sum = |key| groups.iter().map(|group| number(group, key)).sum::<u64>();
    assert_eq!((sum("count"), sum("sum_len")), (u64::from(all), u64::from(all) * 52), "every packet is in a line");
    // The remaining senders come first, then the largest sender.
    assert!(groups[0]["src"].is_null() && groups[0]["sport"].is_null(), "{}", groups[0]);
    assert_eq!((groups[1]["src"].as_str(), groups[1]["sport"].as_u64()), (Some("127.9.9.9"), Some(99)));
    let shown = number(&groups[1], "count");
    assert!(shown <= u64::from(GENUINE) && shown + 8 >= u64::from(GENUINE), "{shown}");
    let why = &accounting["accounting"]["why"][0];
    assert!(why["text"].as_str().unwrap().contains("in the row without keys"), "{accounting}");
    assert_eq!(why["count"], groups[0]["count"]);
    ran.says(3, &["small groups are counted together, in the row without keys"]);
}
