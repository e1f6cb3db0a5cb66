//! Whole numbers as people read them. Ratios are in thousandths, amounts in thousandths of their unit.

/// `n` of `of`, in thousandths; 0 where there is nothing to compare with.
pub(crate) fn permille(n: u64, of: u64) -> u64 {
    n.saturating_mul(1_000).checked_div(of).unwrap_or(0)
}

/// `total` by `count`, rounded down; 0 where there is nothing to count.
pub(crate) fn each(total: u64, count: u64) -> u64 {
    total.checked_div(count).unwrap_or(0)
}

/// Thousandths as a decimal number with two places: 1234 is `1.23`.
pub(crate) fn decimal(thousandths: u64) -> String {
    let hundredths = (thousandths + 5) / 10;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// The middle one; of two the lower.
pub(crate) fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousandths_are_rounded_to_two_places() {
        for (thousandths, text) in [(0, "0.00"), (4, "0.00"), (5, "0.01"), (1_234, "1.23")] {
            assert_eq!(decimal(thousandths), text);
        }
    }

    #[test]
    fn the_median_is_a_value_that_was_measured() {
        assert_eq!(median(vec![9, 1, 5]), 5);
        assert_eq!(median(vec![4, 1]), 1);
        assert_eq!(median(Vec::new()), 0);
    }
}
