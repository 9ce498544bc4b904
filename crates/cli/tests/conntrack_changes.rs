//! Compares the changes that `netwren conntrack` makes with those by the installed conntrack in an identical table:
//! output, exit code and the table afterwards.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod conntrack_side_by_side;

use conntrack_side_by_side::{OLD, comparable, difference, furnish, furnished, ours, run, text, theirs};
use testkit::netns::Lab;
use testkit::{mask, require_root, require_tool, tool};

/// Two identical tables, one for each program.
struct Twins(Lab, Lab);

impl Twins {
    fn new(purpose: &str) -> Twins {
        Twins(furnished(purpose), furnished(purpose))
    }

    /// Runs the command line with both programs, each in its own newly filled table.
    #[track_caller]
    fn same(&self, before: &[&str], line: &str) {
        for lab in [&self.0, &self.1] {
            assert!(run(theirs(lab, "-F")).status.success());
            furnish(lab);
        }
        let (a, b) = (run(theirs(&self.0, line)), run(ours(&self.1, before, line)));
        let told = (comparable(&a, true), comparable(&b, true));
        assert!(told.0 == told.1, "conntrack {line} {before:?}: {}", difference(&told.0, &told.1));
        let tables = (table(&self.0), table(&self.1));
        assert!(tables.0 == tables.1, "after conntrack {line} {before:?}: {}", difference(&tables.0, &tables.1));
    }
}

/// The table as listed by the installed tool.
fn table(lab: &Lab) -> String {
    let output = run(theirs(lab, "-L -o extended"));
    mask::sorted_lines(&mask::conntrack_twins(&text(&output.stdout)))
}

/// Command lines on which both programs agree, with and without `--bug-compatible`.
const CHANGES: &[&str] = &[
    "-D",
    "-D -p udp",
    "-D -s 192.0.2.1 -p tcp -o extended,id",
    "-D -s 192.0.2.2 -p tcp -o xml",
    "-D -f ipv6",
    "-D -s 192.0.2.0/30",
    "-D -w 5",
    "-D -m 3",
    "-D -u ASSURED",
    "-D -p tcp -n",
    "-D -p tcp -g 198.51.100.2",
    "-D -p tcp --state CLOSE",
    "-D -p icmp --icmp-id 77",
    "-D -s 9.9.9.9",
    "-D -i 5",
    "-F",
    "-F expect",
    "-U -p udp -s 192.0.2.2 -m 9",
    "-U -p tcp -s 192.0.2.2 -t 5000",
    "-U -p tcp -s 192.0.2.2 -u SEEN_REPLY,ASSURED",
    "-U -p tcp -s 192.0.2.2 --state CLOSE -o extended,id",
    "-U -p tcp --sport 1000 -s 192.0.2.1 -m 0x0e/0x0f -o id",
    "-U -p tcp --sport 1000 -s 192.0.2.1 -m 0x31",
    "-U -p icmp -s 192.0.2.1 --icmp-type 8 -t 777",
    "-U -s 9.9.9.9 -m 1",
    "-I -p udp -s 192.0.2.77 -d 192.0.2.78 --sport 5 --dport 6 -t 50",
    "--create -p udp --orig-src 192.0.2.77 --orig-dst 192.0.2.78 --sport 5 --dport 6 --timeout 50",
    "-I -p udp -r 192.0.2.77 -q 192.0.2.78 --reply-port-src 5 --reply-port-dst 6 -t 50",
    "-I -p udp -s 192.0.2.77 -d 192.0.2.78 --sport 5 --dport 6 -t 50 -r 192.0.2.78 -q 192.0.2.77 --reply-port-src 6 \
     --reply-port-dst 5",
    "-I -p udp -s 192.0.2.77 -d 192.0.2.78 --sport 5 --dport 6 -t 50 -w 7",
    "-I -p udp -s 192.0.2.77 -d 192.0.2.78 --sport 5 --dport 6 -t 50 --orig-zone 7",
    "-I -p udp -s 192.0.2.77 -d 192.0.2.78 --sport 5 --dport 6 -t 50 --reply-zone 7",
    "-I -p udp -s 192.0.2.77 -d 192.0.2.78 --sport 5 --dport 6 -t 50 -u ASSURED,SEEN_REPLY -m 0x10",
    "-I -p udp -s 192.0.2.77 -d 192.0.2.78 --sport 5 --dport 6 -t 50 -u FIXED_TIMEOUT",
    "-I -p udp -s 192.0.2.77 -d 192.0.2.78 --sport 5 --dport 6 -t 50 -n 203.0.113.5:99",
    "-I -p udp -s 192.0.2.77 -d 192.0.2.78 --sport 5 --dport 6 -t 50 -g 198.51.100.5:99 -n 203.0.113.5",
    "-I -p udp -s 2001:db8::77 -d 2001:db8::78 --sport 5 --dport 6 -t 50 -g 2001:db8::79",
    "-I -p udp -s 2001:db8::77 -d 2001:db8::78 --sport 5 --dport 6 -t 50 -g [2001:db8::79]:77",
    "-I -p tcp -s 192.0.2.77 -d 192.0.2.78 --sport 5 --dport 6 -t 50 --state TIME_WAIT",
    "-I -p icmp -s 192.0.2.77 -d 192.0.2.78 --icmp-type 8 --icmp-code 0 --icmp-id 5 -t 50",
    "-I -p icmp -s 192.0.2.77 -d 192.0.2.78 --icmp-type 13 --icmp-code 0 -t 50",
    "-I -p icmp -s 192.0.2.77 -d 192.0.2.78 --icmp-type 5 --icmp-code 0 -t 50",
    "-I -p icmpv6 -s 2001:db8::77 -d 2001:db8::78 --icmpv6-type 128 --icmpv6-code 0 --icmpv6-id 5 -t 50",
    "-I -p sctp -s 192.0.2.77 -d 192.0.2.78 --sport 5 --dport 6 -t 50 --state ESTABLISHED --orig-vtag 1 --reply-vtag 2",
    "-I -p gre -s 192.0.2.77 -d 192.0.2.78 --srckey 0x5 --dstkey 6 -t 50",
    "-I -p esp -s 192.0.2.77 -d 192.0.2.78 -t 50",
    "-I -p esp -s 192.0.2.77 -d 192.0.2.78 -r 192.0.2.78 -q 192.0.2.77 -t 50",
    "-I -p udp -s 192.0.2.77 -d 192.0.2.78 --sport 70000 --dport 6 -t 50",
    "-I -p udp -s 192.0.2.2 -d 192.0.2.53 --sport 5001 --dport 53 -t 50",
    "-A -p udp -s 192.0.2.77 -d 192.0.2.78 --sport 5 --dport 6 -t 50",
    "-I expect -p udp -s 9.9.9.9 -d 8.8.8.8 --sport 1 --dport 2 -t 5 --tuple-src 1.1.1.1 --tuple-dst 2.2.2.2 \
     --mask-src 255.255.255.255 --mask-dst 255.255.255.255 --tuple-port-src 1 --tuple-port-dst 2 --mask-port-src 1 \
     --mask-port-dst 1",
];

