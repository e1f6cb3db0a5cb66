/* The steps of tasks, reconcilers, processes, callers and operators. A model starts those that it needs.
 *
 * What may go wrong is named by the model: LOSE_COMMITS, DIE, REFUSE, CRASH, EXPIRE, LEAVE, DEADLINES, CANCEL, PURGE,
 * BREAK, REFUND, ONE_CHARGE.
 */

#include "store.pml"
#include "laws.pml"

/* A trace to follow: nobody goes on once a step has left it. */
#ifdef TRACE
#define AS_LONG_AS_IT_FOLLOWS provided (!astray)
#else
#define AS_LONG_AS_IT_FOLLOWS
#endif

/* T7 has its time: the third reopening waits two seconds. */
#if !defined PER_MINUTE || defined MUTANT_REOPEN_AT_ONCE
#define IS_IN_TIME(t) true
#else
#define IS_IN_TIME(t) (!IS_TOO_SOON(O(t)))
#endif

#ifdef MUTANT_OWNS_BY_NODE_AND_NUMBER
#define TAKES_FOR_ITS_OWN(t) (PROCESS(ROW.owner) == PROCESS(t))
#else
#define TAKES_FOR_ITS_OWN(t) (ROW.owner == t)
#endif

/* A row's process has its name, and a live lease. */
#define HOST(o) PROCESS(row[o].owner)
#define LEASED(o) (holder[NAME(HOST(o))] == HOST(o) + 1 && live[NAME(HOST(o))])

/* A task that is over keeps only what others may still look at. */
inline finish_task(t, is_late) {
  ME.stage = done;
  ME.late = is_late;
  ME.in_doubt = false;
  ME.event = claim;
  ME.seen = 0;
  ME.routes = 0;
  ME.runs = false;
  ME.unknown = false
}

inline offer(t, event_now, seen_now) {
  ME.stage = offering;
  ME.event = event_now;
  ME.seen = seen_now;
  ME.routes = 0;
  ME.runs = false;
  ME.unknown = false
}

/* The row decides; a result that it does not show came too late, and is not charged (T8). */
inline stand_by_row(t) {
  if
  :: (ME.event == finish || ME.event == record) &&
     !(ROW.owner == t && (ROW.phase == recorded || ROW.phase == completed)) ->
     step = T8;
#ifdef MUTANT_LATE_RESULT_CHARGES
     available = available - 1;
     spend = spend + 1;
     GHOST.captured = GHOST.captured + 1;
     GHOST.charged_by = t + 1;
#endif
#ifdef MUTANT_LOSER_ANSWERS_ITS_RESULT
     answer(t, RESULT(t));
#else
     answer_by_row(t);
#endif
     finish_task(t, true)
  :: else -> answer_by_row(t); finish_task(t, false)
  fi
}

inline react(t) {
  if
#ifdef MUTANT_SEND_BEFORE_COMMIT
  :: ME.event == claim && verdict == committed ->
     ME.stage = (ME.sent -> calling : owning); ME.runs = ME.sent; ME.seen = ROW.version
#else
  :: ME.event == claim && verdict == committed -> ME.stage = owning; ME.seen = ROW.version
#endif
  :: ME.event == claim && verdict == conflict ->
#ifdef MUTANT_LOSER_RELEASES_SHARED_HOLD
     give_back(O(t));
#endif
     ME.stage = looking; ME.seen = 0
  :: ME.event == claim && verdict == rejected -> step = rejection; finish_task(t, false)
  :: ME.event != claim && verdict == committed -> answer_by_row(t); finish_task(t, false)
  :: ME.event != claim && verdict == conflict ->
     /* Only a wish to cancel moved it: the same ending is judged over the new row. */
     if
     :: MAY_CONCLUDE(t) -> ME.seen = ROW.version
     :: else -> stand_by_row(t)
     fi
  /* The settling half does not go through: keep the result, settle it later (T2a). */
  :: ME.event == finish && verdict == rejected -> ME.event = record
  :: ME.event != claim && ME.event != finish && verdict == rejected
  fi
}

