//! `check-history FILE...`: judges recorded histories, and shows the records of what contradicts the contract.
#![expect(clippy::print_stdout, reason = "a tool for people at a prompt")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use history_checker::{BadHistory, check_file};

/// Violations of a file that are shown with their records.
const SHOWN_MAX: usize = 5;

fn main() -> ExitCode {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    if files.is_empty() {
        println!("usage: check-history FILE...");
        return ExitCode::from(2);
    }
    let mut code = ExitCode::SUCCESS;
    for file in &files {
        match judge(Path::new(file)) {
            Ok(true) => {}
            Ok(false) => code = ExitCode::FAILURE,
            Err(error) => {
                let cause = error.source().map(ToString::to_string).unwrap_or_default();
                println!("{}: {error}: {cause}", file.display());
                return ExitCode::from(2);
            }
        }
    }
    code
}

/// Judges one file; true if the contract allows it.
fn judge(file: &Path) -> Result<bool, BadHistory> {
    let report = check_file(file)?;
    println!("{}: {report}", file.display());
    let text = std::fs::read_to_string(file).map_err(BadHistory::Unreadable)?;
    let records: Vec<&str> = text.lines().collect();
    for violation in report.violations.iter().take(SHOWN_MAX) {
        println!("{violation}");
        for line in &violation.lines {
            let record = line.checked_sub(1).and_then(|at| records.get(at));
            println!("  {line}: {}", record.copied().unwrap_or_default());
        }
    }
    Ok(report.violations.is_empty())
}
