//! Links of the documents: each leads to a file of the repository and to a heading of that file, and each page of
//! `docs/` is reached from the map of the documentation.
//!
//! Only relative links are followed. Addresses of other sites change without this repository.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;

/// The page from which all others are reached.
const MAP: &str = "docs/README.md";
const PAGES: &str = "docs/";

/// A document as it is linked: its links by line, and the anchors of its headings.
#[derive(Debug, Default)]
struct Page {
    links: Vec<(usize, String)>,
    anchors: BTreeSet<String>,
}

/// Findings in all documents. `files` has every path of the repository.
pub(super) fn check(texts: &[(String, String)], files: &BTreeSet<&str>) -> Vec<Finding> {
    let is_document = |path: &str| path.ends_with(".md");
    let documents = texts.iter().filter(|(path, _)| is_document(path));
    let pages: BTreeMap<&str, Page> =
        documents.map(|(path, text)| (path.as_str(), page(text))).collect();
    let mut findings = Vec::new();
    for (path, page) in &pages {
        for (index, link) in &page.links {
            if let Some(what) = dead(path, link, &pages, files) {
                findings.push(Finding::at(path, *index, what));
            }
        }
    }
    let reached = reached(&pages);
    let is_lost = |path: &&&str| path.starts_with(PAGES) && !reached.contains(**path);
    let lost = pages.keys().filter(is_lost);
    let what = format_args!("no link leads here from {MAP}");
    findings.extend(lost.map(|path| Finding::new(path, what)));
    findings
}

/// The defect of a link; none if it leads somewhere.
fn dead(
    from: &str,
    link: &str,
    pages: &BTreeMap<&str, Page>,
    files: &BTreeSet<&str>,
) -> Option<String> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = resolved(from, file);
    let folder = format!("{path}/");
    let is_folder = files.range(folder.as_str()..).next().is_some_and(|it| it.starts_with(&folder));
    if !files.contains(path.as_str()) && !is_folder && !path.is_empty() {
        return Some(format!("dead link: there is no {path}"));
    }
    let page = pages.get(path.as_str())?;
    let is_known = anchor.is_empty() || page.anchors.contains(anchor);
    (!is_known).then(|| format!("dead link: {path} has no heading #{anchor}"))
}

/// Pages that a reader of the map reaches.
fn reached(pages: &BTreeMap<&str, Page>) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut next = vec![MAP.to_owned()];
    while let Some(path) = next.pop() {
        let Some(page) = pages.get(path.as_str()) else { continue };
        if reached.insert(path.clone()) {
            let file = |link: &str| link.split('#').next().unwrap_or_default().to_owned();
            next.extend(page.links.iter().map(|(_, link)| resolved(&path, &file(link))));
        }
    }
    reached
}

/// The path that a link of this file names, from the root of the repository.
fn resolved(from: &str, link: &str) -> String {
    if link.is_empty() {
        return from.to_owned();
    }
    let folder = from.rsplit_once('/').map_or("", |(folder, _file)| folder);
    let folder = if link.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(link.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn page(text: &str) -> Page {
    let mut page = Page::default();
    let mut fence = None;
    for (index, line) in text.lines().enumerate() {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (mark, fence) {
            (Some(mark), None) => fence = Some(mark),
            (Some(mark), Some(open)) if mark == open => fence = None,
            (_, Some(_)) => {}
            (None, None) => {
                if let Some(heading) = heading(line) {
                    let slug = slug(heading);
                    let n_same = (1..).find(|n| !page.anchors.contains(&numbered(&slug, *n)));
                    page.anchors.insert(numbered(&slug, n_same.unwrap_or(1)));
                }
                let prose = without_code(line);
                let named = ["id=\"", "name=\""].iter().flat_map(|mark| quoted(&prose, mark));
                page.anchors.extend(named);
                page.links.extend(links(&prose).into_iter().map(|link| (index, link)));
            }
        }
    }
    page
}

/// The text of a heading.
fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let depth = line.len() - text.len();
    ((1..=6).contains(&depth) && text.starts_with(' ')).then(|| text.trim())
}

/// The anchor of a heading, as GitHub makes it.
fn slug(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    // Of a link the text is shown, and its target is not.
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_target, after)| after);
    }
    text.push_str(rest);
    let is_kept = |it: &char| it.is_alphanumeric() || ['-', '_', ' '].contains(it);
    text.to_lowercase().chars().filter(is_kept).collect::<String>().replace(' ', "-")
}

