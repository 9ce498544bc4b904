//! Tests of the files below packaging/kubernetes and packaging/ansible: other tools accept them, netwren accepts their
//! command lines and configurations, and runs with the capabilities that they grant.
//!
//! kubernetes-validate and ansible-lint are Python programs, which `./netwren.sh test` installs below target/tools.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::root;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;
use testkit::netns::Lab;

/// The overlays, each with the ones below it.
const OVERLAYS: &[&[&str]] = &[&["base"], &["base", "owners"], &["base", "owners", "full"]];

/// The oldest, a middle and the newest of the versions whose schemas kubernetes-validate contains.
const KUBERNETES: [&str; 3] = ["1.32", "1.35", "1.37"];

/// The only folder of the pod to which netwren writes.
const STATE: &str = "/var/lib/netwren";

/// A log group that the tests bind in every namespace.
const GROUP_OF_ALL: u16 = 47_124;

/// The folder with the Python programs of `./netwren.sh test`.
fn python_tools() -> PathBuf {
    // The path of this program is TARGET/PROFILE/deps/NAME.
    let program = std::env::current_exe().unwrap();
    program.ancestors().nth(3).unwrap().join("tools/python/bin")
}

/// A Python program from target/tools, or else from PATH. `None` after a message that the test is skipped.
#[track_caller]
fn python_tool(name: &str) -> Option<PathBuf> {
    let own = python_tools().join(name);
    if own.is_file() {
        return Some(own);
    }
    if let Some(found) = testkit::tool::find(name) {
        return Some(found);
    }
    let place = std::panic::Location::caller();
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| value == "1");
    let may_lack = !is_set("NETWREN_REQUIRE_TOOLS") || is_set("NETWREN_WITHOUT_PYTHON_TOOLS");
    assert!(may_lack, "NETWREN_REQUIRE_TOOLS=1, but {name} is not installed ({place})");
    testkit::print_loud(&format!("skipped: {place} needs {name}"));
    None
}

/// The stdout of a command that must succeed.
#[track_caller]
fn output(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(status.success(), "{command:?}: {status}\n{stdout}{stderr}");
    stdout
}

fn folder(overlay: &str) -> PathBuf {
    root::path().join("packaging/kubernetes").join(overlay)
}

/// The documents of a YAML file. `None` without PyYAML, after a message.
#[track_caller]
fn documents(path: &Path) -> Option<Vec<Value>> {
    const SCRIPT: &str = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    python_tool("kubernetes-validate")?;
    let own = python_tools().join("python3");
    let python = if own.is_file() { own } else { PathBuf::from("python3") };
    let text = output(Command::new(python).args(["-c", SCRIPT]).arg(path));
    Some(serde_json::from_str(&text).unwrap())
}

/// Applies a strategic merge patch: objects are merged, as are lists of named objects; other lists are replaced.
fn merge(into: &mut Value, patch: Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(patch)) if patch.iter().all(|item| item["name"].is_string()) => {
            for item in patch {
                match into.iter_mut().find(|old| old["name"] == item["name"]) {
                    Some(old) => merge(old, item),
                    None => into.push(item),
                }
            }
        }
        (into, patch) => *into = patch,
    }
}

/// The DaemonSet of the last overlay.
#[track_caller]
fn daemon_set(overlays: &[&str]) -> Option<Value> {
    let mut merged = Value::Null;
    for overlay in overlays {
        let documents = documents(&folder(overlay).join("daemonset.yaml"))?;
        assert_eq!(documents.len(), 1, "{overlay}");
        documents.into_iter().for_each(|patch| merge(&mut merged, patch));
    }
    Some(merged)
}

/// The only container of a DaemonSet.
fn container(daemon_set: &Value) -> &Value {
    let containers = daemon_set["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 1);
    &containers[0]
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

/// The capabilities that a DaemonSet adds, without `CAP_`.
fn capabilities(daemon_set: &Value) -> BTreeSet<String> {
    let added = strings(&container(daemon_set)["securityContext"]["capabilities"]["add"]);
    added.into_iter().map(str::to_owned).collect()
}

/// Everything that an overlay creates, written to a file for kubernetes-validate.
fn written(overlays: &[&str], into: &Path) -> Option<PathBuf> {
    let overlay = overlays.last().unwrap();
    let log_toml = std::fs::read_to_string(folder(overlay).join("log.toml")).unwrap();
    let config = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "netwren-log", "namespace": "netwren" },
        "data": { "log.toml": log_toml },
    });
    let mut all = documents(&folder("base").join("namespace.yaml"))?;
    all.extend([config, daemon_set(overlays)?]);
    let path = into.join(format!("{overlay}.yaml"));
    // JSON is YAML.
    let text = all.iter().map(|document| format!("---\n{document}\n")).collect::<String>();
    std::fs::write(&path, text).unwrap();
    Some(path)
}

