//! What is measured, by name.

/// One kind of load on a gateway of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) connections: u64,
    /// How long the upstream takes.
    pub(crate) delay_ms: u64,
    pub(crate) kind: Kind,
}

/// What the load is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Each request is new.
    Fresh,
    /// All requests bear one key, whose operation has ended.
    Replay,
    /// New requests at twice the rate that the gateway can do.
    Overload,
    /// New requests while the results of a day are purged.
    Purge,
    /// Answers that stream.
    Streams(Speech),
}

/// How an answer streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Speech {
    pub(crate) chunks: u64,
    /// Time between two of them.
    pub(crate) gap_ms: u64,
    pub(crate) keys: Keys,
}

/// Whose streams are whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Each request is a run.
    Own,
    /// All connections follow one run at a time.
    Shared,
}

impl Keys {
    /// As the load's arguments have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Shared => "shared",
        }
    }
}

const fn fresh(name: &'static str, what: &'static str, connections: u64) -> Scenario {
    Scenario { name, what, connections, delay_ms: 0, kind: Kind::Fresh }
}

pub(crate) const ONE: Scenario = fresh("1", "1 connection", 1);
pub(crate) const SOME: Scenario = fresh("32", "32 connections", 32);
pub(crate) const MANY: Scenario = fresh("256", "256 connections", 256);
pub(crate) const SLOW: Scenario =
    Scenario { delay_ms: 50, ..fresh("slow", "256 connections, an upstream of 50 ms", 256) };
pub(crate) const REPLAY: Scenario =
    Scenario { kind: Kind::Replay, ..fresh("replay", "32 connections, one finished key", 32) };
pub(crate) const OVERLOAD: Scenario =
    Scenario { kind: Kind::Overload, ..fresh("overload", "twice what it can do", 1_024) };
pub(crate) const PURGE: Scenario =
    Scenario { kind: Kind::Purge, ..fresh("purge", "32 connections during a purge", 32) };

pub(crate) const STREAMS: Scenario = Scenario {
    kind: Kind::Streams(Speech { chunks: 20, gap_ms: 100, keys: Keys::Own }),
    ..fresh("streams", "1,000 streams of 10 chunks a second", 1_000)
};
pub(crate) const CHUNKS: Scenario = Scenario {
    kind: Kind::Streams(Speech { chunks: 256, gap_ms: 0, keys: Keys::Own }),
    ..fresh("chunks", "32 streams as fast as they go", 32)
};
pub(crate) const READERS: Scenario = Scenario {
    kind: Kind::Streams(Speech { chunks: 256, gap_ms: 2, keys: Keys::Shared }),
    ..fresh("readers", "50 readers of one stream", 50)
};

/// All of them.
pub(crate) const ALL: [Scenario; 10] =
    [ONE, SOME, MANY, SLOW, REPLAY, OVERLOAD, STREAMS, CHUNKS, READERS, PURGE];
/// What is measured where nothing is named.
pub(crate) const USUAL: [Scenario; 9] =
    [ONE, SOME, MANY, SLOW, REPLAY, OVERLOAD, STREAMS, CHUNKS, READERS];

impl Scenario {
    pub(crate) fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|scenario| scenario.name == name)
    }

    pub(crate) const fn speech(&self) -> Option<Speech> {
        match self.kind {
            Kind::Streams(speech) => Some(speech),
            Kind::Fresh | Kind::Replay | Kind::Overload | Kind::Purge => None,
        }
    }
}
