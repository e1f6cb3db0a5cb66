/* The operation of Holdfast: one key, one run, one charge. The text that its models share.
 *
 * A model defines its bounds and what may go wrong, and includes this file. Each step is one d_step: a guard,
 * an effect, and all laws. A task is one caller's request on one process; its number is its claim id. The store judges
 * the version, the bounds of the wallet and the permanent ids, and decides nothing else.
 *
 * Leases and clocks carry no safety: a deadline may pass at any moment, and a process believes in its lease for ever.
 */

/* Bounds. */
#ifndef TASKS
#define TASKS 2
#endif
#ifndef OPERATIONS
#define OPERATIONS 1
#endif
#ifndef PROCESSES
#define PROCESSES 1
#endif
#ifndef NAMES
#define NAMES 1
#endif
#ifndef ROUTES
#define ROUTES 1
#endif
#ifndef DEPOSIT
#define DEPOSIT 6
#endif
#ifndef CAP
#define CAP 99
#endif

/* A task's operation, process, request, credential, API key, hold, and what its run uses up. */
#ifndef OPERATION
#define OPERATION(t) 0
#endif
#ifndef PROCESS
#define PROCESS(t) 0
#endif
#ifndef NAME
#define NAME(p) 0
#endif
#ifndef REQUEST
#define REQUEST(t) 0
#endif
#ifndef CREDENTIAL
#define CREDENTIAL(t) 0
#endif
#ifndef API_KEY
#define API_KEY(t) 0
#endif
#ifndef HOLD
#define HOLD(t) 2
#endif
#ifndef METERED
#define METERED(t) 1
#endif

#ifdef MUTANT_KEY_SHARED_ACROSS_API_KEYS
#define O(t) 0
#else
#define O(t) OPERATION(t)
#endif
#define MIN(a, b) ((a) < (b) -> (a) : (b))

mtype:phase = { absent, leased, recorded, open, completed, refused, abandoned };
mtype:event = { claim, finish, record, not_run, refuse, give_up };
mtype:stage = { looking, offering, owning, calling, done, dead, gone };
mtype:verdict = { committed, conflict, rejected };
mtype:hold = { unheld, holding, settled, released };
/* The last transition; the design's T2c is the wish to cancel, and T5c is its T5'. */
mtype:transition = { nothing, T1, T2, T2a, T2b, T2c, T3, T4, T5, T5c, T6, disowned, T7, T8, T9,
  replay, other_request, rejection };

/* An operation's row. `owner` is the number of the task whose claim id it carries. */
typedef Row {
  mtype:phase phase = absent;
  byte version;
  byte generation;
  byte owner;
  byte hold;
  byte author;
  byte request;
#ifdef PER_MINUTE
  byte admitted;          /* the instant of the generation's claim */
#endif
  bit cancel_asked;
  bit purged
};

/* What happened to an operation, whatever its row says: no rule reads it. */
typedef Ghost {
  byte runs;
  mtype:hold hold = unheld;
  byte holds;             /* ever taken */
  byte captured;
  byte refunded;
  byte usages;            /* usage records ever written */
  byte settlements;
  byte charged_by;        /* the task whose result was charged, from 1 */
  byte request;           /* the request of the first claim */
  byte given[2];          /* the last final answer to each credential */
  mtype:phase ended = absent;
#ifdef PER_MINUTE
  short requests[2];      /* what the design's table counts, by minute */
  byte runs_in[2];
  bit hasty;              /* a generation began before its time */
#endif
  bit contradicted;
  bit leaked;             /* an answer reached a caller with another request */
  bit crossed             /* or another API key */
};

/* One caller's request and the task that serves it. */
typedef Task {
  mtype:stage stage = looking;
  mtype:event event = claim;
  byte seen;
  byte routes;
  bit in_doubt;     /* an offer whose answer was lost may land yet */
  bit sent;         /* a byte of it may have reached a provider */
  bit runs;         /* what was sent runs */
  bit unknown;      /* an attempt ended without proof (one-charge) */
  bit late
};