#[test]
fn kubernetes_accepts_every_manifest() {
    let Some(validate) = python_tool("kubernetes-validate") else { return };
    let dir = TempDir::new().unwrap();
    let files: Vec<PathBuf> = OVERLAYS.iter().map(|overlays| written(overlays, dir.path()).unwrap()).collect();
    for version in KUBERNETES {
        let mut command = Command::new(&validate);
        let said = output(command.args(["--strict", "--kubernetes-version", version]).args(&files));
        assert_eq!(said.matches("passed for resource").count(), 3 * OVERLAYS.len(), "{said}");
    }
    // A misspelled key is an error, so the test above means something.
    let wrong = std::fs::read_to_string(&files[1]).unwrap().replace("hostPID", "hostPid");
    std::fs::write(&files[1], wrong).unwrap();
    let out = Command::new(&validate).arg("--strict").arg(&files[1]).output().unwrap();
    assert!(!out.status.success());
}

/// kustomize, which is part of kubectl, gives the DaemonSet that the other tests look at.
#[test]
fn kustomize_gives_the_same_daemon_set() {
    // kubectl before 1.27 does not name its kustomize, which lacks `patches`.
    let version = Command::new("kubectl").args(["version", "--client"]).output();
    if !version.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("Kustomize Version")) {
        testkit::print_loud("skipped: no kubectl from 1.27 on is installed, so no kustomization.yaml is tried");
        return;
    }
    let dir = TempDir::new().unwrap();
    for overlays in OVERLAYS {
        let overlay = overlays.last().unwrap();
        let path = dir.path().join(overlay);
        std::fs::write(&path, output(Command::new("kubectl").arg("kustomize").arg(folder(overlay)))).unwrap();
        let (Some(rendered), Some(mut expected)) = (documents(&path), daemon_set(overlays)) else { return };
        let kind = |kind: &str| rendered.iter().find(|document| document["kind"] == kind).unwrap().clone();
        let (config, mut rendered) = (kind("ConfigMap"), kind("DaemonSet"));
        let log_toml = std::fs::read_to_string(folder(overlay).join("log.toml")).unwrap();
        assert_eq!(config["data"]["log.toml"], log_toml.as_str());
        let name = config["metadata"]["name"].as_str().unwrap().to_owned();
        assert!(name.starts_with("netwren-log-"), "{name}");
        // kustomize replaces the image and the name of the ConfigMap.
        let image = format!("netwren:{}", env!("CARGO_PKG_VERSION"));
        let replaced = json!({ "spec": { "template": { "spec": {
            "containers": [{ "name": "netwren", "image": image }],
            "volumes": [{ "name": "config", "configMap": { "name": name } }],
        } } } });
        merge(&mut expected, replaced);
        for daemon_set in [&mut expected, &mut rendered] {
            sort_lists(daemon_set);
        }
        assert_eq!(rendered, expected, "{overlay}");
    }
}

/// kustomize puts new items of a list first.
fn sort_lists(value: &mut Value) {
    match value {
        Value::Array(list) => {
            list.iter_mut().for_each(sort_lists);
            list.sort_by_key(ToString::to_string);
        }
        Value::Object(object) => object.values_mut().for_each(sort_lists),
        _ => {}
    }
}

/// The capabilities of each overlay in docs/deploying.md: rows `| NAME | overlays | what it buys |`.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root::path().join("docs/deploying.md")).unwrap();
    let mut of_overlays: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [capability, overlays, buys] = cells[..] else { continue };
        let name = capability.trim_matches('`');
        if name == capability || name.is_empty() || name.contains(|c: char| !c.is_ascii_uppercase() && c != '_') {
            continue;
        }
        assert!(buys.len() > 20, "{line}");
        for overlay in overlays.split(',').map(str::trim).filter(|overlay| *overlay != "–") {
            of_overlays.entry(overlay.to_owned()).or_default().insert(name.to_owned());
        }
    }
    of_overlays
}

#[test]
fn every_capability_has_a_reason() {
    let mut of_overlays = BTreeMap::new();
    for overlays in OVERLAYS {
        let Some(daemon_set) = daemon_set(overlays) else { return };
        of_overlays.insert((*overlays.last().unwrap()).to_owned(), capabilities(&daemon_set));
    }
    assert_eq!(of_overlays, documented());
}

