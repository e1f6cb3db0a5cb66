//! Counting: what a test runner printed, as numbers.

use std::{fmt, ops::Add, time::Duration};

use crate::shell::CommandOutput;

/// Number of tests by their end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TestTally {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) skipped: u32,
}

impl TestTally {
    pub(crate) const ONE_PASSED: Self = Self { passed: 1, failed: 0, skipped: 0 };
    /// A suite that should have run and did not.
    pub(crate) const NOT_RUN: Self = Self { passed: 0, failed: 1, skipped: 0 };

    /// From nextest, which sums up on standard error, last.
    pub(crate) fn of_nextest(captured: &CommandOutput) -> Self {
        // From the end: a test may print such a line itself.
        let lines = captured.stderr.lines().rev();
        let summary = lines.filter_map(|line| line.trim_start().strip_prefix(SUMMARY)).next();
        summary.and_then(nextest_summary).unwrap_or(Self::NOT_RUN)
    }

    /// Counts of the tests of one package.
    pub(crate) fn of_package(tests: &[FinishedTest], package: &str) -> Self {
        let mut tally = Self::default();
        for test in tests.iter().filter(|test| test.is_of(package)) {
            match test.end {
                TestEnd::Passed => tally.passed += 1,
                TestEnd::Failed => tally.failed += 1,
                TestEnd::Skipped => tally.skipped += 1,
            }
        }
        tally
    }

    /// From libtest, which sums up every test binary on standard output.
    pub(crate) fn of_libtest(captured: &CommandOutput) -> Self {
        let summaries =
            captured.stdout.lines().filter_map(|line| line.strip_prefix("test result: "));
        summaries.map(libtest_summary).fold(Self::default(), Add::add).unless_silent(captured)
    }

    /// A runner that failed without counting a failure did not run its tests.
    fn unless_silent(self, captured: &CommandOutput) -> Self {
        if self.failed == 0 && !captured.status.success() { self + Self::NOT_RUN } else { self }
    }

    fn count(&mut self, number: u32, what: &str) {
        match what {
            "passed" => self.passed += number,
            "skipped" | "ignored" | "filtered out" => self.skipped += number,
            // Benchmarks of libtest are no tests.
            "measured" => {}
            // "failed", "timed out", "exec failed" and what a later version may call it.
            _ => self.failed += number,
        }
    }
}

/// Begin of nextest's last line.
const SUMMARY: &str = "Summary [";

/// A finished test with its end and its time, as nextest prints them in a line: `        PASS [   0.044s] (3/9)
/// holdfast-store::it claims::a_key_is_bound_once`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FinishedTest {
    /// Package and test binary: `holdfast-store::it`, or only the package for tests of its library.
    binary: String,
    name: String,
    pub(crate) took: Duration,
    end: TestEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestEnd {
    Passed,
    Failed,
    Skipped,
}

impl FinishedTest {
    /// All tests of a run by nextest. Lines after the summary repeat what failed.
    pub(crate) fn of_nextest(captured: &CommandOutput) -> Vec<Self> {
        let lines = captured.stderr.lines().map(str::trim_start);
        lines.take_while(|line| !line.starts_with(SUMMARY)).filter_map(Self::read).collect()
    }

    fn read(line: &str) -> Option<Self> {
        let (end, rest) = line.split_once(" [")?;
        let (took, rest) = rest.split_once("] (")?;
        let (_place, test) = rest.split_once(") ")?;
        let (binary, name) = test.split_once(' ')?;
        let took = took.trim().trim_end_matches('s');
        let end = match end {
            "PASS" | "LEAK" => TestEnd::Passed,
            "SKIP" => TestEnd::Skipped,
            // Of a test that still runs.
            _ if took.starts_with('>') => return None,
            _ => TestEnd::Failed,
        };
        // A test that was skipped has no time.
        let seconds = if end == TestEnd::Skipped { 0.0 } else { took.parse().ok()? };
        let took = Duration::try_from_secs_f64(seconds).ok()?;
        Some(Self { binary: binary.to_owned(), name: name.to_owned(), took, end })
    }

    /// True if the test is one of this package.
    pub(crate) fn is_of(&self, package: &str) -> bool {
        self.binary.split("::").next() == Some(package)
    }
}

impl fmt::Display for FinishedTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.binary, self.name)
    }
}

impl Add for TestTally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl fmt::Display for TestTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, skipped } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// `   0.089s] 2/3 tests run: 1 passed (1 slow), 1 timed out, 2 skipped`
fn nextest_summary(line: &str) -> Option<TestTally> {
    let (_time, line) = line.split_once(']')?;
    let (run, counts) = line.split_once(" run: ")?;
    let mut tally = TestTally::default();
    for (number, what) in without_asides(counts).split(',').filter_map(numbered) {
        tally.count(number, what);
    }
    // Cut short: those that did not get their turn have not passed.
    if let Some((run, total)) = run.split_whitespace().next()?.split_once('/') {
        tally.failed += total.parse::<u32>().ok()?.saturating_sub(run.parse().ok()?);
    }
    Some(tally)
}

