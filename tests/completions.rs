//! Completions in real shells on a terminal: the test types text and TAB and checks the resulting line.

use crate::namespaces::ContainerGroup;
use crate::run::{clean, command};
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::netns::Lab;
use testkit::program;
use testkit::sandbox::Limit;
use testkit::screen::{Grid, Screen};

#[derive(Clone, Copy, PartialEq)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

const SHELLS: [(Shell, &str); 3] = [(Shell::Bash, "bash"), (Shell::Zsh, "zsh"), (Shell::Fish, "fish")];

/// A shell with netwren's completions. Its folder contains a file that must not be completed as a name.
struct Typist {
    screen: Screen,
    _folder: tempfile::TempDir,
}

/// A folder with the program and a home directory for shells.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(program::netwren(), bin.join("netwren")).unwrap();
    std::fs::write(folder.path().join("state-file"), "").unwrap();
    std::fs::write(folder.path().join("tape.nw"), "").unwrap();
    (folder, bin)
}

impl Typist {
    fn start(shell: Shell, mut command: Command) -> Typist {
        let (folder, bin) = folder();
        let scripts = program::workspace().join("docs/completions");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        clean(&mut command).env("PATH", path).env("HOME", folder.path()).env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
        command.current_dir(folder.path()).env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME");
        let setup = setup(shell, &scripts);
        let start = folder.path().join("setup");
        std::fs::write(&start, setup).unwrap();
        match shell {
            Shell::Bash => command.arg("--noprofile").arg("--rcfile").arg(&start).arg("-i"),
            Shell::Zsh => command.args(["-f", "-i"]),
            Shell::Fish => command.args(["--no-config", "-i", "-C"]).arg(format!("source {}", start.display())),
        };
        let screen = Screen::start(command, 300, 110);
        if shell == Shell::Zsh {
            screen.wait("a first prompt", |grid| !grid.text().is_empty());
            screen.type_text(&format!("source {}\n", start.display()));
        }
        let typist = Typist { screen, _folder: folder };
        typist.screen.wait("a prompt", is_empty_line);
        typist
    }

    /// Types the text and TAB, waits until the line has become `expected`, and clears it.
    #[track_caller]
    fn completes(&self, typed: &str, expected: &str) {
        self.screen.type_text(&format!("{typed}\t"));
        self.screen.wait(&format!("`{typed}` becomes `{expected}`"), |grid| line(grid).trim_end() == expected);
        self.give_up();
    }

    /// Types the text, presses TAB twice, and waits until all proposals are listed.
    #[track_caller]
    fn lists(&self, typed: &str, words: &[&str], lacks: &[&str]) {
        self.screen.type_text(&format!("{typed}\t\t"));
        let has = |grid: &Grid, word: &str| {
            let text = grid.text();
            text.split_whitespace().any(|one| one == word)
        };
        self.screen.wait(&format!("`{typed}` lists {words:?}"), |grid| words.iter().all(|word| has(grid, word)));
        for word in lacks {
            assert!(!has(&self.screen.grid(), word), "{word}\n{}", self.screen.grid().text());
        }
        self.give_up();
    }

    fn give_up(&self) {
        // Ctrl-U and Ctrl-L wait for a completion that is still running; Ctrl-C would interrupt it.
        self.screen.type_text("\x15\x0c");
        self.screen.wait("an empty screen", |grid| grid.text() == ">" && is_empty_line(grid));
    }
}

/// The commands that load the completions.
fn setup(shell: Shell, scripts: &Path) -> String {
    let scripts = scripts.display();
    match shell {
        Shell::Bash => format!(
            "PS1='> '; bind 'set bell-style none'; bind 'set page-completions off'; \
             bind 'set completion-query-items 0'; bind 'set enable-bracketed-paste off'\n\
             source {scripts}/netwren.bash\n"
        ),
        Shell::Zsh => format!(
            "PS1='> '; PROMPT_SP=; unsetopt prompt_sp prompt_cr beep; unset zle_bracketed_paste; LISTMAX=9999\n\
             autoload -U compinit; compinit -D -u; source {scripts}/_netwren; clear\n"
        ),
        Shell::Fish => format!(
            "function fish_prompt; echo -n '> '; end\nfunction fish_right_prompt; end\nset -g fish_greeting\n\
             set -g fish_autosuggestion_enabled 0\nsource {scripts}/netwren.fish\n"
        ),
    }
}

/// The text after the prompt in the cursor's line.
fn line(grid: &Grid) -> String {
    grid.line(grid.cursor().0).strip_prefix('>').unwrap_or_default().trim_start().to_owned()
}

fn is_empty_line(grid: &Grid) -> bool {
    grid.line(grid.cursor().0) == ">" && grid.cursor().1 == 2
}

