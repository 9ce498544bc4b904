//! Runs every example of the program, from each `--help` and from [`DOCUMENTS`]. The man pages contain the same
//! examples as the help. Nothing outside the lab is changed, and `--yes` is left out.

use crate::lab::furnished;
use crate::run::{clean, netwren, side_by_side};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testkit::netns::Lab;

/// All commands with their help, from the top down: the words after `netwren`.
pub(crate) fn helps() -> Vec<(Vec<String>, String)> {
    let (mut found, mut left) = (Vec::new(), vec![Vec::<String>::new()]);
    while let Some(path) = left.pop() {
        let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
        args.push("--help");
        let help = netwren(&args).ok();
        for name in below(&help) {
            left.push([&path[..], &[name]].concat());
        }
        found.push((path, help));
    }
    found
}

/// The names listed under `Commands:` in a help text.
fn below(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
}

/// The commands of a line: the parts that begin with the program's name, separated by `;` or by the blanks of a
/// column. Quoted text is kept together, and `#` begins a comment.
fn commands(line: &str) -> Vec<String> {
    let (mut pieces, mut quote) = (vec![String::new()], None);
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == '#' => break,
            None if c == ';' || line[at..].starts_with("  ") => {
                pieces.push(String::new());
                continue;
            }
            None => {}
        }
        pieces.last_mut().unwrap().push(c);
    }
    let trimmed = pieces.iter().map(|piece| piece.trim());
    trimmed.filter(|piece| *piece == "netwren" || piece.starts_with("netwren ")).map(str::to_owned).collect()
}

/// The examples of a help text or a man page.
fn examples(text: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| *line != "Examples:").skip(1);
    lines.take_while(|line| line.starts_with("  ")).flat_map(commands).collect()
}

/// Documents with their headings that are followed by a block of commands.
const DOCUMENTS: &[(&str, &str)] =
    &[("README.md", "## Use"), ("README.md", "## Filters"), ("docs/cookbook.md", "## More commands")];

/// The commands in the code block below a heading of a document.
fn of_document(path: &str, heading: &str) -> Vec<String> {
    let text = std::fs::read_to_string(testkit::program::workspace().join(path)).unwrap();
    let block = text.lines().skip_while(|line| *line != heading).skip_while(|line| *line != "```").skip(1);
    block.take_while(|line| *line != "```").flat_map(commands).collect()
}

/// The commands of [`DOCUMENTS`]; checks that each document has some.
fn of_documents() -> impl Iterator<Item = String> {
    DOCUMENTS.iter().flat_map(|(path, heading)| {
        let found = of_document(path, heading);
        assert!(found.len() >= 5, "{path}: {heading}: {found:?}");
        found
    })
}

#[test]
fn issue_10_lines_become_commands() {
    assert_eq!(commands("  netwren nat top                 who; what"), ["netwren nat top"]);
    assert_eq!(commands("netwren   # all"), ["netwren"]);
    assert_eq!(
        commands("netwren a 'x;  #y' | jq .z; netwren b   netwren c -n"),
        ["netwren a 'x;  #y' | jq .z", "netwren b", "netwren c -n"]
    );
}

/// Both are generated from the same text; this finds pages that were not regenerated.
#[test]
fn issue_10_man_pages_have_the_examples_of_the_help() {
    let man = testkit::program::workspace().join("docs/man");
    let mut pages = 0;
    for (path, help) in helps() {
        let name = ["netwren"].into_iter().chain(path.iter().map(String::as_str)).collect::<Vec<_>>().join("-");
        let page = std::fs::read_to_string(man.join(format!("{name}.1"))).unwrap_or_else(|e| panic!("{name}: {e}"));
        let page = page.replace("\\-", "-").replace("\\*(Aq", "'").replace("\\&", "").replace("\\\\", "\\");
        assert_eq!(examples(&page), examples(&help), "{name}");
        pages += 1;
    }
    let filters = std::fs::read_to_string(man.join("netwren-filters.7")).unwrap();
    assert!(filters.contains("netwren sockets (aqaccept_q > accept_q_max(aq".replace("(aq", "\\(aq").as_str()));
    let others = std::fs::read_dir(man).unwrap().count() - 1;
    assert_eq!(others, pages, "a page without a command, or the other way round");
}

