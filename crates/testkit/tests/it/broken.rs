//! Every law can fail: for each there is a journal with one defect, and on it the law does.

mod commands;
mod defect;
mod journal;
mod ports;
mod refusals;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use holdfast_testkit::MemoryJournal;
use holdfast_testkit::laws;

use self::defect::{Defect, TABLE};
use self::journal::DefectState;

/// A journal in memory, right but for one thing.
pub(crate) struct BrokenJournal {
    inner: MemoryJournal,
    defect: Option<Defect>,
    kept: Mutex<DefectState>,
}

impl BrokenJournal {
    fn by(defect: Option<Defect>) -> Self {
        Self { inner: MemoryJournal::new(), defect, kept: Mutex::new(DefectState::default()) }
    }

    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    fn kept(&self) -> MutexGuard<'_, DefectState> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A law by its name.
struct Law {
    name: &'static str,
    run: fn(&BrokenJournal) -> Pin<Box<dyn Future<Output = ()> + '_>>,
}

/// Writes one law down.
macro_rules! law_as_value {
    ({ $laws:path } {} $module:ident $law:ident) => {
        $laws.push(Law {
            name: concat!(stringify!($module), "::", stringify!($law)),
            run: |stores| Box::pin(laws::$module::$law(stores)),
        });
    };
}

fn list(laws: &mut Vec<Law>) {
    holdfast_testkit::each_law! { law_as_value { laws } {} }
}

fn every_law() -> Vec<Law> {
    let mut laws = Vec::new();
    list(&mut laws);
    laws
}

#[test]
fn every_law_has_a_journal_that_breaks_it() {
    let laws: BTreeSet<&str> = every_law().iter().map(|law| law.name).collect();
    let broken: BTreeSet<&str> = TABLE.iter().map(|(_, law)| *law).collect();
    assert_eq!(broken, laws);
}

#[test]
fn every_law_fails_on_the_journal_that_breaks_it_and_on_no_whole_one() {
    let laws = every_law();
    let mut wrong = Vec::new();
    for (defect, name) in TABLE {
        let law = laws.iter().find(|law| law.name == *name).unwrap();
        match complaint(law, Some(*defect)) {
            // Where the law itself complains: not where the journal stumbles over its defect.
            Some(place) if place.contains("src/laws/") => {}
            found @ (Some(_) | None) => wrong.push(format!("{name}, {defect:?}: {found:?}")),
        }
        if let Some(place) = complaint(law, None) {
            wrong.push(format!("{name}, whole: {place}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

thread_local! {
    /// Where this thread panicked last, while it listens.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs a law and says where it panicked, if it did.
fn complaint(law: &Law, defect: Option<Defect>) -> Option<String> {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let is_expected = PLACE.with_borrow_mut(|place| match place {
                Some(place) => {
                    *place = info.location().map(ToString::to_string).unwrap_or_default();
                    true
                }
                None => false,
            });
            if !is_expected {
                usual(info);
            }
        }));
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let broken = BrokenJournal::by(defect);
    PLACE.set(Some(String::new()));
    let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on((law.run)(&broken))));
    let place = PLACE.take();
    ended.err().and(place)
}
