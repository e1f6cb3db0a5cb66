/* Situations that the models reach: -DPROBE=T8_LATE reports the first one as an error. A law whose situation is never
 * reached says nothing.
 */

/* Transitions. */
#define T1_CLAIM (step == T1)
#define T2_FINISH (step == T2)
#define T2A_RECORD (step == T2a)
#define T2B_SETTLE (step == T2b)
#define T2C_CANCEL (step == T2c)
#define T3_NOT_RUN (step == T3)
#define T4_REFUSE (step == T4)
#define T5_GIVE_UP (step == T5)
#define T5C_CANCEL_OPEN (step == T5c)
#define T6_REAP (step == T6)
#define T6_DISOWN_OPEN (step == disowned && row[0].phase == open)
#define T6_DISOWN_ABANDONED (step == disowned && row[0].phase == abandoned)
#define T7_REOPEN (step == T7)
#define T8_LATE (step == T8)
#define T9_PURGE (step == T9)

/* Situations of laws. */
#define HELD_WHILE_RECORDED (row[0].phase == recorded && ghost[0].hold == holding)
#define REST_RETURNED (row[0].phase == completed && ghost[0].captured < row[0].hold)
#define BOTH_CHARGED (CAPTURED(0) > 0 && CAPTURED(1) > 0)
#define REFUSED_FOR_FUNDS (step == rejection && !broken && available < 2)
#define REPLAYED_RESULT (step == replay && row[0].phase == completed)
#define COMPLETED_IN_GENERATION_3 (row[0].generation == 3 && row[0].phase == completed)
#define LATE_AFTER_REAP (step == T8 && row[0].phase == abandoned)
#define METERED_ABOVE_HOLD (row[0].phase == completed && METERED(row[0].author) > row[0].hold)
#define CONFLICTED (step == other_request)
#define BOTH_KEYS_ANSWERED (ghost[0].given[0] != NO_ANSWER && ghost[1].given[0] != NO_ANSWER)
#define CANCELLED_UNSENT (step == T3 && row[0].cancel_asked)
#define TWO_HOLDS (concurrency == 2)
#define REFUSED_BY_CAP (step == rejection && !broken && available >= 2)
#define REFUNDED_WHOLE (CAPTURED(0) > 0 && REFUNDED(0) == CAPTURED(0))
#define BOTH_MINUTES (requests[0] > 0 && requests[1] > 0)
#define REFUSED_FOR_THE_MINUTE (step == rejection && requests[0] == PER_MINUTE && ghost[0].runs_in[0] > 0)
#define REOPENED_AFTER_A_WAIT (step == T7 && row[0].generation == 4)

/* Situations of the world. */
#define LOST_CLAIM_LANDED (row[0].phase == leased && task[row[0].owner].stage == offering && \
  task[row[0].owner].event == claim)
#define LOST_RESULT_LANDED (row[0].phase == completed && task[row[0].owner].stage == offering && \
  task[row[0].owner].event == finish)
#define LANDED_AFTER_A_CRASH (row[0].phase == leased && step == T1 && task[row[0].owner].stage == gone)
#define TWO_OF_ONE_NAME (up[0] && up[1])
#define TAKEN_OVER_WHILE_IT_RUNS (step == T6 && up[0] && holder[0] == 2 && row[0].owner == 0 && \
  task[0].stage == calling)
#define SECOND_ROUTE_RUNS (task[0].stage == calling && task[0].routes == 1 && task[0].runs)
#define COMPLETED_AFTER_A_CANCEL (row[0].phase == completed && row[0].cancel_asked)
#define GIVEN_THE_CHARGE_ALONE (ghost[0].given[0] == CHARGE_ONLY && ghost[0].given[1] == CHARGE_ONLY)
#define RAN_TWICE_CHARGED_ONCE (ghost[0].runs > 1 && CAPTURED(0) > 0)
