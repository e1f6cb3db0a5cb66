//! The rules as they are: every world keeps every invariant, and reaches what it is about.

use stateright::{Checker, Model};

use crate::check::{explore, is_large};
use crate::configuration::{Configuration, Guarantee, May, Spec};
use crate::explore::{Action, Explorer, Outcome};
use crate::invariants::Invariant;
use crate::world::{Answer, Process, Row, Run, Stage, Stand, World, minute};

const ONE: Spec = Spec::FIRST;
const OTHER_OPERATION: Spec = Spec::FIRST.operation(1);

const COMPLETED: Invariant =
    ("completed", |_, world| any(world, |row| matches!(row.stand, Stand::Completed(_))));
const REFUSED: Invariant = ("refused", |_, world| any(world, |row| row.stand == Stand::Refused));
const REOPENED: Invariant =
    ("reopened", |_, world| any(world, |row| row.generation == 2 && row.charge().is_some()));
const REOPENED_TWICE: Invariant =
    ("reopened twice", |_, world| any(world, |row| row.generation == 3 && row.charge().is_some()));
/// Without a lost commit nobody else speaks for a dead task, and one that sent something is given up.
const DISOWNED_OPEN: Invariant = ("disowned open", |_, world| {
    owners(world, |row, owner| row.stand == Stand::Open && owner == Stage::Dead { sent: false })
});
const DISOWNED_ABANDONED: Invariant = ("disowned abandoned", |_, world| {
    owners(world, |row, owner| row.stand == Stand::Abandoned && owner == Stage::Dead { sent: true })
});
const ABANDONED_BY_REAP: Invariant = ("abandoned by reap", |_, world| {
    owners(world, |row, owner| {
        let silent = matches!(owner, Stage::Owning(_) | Stage::Calling(..) | Stage::Gone);
        row.stand == Stand::Abandoned && silent
    })
});
const LATE_RESULT: Invariant = ("late result", |_, world| {
    world.tasks.iter().any(|task| task.stage == Stage::Done { late: true })
});
const LOST_CLAIM_LANDED: Invariant = ("lost claim landed", |_, world| {
    owners(world, |row, owner| row.stand == Stand::Leased && matches!(owner, Stage::Claiming(_)))
});
const LOST_RESULT_LANDED: Invariant = ("lost result landed", |_, world| {
    owners(world, |row, owner| row.charge().is_some() && matches!(owner, Stage::Concluding(..)))
});
const LANDED_AFTER_VERDICT: Invariant = ("landed after its verdict", |_, world| {
    owners(world, |row, owner| row.stand == Stand::Leased && owner == Stage::Done { late: false })
});
/// In a world without cancels T1, T2a and T2b make version three, and T1 and T2 version two.
const RECORDED_THEN_SETTLED: Invariant = ("recorded, then settled", |_, world| {
    any(world, |row| {
        matches!(row.stand, Stand::Completed(_)) && row.generation == 1 && row.version == 3
    })
});
const CANCEL_ASKED: Invariant = ("completed after a cancel", |_, world| {
    any(world, |row| row.cancel_asked && matches!(row.stand, Stand::Completed(_)))
});
const CANCELLED_UNSENT: Invariant = ("cancelled before it was sent", |_, world| {
    any(world, |row| row.cancel_asked && row.stand == Stand::Abandoned)
        && world.ghosts.iter().all(|ghost| ghost.runs == 0)
});
const TWO_OF_ONE_NAME: Invariant =
    ("two live processes of one name", |_, world| world.processes[..2] == [Process::Up; 2]);
const BOTH_CHARGED: Invariant =
    ("both operations in turn", |_, world| world.ghosts.iter().all(|ghost| ghost.captured > 0));
const REOPENED_AFTER_A_WAIT: Invariant = ("reopened after a wait", |_, world| {
    any(world, |row| row.generation == 4 && row.charge().is_some())
});
const BOTH_MINUTES: Invariant =
    ("counted in both minutes", |_, world| world.wallet.requests.iter().all(|used| *used > 0));
const ENDED_A_MINUTE_LATER: Invariant = ("ended a minute later", |_, world| {
    let was_first = |row: &Row| minute(row.admitted) == 0 && row.charge().is_some();
    minute(world.clock) == 1 && any(world, was_first)
});
const TOLD_THE_CHARGE: Invariant = ("told the charge alone", |_, world| {
    let told = |credential: usize| world.ghosts[0].told[credential];
    matches!(told(0), Some(Answer::Charge(_))) && matches!(told(1), Some(Answer::Charge(_)))
});
const RAN_TWICE_CHARGED_ONCE: Invariant = ("two runs, one charge", |_, world| {
    world.ghosts.iter().any(|ghost| ghost.runs > 1 && ghost.captured > 0)
});

fn any(world: &World, holds: impl Fn(&Row) -> bool) -> bool {
    world.rows.iter().flatten().any(holds)
}

