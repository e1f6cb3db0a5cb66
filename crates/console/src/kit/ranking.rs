//! Ranking: horizontal bars sorted by value, with names and amounts as text.

use std::cmp::Reverse;

use crate::kit::Unit;
use askama::Template;

/// Length of the longest bar.
const LENGTH: u64 = 100;

/// A name and its value.
#[derive(Debug, Clone)]
pub(crate) struct RankingEntry {
    pub(crate) name: String,
    pub(crate) href: Option<String>,
    pub(crate) value: i64,
}

/// The largest values, and the sum of the others.
#[derive(Debug, Clone, Template)]
#[template(path = "ranking.html")]
pub(crate) struct Ranking {
    title: String,
    unit: Unit,
    rows: Vec<RankingEntry>,
    /// Sentence in the place of rows.
    empty: String,
}

impl Ranking {
    /// So many of the largest by value, in any order.
    pub(crate) fn new(
        title: &str,
        unit: impl Into<Unit>,
        most: usize,
        mut all: Vec<RankingEntry>,
    ) -> Self {
        all.sort_by_cached_key(|it| (Reverse(it.value), it.name.clone()));
        if all.len() > most {
            let others = all.drain(most..);
            let (count, value) = others.fold((0_usize, 0_i64), |(count, sum), it| {
                (count + 1, sum.saturating_add(it.value))
            });
            all.push(RankingEntry { name: format!("Other ({count})"), href: None, value });
        }
        Self { title: title.to_owned(), unit: unit.into(), rows: all, empty: String::new() }
    }

    pub(crate) fn empty(self, sentence: &str) -> Self {
        Self { empty: sentence.to_owned(), ..self }
    }

    fn text(&self, value: &i64) -> String {
        self.unit.text(*value)
    }

    /// Class of the colour of a bar.
    const fn class(value: &i64) -> &'static str {
        if *value < 0 { "negative" } else { "s1" }
    }

    /// Length of a bar. A value that is not zero has one that is seen.
    fn length(&self, value: &i64) -> u64 {
        let most = self.rows.iter().map(|row| row.value.unsigned_abs()).max().unwrap_or(0).max(1);
        let length = u128::from(value.unsigned_abs()) * u128::from(LENGTH) / u128::from(most);
        let length = u64::try_from(length).unwrap_or(LENGTH);
        if *value == 0 { 0 } else { length.max(1) }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_domain::Currency;

    use super::*;

    const MONEY: Currency = Currency::USD;

    fn ranked(all: &[(&str, i64)]) -> Vec<RankingEntry> {
        let row = |(name, value): &(&str, i64)| RankingEntry {
            name: (*name).to_owned(),
            href: None,
            value: *value,
        };
        all.iter().map(row).collect()
    }

    #[test]
    fn the_largest_are_chosen_by_value_and_the_rest_is_one_row() {
        let all = [("a", 1), ("b", 2), ("y", 90), ("z", 100)];
        let ranking = Ranking::new("Customers", MONEY, 2, ranked(&all));
        let shown: Vec<_> = ranking.rows.iter().map(|it| (it.name.as_str(), it.value)).collect();
        assert_eq!(shown, [("z", 100), ("y", 90), ("Other (2)", 3)]);
        assert_eq!(
            shown.iter().map(|it| it.1).sum::<i64>(),
            all.iter().map(|it| it.1).sum::<i64>()
        );
        let lengths: Vec<_> = shown.iter().map(|it| ranking.length(&it.1)).collect();
        assert_eq!(lengths, [100, 90, 3]);
    }

    #[test]
    fn values_below_zero_come_last_and_nothing_has_a_sentence() {
        let ranking = Ranking::new("Margin", MONEY, 10, ranked(&[("a", -5), ("b", 0), ("c", 1)]));
        let lengths: Vec<_> = ranking.rows.iter().map(|it| ranking.length(&it.value)).collect();
        assert_eq!(lengths, [20, 0, 100]);
        assert!(ranking.render().unwrap().contains("-0.000005 USD"));
        let none = Ranking::new("Margin", MONEY, 10, Vec::new()).empty("No request yet.");
        assert!(none.render().unwrap().contains("No request yet."));
    }
}
