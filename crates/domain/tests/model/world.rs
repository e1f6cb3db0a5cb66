//! One state of the explored world: rows, money, node rows, tasks, and what only the model knows
//! (ghosts). Everything is small and `Copy`, so that millions of states fit into memory.
//!
//! Time is not a number here but for the clock that limits and reopenings look at: it has a few
//! instants, in two minutes. A lease that ends, a grace that passes and a deadline that passes are
//! events which may happen at any moment.

/// Most operations, tasks, processes and node names of a configuration.
pub(crate) const OPERATIONS: usize = 2;
pub(crate) const TASKS: usize = 4;
pub(crate) const PROCESSES: usize = 3;
pub(crate) const NAMES: usize = 2;
/// The instants of the clock, in seconds of the first minute. The second is less than two seconds
/// after the first and in the next minute, the third is two seconds after both.
pub(crate) const INSTANTS: [u8; 3] = [59, 60, 62];
pub(crate) const MINUTES: usize = 2;

/// A state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) rows: [Option<Row>; OPERATIONS],
    pub(crate) tasks: [Task; TASKS],
    /// Offers whose answers were lost and that may land yet, by task.
    pub(crate) limbo: [Option<Offer>; TASKS],
    /// The node rows by name.
    pub(crate) leases: [Option<NodeRow>; NAMES],
    pub(crate) processes: [Process; PROCESSES],
    pub(crate) wallet: Wallet,
    pub(crate) ghosts: [Ghost; OPERATIONS],
    /// Which of [`INSTANTS`] it is.
    pub(crate) clock: u8,
}

/// An operation's row: [`holdfast_domain::Operation`] without what never differs here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) stand: Stand,
    pub(crate) generation: u8,
    /// The task whose claim id it carries.
    pub(crate) claim: u8,
    /// The process through which it is leased.
    pub(crate) process: u8,
    pub(crate) hold: u8,
    /// At which of [`INSTANTS`] this generation was admitted.
    pub(crate) admitted: u8,
    /// Whether its deadline has passed.
    pub(crate) overdue: bool,
    pub(crate) cancel_asked: bool,
    pub(crate) request: Request,
    pub(crate) version: u8,
    pub(crate) content: Option<Content>,
}

/// A phase, with what was metered where there is a usage record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stand {
    Leased,
    Recorded(u8),
    Open,
    Completed(u8),
    Refused,
    Abandoned,
    /// Abandoned, and open before.
    Cancelled,
}

/// Requests that a key may come with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Request {
    This,
    Another,
}

/// A sealed result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Content {
    pub(crate) credential: u8,
    /// The task that wrote it.
    pub(crate) author: u8,
}

/// What a task offers to the store: an event, judged over the row that the task has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Offer {
    pub(crate) seen: Option<Row>,
    pub(crate) word: Word,
}

/// The events that a task itself brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Word {
    Claim,
    Finish,
    Record,
    NotRun,
    Refuse,
    GiveUp,
}

/// One caller's request and the task that serves it. Its number is also its claim id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    pub(crate) stage: Stage,
    /// Routes that were tried.
    pub(crate) routes: u8,
    /// Whether a byte of it may have reached a provider: what its process remembers of it.
    pub(crate) sent: bool,
    /// Whether an attempt ended without proof that it had not run (`one-charge` only).
    pub(crate) unknown: bool,
}

/// Where a task is. A task that is never scheduled again is a hung one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// It offers T1 or T7.
    Claiming(Option<Row>),
    /// Its claim met another version: it has to read.
    Looking,
    /// The operation is its own; nothing is under way.
    Owning(Row),
    /// The request is with a provider, which runs it or does not.
    Calling(Row, Run),
    /// It offers its last word.
    Concluding(Row, Word),
    /// Over; `late`: with a result that was not billed.
    Done { late: bool },
    /// It died, and its process lives.
    Dead { sent: bool },
    /// It died with its process.
    Gone,
}

/// Whether what was sent runs. Whatever is sent may run from then on, so it counts as of the sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Run {
    Runs,
    Never,
}

/// A process: a node name's incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Process {
    /// Not started yet.
    Waiting,
    Up,
    Down,
}

/// Who has a node name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct NodeRow {
    pub(crate) process: u8,
    pub(crate) lease: Lease,
}

/// How far a lease is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Lease {
    Live,
    /// It has ended, and the orphans' grace has not.
    Ended,
    /// Both have.
    PastGrace,
}

impl Lease {
    pub(crate) const fn later(self) -> Self {
        match self {
            Self::Live => Self::Ended,
            Self::Ended | Self::PastGrace => Self::PastGrace,
        }
    }
}