/// The anchor of the nth heading with one text.
fn numbered(slug: &str, n: usize) -> String {
    if n == 1 { slug.to_owned() } else { format!("{slug}-{}", n - 1) }
}

/// The line without its code, in which brackets are no links.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// Relative targets of the links in a line.
fn links(line: &str) -> Vec<String> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let defined = line.strip_prefix('[').and_then(|line| line.split_once("]: "));
    let defined = defined.map(|(_name, target)| target);
    let in_html = ["href=\"", "src=\""].iter().flat_map(|mark| quoted(line, mark));
    let targets = inline.chain(defined).map(str::to_owned).chain(in_html);
    // A target may have a title after it, and brackets around it.
    let target = |text: String| {
        let word = text.split_whitespace().next().unwrap_or_default();
        word.trim_start_matches('<').trim_end_matches('>').to_owned()
    };
    let is_here = |link: &String| !link.contains("://") && !link.starts_with("mailto:");
    targets.map(target).filter(is_here).collect()
}

/// Texts in quotes after this mark.
fn quoted(line: &str, mark: &str) -> Vec<String> {
    let after = line.split(mark).skip(1);
    after.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINKED: &str = "[a](a.md)";

    /// Findings where the map has `links` and another page this text.
    #[track_caller]
    fn check_links(links: &str, text: &str, expected: &[&str]) {
        let texts = [("docs/README.md".to_owned(), links), ("docs/a.md".to_owned(), text)]
            .map(|(path, text)| (path, text.to_owned()));
        let files = BTreeSet::from(["deploy/grafana/a.json", "docs/README.md", "docs/a.md"]);
        let found: Vec<_> = check(&texts, &files).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_link_to_a_file_or_a_folder_is_alive() {
        check_links("[a](a.md) [b](../deploy/grafana) ![c](/docs/a.md)", "[map](./README.md)", &[]);
        check_links("[a]: a.md", "[far](https://example.com/a.md) [m](mailto:a@b.example)", &[]);
    }

    #[test]
    fn a_dead_link_is_found_with_its_line() {
        let dead = "docs/a.md:2: dead link: there is no docs/b.md";
        check_links(LINKED, "# A\n[b](b.md \"title\")", &[dead]);
        check_links(LINKED, "# A\n<a href=\"b.md\">b</a>", &[dead]);
        check_links(LINKED, "# A\n[b]: b.md", &[dead]);
        check_links(LINKED, "`[b](b.md)`\n```\n[b](b.md)\n```\n", &[]);
    }

    #[test]
    fn a_link_to_a_heading_needs_that_heading() {
        let text = "# The `[limits]` table: a_b\n## Same\n## Same\n<a id=\"own\"></a>\n";
        for anchor in ["the-limits-table-a_b", "same", "same-1", "own"] {
            check_links(&format!("[a](a.md#{anchor})"), text, &[]);
        }
        let dead = "docs/README.md:1: dead link: docs/a.md has no heading #same-2";
        check_links("[a](a.md#same-2)", text, &[dead]);
        check_links(LINKED, "# A\n[up](#a)", &[]);
        check_links(
            LINKED,
            "```\n# A\n```\n[up](#a)",
            &["docs/a.md:4: dead link: docs/a.md has no heading #a"],
        );
    }

    #[test]
    fn a_page_without_a_way_from_the_map_is_found() {
        check_links("no link", "# A", &["docs/a.md: no link leads here from docs/README.md"]);
    }
}