/* One caller's request, and the task that serves it. */
proctype Caller(byte t) AS_LONG_AS_IT_FOLLOWS {
end:
  do
  /* Look at the row and judge the claim over it, in the order of T1'. */
  :: d_step { RUNNING(t) && ME.stage == looking && ROW.phase == absent -> offer(t, claim, 0); keep_laws() }
#ifdef MUTANT_FINGERPRINT_FORGOTTEN
#define SAME_REQUEST(t) true
#else
#define SAME_REQUEST(t) (REQUEST(t) == ROW.request)
     /* Another request learns nothing of the one that the key is bound to: 409. */
  :: d_step { RUNNING(t) && ME.stage == looking && ROW.phase != absent && REQUEST(t) != ROW.request ->
       step = other_request; finish_task(t, false); keep_laws() }
#endif
  :: d_step { RUNNING(t) && ME.stage == looking && SAME_REQUEST(t) && TERMINAL(ROW.phase) ->
       step = replay; answer_by_row(t); finish_task(t, false); keep_laws() }
  :: d_step { RUNNING(t) && ME.stage == looking && SAME_REQUEST(t) && ROW.phase == open && ROW.owner != t &&
       IS_IN_TIME(t) -> offer(t, claim, ROW.version); keep_laws() }
     /* Its own claim landed late and was disowned meanwhile: a claim id is used once. */
  :: d_step { RUNNING(t) && ME.stage == looking && SAME_REQUEST(t) && ROW.phase == open && ROW.owner == t ->
       finish_task(t, false); keep_laws() }
  :: d_step { RUNNING(t) && ME.stage == looking && SAME_REQUEST(t) && ROW.phase == leased && TAKES_FOR_ITS_OWN(t) ->
       ME.stage = owning; ME.seen = ROW.version; keep_laws() }
     /* Leased by another, or recorded: the caller waits for the owner, or for the reconciler. */
#ifdef MUTANT_REDISPATCH_AFTER_LOST_LEASE
  :: d_step { RUNNING(t) && ME.stage == looking && SAME_REQUEST(t) && ROW.phase == leased && ROW.owner != t &&
       !LEASED(O(t)) -> ROW.owner = t; ROW.version++; ME.stage = owning; ME.seen = ROW.version; keep_laws() }
#endif

     /* Offer a change. An answer that was lost is no verdict: the same change is offered again. */
  :: d_step { RUNNING(t) && ME.stage == offering -> ME.in_doubt = false; commit(t); react(t); keep_laws() }
#ifdef LOSE_COMMITS
  :: d_step { RUNNING(t) && ME.stage == offering && !ME.in_doubt && AS_SEEN(t) -> ME.in_doubt = true;
#ifdef MUTANT_ANSWERS_WHILE_UNCERTAIN
       if
       :: ME.event == finish -> answer(t, RESULT(t))
       :: else
       fi;
#endif
#ifdef MUTANT_NEXT_ROUTE_AFTER_UNCERTAIN_NOT_RUN
       if
       :: ME.event == not_run -> ME.stage = owning
       :: else
       fi;
#endif
       keep_laws() }
#endif
#ifdef MUTANT_SEND_BEFORE_COMMIT
  :: d_step { RUNNING(t) && ME.stage == offering && ME.event == claim && !ME.sent ->
       GHOST.runs++; ME.sent = true; keep_laws() }
#endif

     /* Send: only after the claim's commit has come back. What is sent may run, or never does. */
  :: d_step { RUNNING(t) && ME.stage == owning && ME.routes < ROUTES ->
       GHOST.runs++; ME.sent = true; ME.runs = true; ME.stage = calling;
#ifdef PER_MINUTE
       GHOST.runs_in[MINUTE(ROW.admitted)]++;
#endif
       keep_laws() }
  :: d_step { RUNNING(t) && ME.stage == owning && ME.routes < ROUTES ->
       ME.sent = true; ME.runs = false; ME.stage = calling; keep_laws() }
     /* No route is left, or none can be reached. Under one-charge an earlier attempt may have run. */
  :: d_step { RUNNING(t) && ME.stage == owning && !ME.unknown -> offer(t, not_run, ME.seen); keep_laws() }
  :: d_step { RUNNING(t) && ME.stage == owning && ME.unknown -> offer(t, give_up, ME.seen); keep_laws() }

     /* The provider's answer, or its absence. */
  :: d_step { RUNNING(t) && ME.stage == calling && ME.runs -> offer(t, finish, ME.seen); keep_laws() }
     /* A proof of not run: the next route may be tried. */
  :: d_step { RUNNING(t) && ME.stage == calling && !ME.runs ->
       ME.routes++; ME.stage = owning; keep_laws() }
#ifdef REFUSE
  :: d_step { RUNNING(t) && ME.stage == calling && !ME.runs -> offer(t, refuse, ME.seen); keep_laws() }
#endif
     /* An unknown outcome. */
#if defined ONE_CHARGE || defined MUTANT_NEXT_ROUTE_AFTER_UNKNOWN
  :: d_step { RUNNING(t) && ME.stage == calling ->
       ME.routes++; ME.runs = false; ME.unknown = true; ME.stage = owning; keep_laws() }
#elif defined MUTANT_FAILURE_READ_AS_NOT_RUN
  :: d_step { RUNNING(t) && ME.stage == calling -> offer(t, not_run, ME.seen); keep_laws() }
#else
  :: d_step { RUNNING(t) && ME.stage == calling -> offer(t, give_up, ME.seen); keep_laws() }
#endif
     /* An owner that sees the wish to cancel on its row cuts its call: a partial answer was run and is paid (finish),
      * without one the run is given up, and between two routes it is not run. These are the steps above. */
#ifdef MUTANT_CANCEL_CHARGES_WHAT_NEVER_RAN
  :: d_step { RUNNING(t) && ME.stage == calling && ROW.cancel_asked -> offer(t, finish, ME.seen); keep_laws() }
#endif
#ifdef DIE
     /* A panic before it sends: caught, and nothing is claimed to be proven. */
  :: d_step { RUNNING(t) && ME.stage == owning -> offer(t, give_up, ME.seen); keep_laws() }
     /* A task dies while its process lives. One that owns nothing, and has nothing under way, has done nothing. */
  :: d_step { RUNNING(t) && ME.stage != looking && (ME.in_doubt || OWNED(t)) -> ME.stage = dead; keep_laws() }
#endif
  od
}