/// A folder with the programs that the documents call by name.
fn with_program(lab: &Lab) -> std::path::PathBuf {
    let bin = lab.dir().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(testkit::program::netwren(), bin.join("netwren")).unwrap();
    if !testkit::tool::is_installed("jq") {
        // This replacement of jq accepts any arguments and reads everything.
        testkit::program::install_script(&bin.join("jq"), "#!/bin/sh\nexec cat\n");
    }
    bin
}

/// True if the command runs until it is interrupted. A replay ends with its recording, and printing a filter ends at
/// once.
fn is_endless(line: &str) -> bool {
    let ending = [
        "--replay",
        "netwren capture --for",
        "capture -r ",
        "capture -d ",
        "capture latency",
        "capture stats ",
        "capture cut ",
        "capture merge ",
        "netwren drops",
    ];
    if ending.iter().any(|words| line.contains(words)) {
        return false;
    }
    let streams = ["netwren nat events", "netwren log -", "netwren log tail", "netwren capture", "netwren agent /"];
    line.contains("--watch") || line.contains("--follow") || streams.iter().any(|words| line.starts_with(words))
}

/// True if its rows are not shown.
fn is_shipped(line: &str) -> bool {
    [" --to ", " --config ", "netwren agent "].iter().any(|words| line.contains(words))
}

/// Removes the parts of a line that change the system, and shortens its duration.
fn harmless(line: &str) -> String {
    let line = line
        .replace(" --yes", "")
        .replace("--interval 1", "--interval 0.1")
        .replace(":/var/log/", ":")
        .replace("/etc/netwren/log.toml", "log.toml")
        .replace("/etc/netwren/agent.toml", "agent.toml")
        .replace(" && systemctl reload netwren-log", "")
        .replace(" && systemctl restart netwren-agent", "")
        .replace(" /run/", " ");
    if line == "netwren agent status" {
        return format!("{line} --control netwren.sock");
    }
    let Some((before, length)) = line.split_once("--for ") else {
        // Without `--for` these last ten seconds, or until they are interrupted.
        let lasting = ["netwren log top", "netwren drops", "netwren record"];
        let lasts = lasting.iter().any(|words| line.starts_with(words)) && !line.contains("--once");
        return if lasts { format!("{line} --for 0.2s") } else { line };
    };
    let after = length.split_once(' ').map_or("", |(_, after)| after);
    format!("{before}--for 0.2s {after}").trim_end().to_owned()
}

/// True for messages about data that is missing because of the machine: other processes and namespaces start and end,
/// and may not be readable.
fn is_of_others(line: &str) -> bool {
    // `ip netns exec` mounts another /sys, so the runtime of a container's cgroup is unknown.
    let words = [
        "owners",
        "network namespace",
        "namespaces could not be read",
        "outside this PID namespace",
        "not read via BPF",
        "while they were read",
        "while it was read",
        "not accessible here",
        // `drops --via counters` says which data counters lack.
        "packets are not counted",
        // Other tests flood their namespaces.
        "in an interrupt while another packet was counted",
        // The machine or the hypervisor was busy.
        "a sample was not taken",
        // The agent is ended within the first five minutes of `doctor --watch=300`.
        "nothing was compared",
        // The receivers of examples do not exist.
        "not delivered when the run ended",
        "rows are queued until it is available",
    ];
    words.iter().any(|words| line.contains(words))
}

/// A command with its child processes; they are killed if the test fails.
struct Running(Child);

impl Running {
    fn signal(&self, name: &str) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args([name, "--", &group]).stderr(Stdio::null()).status();
    }
}

impl Running {
    /// True once it has started its outputs, which write nothing by themselves.
    fn ships(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.0.id())).into_iter().flatten().flatten();
        let mut names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        names.any(|name| name.starts_with("netwren-ship"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.signal("-KILL");
            let _ = self.0.wait();
        }
    }
}

