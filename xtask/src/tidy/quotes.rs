//! Code that a document quotes is code that runs: a fenced block below `<!-- from: path -->` is, line by line, in
//! that file.

use super::Finding;

const MARK: &str = "<!-- from: ";

/// A fenced block and the file that it names as its source.
#[derive(Debug, PartialEq, Eq)]
struct Quote<'a> {
    /// Line of the mark, from zero.
    index: usize,
    from: &'a str,
    code: String,
}

/// Quotes that do not stand in their file. `read` gives a file's text.
pub(crate) fn check(path: &str, text: &str, read: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    if !path.ends_with(".md") {
        return Vec::new();
    }
    let differs = |quote: &Quote<'_>| match read(quote.from) {
        None => Some(Finding::at(path, quote.index, format_args!("no file {}", quote.from))),
        // Every file contains an empty block.
        Some(source) if quote.code.is_empty() || !source.contains(&quote.code) => {
            Some(Finding::at(path, quote.index, format_args!("is not what {} says", quote.from)))
        }
        Some(_) => None,
    };
    quotes(text).iter().filter_map(differs).collect()
}

fn quotes(text: &str) -> Vec<Quote<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let marks = lines.iter().enumerate().filter_map(|(index, line)| Some((index, source(line)?)));
    let quote = |(index, from)| {
        let below = lines.iter().skip(index + 1).skip_while(|line| line.is_empty());
        let mut block = below.skip_while(|line| line.starts_with("```")).peekable();
        let mut code = String::new();
        while let Some(line) = block.next_if(|line| !line.starts_with("```")) {
            code.push_str(line);
            code.push('\n');
        }
        Quote { index, from, code }
    };
    marks.map(quote).collect()
}

fn source(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(MARK)?;
    Some(rest.split_once(" -->")?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn findings(document: &str, source: Option<&str>) -> usize {
        check("README.md", document, |_path| source.map(str::to_owned)).len()
    }

    #[test]
    fn quotes_stand_in_their_files() {
        let document = "Call it:\n\n<!-- from: a.py -->\n```python\none\ntwo\n```\nmore\n";
        assert_eq!(findings(document, Some("zero\none\ntwo\nthree\n")), 0);
        assert_eq!(findings(document, Some("one\nthree\ntwo\n")), 1);
        assert_eq!(findings(document, None), 1);
        assert_eq!(findings("<!-- from: a.py -->\n```python\n```\n", Some("one\n")), 1);
    }
}