Row row[OPERATIONS];
Ghost ghost[OPERATIONS];
Task task[TASKS];

/* The wallet, and the API key's counters. Shorts: a wrong model shows its negative amounts. */
short available = DEPOSIT;
short held;
short deposits = DEPOSIT;
short concurrency;
short spend;
bit broken;
bit mended;

#ifdef PER_MINUTE
/* The clock's instants: the second is in the next minute and less than two seconds later, the third two seconds after
 * both. PER_MINUTE is the limit of requests. */
byte clock;
short requests[2];
#define MINUTE(instant) ((instant) == 0 -> 0 : 1)
#define IS_TOO_SOON(o) (row[o].generation >= 3 && !(clock == 2 && row[o].admitted < 2))
#endif

/* Processes and the rows of their names: the process that has the name, from 1, and whether its lease is live. */
bit up[PROCESSES];
bit started[PROCESSES];
byte holder[NAMES];
bit live[NAMES];

/* Of one step: laws.pml clears them at its end. */
mtype:verdict verdict;
mtype:transition step = nothing;
short charge;
bit within;

#define ROW row[O(t)]
#define GHOST ghost[O(t)]
#define ME task[t]
#ifdef HANG
#define HUNG hung
bit hung;
#else
#define HUNG false
#endif
/* Order of callers, for models in which it is fixed. */
#ifndef IN_TURN
#define IN_TURN(t) true
#endif
#define RUNNING(t) (!HUNG && IN_TURN(t) && up[PROCESS(t)] && task[t].stage != done && task[t].stage != dead && task[t].stage != gone)
#define TERMINAL(p) ((p) == completed || (p) == refused || (p) == abandoned)
#define CHARGE(o) MIN(METERED(row[o].author), row[o].hold)
#define OWNED(t) (row[O(t)].phase == leased && row[O(t)].owner == t)

/* Answers: none, the refusal, the unknown outcome, the charge without the content (410), or an author's result. */
#define NO_ANSWER 0
#define REFUSAL 1
#define UNKNOWN_OUTCOME 2
#define CHARGE_ONLY 3
#define RESULT(author) (4 + (author))

/* A final answer reaches a caller. Each credential gets the same one for ever; a purge takes the content away. */
inline answer(t, given_now) {
  GHOST.contradicted = GHOST.contradicted || !(GHOST.given[CREDENTIAL(t)] == NO_ANSWER ||
    GHOST.given[CREDENTIAL(t)] == given_now ||
    (GHOST.given[CREDENTIAL(t)] > CHARGE_ONLY && given_now == CHARGE_ONLY && ROW.purged));
  GHOST.given[CREDENTIAL(t)] = given_now
}

/* The row's own answer, if it has a final one. */
inline answer_by_row(t) {
  GHOST.leaked = GHOST.leaked || (TERMINAL(ROW.phase) && REQUEST(t) != ROW.request);
  GHOST.crossed = GHOST.crossed || (TERMINAL(ROW.phase) && API_KEY(t) != API_KEY(ROW.owner));
  if
  :: ROW.phase == refused -> answer(t, REFUSAL)
  :: ROW.phase == abandoned -> answer(t, UNKNOWN_OUTCOME)
  :: ROW.phase == completed && (ROW.purged || CREDENTIAL(t) != CREDENTIAL(ROW.author)) -> answer(t, CHARGE_ONLY)
  :: ROW.phase == completed && !ROW.purged && CREDENTIAL(t) == CREDENTIAL(ROW.author) ->
#ifdef MUTANT_OTHER_BYTES_REPLAYED
     answer(t, RESULT(ROW.author) + (t != ROW.author -> 8 : 0))
#else
     answer(t, RESULT(ROW.author))
#endif
  :: else
  fi
}

