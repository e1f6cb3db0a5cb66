/* What holds after every step, by the names of the design: I1 to I9, and what its tables say besides. Each law is a bit
 * that has to stay set, so that a violation is reported by its name. L1 is a formula of rest.pml.
 */

#include "probes.pml"

bit I1_one_run = true;
bit I2_one_charge = true;
bit I3_hold_while_unsettled = true;
bit I4_captured_when_completed = true;
bit I5_conservation = true;
bit I6_one_answer = true;
bit I7_charge_after_run = true;
bit I8_generation_and_request = true;
bit I9_usage_record = true;
bit no_negative_amount = true;
bit terminal_is_final = true;
bit late_never_charges = true;
bit price_is_charged = true;
bit request_is_bound = true;
bit key_is_scoped = true;
bit cancelled_never_opens = true;
bit counters_are_exact = true;
bit cap_bounds_charges = true;
bit refund_within_charge = true;
#ifdef PER_MINUTE
bit minutes_are_exact = true;
bit minute_bounds_runs = true;
bit no_generation_too_soon = true;
#endif

#if OPERATIONS == 1
#define EACH(law) law(0)
#define SUM(of) of(0)
#else
#define EACH(law) law(0) && law(1)
#define SUM(of) (of(0) + of(1))
#endif
#if TASKS == 1
#define EACH_TASK(law) law(0)
#elif TASKS == 2
#define EACH_TASK(law) law(0) && law(1)
#elif TASKS == 3
#define EACH_TASK(law) law(0) && law(1) && law(2)
#else
#define EACH_TASK(law) law(0) && law(1) && law(2) && law(3)
#endif

#define ACTIVE(o) (ghost[o].hold == holding -> row[o].hold : 0)
#define COUNT_ACTIVE(o) (ghost[o].hold == holding -> 1 : 0)
#define CAPTURED(o) ghost[o].captured
#define REFUNDED(o) ghost[o].refunded

#define RAN_ONCE(o) (ghost[o].runs <= 1)
#define CHARGED_ONCE(o) (ghost[o].usages <= 1 && ghost[o].settlements <= 1 \
  && ghost[o].captured <= (ghost[o].hold == settled -> row[o].hold : 0))
#define HELD(o) ((ghost[o].hold == holding) == (row[o].phase == leased || row[o].phase == recorded))
#define SETTLED(o) ((ghost[o].hold == settled) == (row[o].phase == completed))
#define AGREED(o) (!ghost[o].contradicted)
#define EARNED(o) (ghost[o].captured == 0 || ghost[o].runs >= 1)
#define NUMBERED(o) (row[o].generation == ghost[o].holds && row[o].request == ghost[o].request)
#define USED(o) ((ghost[o].usages > 0) == (row[o].phase == recorded || row[o].phase == completed))
#define FINAL(o) (ghost[o].ended == absent || ghost[o].ended == row[o].phase)
#define IN_TIME(o) (ghost[o].charged_by == 0 || !task[ghost[o].charged_by - 1].late)
#define PRICED(o) (row[o].phase != completed || ghost[o].captured == CHARGE(o))
#define BOUND(o) (!ghost[o].leaked)
#define SCOPED(o) (!ghost[o].crossed)
#define STAYS_CANCELLED(o) (!(row[o].cancel_asked && row[o].phase == open))
#define REFUNDABLE(o) (ghost[o].refunded <= ghost[o].captured)
#define OWNS(t) (task[t].stage == owning || task[t].stage == calling \
  || (task[t].stage == offering && task[t].event != claim))
#define RUNS_ITS_REQUEST(t) (!OWNS(t) || REQUEST(t) == row[O(t)].request)
#define RUNS_ITS_KEY(t) (!OWNS(t) || API_KEY(t) == API_KEY(row[O(t)].owner))

