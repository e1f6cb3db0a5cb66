//! No cycle between modules that are siblings: a reader who begins with one of them understands it without the
//! others that need it.
//!
//! ```text
//! crate          engine ──▶ store      a cycle, although no file imports the one that imports it:
//! └ engine         ▲          │        a module stands for all that is below it
//!   └ lease        └─ lease ◀─┘
//! ```
//!
//! Every `use` and every path that begins with `crate`, `super` or `self` is followed to the module that it names,
//! through the imports of modules on the way: `super::Order` is an edge to the module that the parent has it from.
//! Below the last module that both ends share, the edge leads from one sibling to another. Parents and children
//! know one another freely.
//!
//! Left out: modules and files of `#[cfg(test)]`, links of documentation, and names that a glob brings in.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Finding,
    tokens::{Token, tokens},
};

/// The names of modules from the root of a crate.
type ModulePath<'a> = Vec<&'a str>;
/// The place at which an edge was seen first: a file, and the index of the line.
type Sight<'a> = (&'a str, usize);
/// The edges between the children of one module.
type Siblings<'a> = BTreeMap<(&'a str, &'a str), Sight<'a>>;

/// Imports that lead from one to the next end somewhere, unless they go in a circle themselves.
const HOPS_MAX: usize = 8;

/// A crate: its modules, what each of them imports, and what each of them names.
#[derive(Debug, Default)]
struct Crate<'a> {
    modules: BTreeSet<ModulePath<'a>>,
    /// By module and by the name that the import gives.
    imports: BTreeMap<(ModulePath<'a>, &'a str), ModulePath<'a>>,
    mentions: Vec<Mention<'a>>,
    of_tests: Vec<ModulePath<'a>>,
}

/// A path as one module spells it.
#[derive(Debug)]
struct Mention<'a> {
    module: ModulePath<'a>,
    path: ModulePath<'a>,
    sight: Sight<'a>,
}

/// The cycles of all crates among `files`: paths in the repository, and their texts.
pub(crate) fn check(files: &[(String, String)]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Crate<'_>> = BTreeMap::new();
    for (path, text) in files {
        if let Some((root, module)) = module_of(path) {
            crates.entry(root).or_default().read(path, module, text);
        }
    }
    crates.iter().flat_map(|(root, krate)| krate.findings(root)).collect()
}

/// The folder of a file's crate, and its module. Programs in the folder of a library are crates of one file.
fn module_of(path: &str) -> Option<(&str, ModulePath<'_>)> {
    let (root, inside) = path.strip_suffix(".rs")?.split_once("/src/")?;
    let module: ModulePath<'_> = match inside {
        "lib" | "main" => Vec::new(),
        _ => inside.split('/').collect(),
    };
    (module.first() != Some(&"bin")).then_some((root, module))
}

impl<'a> Crate<'a> {
    fn read(&mut self, file: &'a str, module: ModulePath<'a>, text: &'a str) {
        self.modules.insert(module.clone());
        let reader = TokenReader { file, tokens: tokens(text), at: 0, within: vec![(module, 0)] };
        reader.run(self);
    }

    fn findings(&self, root: &str) -> Vec<Finding> {
        let mut levels: BTreeMap<&[&str], Siblings<'a>> = BTreeMap::new();
        for mention in self.mentions.iter().filter(|it| !self.is_of_tests(&it.module)) {
            let Some(target) = self.resolve(&mention.module, &mention.path) else { continue };
            let shared = mention.module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (mention.module.get(shared), target.get(shared)) {
                let level = mention.module.get(..shared).unwrap_or_default();
                let siblings = levels.entry(level).or_default();
                siblings.entry((from, to)).or_insert(mention.sight);
            }
        }
        let found = levels.iter().flat_map(|(level, siblings)| {
            circles(siblings).into_iter().map(|circle| finding(root, level, &circle, siblings))
        });
        found.collect()
    }

    fn is_of_tests(&self, module: &[&str]) -> bool {
        self.of_tests.iter().any(|tests| module.starts_with(tests))
    }

