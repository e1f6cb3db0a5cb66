//! Time chart: values of a few series over successive periods, stacked, as an SVG and as a table.
//!
//! ```text
//! amounts │▁▂▃ one path a series, from the outermost to the innermost, so that each hides a part of the one before
//!         │▁▂▃ over them one transparent link a period, with a title
//!         └ dates
//! ```
//!
//! Values below zero are stacked downwards. The table under the drawing has exactly the drawn numbers.
//!
//! Never: a style attribute, which the policy forbids, and text that is stretched with the drawing.

use std::cmp::Reverse;

use askama::Template;
use holdfast_domain::{Currency, Micros};

use crate::kit::{exact, exact_money, grouped};

/// Series with a colour of their own; the rest is *Other*.
const SERIES_MAX: usize = 5;
const LEFT: usize = 80;
const WIDTH: usize = 860;
const TOP: i128 = 8;
/// Distance of two grid lines. There are four, and the line of zero.
const GRID: i128 = 50;
const GRID_LINES: i128 = 4;
/// Distance in micros if all values are zero.
const EMPTY_STEP: i128 = 250_000;
/// Dates below the chart, if there are so many periods.
const DATES: usize = 6;
/// Largest size of the markup, in bytes; titles of periods name as many series as fit.
const BYTES_MAX: usize = 10_000;
/// Markup of the drawing, and of one period, without titles and addresses.
const BYTES_OF_FRAME: usize = 1_000;
const BYTES_OF_PERIOD: usize = 65;
/// Shortest title of a period: its name and its total.
const BYTES_OF_TITLE: usize = 40;

/// Unit of the values of a chart, which are millionths of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Money(Currency),
    Count,
}

impl From<Currency> for Unit {
    fn from(currency: Currency) -> Self {
        Self::Money(currency)
    }
}

impl Unit {
    /// Value with its unit.
    pub(crate) fn text(self, value: i64) -> String {
        match self {
            Self::Money(currency) => exact_money(Micros::new(value), currency),
            Self::Count => self.number(value),
        }
    }

    fn number(self, value: i64) -> String {
        self.bare(exact(Micros::new(value)))
    }

    /// Counts are whole.
    fn bare(self, number: String) -> String {
        match self {
            Self::Money(_) => number,
            Self::Count => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        }
    }
}

/// A period on the axis.
#[derive(Debug, Clone)]
pub(crate) struct Period {
    pub(crate) name: String,
    /// Name on the axis.
    pub(crate) short: String,
    /// Address of the finer report.
    pub(crate) href: String,
}

/// A value in each period.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// Address of the report of the series, if it has one.
    pub(crate) href: Option<String>,
    /// Values in the order of the periods.
    pub(crate) values: Vec<i64>,
}

impl Series {
    pub(crate) fn total(&self) -> i64 {
        self.values.iter().fold(0, |sum: i64, value| sum.saturating_add(*value))
    }
}

/// Values over time.
#[derive(Debug, Clone, Template)]
#[template(path = "time_chart.html")]
pub(crate) struct TimeChart {
    title: String,
    unit: Unit,
    series: Vec<SeriesView>,
    periods: Vec<PeriodView>,
    grid: Vec<(i128, String)>,
    /// Distances from the left and texts.
    dates: Vec<(usize, String)>,
    total: i64,
}

#[derive(Debug, Clone)]
struct SeriesView {
    name: String,
    href: Option<String>,
    total: i64,
    path: String,
}

#[derive(Debug, Clone)]
struct PeriodView {
    name: String,
    title: String,
    /// Address of the finer report, if the drawing has room for it.
    href: Option<String>,
    left: usize,
    width: usize,
    total: i64,
    values: Vec<i64>,
}

/// Sums of the values of a period up to a series: above zero and below it.
type Stack = (i128, i128);

/// Rounded distance of two grid lines, and how many of the four are above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scale {
    step: i128,
    above: i128,
}

impl TimeChart {
    pub(crate) fn new(
        title: &str,
        unit: impl Into<Unit>,
        periods: &[Period],
        series: Vec<Series>,
    ) -> Self {
        let unit = unit.into();
        let series = largest(series, periods.len());
        let layers = layers(&series, periods.len());
        let scale = Scale::of(layers.last().map_or(&[], Vec::as_slice));
        let view = |(series, layer): (&Series, &Vec<Stack>)| {
            let Series { name, href, .. } = series.clone();
            SeriesView { name, href, total: series.total(), path: scale.path(layer) }
        };
        let views: Vec<_> = series.iter().zip(&layers).map(view).collect();
        let drawn = views.iter().map(|view| view.path.len()).sum();
        Self {
            title: title.to_owned(),
            unit,
            total: views.iter().fold(0, |sum: i64, view| sum.saturating_add(view.total)),
            series: views,
            periods: period_views(unit, periods, &series, drawn),
            grid: scale.grid(unit),
            dates: dates(periods),
        }
    }

