//! Numbers as metrics carry them: a metric has a float, even for counts.

/// The nearest number that a metric can carry.
pub(crate) fn as_float(count: impl std::fmt::Display) -> f64 {
    count.to_string().parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::as_float;

    #[test]
    fn counts_become_the_nearest_float() {
        assert!((as_float(0_u64) - 0.0).abs() < f64::EPSILON);
        assert!((as_float(9_007_199_254_740_992_i64) - 9_007_199_254_740_992.0).abs() < 1.0);
    }
}
