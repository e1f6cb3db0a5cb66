/* Two operations on one wallet with room for one hold at a time until the deposit, a store that refuses money for a
 * time, and refunds. With -DCAP=2 the API key has a spend limit that the deposit exceeds.
 */
#define TASKS 3
#define OPERATIONS 2
#define OPERATION(t) (t == 1 -> 1 : 0)
#define HOLD(t) (t == 1 -> 1 : 2)
#define METERED(t) (t + 1)
#define DEPOSIT 2
#define DEPOSITS 3
#define DEADLINES
#define DIE
#define BREAK
#define REFUND
#ifdef LARGE
#define LOSE_COMMITS
#endif
#include "steps.pml"

init {
  d_step { up[0] = true; started[0] = true; holder[0] = 1; live[0] = true }
  atomic {
    run Caller(0); run Caller(1); run Caller(2);
    run LostOffer(0); run LostOffer(1); run LostOffer(2);
    run Reconciler(0); run Reconciler(1);
    run Operator(0); run Operator(1)
  }
}
