//! Events of a command, written in its transaction; of a refusal too, where it has one.

use holdfast_domain::admin::{AccountEffect, events, refusal_event};
use sea_orm::Statement;

use super::reads::Findings;
use super::{Errand, Mode, Unwritten, Verdict};
use crate::event;

impl Errand {
    /// Judges: the statements to be run, and the verdict once they are committed. None where the sums that
    /// were taken for it are outdated.
    pub(crate) fn conclude(&self, findings: &Findings) -> Option<(Vec<Statement>, Verdict)> {
        let refusal = match self.judge(findings) {
            Ok((statements, receipt)) => return Some((statements, Ok(receipt))),
            Err(Unwritten::Refused(refusal)) => refusal,
            Err(Unwritten::SumsOutdated) => return None,
        };
        // It binds nothing and changes nothing, but somebody should know: committed all the same.
        let event = refusal_event(&self.command, &findings.facts, &refusal);
        let statements =
            event.filter(|event| self.mode == Mode::Commit && self.interest.wants(event.kind));
        let statements = statements.map(|it| event::insert(self.dialect, &it, findings.facts.now));
        Some((statements.into_iter().collect(), Err(refusal)))
    }

    /// Statements of the events that somebody could want of an effect.
    pub(super) fn events(&self, findings: &Findings, effect: &AccountEffect) -> Vec<Statement> {
        let told = events(&self.command, &findings.facts, effect).into_iter();
        let wanted: Vec<_> = told.filter(|event| self.interest.wants(event.kind)).collect();
        event::insert_all(self.dialect, &wanted, findings.facts.now)
    }
}