    fn text(&self, value: &i64) -> String {
        self.unit.text(*value)
    }

    fn number(&self, value: &i64) -> String {
        self.unit.number(*value)
    }

    /// Number of the colour of a series; the sixth is that of *Other*.
    const fn class(index: &usize) -> usize {
        *index + 1
    }
}

/// The series of the largest totals, and the sum of the others.
fn largest(mut series: Vec<Series>, periods: usize) -> Vec<Series> {
    series.iter_mut().for_each(|it| it.values.resize(periods, 0));
    series.sort_by_cached_key(|it| (Reverse(it.total().unsigned_abs()), it.name.clone()));
    if series.len() > SERIES_MAX {
        let mut values = vec![0_i64; periods];
        for other in series.drain(SERIES_MAX..) {
            for (sum, value) in values.iter_mut().zip(other.values) {
                *sum = sum.saturating_add(value);
            }
        }
        series.push(Series { name: "Other".to_owned(), href: None, values });
    }
    series
}

/// The stacks of all periods up to each series.
fn layers(series: &[Series], periods: usize) -> Vec<Vec<Stack>> {
    let mut stacks = vec![(0, 0); periods];
    let layer = |series: &Series| {
        for ((above, below), value) in stacks.iter_mut().zip(&series.values) {
            let value = i128::from(*value);
            (*above, *below) = (*above + value.max(0), *below + value.min(0));
        }
        stacks.clone()
    };
    series.iter().map(layer).collect()
}

impl Scale {
    /// The smallest round step for which four grid lines reach all stacks.
    fn of(stacks: &[Stack]) -> Self {
        let most = stacks.iter().map(|(above, _)| *above).max().unwrap_or(0);
        let least = stacks.iter().map(|(_, below)| -*below).max().unwrap_or(0);
        let lines = |value: i128, step: i128| (value + step - 1) / step;
        if (most, least) == (0, 0) {
            return Self { step: EMPTY_STEP, above: GRID_LINES };
        }
        let powers = (0..36).map(|power| 10_i128.pow(power));
        let mut steps = powers.flat_map(|power| [power, 2 * power, 5 * power / 2, 5 * power]);
        let fits = |step: &i128| lines(most, *step) + lines(least, *step) <= GRID_LINES;
        // Integer division makes 5 / 2 another 2: harmless.
        let step = steps.find(fits).unwrap_or(i128::MAX);
        Self { step, above: GRID_LINES - lines(least, step) }
    }

    /// Distance of a value from the top.
    const fn y(self, value: i128) -> i128 {
        TOP + self.above * GRID - value.saturating_mul(GRID) / self.step
    }

    /// Outline of the stacks up to a series, from the line of zero.
    fn path(self, stacks: &[Stack]) -> String {
        let mut path = String::new();
        for side in [|it: &Stack| it.0, |it: &Stack| it.1] {
            let heights: Vec<_> = stacks.iter().map(|stack| self.y(side(stack))).collect();
            let mut last = self.y(0);
            if heights.iter().all(|height| *height == last) {
                continue;
            }
            let mut outline = format!("M{LEFT} {last}");
            for (at, height) in heights.iter().enumerate() {
                if *height != last {
                    // A period that is as high as the one before it continues its line.
                    let start = left(at, heights.len());
                    outline.push_str(&format!("H{start}V{height}"));
                    last = *height;
                }
            }
            outline.push_str(&format!("H{}V{}z", LEFT + WIDTH, self.y(0)));
            path.push_str(&outline);
        }
        path
    }

    /// The four lines and that of zero: their distances from the top, and their amounts.
    fn grid(self, unit: Unit) -> Vec<(i128, String)> {
        let lines = (self.above - GRID_LINES..=self.above).rev();
        let amount = |line: i128| {
            let micros = i64::try_from(line.saturating_mul(self.step));
            micros.map_or(Micros::MAX, Micros::new)
        };
        lines
            .map(|line| (self.y(line * self.step), unit.bare(grouped(&amount(line).to_string()))))
            .collect()
    }
}

/// Distance of a period from the left.
const fn left(at: usize, periods: usize) -> usize {
    LEFT + at * WIDTH / periods
}

/// Up to six dates, evenly distributed, the first and the last among them.
fn dates(periods: &[Period]) -> Vec<(usize, String)> {
    let count = periods.len().min(DATES);
    let indexes =
        (0..count).map(|date| date * (periods.len() - 1) / count.saturating_sub(1).max(1));
    let date = |at: usize| {
        let middle = (left(at, periods.len()) + left(at + 1, periods.len())) / 2;
        Some((middle, periods.get(at)?.short.clone()))
    };
    indexes.filter_map(date).collect()
}

