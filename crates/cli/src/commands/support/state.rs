//! Determines the state of a feature from what its trial reports as missing, and the remedy.

use record::rows::{Feature, FeatureState};
use sys::caps::Cap;
use sys::{Missing, Trial};

/// The row of a probed feature; `backend` is empty if it has only one.
pub(super) fn row(feature: &str, backend: &'static str, tried: Trial) -> Feature {
    let Trial { missing, words } = tried;
    let state = match missing {
        None => FeatureState::Works,
        Some(Missing::Right) => FeatureState::RightMissing,
        Some(Missing::KernelOption) => FeatureState::OptionMissing,
        Some(Missing::Module) => FeatureState::NotLoaded,
        Some(Missing::Build) => FeatureState::NotBuilt,
        Some(Missing::Other) => FeatureState::Fails,
    };
    Feature { feature: feature.to_owned(), backend, state, remedy: remedy(state, &words), words }
}

/// The row of a feature whose state is known without a trial.
pub(super) fn known(feature: &str, state: FeatureState, words: &str, remedy: String) -> Feature {
    Feature { feature: feature.to_owned(), backend: "", state, words: words.to_owned(), remedy }
}

/// The remedy, with the names mentioned in the trial's text.
fn remedy(state: FeatureState, words: &str) -> String {
    let named: Vec<Cap> = Cap::ALL.into_iter().filter(|cap| has_word(words, cap.name())).collect();
    match state {
        FeatureState::RightMissing => by_rights(&named),
        FeatureState::NotLoaded => behind(words, "module ").map_or_else(String::new, |name| format!("modprobe {name}")),
        FeatureState::OptionMissing => match words.find("CONFIG_").and_then(|at| words.get(at..)) {
            Some(option) => format!("a kernel with {}", word(option)),
            None => String::new(),
        },
        FeatureState::NotBuilt if words.contains("bpf") || words.contains("BPF") => {
            "a netwren built with the feature bpf".to_owned()
        }
        FeatureState::NotBuilt | FeatureState::Works | FeatureState::Fails => String::new(),
    }
}

/// The privileges that would suffice.
pub(super) fn by_rights(caps: &[Cap]) -> String {
    let names: Vec<&str> = caps.iter().map(|cap| cap.name()).collect();
    if names.is_empty() { "root".to_owned() } else { format!("root, or {}", names.join(" and ")) }
}

/// The word after `mark`.
fn behind<'w>(words: &'w str, mark: &str) -> Option<&'w str> {
    let at = words.find(mark)? + mark.len();
    words.get(at..).map(word).filter(|name| !name.is_empty())
}

/// The first word of a text: letters, digits and underscores.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// True if a text contains this name as a whole word.
fn has_word(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| text.get(at..).map(word) == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_and_what_would_help() {
        for (missing, words, state, remedy) in [
            (
                Missing::Right,
                "operation not permitted: needs CAP_BPF and CAP_PERFMON",
                "right missing",
                "root, or CAP_PERFMON and CAP_BPF",
            ),
            (Missing::Right, "packet sockets need CAP_NET_RAW", "right missing", "root, or CAP_NET_RAW"),
            (Missing::Right, "open /proc/kcore: permission denied", "right missing", "root"),
            (
                Missing::Module,
                "not loaded (module sctp_diag, CONFIG_INET_SCTP_DIAG); reading sctp sockets makes the kernel load it",
                "module not loaded",
                "modprobe sctp_diag",
            ),
            (
                Missing::Module,
                "not tried: /proc/kallsyms does not show whether the module diag (CONFIG_TIPC_DIAG) is loaded",
                "module not loaded",
                "modprobe diag",
            ),
            (
                Missing::KernelOption,
                "no types of this kernel: /sys/kernel/btf/vmlinux: no such file (CONFIG_DEBUG_INFO_BTF)",
                "kernel option missing",
                "a kernel with CONFIG_DEBUG_INFO_BTF",
            ),
            (Missing::Build, "netwren was built without BPF", "not built in", "a netwren built with the feature bpf"),
            (Missing::Other, "the answer makes no sense", "fails", ""),
            // The words of an answer never decide the state.
            (Missing::Other, "built without CAP_BPF: not loaded, no such file", "fails", ""),
        ] {
            let found = row("x", "", Trial::new_missing(missing, words));
            assert_eq!((found.state.name(), &*found.remedy), (state, remedy), "{words}");
        }
        let found = row("x", "proc", Trial::new_working("CAP_BPF is not needed"));
        assert_eq!((found.state, found.backend, &*found.remedy), (FeatureState::Works, "proc", ""));
    }
}