/// The one wallet, the API key's counters, and the store's mood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Wallet {
    pub(crate) available: i16,
    pub(crate) held: i16,
    /// Operations that run, as the concurrency counter has it.
    pub(crate) running: i16,
    /// What the spend counter has.
    pub(crate) spend: i16,
    /// What the counters by the minute have.
    pub(crate) requests: [i16; MINUTES],
    pub(crate) tokens: [i16; MINUTES],
    pub(crate) health: Health,
}

/// Whether the store takes what moves money. It breaks at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Health {
    Well,
    Broken,
    Mended,
}

/// What has happened to an operation, whatever its row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ghost {
    /// How often a model may have run it; counted to three.
    pub(crate) runs: u8,
    /// Whether a run has ended, so that the provider has a record of it.
    pub(crate) provider_knows: bool,
    pub(crate) hold: Hold,
    pub(crate) captured: i16,
    /// Usage records ever written, and settlements.
    pub(crate) usages: u8,
    pub(crate) settlements: u8,
    /// The lines of the book, one bit for each kind and generation: the store's permanent ids.
    pub(crate) lines: u32,
    pub(crate) generation: u8,
    pub(crate) bound: Option<Request>,
    /// The last final answer by credential.
    pub(crate) told: [Option<Answer>; 2],
    pub(crate) telling: Telling,
    /// What the table of the specification makes it count in each minute, where that is limited.
    pub(crate) requests: [i16; MINUTES],
    pub(crate) tokens: [i16; MINUTES],
    /// How often a model may have run what was admitted in each minute, where that is limited.
    pub(crate) runs_in: [u8; MINUTES],
    /// Whether a generation began before its time.
    pub(crate) hasty: bool,
}

/// What became of an operation's last hold, by the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Hold {
    None,
    Active(u8),
    Captured(u8),
    Released,
}

/// What is to be said of all final answers so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Telling {
    Consistent,
    /// A credential was told two different ones.
    Contradicted,
    /// A caller with another request was told one.
    Leaked,
}

/// A final answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    /// The content, by its author, and the charge.
    Result {
        author: u8,
        charge: u8,
    },
    /// 410: the charge without the content.
    Charge(u8),
    Refused,
    Unknown,
}

/// Which minute an instant is in.
pub(crate) fn minute(instant: u8) -> usize {
    usize::from(INSTANTS[usize::from(instant)] / 60)
}

impl World {
    pub(crate) fn row(&self, operation: u8) -> Option<Row> {
        self.rows[usize::from(operation)]
    }

    pub(crate) fn task(&mut self, task: u8) -> &mut Task {
        &mut self.tasks[usize::from(task)]
    }

    pub(crate) fn stage(&self, task: u8) -> Stage {
        self.tasks[usize::from(task)].stage
    }

    pub(crate) fn ghost(&mut self, operation: u8) -> &mut Ghost {
        &mut self.ghosts[usize::from(operation)]
    }

    pub(crate) fn is_up(&self, process: u8) -> bool {
        self.processes[usize::from(process)] == Process::Up
    }

    /// A final answer reaches a caller.
    pub(crate) fn tell(&mut self, operation: u8, credential: u8, answer: Answer) {
        let ghost = self.ghost(operation);
        let before = ghost.told[usize::from(credential)].replace(answer);
        let agrees = match (before, answer) {
            (None, _) => true,
            // T9: the content goes, the charge stays.
            (Some(Answer::Result { charge: before, .. }), Answer::Charge(charge)) => {
                before == charge
            }
            (Some(before), answer) => before == answer,
        };
        if !agrees {
            ghost.telling = Telling::Contradicted;
        }
    }
}

impl Row {
    /// What a task remembers of a row: without what others may change meanwhile and what its own
    /// words do not depend on.
    pub(crate) fn remembered(self) -> Self {
        Self { overdue: false, content: None, ..self }
    }

    pub(crate) fn charge(&self) -> Option<u8> {
        match self.stand {
            Stand::Recorded(metered) | Stand::Completed(metered) => Some(metered.min(self.hold)),
            Stand::Leased | Stand::Open | Stand::Refused | Stand::Abandoned | Stand::Cancelled => {
                None
            }
        }
    }

    /// What the row tells a caller for good.
    pub(crate) fn answer(&self, credential: u8) -> Option<Answer> {
        match self.stand {
            Stand::Leased | Stand::Recorded(_) | Stand::Open => None,
            Stand::Refused => Some(Answer::Refused),
            Stand::Abandoned | Stand::Cancelled => Some(Answer::Unknown),
            Stand::Completed(metered) => {
                let charge = metered.min(self.hold);
                let opened = self.content.filter(|content| content.credential == credential);
                Some(opened.map_or(Answer::Charge(charge), |content| Answer::Result {
                    author: content.author,
                    charge,
                }))
            }
        }
    }
}

impl Task {
    /// A task at this stage that has tried nothing.
    pub(crate) const fn at(stage: Stage) -> Self {
        Self { stage, routes: 0, sent: false, unknown: false }
    }
}
