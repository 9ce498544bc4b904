//! Checks that every fixture has a description of how it was recorded.

use super::Findings;
use std::path::{Path, PathBuf};

/// `case.nl` and `case.tape` need a file `case.HOW` next to them, or a `HOW` for their whole folder; the files of a
/// container runtime need one `HOW` for the runtime.
pub(super) fn check(files: &[PathBuf]) -> Findings {
    unexplained_recordings(files).into_iter().chain(unexplained_runtimes(files)).collect()
}

fn unexplained_runtimes(files: &[PathBuf]) -> Findings {
    let runtimes = files.iter().filter_map(|file| {
        let inside = file.strip_prefix("fixtures/containers").ok()?;
        Some(Path::new("fixtures/containers").join(inside.components().next()?))
    });
    let mut without: Vec<PathBuf> = runtimes.filter(|runtime| !files.contains(&runtime.join("HOW"))).collect();
    without.dedup();
    without.iter().map(|runtime| format!("{}: no HOW says how it was made", runtime.display())).collect()
}

fn unexplained_recordings(files: &[PathBuf]) -> Findings {
    let recorded = files.iter().filter(|file| file.extension().is_some_and(|ext| ext == "nl" || ext == "tape"));
    let known = |how: &Path| files.iter().any(|file| file == how);
    let unexplained =
        recorded.filter(|file| !known(&file.with_extension("HOW")) && !known(&file.with_file_name("HOW")));
    unexplained.map(|file| format!("{}: no HOW beside it says how it was recorded", file.display())).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn how_of_the_case_or_of_the_folder() {
        let files = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert!(check(&files(&["fixtures/a/x.nl", "fixtures/a/x.HOW"])).is_empty());
        assert!(check(&files(&["fixtures/a/x.nl", "fixtures/a/y.tape", "fixtures/a/HOW"])).is_empty());
        assert_eq!(check(&files(&["fixtures/a/x.nl", "fixtures/b/HOW"])).len(), 1);
        let runtime =
            ["fixtures/containers/x-1/cgroup", "fixtures/containers/x-1/root/a", "fixtures/containers/x-1/HOW"];
        assert!(check(&files(&runtime)).is_empty());
        assert_eq!(check(&files(&runtime[..2])).len(), 1);
    }
}
