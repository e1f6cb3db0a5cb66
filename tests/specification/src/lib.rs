//! Runs Spin over a model of `models`: Spin writes a verifier in C, a C compiler builds it, and the verifier explores
//! every state.
//!
//! Nothing of the product is used here: the models are a second text of the contract, and must not judge by the first.
//!
//! Never: a search that was cut short taken for one that found nothing. A verifier that meets its bound of depth or
//! memory is an error here.

mod report;
mod trace;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{self, Command},
    sync::atomic::{AtomicU32, Ordering},
};

pub use report::{Report, Violation};
pub use trace::Change;

/// Most memory of a search, in MiB.
const MEMORY_MAX: u32 = 2_900;
/// Longest path of a search. A longer one is an error.
const DEPTH_MAX: u32 = 1_000_000;

/// Way of a search through the states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// Every state, depth first.
    Whole,
    /// Until the first violation, breadth first: its path is a shortest one.
    Shortest,
    /// Every cycle that a formula forbids, under weak fairness.
    Cycles,
}

/// Reason why a model was not checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A program that is missing or cannot be run.
    #[error("cannot run {program}")]
    Program {
        /// Name or path.
        program: String,
        /// Reason of the system.
        source: io::Error,
    },
    /// A program that has refused its input.
    #[error("{program} failed: {output}")]
    Failed {
        /// Name or path.
        program: String,
        /// Whatever it has printed.
        output: String,
    },
    /// A search with a bound that it has met.
    #[error("the search was cut short: {0}")]
    Truncated(String),
    /// A report without its counts.
    #[error("a report that cannot be read: {0}")]
    Unreadable(String),
    /// The folder of the verifier.
    #[error("cannot use the folder of the verifier")]
    Folder(#[source] io::Error),
}

/// Programs that check models.
#[derive(Debug, Clone)]
pub struct Spin {
    program: PathBuf,
    models: PathBuf,
}

impl Spin {
    /// Spin by this name or path, over the models of a folder.
    #[must_use]
    pub fn new(program: PathBuf, models: PathBuf) -> Self {
        Self { program, models }
    }

    /// Checks a model with these definitions (`MUTANT_…`, `ONLY=…`, `PROBE=…`).
    ///
    /// # Errors
    ///
    /// [`CheckError`] if the model was not explored as far as the search goes.
    pub fn check(
        &self,
        model: &str,
        definitions: &[String],
        search: Search,
    ) -> Result<Report, CheckError> {
        let folder = scratch()?;
        let checked = self.check_in(&folder, model, (definitions, search));
        fs::remove_dir_all(&folder).map_err(CheckError::Folder)?;
        checked
    }

    fn check_in(
        &self,
        folder: &Path,
        model: &str,
        how: (&[String], Search),
    ) -> Result<Report, CheckError> {
        let file = self.models.join(model).with_extension("pml");
        Report::read(&self.explore(folder, &file, how)?)
    }

    /// Explores the model in a file, and returns whatever the verifier has printed.
    fn explore(
        &self,
        folder: &Path,
        file: &Path,
        (definitions, search): (&[String], Search),
    ) -> Result<String, CheckError> {
        let defines = definitions.iter().map(|definition| format!("-D{definition}"));
        run(Command::new(&self.program).arg("-a").args(defines).arg(file).current_dir(folder))?;
        let memory = format!("-DMEMLIM={MEMORY_MAX}");
        let mut compiler = Command::new("gcc");
        // Each step changes what others read: reducing partial orders would find nothing and costs time.
        compiler.args(["-w", "-DNOREDUCE", &memory, "-o", "pan", "pan.c"]).current_dir(folder);
        run(compiler.args(compile_options(search)))?;
        let depth = format!("-m{DEPTH_MAX}");
        let mut verifier = Command::new(folder.join("pan"));
        verifier.current_dir(folder);
        run(match search {
            Search::Whole => verifier.arg(depth),
            // A small table at first: most of these searches end soon.
            Search::Shortest => verifier.arg("-w20"),
            Search::Cycles => verifier.args([&depth, "-a", "-f"]),
        })
    }
}

/// Without optimizations: these searches are short, and the compiler's time exceeds theirs.
const fn compile_options(search: Search) -> &'static [&'static str] {
    match search {
        Search::Whole => &["-DSAFETY"],
        Search::Shortest => &["-DSAFETY", "-DBFS"],
        Search::Cycles => &["-DNFAIR=3"],
    }
}

fn scratch() -> Result<PathBuf, CheckError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("holdfast-specification-{}-{number}", process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).map_err(CheckError::Folder)?;
    Ok(folder)
}

fn run(command: &mut Command) -> Result<String, CheckError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = match command.output() {
        Ok(output) => output,
        Err(source) => return Err(CheckError::Program { program, source }),
    };
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() {
        Ok(text)
    } else {
        Err(CheckError::Failed { program, output: text })
    }
}