    /// The module that `path` leads to as `module` spells it; none outside of the crate.
    fn resolve(&self, module: &[&'a str], path: &[&'a str]) -> Option<ModulePath<'a>> {
        let mut path = path.to_vec();
        let mut at = module.to_vec();
        // Bounded: imports that name each other in a circle do not compile, but are read all the same.
        for hop in 0..HOPS_MAX {
            let mut rest = path.as_slice();
            let start = at.clone();
            while let Some((first, after)) = rest.split_first() {
                match *first {
                    "crate" => at = Vec::new(),
                    "self" => {}
                    "super" => {
                        at.pop();
                    }
                    name if self.has_child(&at, name) => at.push(name),
                    _ => break,
                }
                rest = after;
            }
            let is_ours = hop > 0 || matches!(path.first(), Some(&("crate" | "self" | "super")));
            let import = rest
                .split_first()
                .and_then(|(name, after)| Some((self.imports.get(&(at.clone(), *name))?, after)));
            match import {
                // An import that names itself is one of another crate: `use bytes::Bytes`.
                Some((import, after)) if *import != path => path = [import, after].concat(),
                Some(_) | None if is_ours || at != start => return Some(at),
                Some(_) | None => return None,
            }
        }
        None
    }

    fn has_child(&self, module: &[&'a str], name: &'a str) -> bool {
        self.modules.contains(&[module, &[name]].concat())
    }
}

/// A file that is read token by token.
struct TokenReader<'a> {
    file: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    /// The modules around the token, the innermost last, each with the braces that are open inside it.
    within: Vec<(ModulePath<'a>, usize)>,
}

impl<'a> TokenReader<'a> {
    fn run(mut self, krate: &mut Crate<'a>) {
        let mut is_of_tests = false;
        while let Some(token) = self.tokens.get(self.at).copied() {
            match token.text {
                "#" => is_of_tests |= self.attribute(),
                "mod" => {
                    self.module(krate, is_of_tests);
                    is_of_tests = false;
                }
                // `impl Trait + use<'_>` imports no name.
                "use" if self.next_text() != "<" => {
                    self.at += 1;
                    let mut names = Vec::new();
                    self.tree(&[], &mut names);
                    if !is_of_tests {
                        self.keep(krate, names, token.index);
                    }
                    is_of_tests = false;
                }
                "crate" | "super" | "self" => self.path(krate, token.index),
                "{" => self.open(),
                "}" => self.close(),
                // The item below an attribute may begin with its visibility.
                "pub" | "(" | ")" => self.at += 1,
                _ => {
                    is_of_tests = false;
                    self.at += 1;
                }
            }
        }
    }

