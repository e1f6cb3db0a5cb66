//! Every law, on the memory journal.

use holdfast_testkit::MemoryJournal;

#[expect(clippy::unused_async, reason = "stores that are made of more need to wait")]
async fn fresh() -> MemoryJournal {
    MemoryJournal::new()
}

holdfast_testkit::journal_laws!(fresh);
holdfast_testkit::ports_laws!(fresh);

/// Writes `module::law` for one law.
macro_rules! law_as_name {
    ({ $names:path } {} $module:ident $law:ident) => {
        $names.push(concat!(stringify!($module), "::", stringify!($law)).to_owned());
    };
}

fn list(names: &mut Vec<String>) {
    holdfast_testkit::each_law! { law_as_name { names } {} }
}

#[test]
fn every_law_that_is_written_is_run() {
    let mut run = Vec::new();
    list(&mut run);
    let mut written = Vec::new();
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/laws")).unwrap() {
        let path = file.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let laws = text.lines().filter_map(|line| line.strip_prefix("pub async fn "));
        written.extend(laws.map(|law| format!("{module}::{}", law.split('(').next().unwrap())));
    }
    run.sort_unstable();
    written.sort_unstable();
    assert_eq!(run, written);
}