#ifdef MUTANT_STORE_IGNORES_BOUNDS
#define FUNDS_ALLOW(amount) true
#else
#define FUNDS_ALLOW(amount) (available >= amount)
#endif
#ifdef MUTANT_CAP_IGNORED
#define CAP_ALLOWS(amount) true
#else
#define CAP_ALLOWS(amount) (spend + amount <= CAP)
#endif
#if !defined PER_MINUTE || defined MUTANT_MINUTE_IGNORED
#define MINUTE_ALLOWS true
#else
#define MINUTE_ALLOWS (requests[MINUTE(clock)] < PER_MINUTE)
#endif
#ifdef MUTANT_STORE_IGNORES_PERMANENT_IDS
#define IS_FIRST_SETTLEMENT(o) true
#else
#define IS_FIRST_SETTLEMENT(o) (ghost[o].settlements == 0)
#endif

/* T1 and T7 take a hold. `within` is the store's judgement of the bounds. */
inline take_hold(o, amount) {
  within = !broken && FUNDS_ALLOW(amount) && CAP_ALLOWS(amount) && MINUTE_ALLOWS;
  if
  :: within ->
     available = available - amount;
     held = held + amount;
     concurrency++;
     spend = spend + amount;
     row[o].hold = amount;
     ghost[o].hold = holding;
     ghost[o].holds++;
#ifdef PER_MINUTE
     requests[MINUTE(clock)] = requests[MINUTE(clock)] + 1;
     ghost[o].requests[MINUTE(clock)] = ghost[o].requests[MINUTE(clock)] + 1;
     ghost[o].hasty = ghost[o].hasty || (row[o].phase == open && IS_TOO_SOON(o));
     row[o].admitted = clock
#endif
  :: else
  fi
}

/* T3 to T6 give it back. */
inline give_back(o) {
  within = !broken && held >= row[o].hold;
  if
  :: within ->
     available = available + row[o].hold;
#ifdef MUTANT_HOLD_RELEASED_TWICE
     available = available + row[o].hold;
#endif
     held = held - row[o].hold;
     concurrency--;
     spend = spend - row[o].hold;
     ghost[o].hold = released
  :: else
  fi
}

/* T2 and T2b: the charge, and the rest back. The settlement's permanent id is judged with the bounds. */
inline settle(o) {
  charge = CHARGE(o);
#ifdef MUTANT_OTHER_AMOUNT_CHARGED
  charge = charge + 1;
#endif
  within = !broken && held >= row[o].hold && IS_FIRST_SETTLEMENT(o);
  if
  :: within ->
     held = held - row[o].hold;
     available = available + row[o].hold - charge;
     concurrency--;
     spend = spend - row[o].hold + charge;
     ghost[o].hold = settled;
     ghost[o].captured = ghost[o].captured + charge;
     ghost[o].charged_by = row[o].author + 1;
     ghost[o].settlements++
  :: else
  fi
}

/* T3 gives the request back, too, in its first generation: nothing ran. */
inline give_request_back(o) {
#ifdef PER_MINUTE
  if
  :: row[o].generation == 1 ->
     requests[MINUTE(row[o].admitted)] = requests[MINUTE(row[o].admitted)] - 1;
     ghost[o].requests[MINUTE(row[o].admitted)] = ghost[o].requests[MINUTE(row[o].admitted)] - 1
#ifdef MUTANT_NOT_RUN_GIVES_BACK_AGAIN
  :: row[o].generation > 1 -> requests[MINUTE(row[o].admitted)] = requests[MINUTE(row[o].admitted)] - 1
#endif
  :: else
  fi
#else
  skip
#endif
}

inline turn(o, to) {
  row[o].phase = to;
  row[o].version++
}

/* The guard of every event that only an owner may offer: leased, and the claim is mine. */
#ifdef MUTANT_NOT_RUN_WITHOUT_CLAIM
#define MAY_NOT_RUN(t) (row[O(t)].phase == leased)
#elif defined MUTANT_NOT_RUN_WITHOUT_PHASE
#define MAY_NOT_RUN(t) (row[O(t)].owner == t)
#else
#define MAY_NOT_RUN(t) OWNED(t)
#endif
#ifdef MUTANT_FINISH_WITHOUT_PHASE
#define MAY_FINISH(t) (row[O(t)].owner == t)
#else
#define MAY_FINISH(t) OWNED(t)
#endif
#define MAY_CONCLUDE(t) ((task[t].event == not_run && MAY_NOT_RUN(t)) \
  || ((task[t].event == finish || task[t].event == record) && MAY_FINISH(t)) \
  || OWNED(t))