fn period_views(
    unit: Unit,
    periods: &[Period],
    series: &[Series],
    drawn: usize,
) -> Vec<PeriodView> {
    let count = periods.len();
    let frame = BYTES_OF_FRAME + drawn + count * (BYTES_OF_PERIOD + BYTES_OF_TITLE);
    let mut rest = BYTES_MAX.saturating_sub(frame);
    // The newest periods lead to their reports if not all addresses fit.
    let linked = periods.iter().rev().take_while(|period| {
        let left = rest.checked_sub(bytes(&period.href));
        rest = left.unwrap_or(rest);
        left.is_some()
    });
    let unlinked = count - linked.count();
    let rest = rest + count * BYTES_OF_TITLE;
    let room = rest.checked_div(count).unwrap_or(0);
    let view = |(at, period): (usize, &Period)| {
        let values: Vec<_> = series.iter().filter_map(|it| it.values.get(at).copied()).collect();
        let total = values.iter().fold(0, |sum: i64, value| sum.saturating_add(*value));
        let mut title = format!("{}: {}", period.name, unit.text(total));
        for (series, value) in series.iter().zip(&values).filter(|(_, value)| **value != 0) {
            let line = format!("\n{} {}", series.name, unit.number(*value));
            if bytes(&title) + bytes(&line) > room {
                title.push('…');
                break;
            }
            title.push_str(&line);
        }
        let start = left(at, count);
        let width = left(at + 1, count) - start;
        let name = period.name.clone();
        let href = (at >= unlinked).then(|| period.href.clone());
        PeriodView { name, title, href, left: start, width, total, values }
    };
    periods.iter().enumerate().map(view).collect()
}