#[test]
fn root_changes() {
    require_root!();
    require_tool!("conntrack");
    let twins = Twins::new("cttwins");
    for (n, line) in CHANGES.iter().enumerate() {
        // Each mode takes time, so the lines alternate between the two.
        twins.same(if n % 2 == 0 { &[] } else { OLD }, line);
    }
    // In 1.4.8 an existing entry counts as added.
    if tool::version("conntrack") == Some(tool::Version(1, 4, 7)) {
        twins.same(&[], "-A -p udp -s 192.0.2.2 -d 192.0.2.53 --sport 5001 --dport 53 -t 50");
    }
}

/// Known defects of the tool.
#[test]
fn root_changes_with_known_defects() {
    require_root!();
    require_tool!("conntrack");
    let twins = Twins::new("ctolddefects");
    for line in [
        "-F -f ipv6",
        "-D -u !ASSURED",
        "-D -t 5",
        "-D -p gre --srckey 6",
        "-D -g",
        "-D -s 192.0.2.1 -p tcp -o save",
        "-U -p gre -s 192.0.2.1 -m 5 -o save",
        "-I -p udp -s 192.0.2.77 -d 192.0.2.78 --sport 5 --dport 6 -t 50 -r 192.0.2.78 -q 192.0.2.77",
    ] {
        twins.same(OLD, line);
    }
}

fn counted(lab: &Lab, line: &str) -> String {
    let output = run(ours(lab, &[], line));
    let said = text(&output.stderr);
    said.rsplit(": ").next().unwrap_or_default().trim_end().to_owned()
}

