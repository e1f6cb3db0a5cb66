/* Three callers of one key on one process; the answer to any commit may be lost. */
#define TASKS 3
#define LOSE_COMMITS
#define DIE
#define DEADLINES
/* The third comes at another price: another hold, and meters that pass it. */
#define HOLD(t) (t == 2 -> 1 : 2)
#define METERED(t) (t == 2 -> 3 : 1)
#include "steps.pml"

init {
  d_step { up[0] = true; started[0] = true; holder[0] = 1; live[0] = true }
  atomic {
    run Caller(0); run Caller(1); run Caller(2);
    run LostOffer(0); run LostOffer(1); run LostOffer(2);
    run Reconciler(0)
  }
}
