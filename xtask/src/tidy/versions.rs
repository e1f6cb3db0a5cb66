//! The version of the workspace in files that Cargo does not write: in the chart, and in the manual, whose tag of
//! the image is the one that the chart pulls.

use super::Finding;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A file, and what the version follows there.
const PLACES: &[(&str, &[&str])] = &[
    ("deploy/helm/holdfast/Chart.yaml", &["version: ", "appVersion: "]),
    ("docs/how-to/install.md", &["docker://…:"]),
];

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let marks =
        PLACES.iter().filter(|(file, _marks)| *file == path).flat_map(|(_file, marks)| *marks);
    let wrong = marks.filter(|mark| !has_version(text, mark));
    wrong.map(|mark| Finding::new(path, format_args!("`{mark}` is not {VERSION}"))).collect()
}

/// True if the version, perhaps in quotes, follows the mark.
fn has_version(text: &str, mark: &str) -> bool {
    let mut after = text.lines().filter_map(|line| {
        let (before, after) = line.split_once(mark)?;
        // `appVersion: ` ends as `version: ` does.
        (!before.ends_with(char::is_alphanumeric)).then_some(after)
    });
    after.next().is_some_and(|after| {
        let rest = after.trim_start_matches('"').strip_prefix(VERSION);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['"', '`']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_chart(text: &str, expected: &[&str]) {
        let findings = check("deploy/helm/holdfast/Chart.yaml", text);
        let marks: Vec<_> = findings.iter().filter_map(|it| it.what.split('`').nth(1)).collect();
        assert_eq!(marks, expected, "{text}");
    }

    #[test]
    fn a_chart_has_the_version_of_the_workspace() {
        check_chart(&format!("version: {VERSION}\nappVersion: \"{VERSION}\"\n"), &[]);
        check_chart(
            &format!("version: {VERSION}\nappVersion: \"{VERSION}1\"\n"),
            &["appVersion: "],
        );
        check_chart(&format!("appVersion: \"{VERSION}\"\n"), &["version: "]);
        check_chart("", &["version: ", "appVersion: "]);
    }

    #[test]
    fn the_manual_names_the_tag_that_the_chart_pulls() {
        assert_eq!(
            check("docs/how-to/install.md", &format!("`copy docker://…:{VERSION}` hands")),
            []
        );
        assert_eq!(check("docs/how-to/install.md", "`copy docker://…` hands").len(), 1);
        assert_eq!(check("docs/other.md", ""), []);
    }
}