#[test]
fn replay_issue_15_shells_complete_commands_fields_and_values() {
    for (shell, name) in SHELLS {
        testkit::require_tool!(name);
        let typist = Typist::start(shell, Command::new(name));
        for (typed, line) in [
            ("netwren sock", "netwren sockets"),
            ("netwren nat adv", "netwren nat advise"),
            ("netwren sockets --expl", "netwren sockets --explain"),
            ("netwren sockets -o js", "netwren sockets -o json"),
            ("netwren sockets --output=js", "netwren sockets --output=json"),
            ("netwren sockets local_po", "netwren sockets local_port"),
            ("netwren sockets state = estab", "netwren sockets state = established"),
            ("netwren sockets state=estab", "netwren sockets state=established"),
            ("netwren sockets --columns state,local_po", "netwren sockets --columns state,local_port"),
            ("netwren sockets --columns=state,local_po", "netwren sockets --columns=state,local_port"),
            ("netwren sockets -c +local_po", "netwren sockets -c +local_port"),
            ("netwren sockets --by local_po", "netwren sockets --by local_port"),
            ("netwren sockets --sort bytes_in:d", "netwren sockets --sort bytes_in:desc"),
            ("netwren sockets --replay tape", "netwren sockets --replay tape.nw"),
            ("netwren ss --mem", "netwren ss --memory"),
        ] {
            typist.completes(typed, line);
        }
        // Inside quotes; some shells close them.
        typist.screen.type_text("netwren sockets 'state = listen and local_po\t");
        typist.screen.wait("a field in quotes", |grid| {
            line(grid).trim_end_matches([' ', '\'']) == "netwren sockets 'state = listen and local_port"
        });
        typist.give_up();
        // A file with that name exists.
        typist.completes("netwren sockets sta", "netwren sockets state");
        typist.lists("netwren ss -", &["--tcp", "--processes"], &["state-file"]);
        typist.lists("netwren ", &["sockets", "flows", "ss"], &["complete", "state-file"]);
    }
}

#[test]
fn root_issue_15_hostile_names_of_namespaces_are_quoted_and_never_run() {
    testkit::require_root!();
    for (shell, name) in SHELLS {
        testkit::require_tool!(name);
        let lab = Lab::new(&format!("compl{name}"));
        // Names as ip-netns(8) stores them; the tmpfs is visible to this test only.
        let script = "mount -t tmpfs none /run/netns && touch \"$1\" && exec \"${@:2}\"";
        let mut command = Command::new("unshare");
        let hostile = "/run/netns/evil$(touch hacked);`touch hacked`";
        command.args(["--mount", "bash", "-c", script, "bash", hostile, name]);
        let typist = Typist::start(shell, command);
        let folder = typist._folder.path().to_owned();
        typist.screen.type_text("netwren sockets --netns ev\t");
        typist.screen.wait("the name, quoted", |grid| line(grid).contains("evil\\$\\(touch\\ hacked\\)"));
        typist.give_up();
        assert!(!folder.join("hacked").exists(), "{name} has run a name");
        drop(lab);
    }
}

/// Two Docker containers with their state files; both names are proposed wherever a container name is expected.
#[test]
fn root_issue_15_containers_are_proposed_by_their_names() {
    testkit::require_root!();
    let lab = Lab::new("complcont");
    let groups = [0, 1].map(|_| ContainerGroup::of(lab.spawn("sleep", &["600"])));
    let [Some(first), Some(second)] = &groups else { return };
    let state = lab.dir().join("lib");
    let name = format!("nwcompl{}", std::process::id());
    first.call(&state, &name);
    second.call(&state, &format!("{name}; touch hacked"));
    let cover = Limit::Cover { with: state, place: "/var/lib".into() };
    for words in [&["--container", "nwcompl"][..], &["container", "=", "nwcompl"], &["--container=nwcompl"]] {
        let mut asking = command(&["complete", "--", "sockets"]);
        testkit::sandbox::confine(asking.args(words), std::slice::from_ref(&cover)).unwrap();
        let answer = String::from_utf8(asking.output().unwrap().stdout).unwrap();
        // The name is completed as one word.
        let name_in = |line| str::trim_start_matches(line, "--container=").trim_end_matches('\t');
        let proposed: Vec<&str> = answer.lines().skip(1).map(name_in).collect();
        assert!(proposed.contains(&name.as_str()), "{words:?}: {answer}");
        // A name that would need quotes inside a filter is not proposed.
        let has_other = proposed.contains(&format!("{name}; touch hacked").as_str());
        assert_eq!(has_other, !words.contains(&"="), "{words:?}: {answer}");
    }
}

#[test]
fn replay_issue_15_an_answer_costs_no_look_at_the_host() {
    let answer = command(&["complete", "--", "sockets", "state", "=", "lis"]).output().unwrap();
    assert_eq!((answer.stdout.as_slice(), answer.stderr.as_slice()), (&b"words\nlisten\t\n"[..], &b""[..]));
    assert!(command(&["complete"]).output().unwrap().stdout.is_empty());
}
