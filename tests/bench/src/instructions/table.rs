//! Figures of rows as lines of a table, and the judgement over their sums: beside another binary, and of
//! completions with a threshold beside those without.
//!
//! A sum is judged and a single row is marked at most, because one row alone has more of the work that a
//! gateway does by the clock. Nothing here may leave a row out of a sum: it would be judged by the others.

use serde_json::{Value, json};

use crate::numbers::{decimal, permille};

/// The most that the rows may need in sum beside the other binary's, in thousandths.
const RATIO_MAX: u64 = 1_030;
/// The most that completions with a threshold may need in sum beside those without, in thousandths.
const THRESHOLD_RATIO_MAX: u64 = 1_020;
/// Shares of requests that are traced, with the most that the rows may need in sum beside those without
/// traces, in thousandths; of all requests no more than the figure is asked for.
pub(super) const SHARES: [(&str, u64); 3] = [("0", 1_010), ("0.01", 1_020), ("1", u64::MAX)];
/// What the name of a row with a threshold ends with, before its connections.
pub(super) const WITH_THRESHOLD: &str = ", low balance set";

/// Figures of a row, of its cheapest part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFigures {
    /// Its name.
    pub row: String,
    /// Instructions a request, of all threads.
    pub instructions: u64,
    /// Those of the writer's thread among them.
    pub writer: u64,
    /// Changes that the writer committed at once, in thousandths; 0 where there were none.
    pub batch: u64,
}

impl RowFigures {
    pub(super) fn to_json(&self) -> Value {
        let Self { row, instructions, writer, batch } = self;
        json!({ "row": row, "instructions": instructions, "writer": writer, "batch": batch })
    }

    pub(super) fn read(value: &Value) -> Option<Self> {
        let number = |name: &str| value.get(name)?.as_u64();
        Some(Self {
            row: value.get("row")?.as_str()?.to_owned(),
            instructions: number("instructions")?,
            writer: number("writer")?,
            batch: number("batch")?,
        })
    }

    /// The three figures as columns.
    fn columns(&self) -> String {
        format!("{:>12}{:>10}{:>8}", self.instructions, self.writer, decimal(self.batch))
    }
}

/// Lines of figures, beside those of another binary, and whether the sum of these is within the limit.
pub(super) fn table(counts: &[RowFigures], others: Option<&[RowFigures]>) -> (Vec<String>, bool) {
    let head = |who: &str| format!("{who:>12}{:>10}{:>8}", "writer", "batch");
    let other_head = others.map_or(String::new(), |_| format!("{}{:>9}", head("against"), "ratio"));
    let mut lines = vec![format!("{:<40}{}{other_head}", "", head("this"))];
    let compared = |this: u64, other: u64, excess: &str| {
        let ratio = permille(this, other);
        let verdict = if ratio <= RATIO_MAX { "" } else { excess };
        (format!("{:>8}×{verdict}", decimal(ratio)), ratio <= RATIO_MAX)
    };
    for counted in counts {
        let beside = others.map_or(String::new(), |others| {
            let other = others.iter().find(|it| it.row == counted.row).expect("the same rows");
            let (ratio, _) = compared(counted.instructions, other.instructions, "  above 3 %");
            format!("{}{ratio}", other.columns())
        });
        lines.push(format!("{:<40}{}{beside}", counted.row, counted.columns()));
    }
    let sum = |counts: &[RowFigures]| counts.iter().map(|it| it.instructions).sum::<u64>();
    let (this, Some(other)) = (sum(counts), others.map(sum)) else { return (lines, true) };
    let (ratio, is_within) = compared(this, other, "  MORE THAN ALLOWED");
    lines.push(format!("{:<40}{this:>12}{:>18}{other:>12}{:>18}{ratio}", "sum", "", ""));
    (lines, is_within)
}

/// Each row with a threshold beside the row without, their sums last, and whether those are within the
/// limit. No lines where no threshold was asked for.
pub(super) fn threshold_table(counts: &[RowFigures]) -> (Vec<String>, bool) {
    let pairs = counts.iter().filter(|it| it.row.contains(WITH_THRESHOLD)).map(|with| {
        let plain = with.row.replace(WITH_THRESHOLD, "");
        let without = counts.iter().find(|it| it.row == plain).expect("the row without");
        (plain, with.instructions, without.instructions)
    });
    let mut pairs: Vec<_> = pairs.collect();
    if pairs.is_empty() {
        return (Vec::new(), true);
    }
    let sum = |of: fn(&(String, u64, u64)) -> u64| pairs.iter().map(of).sum::<u64>();
    let (with, without) = (sum(|it| it.1), sum(|it| it.2));
    pairs.push(("sum".to_owned(), with, without));
    let is_within = permille(with, without) <= THRESHOLD_RATIO_MAX;
    let mut lines = vec![format!("{:<40}{:>12}{:>12}{:>9}", "", "low balance", "without", "ratio")];
    lines.extend(pairs.iter().map(|(row, with, without)| {
        let ratio = decimal(permille(*with, *without));
        format!("{row:<40}{with:>12}{without:>12}{ratio:>8}×")
    }));
    if let Some(last) = lines.last_mut().filter(|_| !is_within) {
        last.push_str("  MORE THAN ALLOWED");
    }
    (lines, is_within)
}

