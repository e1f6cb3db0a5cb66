//! Tiles: the numbers of the first screen, each with its link, a difference to an earlier value and a sparkline.

use askama::Template;

/// Height and width of a sparkline.
const HEIGHT: i128 = 30;
const WIDTH: usize = 120;

/// Tiles of one row.
#[derive(Debug, Clone, Template)]
#[template(path = "tiles.html")]
pub(crate) struct Tiles {
    /// Heading, if there is more than one row.
    pub(crate) title: String,
    pub(crate) tiles: Vec<Tile>,
}

/// A number with its name.
#[derive(Debug, Clone)]
pub(crate) struct Tile {
    label: String,
    value: String,
    /// The same with all its decimals.
    exact: String,
    href: Option<String>,
    note: String,
    spark: String,
}

impl From<Tile> for Tiles {
    fn from(tile: Tile) -> Self {
        Self { title: String::new(), tiles: vec![tile] }
    }
}

impl Tile {
    pub(crate) fn new(label: &str, value: impl Into<String>) -> Self {
        let (label, value) = (label.to_owned(), value.into());
        let (exact, note, spark) = (String::new(), String::new(), String::new());
        Self { label, value, exact, href: None, note, spark }
    }

    /// The same with all decimals of its value, for a title.
    pub(crate) fn exact(self, exact: impl Into<String>) -> Self {
        Self { exact: exact.into(), ..self }
    }

    pub(crate) fn link(self, href: impl Into<String>) -> Self {
        Self { href: Some(href.into()), ..self }
    }

    /// The same with a remark below, after those that it has: a difference, a coverage.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        let note = note.into();
        if !self.note.is_empty() && !note.is_empty() {
            self.note.push_str(", ");
        }
        self.note.push_str(&note);
        self
    }

    /// The same with a line through these values.
    pub(crate) fn spark(self, values: &[i64]) -> Self {
        Self { spark: sparkline(values), ..self }
    }
}

/// Path through values, from the least or zero at the bottom to the most at the top; none through less than two.
fn sparkline(values: &[i64]) -> String {
    // Zero is always on the scale: a small change of a large value must not look like a fall.
    let most = values.iter().copied().max().unwrap_or(0).max(0);
    let least = values.iter().copied().min().unwrap_or(0).min(0);
    // In 128 bits: the distance of two amounts may not fit 64.
    let range = i128::from(most) - i128::from(least);
    if values.len() < 2 || range == 0 {
        return String::new();
    }
    let point = |(at, value): (usize, &i64)| {
        let height = (i128::from(*value) - i128::from(least)) * HEIGHT / range;
        format!("{} {}", at * WIDTH / (values.len() - 1), HEIGHT + 1 - height)
    };
    let points: Vec<_> = values.iter().enumerate().map(point).collect();
    format!("M{}", points.join("L"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_goes_from_zero_to_the_most() {
        assert_eq!(sparkline(&[0, 5, 10]), "M0 31L60 16L120 1");
        assert_eq!(sparkline(&[-10, 10]), "M0 31L120 1");
        for flat in [&[][..], &[1], &[0, 0]] {
            assert_eq!(sparkline(flat), "");
        }
        assert_eq!(sparkline(&[i64::MIN, i64::MAX]), "M0 31L120 1");
    }

    #[test]
    fn a_tile_has_its_label_its_value_and_what_it_leads_to() {
        let tile = Tile::new("Revenue today", "3.05 USD").exact("3.050692 USD").link("/usage?a&b");
        let tiles = vec![tile.note("+12 % vs. yesterday by 14:00")];
        let html = Tiles { title: String::new(), tiles }.render().unwrap();
        assert!(html.contains("<dt>Revenue today</dt><dd><a href=\"/usage?a&#38;b\">"), "{html}");
        assert!(html.contains("title=\"3.050692 USD\">3.05 USD<"), "{html}");
        assert!(html.contains("+12 % vs. yesterday by 14:00"), "{html}");
    }
}