#ifdef MUTANT_STORE_IGNORES_VERSIONS
#define AS_SEEN(t) true
#else
#define AS_SEEN(t) (row[O(t)].version == task[t].seen)
#endif

/* The store's transaction for a task's offer: T1, T7, T2, T2a, T3, T4 or T5. */
inline commit(t) {
  verdict = conflict;
  if
  :: !AS_SEEN(t)
  :: AS_SEEN(t) && ME.event == claim ->
#ifdef MUTANT_RUN_BEFORE_CLAIM
     verdict = committed;
#else
     take_hold(O(t), HOLD(t));
     if
     :: !within -> verdict = rejected
     :: within && ROW.phase != open ->
        verdict = committed;
        step = T1;
        turn(O(t), leased);
        ROW.generation = 1;
        ROW.owner = t;
        ROW.request = REQUEST(t);
        GHOST.request = REQUEST(t)
     :: within && ROW.phase == open ->
        verdict = committed;
        step = T7;
        turn(O(t), leased);
#ifndef MUTANT_REOPEN_KEEPS_GENERATION
        ROW.generation++;
#endif
#ifndef MUTANT_REOPEN_KEEPS_CLAIM
        ROW.owner = t
#endif
     fi
#endif
  :: AS_SEEN(t) && ME.event == finish && MAY_CONCLUDE(t) ->
#ifdef MUTANT_ANSWERED_BEFORE_COMMIT
     answer(t, RESULT(t));
     verdict = committed
#else
     ROW.author = t;
     settle(O(t));
     if
     :: !within -> verdict = rejected; ROW.author = 0
     :: within -> verdict = committed; step = T2; turn(O(t), completed); GHOST.usages++
     fi
#endif
  :: AS_SEEN(t) && ME.event == record && MAY_CONCLUDE(t) ->
     verdict = committed;
     step = T2a;
     ROW.author = t;
#ifdef MUTANT_RECORD_AS_COMPLETED
     turn(O(t), completed);
#else
     turn(O(t), recorded);
#endif
     GHOST.usages++
  :: AS_SEEN(t) && ME.event == not_run && MAY_CONCLUDE(t) ->
     give_back(O(t));
     if
     :: within -> give_request_back(O(t))
     :: else
     fi;
     if
     :: !within -> verdict = rejected
#ifdef MUTANT_NOT_RUN_FORGETS_THE_CANCEL
     :: within -> verdict = committed; step = T3; turn(O(t), open)
#else
     /* A cancelled operation would run again at the next retry. */
     :: within && ROW.cancel_asked -> verdict = committed; step = T3; turn(O(t), abandoned)
     :: within && !ROW.cancel_asked -> verdict = committed; step = T3; turn(O(t), open)
#endif
     fi
  :: AS_SEEN(t) && ME.event == refuse && MAY_CONCLUDE(t) ->
     give_back(O(t));
     if
     :: !within -> verdict = rejected
     :: within -> verdict = committed; step = T4; turn(O(t), refused)
     fi
  :: AS_SEEN(t) && ME.event == give_up && MAY_CONCLUDE(t) ->
#ifdef MUTANT_HOLD_KEPT
     within = true;
#else
     give_back(O(t));
#endif
#ifdef MUTANT_GIVE_UP_GIVES_THE_REQUEST_BACK
     if
     :: within -> requests[MINUTE(ROW.admitted)] = requests[MINUTE(ROW.admitted)] - 1
     :: else
     fi;
#endif
     if
     :: !within -> verdict = rejected
     :: within -> verdict = committed; step = T5; turn(O(t), abandoned)
     fi
  :: AS_SEEN(t) && ME.event != claim && !MAY_CONCLUDE(t)
  fi
}
