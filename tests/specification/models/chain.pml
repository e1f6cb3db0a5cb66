/* A gateway behind a gateway: the calling one repeats a request under its key while the outcome is uncertain. Requests
 * arrive late or never, answers are cut, a proxy in between answers in its place, nodes there drain. With
 * -DIGNORES_KEYS the server is any other one, which runs whatever arrives, and gets one attempt.
 *
 * The called gateway runs each key once: that is its own promise, and the subject of operation.pml.
 */
#define GENERATIONS 2
#define ATTEMPTS 3

mtype:stage = { asking, waiting, open, answered, unpaid };
mtype:key = { free, running, completed, abandoned };
/* Outcomes of an attempt; `judged` proves that the engine there has judged the request, and that it was new. */
mtype:outcome = { nothing, completion, unsent, lost, in_progress, unknown, judged, draining, no_echo };
mtype:step = { none, given, reopened, asked_again };

mtype:stage stage = asking;
bit again;
byte generation;
byte attempts;
mtype:key key[GENERATIONS] = free;
/* Requests on their way, by the number of their key; the calling gateway knows none of it. */
byte mail[GENERATIONS];
byte runs;
byte charges;
mtype:step step = none;
mtype:outcome outcome = nothing;

bit no_second_run = true;
bit no_second_charge = true;
bit no_unpaid_answer = true;

#define ANSWERED (stage == answered)
#define ANSWERED_LATER (stage == answered && again)
#define ANSWERED_AFTER_PROOF (stage == answered && generation == 1)
#define LATE_ARRIVAL (stage == unpaid && runs == 1 && mail[0] + mail[1] > 0)

inline keep_laws() {
#ifdef PROBE
  assert(!(PROBE));
#endif
  no_second_run = runs <= 1;
  no_second_charge = charges <= 1;
  no_unpaid_answer = stage != answered || charges == 1;
#ifdef ONLY
  assert(ONLY);
#else
  assert(no_second_run);
  assert(no_second_charge);
  assert(no_unpaid_answer);
#endif
  outcome = nothing
}

#ifdef MUTANT_NOT_RUN_AFTER_SECOND_ATTEMPT
#define IS_FIRST true
#else
#define IS_FIRST (!again)
#endif
#ifdef MUTANT_PROOF_WITHOUT_ECHO
#define PROVES_NO_ECHO true
#else
#define PROVES_NO_ECHO false
#endif
#ifdef MUTANT_DRAINING_IS_PROOF
#define PROVES_DRAINING true
#else
#define PROVES_DRAINING false
#endif
#if defined IGNORES_KEYS && !defined MUTANT_ASKS_WHO_IGNORES_KEYS
#define MAY_REPEAT false
#else
#define MAY_REPEAT (attempts < ATTEMPTS)
#endif
#ifdef MUTANT_CUT_READ_AS_ANSWER
#define IS_ANSWER (outcome == completion || outcome == lost)
#else
#define IS_ANSWER (outcome == completion)
#endif
#define IS_PROOF (outcome == unsent || outcome == judged || (outcome == no_echo && PROVES_NO_ECHO) || \
  (outcome == draining && PROVES_DRAINING))

/* The calling gateway judges an attempt: answered, not run (T3), unknown (T5), or once more. */
inline judge() {
  if
  :: IS_ANSWER -> stage = answered
  :: outcome == unknown -> stage = unpaid
  :: IS_PROOF && IS_FIRST -> stage = open
  :: !IS_ANSWER && outcome != unknown && !(IS_PROOF && IS_FIRST) && MAY_REPEAT ->
#ifdef MUTANT_ASKS_UNDER_ANOTHER_KEY
     generation = (generation + 1 < GENERATIONS -> generation + 1 : generation);
#endif
     again = true;
     stage = asking
  :: !IS_ANSWER && outcome != unknown && !(IS_PROOF && IS_FIRST) && !MAY_REPEAT -> stage = unpaid
  fi
}

#define HAS_ARRIVED (mail[generation] == 0)

active proctype Caller() {
end:
  do
  :: d_step { stage == asking -> attempts++; mail[generation]++; stage = waiting; keep_laws() }
     /* No connection came about. */
  :: d_step { stage == asking -> attempts++; outcome = unsent; judge(); keep_laws() }
     /* The answers, by the state of the key there. */
  :: d_step { stage == waiting && HAS_ARRIVED && key[generation] == running ->
       outcome = in_progress; judge(); keep_laws() }
  :: d_step { stage == waiting && HAS_ARRIVED && key[generation] == completed ->
       outcome = completion; judge(); keep_laws() }
  :: d_step { stage == waiting && HAS_ARRIVED && key[generation] == abandoned ->
       outcome = unknown; judge(); keep_laws() }
     /* A node that drains answers the second try of a proxy. */
  :: d_step { stage == waiting && HAS_ARRIVED && key[generation] != free ->
       outcome = draining; judge(); keep_laws() }
     /* Turned away before the key was bound, with the mark of the engine. */
  :: d_step { stage == waiting && !HAS_ARRIVED && key[generation] == free ->
       mail[generation]--; outcome = judged; judge(); keep_laws() }
     /* A proxy answers in its place, or the answer is cut. */
  :: d_step { stage == waiting -> outcome = no_echo; judge(); keep_laws() }
  :: d_step { stage == waiting -> outcome = lost; judge(); keep_laws() }
     /* The total timeout: T5. */
  :: d_step { stage == asking || stage == waiting -> stage = unpaid; keep_laws() }
     /* The caller comes again after T3: T7. */
  :: d_step { stage == open && generation + 1 < GENERATIONS ->
       generation++; attempts = 0; again = false; stage = asking; keep_laws() }
  od
}

/* The network and the called gateway. */
active [GENERATIONS] proctype Callee() {
end:
  do
#ifdef IGNORES_KEYS
  :: d_step { mail[_pid - 1] > 0 -> mail[_pid - 1]--; key[_pid - 1] = running; runs++; keep_laws() }
#else
  :: d_step { mail[_pid - 1] > 0 && key[_pid - 1] == free ->
       mail[_pid - 1]--; key[_pid - 1] = running; runs++; keep_laws() }
  :: d_step { mail[_pid - 1] > 0 && key[_pid - 1] != free -> mail[_pid - 1]--; keep_laws() }
#endif
  :: d_step { key[_pid - 1] == running -> key[_pid - 1] = completed; charges++; keep_laws() }
  :: d_step { key[_pid - 1] == running -> key[_pid - 1] = abandoned; keep_laws() }
  od
}
