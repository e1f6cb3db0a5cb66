/* One request key of two API keys, the first with two credentials; results are deleted some day. With -DSECOND_REQUEST
 * the third caller has the first API key, and another request.
 */
#define TASKS 3
#define OPERATIONS 2
#ifndef SECOND_REQUEST
/* Another API key: another operation. */
#define OPERATION(t) (t == 2 -> 1 : 0)
#define API_KEY(t) (t == 2 -> 1 : 0)
#else
#define OPERATION(t) 0
#define REQUEST(t) (t == 2 -> 1 : 0)
#endif
#define CREDENTIAL(t) (t == 1 -> 1 : 0)
#define DEADLINES
#define PURGE
#define REFUSE
#define LOSE_COMMITS
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