    fn text(&self) -> &'a str {
        self.tokens.get(self.at).map_or("", |token| token.text)
    }

    fn next_text(&self) -> &'a str {
        self.tokens.get(self.at + 1).map_or("", |token| token.text)
    }

    fn here(&self) -> ModulePath<'a> {
        self.within.last().map(|(module, _)| module.clone()).unwrap_or_default()
    }

    fn open(&mut self) {
        self.at += 1;
        if let Some((_, braces)) = self.within.last_mut() {
            *braces += 1;
        }
    }

    fn close(&mut self) {
        self.at += 1;
        let n_modules = self.within.len();
        match self.within.last_mut() {
            Some((_, braces)) if *braces > 0 => *braces -= 1,
            // The module of the file itself ends with the file.
            Some(_) if n_modules > 1 => drop(self.within.pop()),
            Some(_) | None => {}
        }
    }

    /// Reads an attribute: true if it is `#[cfg(test)]`, or another condition that only tests meet.
    fn attribute(&mut self) -> bool {
        let mut depth = 0_usize;
        let mut words = Vec::new();
        while self.at < self.tokens.len() {
            match self.text() {
                "[" => depth += 1,
                "]" if depth <= 1 => {
                    self.at += 1;
                    break;
                }
                "]" => depth -= 1,
                word => words.push(word),
            }
            self.at += 1;
        }
        let has = |word| words.contains(&word);
        has("cfg") && has("test") && !has("not") && !has("any")
    }

    /// `mod name;` or `mod name {`.
    fn module(&mut self, krate: &mut Crate<'a>, is_of_tests: bool) {
        self.at += 1;
        let mut module = self.here();
        module.push(self.text());
        self.at += 1;
        if is_of_tests {
            krate.of_tests.push(module.clone());
        }
        if self.text() == "{" {
            self.at += 1;
            krate.modules.insert(module.clone());
            self.within.push((module, 0));
        }
    }

    /// The paths of a `use`, each with the name that it gives here.
    fn tree(&mut self, before: &[&'a str], names: &mut Vec<(ModulePath<'a>, &'a str)>) {
        let mut path = before.to_vec();
        let mut name = "";
        loop {
            match self.text() {
                "{" => {
                    self.at += 1;
                    while !["}", ";", ""].contains(&self.text()) {
                        self.tree(&path, names);
                        if self.text() == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                "::" => {}
                "as" => {
                    self.at += 1;
                    name = self.text();
                }
                ";" | "," | "}" | "" => break,
                // `use a::b::{self}` imports `b`.
                "self" if !path.is_empty() => {}
                word => path.push(word),
            }
            self.at += 1;
        }
        if name.is_empty() {
            name = path.last().copied().unwrap_or_default();
        }
        names.push((path, name));
    }

    fn keep(&self, krate: &mut Crate<'a>, names: Vec<(ModulePath<'a>, &'a str)>, index: usize) {
        for (path, name) in names {
            krate.imports.insert((self.here(), name), path.clone());
            let sight = (self.file, index);
            krate.mentions.push(Mention { module: self.here(), path, sight });
        }
    }

    /// A path in code.
    fn path(&mut self, krate: &mut Crate<'a>, index: usize) {
        let mut path = vec![self.text()];
        self.at += 1;
        while self.text() == "::" {
            self.at += 1;
            path.push(self.text());
            self.at += 1;
        }
        // `self` by itself is a value, `crate` and `super` by themselves are a visibility.
        if path.len() > 1 {
            let sight = (self.file, index);
            krate.mentions.push(Mention { module: self.here(), path, sight });
        }
    }
}

/// Groups of siblings each of which reaches all others of its group.
fn circles<'a>(siblings: &Siblings<'a>) -> Vec<Vec<&'a str>> {
    let mut circles: Vec<Vec<&str>> = Vec::new();
    for module in siblings.keys().map(|(from, _)| *from).collect::<BTreeSet<_>>() {
        if circles.iter().any(|circle| circle.contains(&module)) {
            continue;
        }
        let reached = reach(siblings, module);
        let back = |other: &&str| reach(siblings, other).contains(module);
        let circle: Vec<_> = reached.iter().copied().filter(back).collect();
        if !circle.is_empty() {
            circles.push(circle);
        }
    }
    circles
}

fn reach<'a>(siblings: &Siblings<'a>, start: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = vec![start];
    while let Some(module) = next.pop() {
        let steps = siblings.keys().filter(|(from, _)| *from == module);
        next.extend(steps.map(|(_, to)| *to).filter(|to| reached.insert(*to)));
    }
    reached
}

