//! What holds in every reachable state: I1 to I9 and L1 of the operation's specification, that the
//! counters of an API key count what the book says, those by the minute what the specification's table
//! says of every ending, that no more runs in a minute than may, that no generation begins before its
//! time, that a cancelled operation does not run again, and that another request gets a conflict.

use crate::configuration::Spec;
use crate::explore::Explorer;
use crate::world::{
    Ghost, Health, Hold, Lease, MINUTES, OPERATIONS, Process, Row, Stage, Stand, Task, Telling,
    World,
};

/// A name, and what it says of a state.
pub(crate) type Invariant = (&'static str, fn(&Explorer, &World) -> bool);

pub(crate) const INVARIANTS: &[Invariant] = &[
    ("I1", |_, world| each(world, |ghost, _| ghost.runs <= 1)),
    ("I2", |_, world| each(world, |ghost, _| is_charged_once(ghost))),
    ("I3", |_, world| {
        each(world, |ghost, row| {
            matches!(ghost.hold, Hold::Active(_))
                == row.is_some_and(|row| matches!(row.stand, Stand::Leased | Stand::Recorded(_)))
        })
    }),
    ("I4", |_, world| {
        each(world, |ghost, row| {
            matches!(ghost.hold, Hold::Captured(_))
                == row.is_some_and(|row| matches!(row.stand, Stand::Completed(_)))
        })
    }),
    ("I5", |explorer, world| is_balanced(explorer, world)),
    ("I6", |_, world| each(world, |ghost, _| ghost.telling != Telling::Contradicted)),
    ("I7", |_, world| each(world, |ghost, _| ghost.captured == 0 || ghost.runs >= 1)),
    ("I8", |_, world| {
        each(world, |ghost, row| {
            row.is_none_or(|row| {
                row.generation == ghost.generation && Some(row.request) == ghost.bound
            })
        })
    }),
    ("I9", |_, world| {
        each(world, |ghost, row| {
            (ghost.usages > 0) == row.is_some_and(|row| row.charge().is_some())
        })
    }),
    ("L1", comes_to_rest),
    ("counters", |_, world| {
        let active = active(world);
        world.wallet.running == active.count && world.wallet.spend == active.sum + captured(world)
    }),
    ("minutes", |_, world| {
        (0..MINUTES).all(|minute| {
            let sum = |of: fn(&Ghost) -> [i16; MINUTES]| {
                world.ghosts.iter().map(|ghost| of(ghost)[minute]).sum::<i16>()
            };
            world.wallet.requests[minute] == sum(|ghost| ghost.requests)
                && world.wallet.tokens[minute] == sum(|ghost| ghost.tokens)
        })
    }),
    ("limit", |explorer, world| {
        let runs = |minute: usize| world.ghosts.iter().map(move |ghost| ghost.runs_in[minute]);
        let within = |max: u8| (0..MINUTES).all(|minute| runs(minute).sum::<u8>() <= max);
        explorer.configuration.requests_per_minute.is_none_or(within)
    }),
    ("haste", |_, world| each(world, |ghost, _| !ghost.hasty)),
    // Nobody retries a cancelled operation into a run.
    ("cancelled", |_, world| {
        each(world, |_, row| !row.is_some_and(|row| row.cancel_asked && row.stand == Stand::Open))
    }),
    ("conflict", |explorer, world| {
        let is_own = |(task, spec): (&Task, &Spec)| match task.stage {
            Stage::Owning(row) | Stage::Calling(row, _) | Stage::Concluding(row, _) => {
                row.request == spec.request
            }
            Stage::Claiming(_)
            | Stage::Looking
            | Stage::Done { .. }
            | Stage::Dead { .. }
            | Stage::Gone => true,
        };
        world.tasks.iter().zip(&explorer.configuration.tasks).all(is_own)
            && each(world, |ghost, _| ghost.telling != Telling::Leaked)
    }),
];

fn each(world: &World, holds: impl Fn(&Ghost, Option<Row>) -> bool) -> bool {
    world.ghosts.iter().zip(world.rows).all(|(ghost, row)| holds(ghost, row))
}

fn is_charged_once(ghost: &Ghost) -> bool {
    let within = match ghost.hold {
        Hold::Captured(hold) => ghost.captured <= i16::from(hold),
        Hold::None | Hold::Active(_) | Hold::Released => ghost.captured == 0,
    };
    ghost.usages <= 1 && ghost.settlements <= 1 && within
}

fn is_balanced(explorer: &Explorer, world: &World) -> bool {
    let wallet = &world.wallet;
    let deposits = i16::from(explorer.configuration.funds);
    wallet.available >= 0
        && wallet.held == active(world).sum
        && wallet.available + wallet.held + captured(world) == deposits
}

struct Active {
    count: i16,
    sum: i16,
}

fn active(world: &World) -> Active {
    world.ghosts.iter().fold(Active { count: 0, sum: 0 }, |active, ghost| match ghost.hold {
        Hold::Active(hold) => Active { count: active.count + 1, sum: active.sum + i16::from(hold) },
        Hold::None | Hold::Captured(_) | Hold::Released => active,
    })
}

fn captured(world: &World) -> i16 {
    world.ghosts.iter().map(|ghost| ghost.captured).sum()
}

/// L1: every task hangs, the store is well, processes that are up keep beating, those that are not
/// do not, and time passes. Then reaping and settling alone bring each operation to rest.
fn comes_to_rest(explorer: &Explorer, world: &World) -> bool {
    let mut later = *world;
    later.wallet.health = Health::Mended;
    for row in later.rows.iter_mut().flatten() {
        row.overdue = true;
    }
    for lease in later.leases.iter_mut().flatten() {
        let up = later.processes[usize::from(lease.process)] == Process::Up;
        lease.lease = if up { Lease::Live } else { Lease::PastGrace };
    }
    for operation in (0..).take(OPERATIONS) {
        match later.row(operation).map(|row| row.stand) {
            Some(Stand::Leased) => {
                if explorer.reap(&mut later, operation).is_none() {
                    explorer.disown(&mut later, operation);
                }
            }
            Some(Stand::Recorded(_)) => {
                explorer.settle(&mut later, operation);
            }
            Some(
                Stand::Open
                | Stand::Completed(_)
                | Stand::Refused
                | Stand::Abandoned
                | Stand::Cancelled,
            )
            | None => {}
        }
    }
    each(&later, |ghost, row| {
        let rests = row.is_none_or(|row| match row.stand {
            Stand::Leased | Stand::Recorded(_) => false,
            Stand::Open
            | Stand::Completed(_)
            | Stand::Refused
            | Stand::Abandoned
            | Stand::Cancelled => true,
        });
        rests && !matches!(ghost.hold, Hold::Active(_))
    })
}