/// Bytes of a text in a page: some characters are written as references.
fn bytes(text: &str) -> usize {
    let of = |letter: char| if "&<>\"'".contains(letter) { 5 } else { letter.len_utf8() };
    text.chars().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONEY: Currency = Currency::USD;

    fn periods(count: usize) -> Vec<Period> {
        let period = |at: usize| Period {
            name: format!("2026-11-{at:02}"),
            short: format!("11-{at:02}"),
            href: format!("/usage?on=2026-11-{at:02}"),
        };
        (1..=count).map(period).collect()
    }

    fn series(name: &str, values: &[i64]) -> Series {
        Series { name: name.to_owned(), href: None, values: values.to_vec() }
    }

    fn chart(count: usize, all: Vec<Series>) -> TimeChart {
        TimeChart::new("Charge", MONEY, &periods(count), all)
    }

    fn names(chart: &TimeChart) -> Vec<&str> {
        chart.series.iter().map(|it| it.name.as_str()).collect()
    }

    #[test]
    fn a_count_is_whole() {
        let texts = [0, 5, 1_200].map(|count| Unit::Count.text(count * 1_000_000));
        assert_eq!(texts, ["0", "5", "1,200"]);
        assert_eq!(Unit::Count.bare("0.00".to_owned()), "0");
    }

    #[test]
    fn a_period_without_values_is_drawn_as_zero() {
        let chart = chart(5, vec![series("a", &[4_000_000, 0, 0, 2_000_000])]);
        assert_eq!(chart.series[0].path, "M80 208H80V8H252V208H596V108H768V208H940V208z");
        let totals: Vec<_> = chart.periods.iter().map(|it| it.total).collect();
        assert_eq!(totals, [4_000_000, 0, 0, 2_000_000, 0]);
    }

    #[test]
    fn the_grid_has_four_lines_with_round_amounts_and_zero() {
        for (most, amounts) in [
            (3_050_692, ["4.00", "3.00", "2.00", "1.00", "0.00"]),
            (4_000_001, ["8.00", "6.00", "4.00", "2.00", "0.00"]),
            (9_000_000, ["10.00", "7.50", "5.00", "2.50", "0.00"]),
            (20, ["0.00002", "0.000015", "0.00001", "0.000005", "0.00"]),
            (0, ["1.00", "0.75", "0.50", "0.25", "0.00"]),
        ] {
            let chart = chart(3, vec![series("a", &[most, 0, 0])]);
            let shown: Vec<_> = chart.grid.iter().map(|(_, amount)| amount.as_str()).collect();
            assert_eq!(shown, amounts, "{most}");
            let lines: Vec<_> = chart.grid.iter().map(|(y, _)| *y).collect();
            assert_eq!(lines, [8, 58, 108, 158, 208], "{most}");
        }
    }

    #[test]
    fn values_below_zero_are_stacked_downwards() {
        let chart =
            chart(2, vec![series("a", &[3_000_000, -1_000_000]), series("b", &[0, -500_000])]);
        let shown: Vec<_> = chart.grid.iter().map(|(_, amount)| amount.as_str()).collect();
        assert_eq!(shown, ["6.00", "4.00", "2.00", "0.00", "-2.00"]);
        assert_eq!(chart.series[1].path, "M80 158H80V83H510V158H940V158zM80 158H510V195H940V158z");
        assert_eq!((chart.periods[1].total, chart.total), (-1_500_000, 1_500_000));
        let small = TimeChart::new("Margin", MONEY, &periods(1), vec![series("a", &[-1])]);
        assert_eq!(small.grid.first().map(|(y, _)| *y), Some(8));
    }

    #[test]
    fn the_five_largest_by_value_have_names_and_the_rest_is_other() {
        let all = [("a", 1), ("b", 2), ("c", 70), ("d", 60), ("e", 50), ("f", 40), ("g", 30)];
        let chart = chart(1, all.map(|(name, value)| series(name, &[value])).to_vec());
        assert_eq!(names(&chart), ["c", "d", "e", "f", "g", "Other"]);
        assert_eq!(chart.series[5].total, 3);
        let five = TimeChart::new(
            "",
            MONEY,
            &periods(1),
            all.map(|it| series(it.0, &[it.1]))[..5].to_vec(),
        );
        assert_eq!(names(&five), ["c", "d", "e", "b", "a"]);
    }

    #[test]
    fn the_table_has_exactly_the_given_sums() {
        let (mut all, mut sum) = (Vec::new(), 0);
        for number in 0..9_i64 {
            let values: Vec<_> = (0..30).map(|at| (at * 7_919 * (number + 1)) % 100_003).collect();
            sum += values.iter().sum::<i64>();
            all.push(series(&format!("model-{number}"), &values));
        }
        let chart = chart(30, all);
        let rows: i64 = chart.periods.iter().flat_map(|it| &it.values).sum();
        let (totals, columns) = (
            chart.periods.iter().map(|it| it.total).sum::<i64>(),
            chart.series.iter().map(|it| it.total).sum::<i64>(),
        );
        assert_eq!((rows, totals, columns, chart.total), (sum, sum, sum, sum));
        let html = chart.render().unwrap();
        let table = html.split_once("<table").unwrap().1;
        for period in &chart.periods {
            let cells = period.values.iter().map(|it| format!("<td>{}", exact(Micros::new(*it))));
            let row = format!(
                "{}<td>{}{}",
                period.name,
                exact(Micros::new(period.total)),
                cells.collect::<String>()
            );
            assert!(
                table.replace("<th scope=\"row\">", "").contains(&row),
                "{row} is not in {table}"
            );
        }
    }

    #[test]
    fn the_drawing_of_62_periods_and_six_series_has_at_most_10_kb() {
        let values =
            |number: i64| (0..62).map(|at| (at * 7_919 * number) % 9_000_003).collect::<Vec<_>>();
        let name = "<customer> & sons, a name that is as long as names are";
        let all = (1..=40).map(|number| series(&format!("{name} {number}"), &values(number)));
        let all: Vec<_> = all.collect();
        let filters = "wallet=0f8e6d2b-5b7d-4c3e-9a51-7f2c1a9e4c11&api_key=7f2c1a9e-5b7d-4c3e-9a51\
            &model=publisher/a-large-model&currency=USD&first=api_key&second=model";
        let counts = [1, 2, 24, 31, 48, 62];
        for (count, query) in counts.iter().flat_map(|count| [(*count, ""), (*count, filters)]) {
            let mut periods = periods(count);
            periods.iter_mut().for_each(|it| it.href = format!("{}&{query}", it.href));
            let newest = periods.last().map(|it| it.href.clone());
            let chart = TimeChart::new("Charge", MONEY, &periods, all.clone());
            assert_eq!(chart.periods.last().and_then(|it| it.href.clone()), newest);
            let html = chart.render().unwrap();
            let drawing = html
                .split_once("<svg viewBox=\"0 0 960")
                .unwrap()
                .1
                .split_once("</svg>")
                .unwrap()
                .0;
            assert!(drawing.len() <= BYTES_MAX, "{count} periods: {} bytes", drawing.len());
            assert!(!html.contains("style="), "the policy forbids it");
            assert!(!html.contains("<customer>"), "{html}");
        }
        let dates = chart(62, all).dates;
        assert!((5..=7).contains(&dates.len()), "{dates:?}");
    }

    #[test]
    fn one_period_fills_the_chart_and_no_period_draws_nothing() {
        let one = chart(1, vec![series("a", &[1_000_000])]);
        assert_eq!(one.series[0].path, "M80 208H80V8H940V208z");
        assert_eq!((one.dates.len(), one.periods[0].width), (1, WIDTH));
        let none = chart(0, vec![series("a", &[])]);
        assert!(none.periods.is_empty() && none.dates.is_empty() && none.series[0].path.is_empty());
        assert!(none.render().unwrap().contains("<svg"));
    }
}
