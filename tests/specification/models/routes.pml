/* Two routes, tried in turn while each is proven not to have run; a cancel at any moment, and a refusal for good. With
 * -DONE_CHARGE an unknown outcome goes to the next route, too: I1 is not promised then, the rest is.
 */
#define TASKS 3
#define ROUTES 2
#define HOLD(t) (t == 1 -> 1 : 2)
#define METERED(t) (t == 1 -> 3 : 1)
#define DEADLINES
#define DIE
#define REFUSE
#define CANCEL
#define LOSE_COMMITS
#include "steps.pml"

init {
  d_step { up[0] = true; started[0] = true; holder[0] = 1; live[0] = true }
  atomic {
    run Caller(0); run Caller(1); run Caller(2);
    run LostOffer(0); run LostOffer(1); run LostOffer(2);
    run Reconciler(0);
    run Operator(0)
  }
}