/// Of some row and the task whose claim it carries.
fn owners(world: &World, holds: impl Fn(&Row, Stage) -> bool) -> bool {
    any(world, |row| holds(row, world.stage(row.claim)))
}

/// Four callers of one key on one process: one comes at another price, one with another request.
#[test]
fn many_tasks_of_one_process() {
    let may = [May::LoseCommits, May::Die, May::PassDeadline];
    let tasks = [ONE, ONE, ONE.dearer(), ONE.another()];
    let reached = [
        COMPLETED,
        REOPENED,
        REOPENED_TWICE,
        DISOWNED_ABANDONED,
        ABANDONED_BY_REAP,
        LATE_RESULT,
        LOST_CLAIM_LANDED,
        LOST_RESULT_LANDED,
    ];
    explore(Configuration::new(&tasks, &may), &reached);
}

/// Every generation may be the one that runs.
#[test]
fn reopenings() {
    let may = [May::LoseCommits, May::PassDeadline];
    let tasks = [ONE, ONE.dearer(), ONE, ONE];
    explore(Configuration::new(&tasks, &may), &[REOPENED, REOPENED_TWICE, LATE_RESULT]);
    if is_large() {
        let may = [May::LoseCommits, May::PassDeadline, May::Die, May::Refuse];
        explore(Configuration::new(&tasks, &may), &[REOPENED_TWICE]);
    }
}

/// Without lost commits, so that it is the disowning which opens.
#[test]
fn dead_tasks_of_live_processes() {
    let may = [May::Die, May::PassDeadline, May::Refuse];
    let configuration = Configuration::new(&[ONE, ONE.dearer(), ONE, ONE], &may);
    explore(configuration, &[DISOWNED_OPEN, DISOWNED_ABANDONED, REOPENED_TWICE, REFUSED]);
}

/// A process, its successor of the same name, which may come while it lives, and one of another name.
#[test]
fn processes_and_leases() {
    let may = [May::Die, May::Crash, May::Expire, May::Leave];
    let tasks = [ONE, ONE.process(1), ONE.process(2)];
    let configuration = Configuration::new(&tasks, &may).processes(&[0, 0, 1]);
    let reached = [TWO_OF_ONE_NAME, COMPLETED, DISOWNED_OPEN, ABANDONED_BY_REAP, LATE_RESULT];
    explore(configuration, &reached);
    if is_large() {
        let may =
            [May::Die, May::Crash, May::Expire, May::Leave, May::LoseCommits, May::PassDeadline];
        let configuration = Configuration::new(&tasks, &may).processes(&[0, 0, 1]);
        explore(configuration, &[TWO_OF_ONE_NAME, LOST_CLAIM_LANDED]);
    }
}

/// The successor of a process, with tasks of both, and every fault.
#[test]
fn processes_and_lost_commits() {
    let may = [May::Die, May::Crash, May::Expire, May::Leave, May::LoseCommits, May::PassDeadline];
    let tasks = [ONE, ONE, ONE.process(1)];
    let configuration = Configuration::new(&tasks, &may).processes(&[0, 0]);
    explore(configuration, &[TWO_OF_ONE_NAME, LOST_CLAIM_LANDED, REOPENED_TWICE]);
    let may = [&may[..], &[May::Cancel]].concat();
    let configuration = Configuration::new(&tasks[1..], &may).processes(&[0, 0]);
    explore(configuration, &[TWO_OF_ONE_NAME, CANCEL_ASKED, CANCELLED_UNSENT, LOST_RESULT_LANDED]);
}

/// Two operations, and room for one hold at a time.
#[test]
fn one_wallet_for_two() {
    let may = [May::LoseCommits, May::PassDeadline, May::Die];
    let tasks = [ONE, ONE.dearer().operation(1), ONE];
    let reached = [COMPLETED, BOTH_CHARGED, REOPENED, LATE_RESULT];
    explore(Configuration::new(&tasks, &may).funds(2), &reached);
    if is_large() {
        let may = [&may[..], &[May::Break]].concat();
        let tasks = [ONE, ONE.dearer().operation(1), ONE, OTHER_OPERATION];
        explore(Configuration::new(&tasks, &may).funds(2), &[BOTH_CHARGED]);
    }
}

/// A store that promises less than it should: a lost commit may land after a later offer of it was
/// answered. Nothing that is promised to a caller rests on the store's waiting.
#[test]
fn commits_that_land_after_their_verdict() {
    let may = [May::LoseCommits, May::PassDeadline, May::Die, May::LandAfterVerdict];
    let tasks = [ONE, OTHER_OPERATION, ONE];
    let reached = [LANDED_AFTER_VERDICT, LOST_CLAIM_LANDED, LATE_RESULT];
    explore(Configuration::new(&tasks, &may).funds(2), &reached);
}

