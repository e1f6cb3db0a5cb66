/* L1: from any state, with no further fault and with every task hung for ever, reaping and settling alone bring each
 * operation to rest. Checked as a formula, under weak fairness: each reconciler takes its turns. Leases do not end, so
 * that a hung task of a live process has only its deadline.
 */
#define TASKS 2
#define HANG
#define DEADLINES
#define DIE
#define BREAK
#define LOSE_COMMITS
#define CANCEL
#include "steps.pml"

#define AT_REST(o) (row[o].phase != leased && row[o].phase != recorded && ghost[o].hold != holding)
ltl L1_comes_to_rest { [] (hung -> <> AT_REST(0)) }

init {
  d_step { up[0] = true; started[0] = true; holder[0] = 1; live[0] = true }
  atomic {
    run Caller(0); run Caller(1);
    run LostOffer(0); run LostOffer(1);
    run Reconciler(0);
    run Operator(0)
  }
  d_step { !hung -> hung = true }
}
