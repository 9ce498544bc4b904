//! Twenty questions of operators, each with three commands that users of ss, netstat, conntrack and tcpdump would type
//! first. A guess is good if it works, or if the error suggests a command that works.

use crate::lab::furnished;
use crate::run::{Ran, clean, side_by_side};
use std::sync::Mutex;
use testkit::netns::Lab;

/// The questions with their guesses. The guesses were written before they were tried and must not be changed to fit.
const QUESTIONS: &[(&str, [&str; 3])] = &[
    ("who listens", ["listeners", "sockets listen", "sockets state=listen"]),
    ("who listens on port 8080", ["listeners port=8080", "sockets port 8080", "ss -ltnp sport = :8080"]),
    ("who talks to 10.1.2.3", ["sockets dst 10.1.2.3", "sockets peer=10.1.2.3", "flows host 10.1.2.3"]),
    ("who talks to the internet", ["flows", "flows 'not dst in 10.0.0.0/8'", "sockets 'peer not in 127.0.0.0/8'"]),
    ("top talkers", ["flows --sort bytes_out", "flows --sort connections", "flows --limit 10"]),
    (
        "CLOSE_WAIT by process",
        ["sockets state=close-wait --by process", "sockets --state close-wait", "sockets close-wait --by program"],
    ),
    ("whose accept queue is full", ["sockets 'accept_q > accept_q_max'", "listeners 'accept_q > 100'", "doctor"]),
    ("slow connections", ["sockets --sort rtt", "sockets 'rtt > 20ms'", "sockets -c +rtt"]),
    (
        "retransmits by peer",
        [
            "sockets --by peer --sum retrans_total",
            "sockets --by dst --sum retrans_total",
            "sockets --sort retrans_total",
        ],
    ),
    ("what does this process do", ["sockets --process nginx", "sockets --pid 1", "sockets process=nginx"]),
    (
        "what does this container do",
        ["sockets --container web", "flows --container web", "sockets container=web --all-netns"],
    ),
    ("who uses this unix socket", ["sockets path=/run/x", "sockets unix", "sockets --proto unix"]),
    ("how full is conntrack", ["nat stats", "nat advise", "doctor nat"]),
    ("who fills conntrack", ["nat top client", "nat --by src", "nat top src"]),
    ("entries of one client", ["nat src=10.1.2.3", "nat --client 10.1.2.3", "nat list -s 10.1.2.3"]),
    (
        "delete a client's entries",
        ["nat delete client=10.1.2.3", "nat delete --dry-run client=10.1.2.3", "nat delete --src 10.1.2.3"],
    ),
    ("what goes through NAT", ["nat", "nat --json", "nat 'dport=80'"]),
    ("what does the kernel drop", ["drops --for 0.2", "doctor drops", "counters --changed"]),
    (
        "packets of port 53",
        ["capture port 53 --for 0.1", "capture udp port 53 --for 0.1", "capture 'dport = 53' --for 0.1"],
    ),
    ("record and look later", ["record out.nwr", "sockets --record s.nwr", "--replay out.nwr"]),
];

/// The minimum number of good guesses out of sixty.
const GOOD_AT_LEAST: usize = 54;

fn ran(lab: &Lab, guess: &str) -> Ran {
    let mut command = lab.command("sh");
    let program = testkit::program::netwren();
    let line = format!("exec {} {guess}", program.display());
    clean(&mut command).args(["-c", &line]).current_dir(lab.dir());
    Ran::of(command.output().unwrap())
}

/// True if the command works. Missing owners and features that were not built do not count against the guess.
fn answers(ran: &Ran) -> bool {
    matches!(ran.code, 0 | 1 | 3) || ran.code == 4 && ran.stderr.contains("built without BPF")
}

/// The command suggested by an error.
fn proposed(stderr: &str) -> Option<String> {
    let of_line = |line: &str| line.strip_prefix("did you mean: netwren ").map(str::to_owned);
    let line = stderr.lines().find_map(of_line)?;
    let is_whole = !line.contains('…') && !line.contains("--help");
    is_whole.then_some(line)
}

#[test]
fn root_issue_15_first_guesses_answer_or_lead_there() {
    testkit::require_root!();
    let lab = furnished("guesses");
    lab.use_conntrack();
    let bad = Mutex::new(Vec::new());
    side_by_side(QUESTIONS, |(question, guesses)| {
        for guess in guesses {
            let begun = std::time::Instant::now();
            let first = ran(&lab, guess);
            let is_good = answers(&first) || proposed(&first.stderr).is_some_and(|line| answers(&ran(&lab, &line)));
            eprintln!("{:5} ms  {guess}", begun.elapsed().as_millis());
            if !is_good {
                let words = format!("{question}: netwren {guess}: exit code {}: {}", first.code, first.stderr);
                // The lock is held only for this call, which cannot panic.
                bad.lock().unwrap().push(words);
            }
        }
    });
    // The lock cannot be poisoned: if a guess had panicked, side_by_side would have panicked.
    let bad = bad.into_inner().unwrap();
    let all = QUESTIONS.len() * 3;
    assert_eq!(all, 60);
    eprintln!("{} of {all} first guesses are good\n{}", all - bad.len(), bad.join("\n"));
    assert!(all - bad.len() >= GOOD_AT_LEAST, "{} of {all}\n{}", all - bad.len(), bad.join("\n"));
}