fn run(lab: &Lab, bin: &Path, place: usize, line: &str) {
    let (out, err) = (lab.dir().join(format!("{place}.out")), lab.dir().join(format!("{place}.err")));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = lab.command("bash");
    let command: &mut Command = clean(&mut command);
    let harmless = harmless(line);
    command.args(["-o", "pipefail", "-c", &harmless]).env("PATH", path).current_dir(lab.dir());
    command.stdin(Stdio::null()).process_group(0);
    let child = command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap()).spawn().unwrap();
    let said = |file: &Path| String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
    let mut running = Running(child);
    if is_endless(line) {
        let (mut ended, mut flows) = (None, 0);
        testkit::wait_until(&format!("something of `{line}`"), || {
            // Create an event, because without a heading nothing is written before the first one.
            lab.new_udp_flows(flows, 1);
            flows += 1;
            ended = running.0.try_wait().unwrap();
            ended.is_some() || !said(&out).is_empty() || is_shipped(line) && running.ships()
        });
        assert!(ended.is_none(), "`{line}` ended by itself: {}", said(&err));
        running.signal("-INT");
    }
    let (code, said) = (running.0.wait().unwrap().code(), said(&err));
    let is_partial = code == Some(3) && said.lines().any(is_of_others);
    let is_built_without = matches!(code, Some(3 | 4)) && said.contains("netwren was built without BPF");
    assert!(matches!(code, Some(0 | 1)) || is_partial || is_built_without, "`{line}` ended with {code:?}: {said}");
    assert!(!said.contains("Usage:") && !said.contains("error:"), "`{line}`: {said}");
}

/// Each example exits with 0, or with 1 if nothing matches and `--exit-code` is given.
#[test]
fn root_issue_10_every_example_runs() {
    testkit::require_root!();
    let lab = furnished("examples");
    lab.use_conntrack();
    lab.track(testkit::conntrack::mixed_entries(50));
    lab.nft("table inet logged { chain o { type filter hook output priority 0; meta l4proto udp log group 1; }; }");
    let bin = with_program(&lab);
    let filters = netwren(&["help", "filters"]).ok();
    assert!(examples(&filters).len() >= 10, "{filters}");
    let of_helps = helps().into_iter().flat_map(|(_, help)| examples(&help)).chain(examples(&filters));
    let mut seen = BTreeSet::new();
    let all: Vec<String> = of_documents().chain(of_helps).filter(|line| seen.insert(line.clone())).collect();
    assert!(all.len() > 60, "{all:#?}");
    std::fs::write(lab.dir().join("log.toml"), crate::service::documented(lab.dir())).unwrap();
    std::fs::write(lab.dir().join("agent.toml"), crate::agent::documented(lab.dir())).unwrap();
    std::fs::write(lab.dir().join("dump.pcap"), crate::capture_read::pcap_of(&[b"\0"])).unwrap();
    // A running instance for the examples that query its status.
    let socket = lab.dir().join("netwren.sock");
    let mut shipping = lab.command(testkit::program::netwren());
    let args = ["log", "--group", "7", "--to", "json:asked", "--control", "netwren.sock"];
    let shipping = clean(&mut shipping).args(args).current_dir(lab.dir()).stderr(Stdio::null());
    let _shipping = Running(shipping.process_group(0).spawn().unwrap());
    lab.wait_until("it can be asked", || socket.exists());
    let run = |(place, line): (usize, &String)| {
        let begun = std::time::Instant::now();
        run(&lab, &bin, place, line);
        eprintln!("{:5} ms  {line}", begun.elapsed().as_millis());
    };
    // Recordings are made before they are read.
    let (recorders, others): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|(_, line)| line.contains("record"));
    recorders.into_iter().for_each(run);
    // The examples of one command run in order, because two of them may not bind the same log group or write the same
    // file at the same time.
    let mut by_command = BTreeMap::<&str, Vec<_>>::new();
    for (place, line) in others {
        by_command.entry(line.split(' ').nth(1).unwrap_or_default()).or_default().push((place, line));
    }
    let mut by_command: Vec<_> = by_command.into_values().collect();
    by_command.sort_by_key(|lines| Reverse(lines.len()));
    side_by_side(by_command, |lines| lines.into_iter().for_each(run));
}
