//! What one exploration is about: who asks for what, and what may go wrong. Several small ones are
//! explored instead of one that has everything.

use crate::world::Request;

/// A bounded world.
#[derive(Debug, Clone)]
pub(crate) struct Configuration {
    pub(crate) tasks: Vec<Spec>,
    /// The node name of each process. The first process of a name is up at the start.
    pub(crate) processes: Vec<u8>,
    /// What the wallet holds at the start: enough for every hold at once, unless it is to be scarce.
    pub(crate) funds: u8,
    pub(crate) routes: u8,
    pub(crate) guarantee: Guarantee,
    pub(crate) may: Vec<May>,
    /// Requests a minute, where they are limited; tokens are then limited to two for each.
    pub(crate) requests_per_minute: Option<u8>,
}

/// One caller's request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spec {
    pub(crate) operation: u8,
    /// Which process it comes to.
    pub(crate) process: u8,
    pub(crate) request: Request,
    /// Under which of the API key's credentials.
    pub(crate) credential: u8,
    pub(crate) hold: u8,
    /// What its run uses up, if it finishes.
    pub(crate) metered: u8,
}

/// See the model's `guarantee` in the configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guarantee {
    OneRun,
    OneCharge,
}

/// What may happen besides requests, runs and reconciling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum May {
    /// The answer to a task's commit is lost; it may land at any time, or never.
    LoseCommits,
    /// A lost commit may land even after a later offer of it had its verdict. Stores promise better.
    LandAfterVerdict,
    /// A task dies, or panics and is caught, while its process lives.
    Die,
    /// A process dies with its tasks.
    Crash,
    /// Leases end and are renewed.
    Expire,
    /// A process gives its name back before its tasks are done.
    Leave,
    /// A deadline passes.
    PassDeadline,
    /// A provider refuses the request for good.
    Refuse,
    /// The store refuses, for a time, whatever moves money.
    Break,
    /// A caller asks to cancel.
    Cancel,
    /// Results are deleted.
    Purge,
    /// The clock goes on.
    Tick,
}

impl Configuration {
    /// These requests on one process, one route, with whatever may happen.
    pub(crate) fn new(tasks: &[Spec], may: &[May]) -> Self {
        Self {
            tasks: tasks.to_vec(),
            processes: vec![0],
            funds: tasks.iter().map(|spec| spec.hold).sum(),
            routes: 1,
            guarantee: Guarantee::OneRun,
            may: may.to_vec(),
            requests_per_minute: None,
        }
    }

    pub(crate) fn requests_per_minute(self, requests: u8) -> Self {
        Self { requests_per_minute: Some(requests), ..self }
    }

    pub(crate) fn processes(self, names: &[u8]) -> Self {
        Self { processes: names.to_vec(), ..self }
    }

    pub(crate) fn funds(self, funds: u8) -> Self {
        Self { funds, ..self }
    }

    pub(crate) fn routes(self, routes: u8) -> Self {
        Self { routes, ..self }
    }

    pub(crate) fn guarantee(self, guarantee: Guarantee) -> Self {
        Self { guarantee, ..self }
    }

    pub(crate) fn may(&self, may: May) -> bool {
        self.may.contains(&may)
    }

    /// The tasks, by number.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u8> + use<> {
        0..u8::try_from(self.tasks.len()).unwrap()
    }

    pub(crate) fn n_operations(&self) -> u8 {
        self.tasks.iter().map(|spec| spec.operation + 1).max().unwrap_or(0)
    }
}

impl Spec {
    /// A request for the first operation, on the first process.
    pub(crate) const FIRST: Self = Self {
        operation: 0,
        process: 0,
        request: Request::This,
        credential: 0,
        hold: 2,
        metered: 1,
    };

    pub(crate) const fn operation(self, operation: u8) -> Self {
        Self { operation, ..self }
    }

    pub(crate) const fn process(self, process: u8) -> Self {
        Self { process, ..self }
    }

    pub(crate) const fn another(self) -> Self {
        Self { request: Request::Another, ..self }
    }

    pub(crate) const fn credential(self, credential: u8) -> Self {
        Self { credential, ..self }
    }

    /// Another price by now: another hold, and meters that pass it.
    pub(crate) const fn dearer(self) -> Self {
        Self { hold: 1, metered: 3, ..self }
    }
}
