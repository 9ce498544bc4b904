//! Fuzzing without nightly: runs the targets' functions on mutated fixtures and seeds.
//!
//! It has no coverage feedback, so it does not replace `cargo +nightly fuzz run TARGET` (fuzz/, the same functions).
//! It finds missing length checks within seconds, on stable Rust.

mod mutate;
mod targets;

use crate::root;
use anyhow::{Context, Result, bail};
use mutate::Mutator;
use std::num::NonZero;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
pub(crate) use targets::Target;

/// The options of `cargo xtask fuzz`.
pub(crate) struct Options {
    /// Seconds per target.
    pub(crate) seconds: u64,
    /// Names of targets; empty means all.
    pub(crate) only: Vec<String>,
    /// The seed of an earlier run, to repeat it; `None` takes one from the clock.
    pub(crate) seed: Option<u64>,
}

/// Longest input. The parsers' own limits are far below; longer inputs only cost time.
const BYTES_MAX: usize = 64 * 1024;

/// An input that takes this much CPU is a bug (for example a loop whose length comes from a length field).
const SLOW: Duration = Duration::from_secs(2);

/// Runs every target for its time, one per processor; fails at the first input that panics or takes too long.
pub(crate) fn run(options: &Options) -> Result<()> {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
    let seed = options.seed.unwrap_or(clock);
    println!("fuzz: seed {seed}");
    let unknown = options.only.iter().find(|name| !targets::ALL.iter().any(|target| target.name == name.as_str()));
    if let Some(name) = unknown {
        bail!("no target {name}; there are: {}", targets::ALL.iter().map(|t| t.name).collect::<Vec<_>>().join(" "));
    }
    let chosen = |target: &&Target| options.only.is_empty() || options.only.iter().any(|name| name == target.name);
    let targets: Vec<&Target> = targets::ALL.iter().filter(chosen).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            // After a failure no thread begins another target.
            fuzz(target, Duration::from_secs(options.seconds), seed)
                .inspect_err(|_| next.store(targets.len(), Ordering::Relaxed))?;
        }
        Ok(())
    };
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let ended = |worker: thread::ScopedJoinHandle<'_, Result<()>>| {
            worker.join().unwrap_or_else(|_| bail!("the fuzzer itself panicked"))
        };
        workers.into_iter().map(ended).fold(Ok(()), Result::and)
    })
}

fn fuzz(target: &Target, time: Duration, seed: u64) -> Result<()> {
    let corpus = corpus(target)?;
    let mut mutator = Mutator::new(seed, BYTES_MAX);
    let start = Instant::now();
    let mut inputs = 0_u64;
    for input in &corpus {
        try_one(target, input, seed)?;
        inputs += 1;
    }
    let mut input = Vec::new();
    while start.elapsed() < time {
        mutator.next(&corpus, &mut input);
        try_one(target, &input, seed)?;
        inputs += 1;
    }
    println!("fuzz: {}: {} seeds, {inputs} inputs in {:?}", target.name, corpus.len(), start.elapsed());
    Ok(())
}

fn try_one(target: &Target, input: &[u8], seed: u64) -> Result<()> {
    // CPU time, because other programs may use the processor at the same time.
    let start_ns = sys::clock::thread_cpu_ns();
    let survived = catch_unwind(|| (target.run)(input)).is_ok();
    let took = Duration::from_nanos(sys::clock::thread_cpu_ns().saturating_sub(start_ns));
    if survived && took < SLOW {
        return Ok(());
    }
    let folder = root::path().join("fuzz/artifacts").join(target.name);
    std::fs::create_dir_all(&folder)?;
    let file = folder.join(format!("seed-{seed}-{}", input.len()));
    std::fs::write(&file, input)?;
    let how = if survived { format!("took {took:?}") } else { "panicked".to_owned() };
    bail!("fuzz: {} {how} on {} bytes, kept in {}", target.name, input.len(), file.display());
}

/// The committed seeds of the target and the fixtures with its extensions.
fn corpus(target: &Target) -> Result<Vec<Vec<u8>>> {
    let mut files = Vec::new();
    walk(&root::path().join("fuzz/seeds").join(target.name), &mut |file| files.push(file))?;
    let wanted = |file: &PathBuf| file.extension().is_some_and(|ext| target.fixtures.iter().any(|want| ext == *want));
    walk(&root::path().join("fixtures"), &mut |file| files.extend(Some(file).filter(wanted)))?;
    files.sort();
    let read = |file: &PathBuf| std::fs::read(file).with_context(|| file.display().to_string());
    let mut corpus = files.iter().map(read).collect::<Result<Vec<_>>>()?;
    corpus.extend(target.examples.iter().map(|example| example.to_vec()));
    corpus.extend((target.made)());
    corpus.retain(|input| input.len() <= BYTES_MAX);
    // There must be something to mutate even without seeds.
    corpus.push(Vec::new());
    Ok(corpus)
}

fn walk(folder: &std::path::Path, each: &mut impl FnMut(PathBuf)) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), each)?;
        } else {
            each(entry.path());
        }
    }
    Ok(())
}
