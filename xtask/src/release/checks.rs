//! Checks that the repository is ready for a release.

use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::Command;

const CHANGELOG: &str = "CHANGELOG.md";

/// Fails with all problems, each with its remedy.
pub(super) fn run(root: &Path, version: &str, workspace: &str, tags: bool) -> Result<()> {
    let mut problems = Vec::new();
    if version != workspace {
        problems.push(format!(
            "the workspace has version {workspace}: release that, or change `version` in Cargo.toml to \"{version}\", \
             run cargo build, and commit"
        ));
    }
    problems.extend(undated(&changelog(root)?, version));
    let changed = git(root, &["status", "--porcelain"])?;
    if !changed.is_empty() {
        let first: Vec<&str> = changed.lines().take(5).collect();
        problems.push(format!("the working tree is not clean: commit or remove {}", first.join(", ")));
    }
    problems.extend(used_tag(root, version, tags)?);
    ensure!(problems.is_empty(), "cannot release {version}:\n  - {}", problems.join("\n  - "));
    Ok(())
}

/// A tag of this name at another commit. A tag at this commit is fine unless it has to be made: so anybody can build a
/// published release again.
fn used_tag(root: &Path, version: &str, tags: bool) -> Result<Option<String>> {
    let tag = format!("v{version}");
    if git(root, &["tag", "--list", &tag])?.is_empty() {
        return Ok(None);
    }
    let at = git(root, &["rev-parse", &format!("{tag}^{{commit}}")])?;
    if at != git(root, &["rev-parse", "HEAD"])? {
        let remedy = format!("check out {tag}, or release a new version");
        return Ok(Some(format!("the tag {tag} exists at another commit: {remedy}")));
    }
    Ok(tags.then(|| format!("the tag {tag} exists: leave --tag out, or remove it: git tag -d {tag}")))
}

/// The top section of the changelog: the number of its heading's line, from 1, and the heading.
fn top(text: &str) -> Option<(usize, &str)> {
    (1..).zip(text.lines()).find(|(_, line)| line.starts_with("## "))
}

/// The problem if the top section is not a dated one of this version.
fn undated(text: &str, version: &str) -> Option<String> {
    let wanted = heading(version);
    let Some((number, line)) = top(text) else {
        return Some(format!("{CHANGELOG} has no section: add the line \"{wanted}\""));
    };
    if has_version(line, version) && words(line).any(is_date) {
        return None;
    }
    let place = format!("{CHANGELOG}:{number}: the top section is \"{line}\"");
    if is_unreleased(line, version) {
        let command = format!("cargo xtask release {version} --write");
        return Some(format!("{place}: change that line to \"{wanted}\", or run: {command}"));
    }
    Some(format!("{place}: add a section for {version} above it: \"{wanted}\""))
}

/// Dates the top section, or does nothing if it has a date.
pub(super) fn write_date(root: &Path, version: &str) -> Result<()> {
    let text = changelog(root)?;
    let Some(problem) = undated(&text, version) else { return Ok(()) };
    let Some((number, line)) = top(&text).filter(|(_, line)| is_unreleased(line, version)) else {
        bail!("{problem}");
    };
    let dated = text.replacen(&format!("{line}\n"), &format!("{}\n", heading(version)), 1);
    std::fs::write(root.join(CHANGELOG), dated)?;
    println!("release: wrote line {number} of {CHANGELOG}; next: git commit -m \"Release {version}\" {CHANGELOG}");
    Ok(())
}

fn changelog(root: &Path) -> Result<String> {
    std::fs::read_to_string(root.join(CHANGELOG)).context(CHANGELOG)
}

/// The heading that a section of this version gets today.
fn heading(version: &str) -> String {
    let today = format!("{:.0}", sys::clock::wall().rfc3339());
    format!("## {version} ({})", today.get(..10).unwrap_or_default())
}

fn words(heading: &str) -> impl Iterator<Item = &str> {
    heading.split(|c: char| c.is_whitespace() || "()[],".contains(c))
}

fn has_version(heading: &str, version: &str) -> bool {
    words(heading).any(|word| word.trim_start_matches('v') == version)
}

/// True for a section of this version, or of none, that awaits its release.
fn is_unreleased(heading: &str, version: &str) -> bool {
    let has_other = words(heading).any(|word| word.contains('.'));
    words(heading).any(|word| word.eq_ignore_ascii_case("unreleased")) && (has_version(heading, version) || !has_other)
}

/// True for a date such as 2026-12-24.
fn is_date(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    parts.iter().map(|part| part.len()).eq([4, 2, 2]) && parts.iter().all(is_number)
}