#[test]
fn root_right_where_the_tool_is_wrong() {
    require_root!();
    let lab = furnished("ctmended");
    // The kernel refuses the tool's request without a family and in a zone.
    assert_eq!(counted(&lab, "-U -p udp -m 5"), "3 flow entries have been updated.");
    assert_eq!(counted(&lab, "-U -p udp -m 5"), "0 flow entries have been updated.");
    assert_eq!(counted(&lab, "-U -n 203.0.113.2 -m 7"), "1 flow entries have been updated.");
    assert_eq!(counted(&lab, "-D -t 5"), "0 flow entries have been deleted.");
    assert_eq!(counted(&lab, "-D -p gre --srckey 6"), "0 flow entries have been deleted.");
    assert_eq!(counted(&lab, "-D -u !SEEN_REPLY,!ASSURED -p udp"), "1 flow entries have been deleted.");
    assert_eq!(counted(&lab, "-D -p icmp -g"), "0 flow entries have been deleted.");
    assert_eq!(counted(&lab, "-D -p icmp -n"), "1 flow entries have been deleted.");
    // The tool's request empties both families.
    let shown = |family: &str| text(&run(ours(&lab, &[], &format!("-L -f {family}"))).stdout).lines().count();
    let v4 = shown("ipv4");
    assert!(v4 > 0 && shown("ipv6") > 0);
    assert!(run(ours(&lab, &[], "-F -f ipv6")).status.success());
    assert_eq!((shown("ipv4"), shown("ipv6")), (v4, 0));
    // An incomplete reply tuple is completed.
    let half = "-I -p udp -s 192.0.2.77 -d 192.0.2.78 --sport 5 --dport 6 -t 50 -r 192.0.2.78 -q 192.0.2.77";
    assert_eq!(counted(&lab, half), "1 flow entries have been created.");
}

/// A file of commands written by either program can be loaded by either.
#[test]
fn root_saved_and_loaded() {
    require_root!();
    require_tool!("conntrack");
    let from = furnished("ctsaved");
    // A helper cannot be set by a switch; a label can be set but is not saved.
    run(theirs(&from, "-D -p tcp --dport 21"));
    let saved = run(theirs(&from, "-L -o save"));
    let twins = (Lab::new("ctloada"), Lab::new("ctloadb"));
    let file = from.dir().join("saved");
    let comments = "# a comment\n\n   # another\n";
    std::fs::write(&file, [comments.as_bytes(), &saved.stdout].concat()).unwrap();
    let load = format!("-R {}", file.display());
    let (a, b) = (run(theirs(&twins.0, &load)), run(ours(&twins.1, OLD, &load)));
    assert_eq!(comparable(&a, true), comparable(&b, true));
    assert_eq!(table(&twins.0), table(&twins.1));
    // Ours also saves marks and the ports of translated addresses.
    let saved = run(ours(&from, &[], "-L -o save"));
    std::fs::write(&file, &saved.stdout).unwrap();
    let third = Lab::new("ctloadc");
    let loaded = run(ours(&third, &[], &load));
    assert_eq!(loaded.status.code(), Some(0), "{}", text(&loaded.stderr));
    let (before, after) = (table(&from), table(&third));
    assert!(before == after, "{}", difference(&before, &after));
    assert!(after.contains("mark=49") && after.contains("src=198.51.100.2 dst=192.0.2.1 sport=8080 dport=1001"));
}

#[test]
fn root_files_of_commands() {
    require_root!();
    require_tool!("conntrack");
    let twins = (furnished("ctfilesa"), furnished("ctfilesb"));
    let file = twins.0.dir().join("commands");
    for text in [
        "-F\n",
        "-D -s 192.0.2.1\n-U -s 192.0.2.2 -p udp -m 8 -f ipv4\n",
        "-A -p udp -s 1.1.1.1 -d 2.2.2.2 --sport 1 --dport 2 -t \"50\"\n  -A -p udp -s 1.1.1.1 -d 2.2.2.2 --sport 1 \
         --dport 2 -t 50",
        "-I -p udp -s 1.1.1.1 -d 2.2.2.2 --sport 1 --dport 2 -t 50\n",
        "-D -s 9.9.9.9\n",
        "-F\n-L\n",
        "-F\n-G -p esp -s 1.1.1.1 -d 2.2.2.2\n",
        "-C\n",
        "-S expect\n",
        "-L expect\n",
        "-s 1.1.1.1\n",
        "-D -x\n",
        "-V\n",
        "-h\n",
        "-E\n",
        "nothing\n",
        "-A -p foo\n",
    ] {
        std::fs::write(&file, text).unwrap();
        let load = format!("--load-file {}", file.display());
        let (a, b) = (run(theirs(&twins.0, &load)), run(ours(&twins.1, OLD, &load)));
        assert_eq!(comparable(&a, true), comparable(&b, true), "{text}");
        assert_eq!(table(&twins.0), table(&twins.1), "after {text}");
    }
    for line in ["-R", "-R /nothing/there", "--load-file", "-L -R x", "-R -"] {
        let (a, b) = (run(theirs(&twins.0, line)), run(ours(&twins.1, OLD, line)));
        assert_eq!(comparable(&a, true), comparable(&b, true), "{line}");
    }
}