/// A store that refuses, for a time, whatever moves money.
#[test]
fn refused_settlements() {
    let may = [May::LoseCommits, May::Break, May::PassDeadline, May::Die];
    let tasks = [ONE, ONE];
    let reached = [RECORDED_THEN_SETTLED, LATE_RESULT, REOPENED];
    explore(Configuration::new(&tasks, &may), &reached);
    let may = [&may[..], &[May::Cancel, May::Purge, May::Refuse]].concat();
    explore(Configuration::new(&tasks, &may), &[CANCEL_ASKED, REFUSED]);
    if is_large() {
        explore(Configuration::new(&[ONE, ONE, ONE], &may), &[REOPENED_TWICE]);
    }
}

/// Two credentials of one API key; results are deleted some day.
#[test]
fn sealed_and_purged_results() {
    let may = [May::LoseCommits, May::PassDeadline, May::Purge, May::Refuse];
    let tasks = [ONE, ONE.credential(1), ONE, ONE];
    explore(Configuration::new(&tasks, &may), &[TOLD_THE_CHARGE, REFUSED, REOPENED_TWICE]);
}

/// Asked at any moment: before anything was sent, while it runs, between two routes, as it ends.
#[test]
fn cancels() {
    let may = [May::Cancel, May::LoseCommits, May::Die, May::PassDeadline, May::Refuse];
    let configuration = Configuration::new(&[ONE, ONE.dearer()], &may).routes(2);
    explore(configuration, &[CANCEL_ASKED, CANCELLED_UNSENT, REFUSED, LATE_RESULT]);
}

/// A key that is retried while it is open, over two minutes and the time that its fourth generation
/// has to wait.
#[test]
fn limits_by_the_minute() {
    let limited = |tasks: &[Spec], may: &[May]| {
        Configuration::new(tasks, &[may, &[May::Tick]].concat()).requests_per_minute(2)
    };
    explore(limited(&[ONE, ONE, ONE, ONE], &[]), &[REOPENED_AFTER_A_WAIT]);
    let may = [May::PassDeadline, May::Refuse];
    let tasks = [ONE, ONE.dearer().operation(1)];
    let reached = [BOTH_CHARGED, BOTH_MINUTES, ENDED_A_MINUTE_LATER, REFUSED];
    explore(limited(&tasks, &may), &reached);
    let may = [May::LoseCommits, May::Die, May::Cancel];
    explore(limited(&[ONE, ONE], &may), &[CANCELLED_UNSENT, ENDED_A_MINUTE_LATER]);
}

#[test]
fn two_routes() {
    let may = [May::LoseCommits, May::PassDeadline, May::Die, May::Refuse];
    let tasks = [ONE, ONE, ONE];
    explore(Configuration::new(&tasks, &may).routes(2), &[COMPLETED, REOPENED_TWICE, REFUSED]);
}

/// I1 is not promised; everything else is.
#[test]
fn one_charge() {
    let may = [May::LoseCommits, May::PassDeadline, May::Die];
    let tasks = [ONE, ONE, ONE];
    let configuration = Configuration::new(&tasks, &may).routes(2);
    let configuration = configuration.guarantee(Guarantee::OneCharge);
    explore(configuration, &[RAN_TWICE_CHARGED_ONCE, REOPENED_TWICE]);
}

/// Each sign of a dead owner is enough: its lease ended long ago, another process has its name, its
/// name is free, its deadline has passed.
#[test]
fn every_way_to_reap() {
    for may in [May::Expire, May::Leave, May::PassDeadline] {
        explore(Configuration::new(&[ONE], &[may]), &[ABANDONED_BY_REAP]);
    }
    let successor = Configuration::new(&[ONE], &[May::Crash]).processes(&[0, 0]);
    explore(successor, &[ABANDONED_BY_REAP]);
}

/// Without any such sign nobody ends what a task still runs.
#[test]
fn a_live_owner_is_left_alone() {
    let may = [May::LoseCommits, May::Cancel, May::Break, May::Refuse];
    let mut explorer = Explorer::new(Configuration::new(&[ONE, ONE, ONE], &may));
    let is_left = |explorer: &Explorer, world: &World| !ABANDONED_BY_REAP.1(explorer, world);
    explorer.kept.push(("left alone", is_left));
    let checker = explorer.checker().spawn_bfs().join();
    checker.assert_no_discovery("left alone");
}

/// What is false is found, with a way to it.
#[test]
fn a_false_invariant_falls() {
    let mut explorer = Explorer::new(Configuration::new(&[ONE], &[]));
    explorer.kept = vec![("nothing is completed", |explorer, world| !COMPLETED.1(explorer, world))];
    let checker = explorer.checker().spawn_bfs().join();
    let trace = checker.discovery("nothing is completed").unwrap();
    let way = [
        Action::Offer(0),
        Action::Send(0, Run::Runs),
        Action::Answered(0, Outcome::Finished),
        Action::Offer(0),
    ];
    assert_eq!(trace.into_actions(), way);
}

#[test]
#[should_panic(expected = "not reached: [\"two runs, one charge\"]")]
fn what_cannot_be_reached_is_missed() {
    explore(Configuration::new(&[ONE, ONE], &[]), &[RAN_TWICE_CHARGED_ONCE]);
}