#ifdef PER_MINUTE
#define EACH_MINUTE(law) law(0) && law(1)
#if OPERATIONS == 1
#define COUNTED(m) requests[m] == ghost[0].requests[m]
#define LIMITED(m) ghost[0].runs_in[m] <= PER_MINUTE
#else
#define COUNTED(m) requests[m] == ghost[0].requests[m] + ghost[1].requests[m]
#define LIMITED(m) ghost[0].runs_in[m] + ghost[1].runs_in[m] <= PER_MINUTE
#endif
#define PATIENT(o) (!ghost[o].hasty)
#endif

inline note_end(o) {
  if
  :: ghost[o].ended == absent && TERMINAL(row[o].phase) -> ghost[o].ended = row[o].phase
  :: else
  fi
}

/* The laws. */
#define I1_one_run_HOLDS EACH(RAN_ONCE)
#define I2_one_charge_HOLDS EACH(CHARGED_ONCE)
#define I3_hold_while_unsettled_HOLDS EACH(HELD)
#define I4_captured_when_completed_HOLDS EACH(SETTLED)
#define I5_conservation_HOLDS held == SUM(ACTIVE) && available + held + SUM(CAPTURED) == deposits + SUM(REFUNDED)
#define I6_one_answer_HOLDS EACH(AGREED)
#define I7_charge_after_run_HOLDS EACH(EARNED)
#define I8_generation_and_request_HOLDS EACH(NUMBERED)
#define I9_usage_record_HOLDS EACH(USED)
#define no_negative_amount_HOLDS available >= 0 && held >= 0 && concurrency >= 0 && spend >= 0
#define terminal_is_final_HOLDS EACH(FINAL)
#define late_never_charges_HOLDS EACH(IN_TIME)
#define price_is_charged_HOLDS EACH(PRICED)
#define request_is_bound_HOLDS EACH(BOUND) && EACH_TASK(RUNS_ITS_REQUEST)
#define key_is_scoped_HOLDS EACH(SCOPED) && EACH_TASK(RUNS_ITS_KEY)
#define cancelled_never_opens_HOLDS EACH(STAYS_CANCELLED)
#define counters_are_exact_HOLDS concurrency == SUM(COUNT_ACTIVE) && spend == SUM(ACTIVE) + SUM(CAPTURED)
#define cap_bounds_charges_HOLDS SUM(CAPTURED) <= CAP
#define refund_within_charge_HOLDS EACH(REFUNDABLE)
#ifdef PER_MINUTE
#define minutes_are_exact_HOLDS EACH_MINUTE(COUNTED)
#define minute_bounds_runs_HOLDS EACH_MINUTE(LIMITED)
#define no_generation_too_soon_HOLDS EACH(PATIENT)
#endif

/* The bit is set, or the violation has its name. */
#define judge(law) law = law##_HOLDS; assert(law)
/* With a name that is a macro itself. */
#define judge_named(law) judge(law)

/* All laws, or one of them with -DONLY=I2_one_charge; with -DPROBE=T8_LATE the situation is reported as an error.
 * trace.pml follows traces instead. */
inline keep_laws() {
#ifdef TRACE
  follow_trace();
#elif defined PROBE
  assert(!(PROBE));
#elif defined ONLY
  judge_named(ONLY);
#else
#ifndef ONE_CHARGE
  judge(I1_one_run);
#endif
  judge(I2_one_charge);
  judge(I3_hold_while_unsettled);
  judge(I4_captured_when_completed);
  judge(I5_conservation);
  judge(I6_one_answer);
  judge(I7_charge_after_run);
  judge(I8_generation_and_request);
  judge(I9_usage_record);
  judge(no_negative_amount);
  judge(terminal_is_final);
  judge(late_never_charges);
  judge(price_is_charged);
  judge(request_is_bound);
  judge(key_is_scoped);
  judge(cancelled_never_opens);
  judge(counters_are_exact);
  judge(cap_bounds_charges);
  judge(refund_within_charge);
#ifdef PER_MINUTE
  judge(minutes_are_exact);
  judge(minute_bounds_runs);
  judge(no_generation_too_soon);
#endif
#endif
  note_end(0);
#if OPERATIONS == 2
  note_end(1);
#endif
  verdict = 0;
  step = nothing;
  charge = 0;
  within = 0
}
