//! Scenarios of the benchmark, by name.

/// A kind of load on a gateway of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) connections: u64,
    /// Milliseconds that the upstream takes.
    pub(crate) delay_ms: u64,
    pub(crate) kind: ScenarioKind,
    /// Wallets that pay: each request is the next one's. More than one only on a server.
    pub(crate) wallets: u64,
    /// Gateways on one database, each with its share of the connections. More than one only on a server.
    pub(crate) nodes: u64,
    pub(crate) subject: Subject,
}

/// Program that a scenario measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Gateway,
    /// A gateway that exports the spans of every request.
    Traced(Collector),
    /// The sidecar, straight before the upstream. Requests have no keys, and no two are alike.
    Sidecar,
}

/// Collector of spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collector {
    /// Takes every batch.
    Live,
    /// Takes no connection.
    Gone,
    /// Takes connections, and says nothing on them.
    Silent,
}

/// Engine that keeps the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A file.
    Sqlite,
    /// A server of PostgreSQL.
    Postgres,
}

impl Engine {
    /// As the arguments have it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "sqlite" => Some(Self::Sqlite),
            "postgres" => Some(Self::Postgres),
            _ => None,
        }
    }
}

/// Kind of the requests of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScenarioKind {
    /// Each request is new.
    Fresh,
    /// All requests bear one key, whose operation has ended.
    Replay,
    /// New requests at twice the rate that the gateway can do.
    Overload,
    /// New requests while the results of a day are purged.
    Purge,
    /// New requests without the index of operations by API key, beside which its price is read.
    Unindexed,
    /// Answers that stream.
    Streams(StreamShape),
}

/// Shape of a streamed answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamShape {
    pub(crate) chunks: u64,
    /// Time between two of them.
    pub(crate) gap_ms: u64,
    pub(crate) keys: KeySharing,
}

/// Sharing of runs between connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeySharing {
    /// Each request is a run.
    Own,
    /// All connections follow one run at a time.
    Shared,
}

impl KeySharing {
    /// As the load's arguments have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Shared => "shared",
        }
    }
}

const fn fresh(name: &'static str, what: &'static str, connections: u64) -> Scenario {
    Scenario {
        name,
        what,
        connections,
        delay_ms: 0,
        kind: ScenarioKind::Fresh,
        wallets: 1,
        nodes: 1,
        subject: Subject::Gateway,
    }
}

const fn beside(name: &'static str, what: &'static str, of: Scenario) -> Scenario {
    Scenario { name, what, subject: Subject::Sidecar, ..of }
}

pub(crate) const ONE: Scenario = fresh("1", "1 connection", 1);
pub(crate) const SOME: Scenario = fresh("32", "32 connections", 32);
pub(crate) const MANY: Scenario = fresh("256", "256 connections", 256);
pub(crate) const SLOW: Scenario =
    Scenario { delay_ms: 50, ..fresh("slow", "256 connections, an upstream of 50 ms", 256) };
pub(crate) const REPLAY: Scenario = Scenario {
    kind: ScenarioKind::Replay,
    ..fresh("replay", "32 connections, one finished key", 32)
};
pub(crate) const OVERLOAD: Scenario =
    Scenario { kind: ScenarioKind::Overload, ..fresh("overload", "twice what it can do", 1_024) };
pub(crate) const PURGE: Scenario =
    Scenario { kind: ScenarioKind::Purge, ..fresh("purge", "32 connections during a purge", 32) };

pub(crate) const UNINDEXED: Scenario = Scenario {
    kind: ScenarioKind::Unindexed,
    ..fresh("unindexed", "32 connections, no index by API key", 32)
};

pub(crate) const STREAMS: Scenario = Scenario {
    kind: ScenarioKind::Streams(StreamShape { chunks: 20, gap_ms: 100, keys: KeySharing::Own }),
    ..fresh("streams", "1,000 streams of 10 chunks a second", 1_000)
};
pub(crate) const CHUNKS: Scenario = Scenario {
    kind: ScenarioKind::Streams(StreamShape { chunks: 256, gap_ms: 0, keys: KeySharing::Own }),
    ..fresh("chunks", "32 streams as fast as they go", 32)
};
pub(crate) const READERS: Scenario = Scenario {
    kind: ScenarioKind::Streams(StreamShape { chunks: 256, gap_ms: 2, keys: KeySharing::Shared }),
    ..fresh("readers", "50 readers of one stream", 50)
};