/// Each row without traces beside those with shares of the requests traced, in the order of [`SHARES`], and
/// whether the sums are within their limits. No lines where no share was counted.
pub(super) fn traces_table(
    counts: &[RowFigures],
    traced: &[Vec<RowFigures>],
) -> (Vec<String>, bool) {
    if traced.is_empty() {
        return (Vec::new(), true);
    }
    let heads =
        SHARES.iter().map(|(share, _most)| format!("{:>12}{:>9}", format!("of {share}"), "ratio"));
    let mut lines = vec![format!("{:<40}{:>12}{}", "traced", "none", heads.collect::<String>())];
    let line = |row: &str, none: u64, with: &[u64]| {
        let columns = with.iter().map(|it| format!("{it:>12}{:>8}×", decimal(permille(*it, none))));
        format!("{row:<40}{none:>12}{}", columns.collect::<String>())
    };
    for (at, none) in counts.iter().enumerate() {
        let with =
            traced.iter().filter_map(|rows| Some(rows.get(at)?.instructions)).collect::<Vec<_>>();
        lines.push(line(&none.row, none.instructions, &with));
    }
    let sum = |counts: &[RowFigures]| counts.iter().map(|it| it.instructions).sum::<u64>();
    let with: Vec<_> = traced.iter().map(|rows| sum(rows)).collect();
    let mut sums = line("sum", sum(counts), &with);
    let limits = SHARES.iter().map(|(_share, most)| *most);
    let is_within = with.iter().zip(limits).all(|(it, most)| permille(*it, sum(counts)) <= most);
    if !is_within {
        sums.push_str("  MORE THAN ALLOWED");
    }
    lines.push(sums);
    (lines, is_within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_the_rows_is_judged_and_a_single_row_is_marked() {
        let counted = |row: &str, instructions| {
            let row = row.to_owned();
            RowFigures { row, instructions, writer: 10, batch: 1_500 }
        };
        let others = [counted("plain", 1_000), counted("refused", 100)];
        for (plain, refused, is_within, marks) in [
            (1_030, 103, true, ["", ""]),
            (1_000, 110, true, ["", "  above 3 %"]),
            (1_100, 100, false, ["  above 3 %", ""]),
        ] {
            let counts = [counted("plain", plain), counted("refused", refused)];
            assert_eq!(RowFigures::read(&counts[0].to_json()).as_ref(), Some(&counts[0]));
            let (lines, judged) = table(&counts, Some(&others));
            assert_eq!(judged, is_within, "{lines:?}");
            for (line, mark) in lines[1..].iter().zip(marks) {
                assert!(line.ends_with(&format!("×{mark}")), "{line}");
            }
            assert_eq!(lines[3].ends_with("MORE THAN ALLOWED"), !is_within, "{lines:?}");
        }
    }

    #[test]
    fn shares_of_traced_requests_stand_beside_none_and_their_sums_are_judged() {
        let of = |instructions| {
            vec![RowFigures { row: "plain".to_owned(), instructions, writer: 10, batch: 1_500 }]
        };
        for (shares, allowed) in [
            ([1_010, 1_020, 2_000], true),
            ([1_011, 1_020, 1_000], false),
            ([1_000, 1_021, 1_000], false),
        ] {
            let (lines, is_within) = traces_table(&of(1_000), &shares.map(of));
            assert_eq!((lines.len(), is_within), (3, allowed), "{lines:?}");
            assert_eq!(lines[2].ends_with("MORE THAN ALLOWED"), !allowed, "{lines:?}");
        }
        assert_eq!(traces_table(&of(1_000), &[]), (Vec::new(), true));
    }

    #[test]
    fn rows_with_a_threshold_stand_beside_those_without_and_their_sum_is_judged() {
        let of = |threshold: u64| {
            let row = |row: String, instructions| RowFigures {
                row,
                instructions,
                writer: 10,
                batch: 1_500,
            };
            let pair = |end: &str| {
                let with = row(format!("plain{WITH_THRESHOLD}{end}"), threshold);
                [row(format!("plain{end}"), 1_000), with]
            };
            [pair(""), pair(" ×8")].concat()
        };
        for (threshold, allowed) in [(1_000, true), (1_020, true), (1_021, false)] {
            let (lines, is_within) = threshold_table(&of(threshold));
            assert_eq!((lines.len(), is_within), (4, allowed), "{lines:?}");
            assert_eq!(lines[3].ends_with("MORE THAN ALLOWED"), !allowed, "{lines:?}");
        }
        assert_eq!(threshold_table(&of(9)[..1]), (Vec::new(), true));
    }
}
