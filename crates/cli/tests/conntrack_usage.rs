//! Command lines that `netwren conntrack` rejects, and its help: text, streams and exit codes as in the installed
//! tool. None of them reads a table.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use testkit::{mask, program, require_tool, tool};

fn output(command: &mut Command, line: &str) -> Output {
    let words = line.split(' ').filter(|word| !word.is_empty()).map(|word| if word == "''" { "" } else { word });
    command.args(words).env("LC_ALL", "C").env_remove("NETWREN_BUG_COMPATIBLE").output().unwrap()
}

fn ours(line: &str) -> Output {
    output(Command::new(program::netwren()).arg("conntrack"), line)
}

fn text(bytes: &[u8]) -> String {
    mask::conntrack(&String::from_utf8_lossy(bytes))
}

fn same(line: &str) {
    same_as(line, &ours(line));
}

fn same_as(line: &str, ours: &Output) {
    // The tool prints the name that it was called with.
    let theirs = output(Command::new(tool::find("conntrack").unwrap()).arg0("conntrack"), line);
    let both = [&theirs, ours].map(|output| (text(&output.stdout), text(&output.stderr)));
    assert_eq!(both[0], both[1], "conntrack {line}");
    assert_eq!(theirs.status.code(), ours.status.code(), "conntrack {line}");
}

#[test]
fn help() {
    require_tool!("conntrack");
    // 1.4.8 corrected a word in it.
    let old = (tool::version("conntrack") == Some(tool::Version(1, 4, 7))).then_some("--bug-compatible");
    let same = |line: &str| {
        same_as(line, &output(Command::new(program::netwren()).arg("conntrack").args(old), line));
    };
    for line in ["", "-h", "--help", "-V", "--version"] {
        same(line);
    }
    for protocol in ["tcp", "udp", "udplite", "sctp", "dccp", "icmp", "icmpv6", "gre", "esp", "50", "253", "ipv6-icmp"]
    {
        same(&format!("-h -p {protocol}"));
    }
}