/// The pod can write to one folder only, cannot gain rights, and has no account at the API server.
#[test]
fn the_pod_has_few_rights() {
    for overlays in OVERLAYS {
        let Some(daemon_set) = daemon_set(overlays) else { return };
        let pod = &daemon_set["spec"]["template"]["spec"];
        let container = container(&daemon_set);
        let security = &container["securityContext"];
        assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
        assert_eq!(security["allowPrivilegeEscalation"], false);
        assert_eq!(security["readOnlyRootFilesystem"], true);
        assert_eq!(security["privileged"], Value::Null);
        assert_eq!(pod["automountServiceAccountToken"], false);
        // The default profile suffices as long as the pod sees its own processes only.
        let is_default = security["seccompProfile"]["type"] == "RuntimeDefault";
        assert_eq!(is_default, pod["hostPID"] == Value::Null);
        let mounts = container["volumeMounts"].as_array().unwrap();
        let writable = mounts.iter().filter(|mount| mount["readOnly"] != true);
        assert_eq!(writable.map(|mount| &mount["mountPath"]).collect::<Vec<_>>(), [STATE]);
    }
}

/// The log.toml of an overlay with this group, in `dir`, which also takes the place of the pod's folder.
fn config_in(dir: &Path, overlay: &str, group: u16) -> PathBuf {
    let text = std::fs::read_to_string(folder(overlay).join("log.toml")).unwrap();
    assert!(text.contains("\ngroup = 100\n") && text.contains(STATE));
    let text = text.replace("\ngroup = 100\n", &format!("\ngroup = {group}\n"));
    let text = text.replace(STATE, &dir.display().to_string());
    let path = dir.join("log.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// A command line of the pod, without the program, for a run outside a pod.
fn outside(words: &Value, dir: &Path) -> Vec<String> {
    let dir = dir.display().to_string();
    let words = strings(words).into_iter().filter(|word| *word != "/usr/bin/netwren");
    words.map(|word| word.replace("/etc/netwren", &dir).replace(STATE, &dir)).collect()
}

#[test]
fn netwren_accepts_the_pods_command_lines() {
    for overlays in OVERLAYS {
        let overlay = overlays.last().unwrap();
        let dir = TempDir::new().unwrap();
        let config = config_in(dir.path(), overlay, 100);
        let netwren = || Command::new(testkit::program::netwren());
        let said = output(netwren().args(["log", "check"]).arg(&config));
        let control = dir.path().join("log.sock");
        assert!(said.contains(&format!("answers at {}", control.display())), "{said}");
        let Some(daemon_set) = daemon_set(overlays) else { return };
        let container = container(&daemon_set);
        assert_eq!(container["command"], json!(["/usr/bin/netwren"]));
        output(netwren().args(outside(&container["args"], dir.path())).arg("--explain"));
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            let command = outside(&container[probe]["exec"]["command"], dir.path());
            let out = netwren().args(command).output().unwrap();
            let says = String::from_utf8_lossy(&out.stderr);
            assert!(says.starts_with(&format!("netwren: cannot connect to {}", control.display())), "{says}");
            assert_eq!(out.status.code(), Some(4));
        }
    }
}

/// netwren as a pod starts it: as root with some capabilities, and none to gain.
fn with_capabilities(lab: &Lab, held: &BTreeSet<String>, args: &[String]) -> Command {
    let held = held.iter().map(|name| format!(",+{}", name.to_lowercase())).collect::<String>();
    let mut command = lab.command("setpriv");
    command.args(["--no-new-privs", "--inh-caps=-all", &format!("--bounding-set=-all{held}")]);
    command.arg(testkit::program::netwren()).args(args);
    command
}

/// A run that is killed if the test fails.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Run {
    /// Ends it with SIGTERM, as the kubelet does, and returns what it printed.
    fn end(mut self) -> String {
        let pid = self.0.id().to_string();
        output(Command::new("kill").args(["-TERM", &pid]));
        let mut text = String::new();
        std::io::Read::read_to_string(&mut self.0.stdout.take().unwrap(), &mut text).unwrap();
        let code = self.0.wait().unwrap().code();
        // 3: owners were not visible.
        assert!(matches!(code, Some(0 | 3)), "{code:?}");
        text
    }
}

/// A namespace whose packets to port 7009 are logged.
fn logging(purpose: &str, group: u16) -> Lab {
    let lab = Lab::new(purpose);
    lab.nft(&format!(
        "table inet t {{ chain o {{ type filter hook output priority 0
           udp dport 7009 log prefix \"seen\" group {group}
         }}
         }}"
    ));
    lab
}