/// The command that makes the annotated tag, signed if there is a key.
pub(super) fn tag_command(version: &str, key: Option<&str>) -> Vec<String> {
    let kind = key.map_or_else(|| vec!["-a"], |key| vec!["-s", "-u", key]);
    let (tag, message) = (format!("v{version}"), format!("netwren {version}"));
    let command = ["git", "tag"].into_iter().chain(kind).chain([tag.as_str(), "-m", message.as_str()]);
    command.map(str::to_owned).collect()
}

/// A command for people to copy.
pub(super) fn shown(command: &[String]) -> String {
    let quoted = command.iter().map(|arg| if arg.contains(' ') { format!("'{arg}'") } else { arg.clone() });
    quoted.collect::<Vec<_>>().join(" ")
}

/// Runs git in the folder and returns what it printed, without the last line's end.
fn git(root: &Path, args: &[&str]) -> Result<String> {
    let out = Command::new("git").args(args).current_dir(root).output().context("cannot run git")?;
    ensure!(out.status.success(), "git {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr));
    Ok(String::from_utf8(out.stdout)?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// A repository with one commit.
    fn repository(changelog: &str) -> tempfile::TempDir {
        let folder = tempfile::TempDir::new().unwrap();
        std::fs::write(folder.path().join(CHANGELOG), changelog).unwrap();
        git(folder.path(), &["init", "--quiet"]).unwrap();
        commit(folder.path());
        folder
    }

    fn commit(root: &Path) {
        git(root, &["add", "."]).unwrap();
        let author = ["-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false"];
        git(root, &[&author[..], &["commit", "--quiet", "--allow-empty", "-m", "a"]].concat()).unwrap();
    }

    #[track_caller]
    fn refused(root: &Path, version: &str, tags: bool, why: &str) {
        let error = run(root, version, "0.1.0", tags).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn a_section_without_a_date_is_dated_on_request() {
        let folder = repository("# Changelog\n\n## 0.1.0 (unreleased)\n\nText.\n");
        let root = folder.path();
        refused(root, "0.1.0", false, "CHANGELOG.md:3: the top section is \"## 0.1.0 (unreleased)\": change that line");
        assert_eq!(git(root, &["status", "--porcelain"]).unwrap(), "");
        write_date(root, "0.1.0").unwrap();
        refused(root, "0.1.0", false, "the working tree is not clean: commit or remove  M CHANGELOG.md");
        commit(root);
        run(root, "0.1.0", "0.1.0", true).unwrap();
        let text = std::fs::read_to_string(root.join(CHANGELOG)).unwrap();
        assert!(text.starts_with("# Changelog\n\n## 0.1.0 (20") && text.ends_with(")\n\nText.\n"), "{text}");
        write_date(root, "0.1.0").unwrap();
        assert_eq!(std::fs::read_to_string(root.join(CHANGELOG)).unwrap(), text);
    }

    #[test]
    fn headings() {
        assert_eq!(undated("## 0.1.0 (2026-12-24)\n", "0.1.0"), None);
        assert_eq!(undated("## [v0.1.0] - 2026-12-24\n\n## 0.0.9\n", "0.1.0"), None);
        for (text, why) in [
            ("## Unreleased\n", "change that line to \"## 0.1.0 (20"),
            ("## 0.1.0\n", "add a section for 0.1.0"),
            ("## 0.2.0 (unreleased)\n", "add a section for 0.1.0 above it"),
            ("## 0.1.01 (2026-12-24)\n", "add a section for 0.1.0 above it"),
            ("# Changelog\n", "has no section"),
        ] {
            let problem = undated(text, "0.1.0").unwrap();
            assert!(problem.contains(why), "{problem}");
        }
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let folder = repository("## 0.1.0 (2026-12-24)\n");
        let root = folder.path();
        std::fs::write(root.join("new"), "").unwrap();
        let error = run(root, "0.2.0", "0.1.0", false).unwrap_err().to_string();
        let found = ["the workspace has version 0.1.0", "add a section for 0.2.0", "commit or remove ?? new"];
        assert!(found.iter().all(|problem| error.contains(problem)), "{error}");
    }

    #[test]
    fn a_used_tag_is_refused() {
        let folder = repository("## 0.1.0 (2026-12-24)\n");
        let root = folder.path();
        let tag = tag_command("0.1.0", None);
        assert_eq!(shown(&tag), "git tag -a v0.1.0 -m 'netwren 0.1.0'");
        let args: Vec<&str> = tag[1..].iter().map(String::as_str).collect();
        let author = ["-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "tag.gpgsign=false"];
        git(root, &[&author[..], &args].concat()).unwrap();
        run(root, "0.1.0", "0.1.0", false).unwrap();
        refused(root, "0.1.0", true, "leave --tag out");
        commit(root);
        refused(root, "0.1.0", false, "exists at another commit");
    }
}
