//! `cargo xtask chaos --fuzz`: gives the request parser, the canonical feed and the reader of streams the inputs of
//! a fuzzer, for a while each. The targets and their assertions are in `tests/fuzz/`.
//!
//! Without a sanitizer: our code has no unsafe block, and the stable compiler has no sanitizer.

mod seeds;

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

use self::seeds::Seeds;
use crate::{
    shell::{self, print_line},
    tools,
    workspace::Workspace,
};

/// Default seconds of each target.
pub(crate) const SECONDS: u32 = 60;
/// The longest input: several times the longest seed.
const INPUT_BYTES_MAX: u32 = 16_384;
/// An input that takes so long is a finding.
const INPUT_SECONDS_MAX: u32 = 10;
/// So is one that needs so much memory.
const MEMORY_MB_MAX: u32 = 1_024;

/// Chooses what a target starts from.
type SeedSource = fn(&Seeds) -> Vec<Vec<u8>>;

const TARGETS: &[(&str, SeedSource)] =
    &[("request", Seeds::bodies), ("canon", Seeds::pairs), ("sse", |_bodies| seeds::streams())];

/// Runs every target for the time in `args`; true if none found an input that fails.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<bool> {
    let seconds = parse(args)?;
    let path = tools::find(workspace, "fuzz")?;
    let seeds = Seeds::read(&workspace.root)?;
    let folder = workspace.target.join("fuzz");
    let dictionary = folder.join("request.dict");
    fs::create_dir_all(&folder).context("cannot make the folder of the fuzzer")?;
    fs::write(&dictionary, seeds.dictionary()).context("cannot write the fuzzer's dictionary")?;
    let mut found = Vec::new();
    for (target, seeded) in TARGETS {
        print_line(&format!("\nfuzz target {target}, {seconds} s"))?;
        let corpus = sow(&folder.join("corpus").join(target), &seeded(&seeds))?;
        // Built first: a target that does not build must not be taken for one that found a failure.
        build(workspace, &path, target)?;
        let options = [
            format!("-max_total_time={seconds}"),
            format!("-max_len={INPUT_BYTES_MAX}"),
            format!("-timeout={INPUT_SECONDS_MAX}"),
            format!("-rss_limit_mb={MEMORY_MB_MAX}"),
            format!("-dict={}", dictionary.display()),
            format!("-artifact_prefix={}/", findings(&folder, target)?.display()),
            "-print_final_stats=1".to_owned(),
        ];
        let mut cargo = shell::cargo(&workspace.root);
        cargo.args(["fuzz", "run"]).args(common(workspace)).arg(target).arg(corpus).arg("--");
        if !shell::run(cargo.args(options).env("PATH", &path))? {
            found.push(*target);
        }
    }
    if found.is_empty() {
        print_line("\nthe fuzzer found nothing")?;
        return Ok(true);
    }
    print_line(&format!(
        "\nthe fuzzer found something in {}: its input is named above",
        found.join(", ")
    ))?;
    Ok(false)
}

fn parse(args: &[String]) -> Result<u32> {
    let seconds = match args {
        [] => SECONDS,
        [option, seconds] if option == "--seconds" => {
            seconds.parse().context("--seconds wants a number")?
        }
        _ => bail!("chaos --fuzz takes --seconds N"),
    };
    // libFuzzer reads zero as no limit.
    ensure!(seconds > 0, "--seconds 0 would run for ever");
    Ok(seconds)
}

/// A target that does not build has found no failure, and proves no absence of one.
fn build(workspace: &Workspace, path: &OsStr, target: &str) -> Result<()> {
    let mut cargo = shell::cargo(&workspace.root);
    cargo.args(["fuzz", "build"]).args(common(workspace)).arg(target).env("PATH", path);
    ensure!(
        shell::run(&mut cargo)?,
        "the fuzz target {target} cannot be built, so it was not run; it needs a C++ compiler and, \
         at first, the crate libfuzzer-sys from a registry"
    );
    Ok(())
}

/// Arguments of a target's build: with checks of overflows, and apart from every other build.
fn common(workspace: &Workspace) -> [String; 5] {
    let target = workspace.target.join("fuzz").join("build").display().to_string();
    ["--sanitizer=none", "--debug-assertions", "--fuzz-dir=tests/fuzz", "--target-dir", &target]
        .map(str::to_owned)
}

/// Adds the seeds to what earlier runs have found worth keeping.
fn sow(folder: &Path, seeds: &[Vec<u8>]) -> Result<PathBuf> {
    fs::create_dir_all(folder).context("cannot make the folder of the fuzzer's inputs")?;
    for (at, seed) in seeds.iter().enumerate() {
        // Under the same names at each run: seeds replace seeds, and what was found since stays.
        fs::write(folder.join(format!("seed-{at:03}")), seed).context("cannot write a seed")?;
    }
    Ok(folder.to_path_buf())
}

fn findings(folder: &Path, target: &str) -> Result<PathBuf> {
    let folder = folder.join("found").join(target);
    fs::create_dir_all(&folder).context("cannot make the folder of the fuzzer's findings")?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::FUZZ;

    #[test]
    fn a_minute_is_enough_unless_more_is_asked_for() {
        let parsed = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|it| (*it).to_owned()).collect();
            parse(&args).ok()
        };
        assert_eq!(parsed(&[]), Some(SECONDS));
        assert_eq!(parsed(&["--seconds", "7"]), Some(7));
        for bad in [&["--seconds"][..], &["--seconds", "0"], &["--kills", "7"]] {
            assert_eq!(parsed(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn every_target_is_one_of_the_folder() {
        let root = Workspace::load().unwrap().root;
        let manifest = fs::read_to_string(root.join(FUZZ)).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let bins = manifest["bin"].as_array().unwrap().iter();
        let named: Vec<_> = bins.map(|bin| bin["name"].as_str().unwrap()).collect();
        let run: Vec<_> = TARGETS.iter().map(|(target, _)| *target).collect();
        assert_eq!(named, run);
    }
}