/// `FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 1 filtered out; finished in 0.17s`
fn libtest_summary(line: &str) -> TestTally {
    let mut tally = TestTally::default();
    let counts = line.split_once(". ").map_or(line, |(_verdict, counts)| counts);
    for (number, what) in counts.split(';').filter_map(numbered) {
        tally.count(number, what);
    }
    tally
}

fn numbered(part: &str) -> Option<(u32, &str)> {
    let (number, what) = part.trim().split_once(' ')?;
    Some((number.parse().ok()?, what.trim()))
}

fn without_asides(text: &str) -> String {
    let mut depth = 0_u32;
    let mut kept = String::new();
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(character),
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

    use super::*;

    fn tally(passed: u32, failed: u32, skipped: u32) -> TestTally {
        TestTally { passed, failed, skipped }
    }

    fn captured(code: i32, stdout: &str, stderr: &str) -> CommandOutput {
        let status = ExitStatus::from_raw(code << 8);
        CommandOutput { status, stdout: stdout.to_owned(), stderr: stderr.to_owned() }
    }

    #[track_caller]
    fn check_nextest(code: i32, stderr: &str, expected: TestTally) {
        assert_eq!(TestTally::of_nextest(&captured(code, "", stderr)), expected);
    }

    #[test]
    fn nextest_is_counted() {
        let passed = "     Summary [   0.005s] 1 test run: 1 passed, 0 skipped\n";
        check_nextest(0, passed, tally(1, 0, 0));
        let mixed = "Summary [ 0.1s] 9 tests run: 4 passed (2 slow, 1 leaky), 2 failed (1 due to \
                     being leaky), 1 exec failed, 2 timed out, 7 skipped";
        check_nextest(100, mixed, tally(4, 5, 7));
    }

    #[test]
    fn nextest_cut_short_has_not_passed() {
        check_nextest(1, "Summary [ 0.1s] 2/5 tests run: 2 passed, 1 skipped", tally(2, 3, 1));
    }

    #[test]
    fn nextest_counts_at_its_end_only() {
        let quoted = "Summary [ 0.1s] 1 test run: 1 failed, 0 skipped";
        let last = "Summary [ 0.1s] 1 test run: 1 passed, 0 skipped";
        check_nextest(0, &format!("{quoted}\n{last}\n"), tally(1, 0, 0));
    }

    #[test]
    fn tests_are_counted_by_package_and_timed() {
        let printed = "\
        PASS [   0.044s] (1/9) holdfast-store::it claims::a_key_is_bound_once
        SLOW [> 60.000s] (───) holdfast-store::it claims::slow
     TIMEOUT [ 300.002s] (2/9) holdfast-store claims::slow
        SKIP [         ] (───) holdfast-store::it claims::ignored
        LEAK [   1.500s] (3/9) holdfast-stores::it another
      stdout: a [b] (c) d e
     Summary [   9.011s] 3 tests run: 2 passed, 1 timed out, 1 skipped
     TIMEOUT [ 300.002s] (2/9) holdfast-store claims::slow
";
        let tests = FinishedTest::of_nextest(&captured(100, "", printed));
        let of_package = |package: &str| TestTally::of_package(&tests, package);
        assert_eq!(of_package("holdfast-store"), tally(1, 1, 1));
        assert_eq!(of_package("holdfast-stores"), tally(1, 0, 0));
        let took = tests.iter().find(|test| test.name == "claims::slow").map(|test| test.took);
        assert_eq!(took, Some(Duration::from_millis(300_002)));
        assert_eq!(tests.last().unwrap().to_string(), "holdfast-stores::it another");
    }

    #[test]
    fn libtest_is_summed_over_its_binaries() {
        let stdout = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; \
                      finished in 0.00s\n\
                      test result: FAILED. 1 passed; 1 failed; 0 ignored; 5 measured; 0 filtered \
                      out; finished in 0.17s\n";
        assert_eq!(TestTally::of_libtest(&captured(101, stdout, "")), tally(4, 1, 3));
    }

    #[test]
    fn a_runner_that_fails_without_a_count_is_a_failure() {
        check_nextest(1, "error: could not compile", tally(0, 1, 0));
        assert_eq!(TestTally::of_libtest(&captured(101, "", "")), tally(0, 1, 0));
        check_nextest(0, "", tally(0, 1, 0));
    }

    #[test]
    fn the_closing_line_is_spelled_in_one_way() {
        assert_eq!(tally(3, 0, 2).to_string(), "3 passed, 0 failed, 2 skipped");
    }
}
