//! `log tail` and `log top` show records to people who watch.

use crate::going::Going;
use crate::log::{send, to_five};
use crate::run::{Ran, clean};
use std::process::Command;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// A namespace whose UDP packets to ports 7009 and 7010 are logged to group 5 with hostile prefixes, and dropped.
fn logging(purpose: &str) -> Lab {
    let lab = Lab::new(purpose);
    lab.nft(
        "table inet t { chain o { type filter hook output priority 0
           udp dport 7009 counter log prefix \"nine: \" group 5 drop comment \"no tea\"
           udp dport 7010 counter log prefix \"a\u{1b}[31m\" group 5 drop comment \"\u{202e}x\u{7f}\"
         }
         }",
    );
    lab
}

fn command(lab: &Lab, args: &[&str]) -> Command {
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).arg("log").args(args).args(["--group", "5", "--latency", "10ms"]);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    command
}

fn wait_until_bound(lab: &Lab) {
    testkit::wait_until("the group is bound", || !lab.log_groups().is_empty());
}

#[test]
fn root_log_tail_says_it_in_words() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("logtail");
    let mut tail: Going<String> = Going::spawn(command(&lab, &["tail"]), |line| line);
    wait_until_bound(&lab);
    send(&lab, to_five(), 4);
    let to_ten = (std::net::Ipv4Addr::LOCALHOST, 7010).into();
    send(&lab, to_ten, 1);
    tail.read_until("three lines", |lines| lines.len() >= 3);
    let (lines, ran) = tail.end();
    ran.ok();
    // Skip the local time.
    let words: Vec<&str> = lines.iter().map(|line| line.split_once(' ').unwrap().1).collect();
    assert!(words[0].starts_with("out 127.0.0.1 → 127.0.0.1:7009 udp dropped by \"nine: \" (inet t o #"), "{words:?}");
    assert!(words[0].ends_with(" \"no tea\")"), "{words:?}");
    assert_eq!(words[1], "repeated ×3");
    assert!(words[2].contains("dropped by \"a\\x1b[31m\" (inet t o #"), "{words:?}");
    assert!(words[2].ends_with(" \"\\u{202e}x\\x7f\")"), "{words:?}");
    assert_eq!(words.len(), 3);
}

#[test]
fn root_log_tail_has_colour_only_where_it_is_asked_for() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("logcolour");
    for (args, is_coloured) in [(&["tail"][..], false), (&["tail", "--color", "always"], true)] {
        let mut tail: Going<String> = Going::spawn(command(&lab, args), |line| line);
        wait_until_bound(&lab);
        send(&lab, to_five(), 1);
        lab.wait_until("a line", || {
            tail.take();
            !tail.read.is_empty()
        });
        let (lines, _) = tail.end();
        assert_eq!(lines[0].contains("\u{1b}[31m"), is_coloured, "{lines:?}");
    }
}

#[test]
fn root_log_top_counts_records() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("logtop");
    let mut top = command(&lab, &["top", "--by", "rule_comment,src,dport", "--sum", "len", "--for", "60", "-H"]);
    top.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = top.spawn().unwrap();
    wait_until_bound(&lab);
    send(&lab, to_five(), 7);
    let to_ten = (std::net::Ipv4Addr::LOCALHOST, 7010).into();
    send(&lab, to_ten, 2);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.ok(), "no tea\t127.0.0.1\t7009\t7\t266\n\\u{202e}x\\x7f\t127.0.0.1\t7010\t2\t76\n");
}