/// Rejected with exit code 2, or 1 if the tool does so.
const REFUSED: &[&str] = &[
    "-L foo",
    "-L -L",
    "-L -S",
    "-L -D",
    "-L -x",
    "-L -xz",
    "-xz",
    "-zx",
    "-Lx -x",
    "foo -xz",
    "-L --foo",
    "-L --z 1",
    "-L --sr 1.1.1.1",
    "-L --mask 1.1.1.1",
    "-L -s",
    "-L --src",
    "-L --zero=1",
    "-L -zs",
    "-L -s x",
    "-L -s 1.2.3.4.5",
    "-L -s 1.2.3.4/33",
    "-L -s 1.2.3.4/x",
    "-L -s 1.2.3.4/-1",
    "-L -s fd00::/129",
    "-L -s ''",
    "-L -r 1.2.3.4/8",
    "-L -q 1.2.3.4/8",
    "-L -n 1.2.3.4/8",
    "-L -g 1.2.3.4:",
    "-L -g 1.2.3.4:x",
    "-L -g 1.2.3.4:65536",
    "-L -g []:1",
    "-L -g [fd00::1",
    "-L -g :80",
    "-L -f ipv5",
    "-L -f ipv4 -s fd00::1",
    "-L -s 1.1.1.1 -d fd00::1",
    "-L -p foo",
    "-L -p 256",
    "-L -p -1",
    "-L -p ''",
    "-L -p tcp --state FOO",
    "-L -p tcp --state established",
    "-L -p tcp --state",
    "-L -p tcp --sport",
    "-L -p udp --state X",
    "-L -p tcp --srckey 1",
    "-L -p dccp --state FOO",
    "-L -p tcp --mask-port-src 5",
    "-L -p tcp --tuple-port-src 5",
    "-L -p sctp --orig-vtag 5",
    "-L --sport 5",
    "-L --state CLOSE",
    "-L -u FOO",
    "-L -u ,ASSURED",
    "-L -u ASSURED,",
    "-L -u !",
    "-L -o foo",
    "-L -o x,",
    "-L -o ''",
    "-L -o save,xml",
    "-L -o id -o save",
    "-E -e FOO",
    "-L -e NEW",
    "-L -t 5",
    "-L -b 5",
    "-L --label-add foo",
    "-L -j -n",
    "-L -j -g",
    "-L -z -s 1.1.1.1",
    "-L -z -m 1",
    "-L --mask-src 255.0.0.0",
    "-L --mask-dst 255.0.0.0 -s 1.1.1.1",
    "-L expect -s 1.1.1.1",
    "-L expect -p tcp",
    "-s 1.1.1.1",
    "-z",
    "-o xml",
    "-p tcp",
    "-G",
    "-G -p udp",
    "-G -p udp -s 1.1.1.1",
    "-G -p udp -r 1.1.1.1",
    "-G -p udp -s 1.1.1.1 -q 1.1.1.1",
    "-G -p udp -s 1.1.1.1 -d 2.2.2.2",
    "-G -p udp -s 1.1.1.1 -d 2.2.2.2 --sport 1",
    "-G -p udp -s 1.1.1.1 -d 2.2.2.2 --reply-port-src 1",
    "-G -p dccp -s 1.1.1.1 -d 2.2.2.2 --reply-port-src 1",
    "-G -p gre -s 1.1.1.1 -d 2.2.2.2 --srckey 1",
    "-G -p gre -s 1.1.1.1 -d 2.2.2.2 --reply-key-src 1",
    "-G -p icmp -s 1.1.1.1 -d 2.2.2.2",
    "-G -p icmp -s 1.1.1.1 -d 2.2.2.2 --icmp-type 8",
    "-G -f ipv4 -p esp -s 1.1.1.1 -d 2.2.2.2",
    "-C -s 1.1.1.1",
    "-S -p tcp",
    "-F -s 1.1.1.1",
    "-F dying",
    "-C unconfirmed",
    "-E dying",
    "-U expect",
    "-A expect",
    "-I",
    "-I -p udp",
    "-I -p udp -t 5",
    "-I -p udp -s 1.1.1.1 -d 2.2.2.2 -t 5",
    "-I -p udp -s 1.1.1.1 -d 2.2.2.2 --sport 5 --dport 6",
    "-I -p udp -s 1.1.1.0/24 -d 2.2.2.2 --sport 5 --dport 6 -t 5",
    "-I -p tcp -s 1.1.1.1 -d 2.2.2.2 --sport 5 --dport 6 -t 5",
    "-I -p sctp -s 1.1.1.1 -d 2.2.2.2 --sport 5 --dport 6 -t 5 --state CLOSED",
    "-I -p dccp -s 1.1.1.1 -d 2.2.2.2 --sport 5 --dport 6 -t 5 --state OPEN",
    "-I -p dccp -s 1.1.1.1 -d 2.2.2.2 -t 5 --state OPEN --role x",
    "-U -w 5",
    "-D -z",
    "-E -t 5",
    "-E expect -e NEW",
    "-E -u ASSURED",
    "-I expect",
    "-I expect -s 1.1.1.1",
    "-D expect -s 1.1.1.1 -d 2.2.2.2",
    "-h -s 1.1.1.1",
    "-V -o xml",
    "-R",
    "-R /nothing/there",
    "-U -l foo",
    "-L -l foo",
    "-U --label-add foo --label-del foo",
];

#[test]
fn refused() {
    require_tool!("conntrack");
    REFUSED.iter().for_each(|line| same(line));
}

/// The face works without the installed tool, because its texts are part of the program.
#[test]
fn without_the_tool() {
    let usage = ours("-h");
    assert_eq!(usage.status.code(), Some(0));
    let first = "Command line interface for the connection tracking system. Version 1.4.7\nUsage: conntrack [commands]";
    assert!(String::from_utf8_lossy(&usage.stdout).starts_with(first));
    assert_eq!(ours("-V").stdout, b"conntrack v1.4.7 (conntrack-tools)\n");
    let wrong = ours("-L --nothing");
    assert_eq!(wrong.status.code(), Some(2));
    let says = "conntrack v1.4.7 (conntrack-tools): unknown option `--nothing'\n\
                Try `conntrack -h' or 'conntrack --help' for more information.\n";
    assert_eq!(String::from_utf8_lossy(&wrong.stderr), says);
}

/// A link with the tool's name acts as the tool.
#[test]
fn by_a_link_of_that_name() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("conntrack");
    std::os::unix::fs::symlink(program::netwren(), &link).unwrap();
    let output = Command::new(&link).arg("-V").output().unwrap();
    assert_eq!(output.stdout, b"conntrack v1.4.7 (conntrack-tools)\n");
}