/// With its capabilities, each overlay ships a record, answers the probes, and shows what the overlay is for.
/// `shows_owner` is false if no process may be visible, which shows that the other overlays need their capabilities.
fn ships_and_answers(overlays: &[&str], shows_owner: bool) {
    let overlay = *overlays.last().unwrap();
    let Some(daemon_set) = daemon_set(overlays) else { return };
    let reads_all = overlay == "full";
    let group = if reads_all { GROUP_OF_ALL } else { 100 };
    let lab = logging("pod", group);
    let config = config_in(lab.dir(), overlay, group);
    let text = std::fs::read_to_string(&config).unwrap();
    if !text.contains("\ncolumns") {
        std::fs::write(&config, text + "columns = [\"+process\"]\n").unwrap();
    }
    let other = reads_all.then(|| logging("otherpod", group));
    let (held, container) = (capabilities(&daemon_set), container(&daemon_set));
    let mut command = with_capabilities(&lab, &held, &outside(&container["args"], lab.dir()));
    let run = Run(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let probe = outside(&container["livenessProbe"]["exec"]["command"], lab.dir());
    let mut probed = String::new();
    let mut probe = || {
        let out = with_capabilities(&lab, &held, &probe).output().unwrap();
        probed = String::from_utf8_lossy(&out.stdout).into_owned();
        out.status.success()
    };
    testkit::wait_until("the probe succeeds", &mut probe);
    // A namespace that was just made may not be found yet, so packets are sent until one is seen.
    let socket = other.as_ref().unwrap_or(&lab).run_inside(|| UdpSocket::bind("127.0.0.1:0").unwrap());
    testkit::wait_until("a record", || {
        socket.send_to(b"x", "127.0.0.1:7009").unwrap();
        let out = with_capabilities(&lab, &held, &status_json(&lab)).output().unwrap();
        let status: Value = serde_json::from_slice(&out.stdout).unwrap();
        status["outputs"][0]["delivered"].as_u64().is_some_and(|delivered| delivered > 0)
    });
    let text = run.end();
    let row: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(row["prefix"], "seen");
    assert_eq!(row["process"].is_string(), shows_owner, "{overlay}: {row}");
    if let Some(other) = other {
        assert_eq!(row["netns"], other.name());
    }
}

fn status_json(lab: &Lab) -> Vec<String> {
    let control = lab.dir().join("log.sock").display().to_string();
    ["log", "status", "-o", "json", "--control", &control].map(str::to_owned).to_vec()
}

#[test]
fn root_a_pod_logs_with_the_capabilities_of_its_overlay() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("setpriv");
    for (overlays, shows_owner) in OVERLAYS.iter().zip([false, true, true]) {
        ships_and_answers(overlays, shows_owner);
    }
}

/// A command of Ansible, which writes only below `home`.
fn ansible(program: &Path, home: &Path) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = program.parent().unwrap().to_owned();
    let path = std::env::join_paths(std::iter::once(first).chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new(program);
    command.env("PATH", path).env("HOME", home).env("LC_ALL", "C.UTF-8").current_dir(home);
    command
}

/// A copy of packaging/ansible, because ansible-lint writes a cache into the folder that it reads.
fn ansible_copy() -> TempDir {
    let dir = TempDir::new().unwrap();
    let from = root::path().join("packaging/ansible/.");
    output(Command::new("cp").arg("-r").arg(from).arg(dir.path()));
    dir
}

#[test]
fn ansible_lint_accepts_the_role() {
    let Some(lint) = python_tool("ansible-lint") else { return };
    let dir = ansible_copy();
    output(ansible(&lint, dir.path()).args(["--offline", "--strict", "--nocolor", "."]));
}

/// The role's template with its defaults is a configuration.
#[test]
fn the_role_writes_a_configuration() {
    let Some(program) = python_tool("ansible") else { return };
    let dir = ansible_copy();
    let role = dir.path().join("roles/netwren");
    let config = dir.path().join("log.toml");
    let args = format!("src={}/templates/log.toml.j2 dest={} mode=0644", role.display(), config.display());
    let mut command = ansible(&program, dir.path());
    command.args(["localhost", "--connection", "local", "--module-name", "ansible.builtin.template", "--args", &args]);
    output(command.arg("--extra-vars").arg(format!("@{}/defaults/main.yml", role.display())));
    let text = std::fs::read_to_string(&config).unwrap();
    for folder in ["/var/log/netwren", STATE, "/run/netwren"] {
        assert!(text.contains(folder), "{text}");
    }
    let dir = dir.path().display().to_string();
    let text = text.replace("/var/log/netwren", &dir).replace(STATE, &dir).replace("/run/netwren", &dir);
    std::fs::write(&config, text).unwrap();
    let said = output(Command::new(testkit::program::netwren()).args(["log", "check"]).arg(&config));
    assert!(said.starts_with("listens to group 100:"), "{said}");
}