pub(crate) const SOME_WALLETS: Scenario =
    Scenario { wallets: 1_000, ..fresh("32-wallets", "32 connections, 1,000 wallets", 32) };
pub(crate) const MANY_WALLETS: Scenario =
    Scenario { wallets: 1_000, ..fresh("256-wallets", "256 connections, 1,000 wallets", 256) };
pub(crate) const NODES: Scenario =
    Scenario { nodes: 3, ..fresh("nodes", "3 gateways, 256 connections", 256) };
pub(crate) const NODES_WALLETS: Scenario = Scenario {
    nodes: 3,
    wallets: 1_000,
    ..fresh("nodes-wallets", "3 gateways, 256 connections, 1,000 wallets", 256)
};

pub(crate) const SIDECAR: Scenario = beside("sidecar", "the sidecar, 32 connections", SOME);
pub(crate) const SIDECAR_ONE: Scenario = beside("sidecar-1", "the sidecar, 1 connection", ONE);
pub(crate) const SIDECAR_STREAMS: Scenario =
    beside("sidecar-streams", "the sidecar, 1,000 streams of 10 chunks a second", STREAMS);

const fn traced(name: &'static str, what: &'static str, collector: Collector) -> Scenario {
    Scenario { name, what, subject: Subject::Traced(collector), ..SOME }
}

pub(crate) const TRACED: Scenario =
    traced("traced", "32 connections, every request traced", Collector::Live);
pub(crate) const TRACED_GONE: Scenario =
    traced("traced-gone", "the same, and the collector is gone", Collector::Gone);
pub(crate) const TRACED_SILENT: Scenario =
    traced("traced-silent", "the same, and the collector says nothing", Collector::Silent);

/// All of them.
pub(crate) const ALL: [Scenario; 21] = [
    ONE,
    SOME,
    MANY,
    SLOW,
    REPLAY,
    OVERLOAD,
    STREAMS,
    CHUNKS,
    READERS,
    PURGE,
    UNINDEXED,
    SOME_WALLETS,
    MANY_WALLETS,
    NODES,
    NODES_WALLETS,
    SIDECAR_ONE,
    SIDECAR,
    SIDECAR_STREAMS,
    TRACED,
    TRACED_GONE,
    TRACED_SILENT,
];
/// The usual ones, measured where nothing is named.
pub(crate) const USUAL: [Scenario; 12] = [
    ONE,
    SOME,
    MANY,
    SLOW,
    REPLAY,
    OVERLOAD,
    STREAMS,
    CHUNKS,
    READERS,
    SIDECAR_ONE,
    SIDECAR,
    SIDECAR_STREAMS,
];

/// The same on a server.
pub(crate) const USUAL_ON_A_SERVER: [Scenario; 7] =
    [ONE, SOME, MANY, SOME_WALLETS, MANY_WALLETS, NODES, NODES_WALLETS];

impl Scenario {
    /// True where it can be measured there. What a purge deletes is made in a file, and an index is
    /// dropped from one; the sidecar has no database.
    pub(crate) fn fits(&self, engine: Engine) -> bool {
        match engine {
            Engine::Sqlite => self.wallets == 1 && self.nodes == 1,
            Engine::Postgres => {
                let is_of_a_file =
                    matches!(self.kind, ScenarioKind::Purge | ScenarioKind::Unindexed);
                !is_of_a_file && self.subject != Subject::Sidecar
            }
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|scenario| scenario.name == name)
    }

    pub(crate) const fn speech(&self) -> Option<StreamShape> {
        match self.kind {
            ScenarioKind::Streams(speech) => Some(speech),
            ScenarioKind::Fresh
            | ScenarioKind::Replay
            | ScenarioKind::Overload
            | ScenarioKind::Purge
            | ScenarioKind::Unindexed => None,
        }
    }
}