/* An offer whose answer was lost lands, or is refused, and no task learns the verdict. */
proctype LostOffer(byte t) {
end:
  do
  :: d_step { ME.in_doubt -> ME.in_doubt = false; commit(t); keep_laws() }
  od
}

#ifdef MUTANT_REAP_FROM_RECORDED
#define REAPABLE(o) (row[o].phase == leased || row[o].phase == recorded)
#else
#define REAPABLE(o) (row[o].phase == leased)
#endif
#if defined DEADLINES && !defined MUTANT_NO_DEADLINE
#define OWNER_IS_GONE(o) true
#else
#define OWNER_IS_GONE(o) (!LEASED(o))
#endif

/* Reaps, disowns and settles: any process does it, at any moment. */
proctype Reconciler(byte o) AS_LONG_AS_IT_FOLLOWS {
end:
  do
  /* T6: the owner is superseded, its lease is dead, or the deadline has passed. It proves nothing about the run. */
  :: d_step { REAPABLE(o) && OWNER_IS_GONE(o) && !broken ->
#ifdef MUTANT_HOLD_KEPT
       within = true;
#else
       give_back(o);
#endif
       step = T6;
#ifdef MUTANT_RUN_AGAIN_AFTER_TAKEOVER
       turn(o, open);
#else
       turn(o, abandoned);
#endif
       keep_laws() }
#ifdef MUTANT_PROVIDER_HAS_NO_RECORD
     /* The provider is asked about an orphan, and has no record of a run that goes on. */
  :: d_step { row[o].phase == leased && !LEASED(o) && !broken ->
       give_back(o); turn(o, open); keep_laws() }
#endif
#ifndef MUTANT_NO_DISOWN
  /* Disown: only the process that made the claim id knows whether its task sent a byte: as T3 if not, else as T5. */
  :: d_step { row[o].phase == leased && up[HOST(o)] && !broken && task[row[o].owner].stage == dead &&
       !task[row[o].owner].sent ->
       give_back(o); give_request_back(o); step = disowned;
       turn(o, (row[o].cancel_asked -> abandoned : open)); keep_laws() }
  :: d_step { row[o].phase == leased && up[HOST(o)] && !broken && (task[row[o].owner].stage == done ||
       (task[row[o].owner].stage == dead && task[row[o].owner].sent)) ->
       give_back(o); step = disowned; turn(o, abandoned); keep_laws() }
#endif
#ifdef MUTANT_DISOWN_BY_NAME
     /* A successor takes the claims of its name for its own, and what it never knew for not sent. */
  :: d_step { row[o].phase == leased && holder[NAME(HOST(o))] != HOST(o) + 1 && holder[NAME(HOST(o))] != 0 && !broken ->
       give_back(o); step = disowned; turn(o, open); keep_laws() }
#endif
  /* T2b: without a claim to show. */
#ifdef MUTANT_SETTLE_FOR_DEAD_NODES_ONLY
  :: d_step { row[o].phase == recorded && !LEASED(o) && !broken ->
#elif defined MUTANT_SETTLE_WITHOUT_PHASE
  :: d_step { (row[o].phase == recorded || row[o].phase == completed) && !broken ->
#else
  :: d_step { row[o].phase == recorded && !broken ->
#endif
       settle(o);
       if
       :: within -> step = T2b; turn(o, completed)
       :: else
       fi;
       keep_laws() }
#ifdef MUTANT_HOLD_TIMES_OUT
  :: d_step { ghost[o].hold == holding -> give_back(o); keep_laws() }
#endif
  od
}

/* Callers that cancel, retention, and the operator's postings. */
proctype Operator(byte o) AS_LONG_AS_IT_FOLLOWS {
end:
  do
#ifdef CANCEL
  :: d_step { row[o].phase == leased && !row[o].cancel_asked ->
       row[o].cancel_asked = true; row[o].version++; step = T2c; keep_laws() }
  /* T5': no transfer, and no counter moves: T3 gave back. */
  :: d_step { row[o].phase == open -> step = T5c;
#ifdef MUTANT_CANCEL_GIVES_BACK_AGAIN
       concurrency--;
       spend = spend - row[o].hold;
#endif
       turn(o, abandoned); keep_laws() }
#ifdef MUTANT_CANCEL_OVERWRITES_THE_RUN
     /* Judged over the open row, and written over the row of the next run. */
  :: d_step { row[o].phase == leased && row[o].generation > 1 -> turn(o, abandoned); keep_laws() }
#endif
#endif
#ifdef PURGE
  :: d_step { (row[o].phase == completed || row[o].phase == refused) && !row[o].purged ->
       row[o].purged = true; step = T9;
#ifdef MUTANT_PURGED_ROW_IS_FREE
       row[o].phase = absent; row[o].version = 0;
#endif
       keep_laws() }
#endif
#ifdef REFUND
#ifdef MUTANT_REFUND_UNBOUNDED
  :: d_step { row[o].phase == completed && ghost[o].refunded < 3 ->
#else
  :: d_step { row[o].phase == completed && ghost[o].refunded < ghost[o].captured ->
#endif
       ghost[o].refunded++;
#ifndef MUTANT_REFUND_LOST
       available++;
#endif
       keep_laws() }
#endif
#ifdef BREAK
  /* The store refuses, for a time, whatever moves money. */
  :: d_step { o == 0 && !broken && !mended -> broken = true; keep_laws() }
  :: d_step { o == 0 && broken -> broken = false; mended = true; keep_laws() }
#endif
#ifdef DEPOSITS
  :: d_step { o == 0 && deposits < DEPOSITS -> deposits = deposits + 1; available = available + 1; keep_laws() }
#endif
  :: false
  od
}

#ifdef PER_MINUTE
proctype Clock() {
end:
  do
  :: d_step { clock < 2 -> clock++; keep_laws() }
  od
}
#endif

/* A process: an incarnation of a node name. */
proctype Process(byte p) {
  byte t;
end:
  do
  /* A start takes the name when its holder's lease has ended. A holder that is up lives on, superseded. */
  :: d_step { !up[p] && !started[p] && !(holder[NAME(p)] != 0 && live[NAME(p)] && up[holder[NAME(p)] - 1]) ->
       up[p] = true; started[p] = true; holder[NAME(p)] = p + 1; live[NAME(p)] = true; keep_laws() }
#ifdef CRASH
  :: d_step { up[p] -> up[p] = false;
       for (t : 0 .. TASKS - 1) {
         if
         :: PROCESS(t) == p && task[t].stage != done -> task[t].stage = gone
         :: else
         fi
       }
       t = 0;
       keep_laws() }
#endif
#ifdef EXPIRE
  :: d_step { holder[NAME(p)] == p + 1 && live[NAME(p)] -> live[NAME(p)] = false; keep_laws() }
  :: d_step { up[p] && holder[NAME(p)] == p + 1 && !live[NAME(p)] -> live[NAME(p)] = true; keep_laws() }
#endif
#ifdef LEAVE
  :: d_step { up[p] && holder[NAME(p)] == p + 1 -> holder[NAME(p)] = 0; live[NAME(p)] = false; keep_laws() }
#endif
  od
}