fn finding(root: &str, level: &[&str], circle: &[&str], siblings: &Siblings<'_>) -> Finding {
    let inside = |(from, to): &(&str, &str)| circle.contains(from) && circle.contains(to);
    let edges = siblings.iter().filter(|(edge, _)| inside(edge));
    let edges: Vec<String> = edges
        .map(|((from, to), (file, index))| format!("{from} → {to} ({file}:{})", index + 1))
        .collect();
    let place = [&[root, "src"], level].concat().join("/");
    let (n_modules, modules) = (circle.len(), circle.join(", "));
    let what = format_args!("a cycle of {n_modules} modules ({modules}): {}", edges.join("; "));
    Finding::new(place, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_files(files: &[(&str, &str)], expected: &[&str]) {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| (format!("a/src/{path}"), (*text).to_owned()))
            .collect();
        let findings: Vec<String> = check(&files).iter().map(ToString::to_string).collect();
        assert_eq!(findings, expected);
    }

    #[test]
    fn a_cycle_of_two_is_found() {
        check_files(
            &[("b.rs", "\nuse crate::c::C;"), ("c.rs", "fn f() { crate::b::g() }")],
            &["a/src: a cycle of 2 modules (b, c): b → c (a/src/b.rs:2); c → b (a/src/c.rs:1)"],
        );
    }

    #[test]
    fn a_module_stands_for_all_below_it() {
        check_files(
            &[
                ("b.rs", "mod d;"),
                ("b/d.rs", "use super::super::c::{self, C};"),
                ("c.rs", "mod e;"),
                ("c/e.rs", "use crate::{b::d::D, f};"),
                ("f.rs", ""),
            ],
            &["a/src: a cycle of 2 modules (b, c): b → c (a/src/b/d.rs:1); c → b (a/src/c/e.rs:1)"],
        );
    }

    #[test]
    fn a_cycle_below_a_module_is_found_by_all_its_edges() {
        check_files(
            &[
                ("b/c.rs", "use super::d::D;"),
                ("b/d.rs", "use super::e;"),
                ("b/e.rs", "use crate::b::c::C; use super::d::D;"),
                ("b.rs", "mod c; mod d; mod e;"),
            ],
            &["a/src/b: a cycle of 3 modules (c, d, e): c → d (a/src/b/c.rs:1); \
               d → e (a/src/b/d.rs:1); e → c (a/src/b/e.rs:1); e → d (a/src/b/e.rs:1)"],
        );
    }

    #[test]
    fn an_import_of_the_parent_leads_to_its_module() {
        check_files(
            &[
                ("lib.rs", "mod b; mod c; pub use b::B; use bytes::Bytes;"),
                ("b.rs", "use crate::c::C;"),
                ("c.rs", "use crate::B; use crate::Bytes; use bytes::Bytes;"),
            ],
            &["a/src: a cycle of 2 modules (b, c): b → c (a/src/b.rs:1); c → b (a/src/c.rs:1)"],
        );
    }

    #[test]
    fn parents_children_and_one_way_streets_are_no_cycle() {
        check_files(
            &[
                ("lib.rs", "mod b; mod c; use b::B;"),
                ("b.rs", "mod d; use self::d::D; use crate::c::C;"),
                ("b/d.rs", "use super::B; use crate::c; pub(super) struct D; // crate::b\n"),
                ("c.rs", "/// [`crate::b`]\nuse std::b; fn f(self) { \"crate::b::B\" }"),
            ],
            &[],
        );
    }

    #[test]
    fn a_capture_is_no_import() {
        let c = "fn f() -> impl T + use<'_> { crate::b::g(); let a = 1; }";
        check_files(
            &[("b.rs", "use crate::c::C;"), ("c.rs", c)],
            &["a/src: a cycle of 2 modules (b, c): b → c (a/src/b.rs:1); c → b (a/src/c.rs:1)"],
        );
    }

    #[test]
    fn tests_may_know_everybody() {
        check_files(
            &[
                ("b.rs", "use crate::c::C;"),
                (
                    "c.rs",
                    "#[cfg(test)]\npub(crate) mod worlds;\n#[cfg(test)]\nuse crate::b::B;\n\
                          #[cfg(test)]\n#[expect(x)]\nmod tests { fn f() { use crate::b; {} } }",
                ),
                ("c/worlds.rs", "use crate::b::B;"),
            ],
            &[],
        );
    }

    #[test]
    fn what_follows_tests_is_judged() {
        let c = "#[cfg(test)]\nmod tests { fn f() {} }\nuse crate::b;";
        check_files(
            &[("b.rs", "use crate::c::C;"), ("c.rs", c)],
            &["a/src: a cycle of 2 modules (b, c): b → c (a/src/b.rs:1); c → b (a/src/c.rs:3)"],
        );
    }
}
