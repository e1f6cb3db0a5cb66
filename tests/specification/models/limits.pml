/* Callers of one key under a limit of two requests a minute, over two minutes, and the time that a third reopening
 * waits. With -DTWO_KEYS two request keys share a limit of one, and operations are reaped and cancelled.
 */
#ifdef TWO_KEYS
#define TASKS 3
#define OPERATIONS 2
#define OPERATION(t) (t == 1 -> 1 : 0)
#define DEADLINES
#define CANCEL
#define PER_MINUTE 1
#else
#define TASKS 4
#define PER_MINUTE 2
#endif
#define DEPOSIT 8
#include "steps.pml"

init {
  d_step { up[0] = true; started[0] = true; holder[0] = 1; live[0] = true }
  atomic {
    run Caller(0); run Caller(1); run Caller(2);
    run Clock();
#ifdef TWO_KEYS
    run Reconciler(1); run Operator(0); run Operator(1);
#else
    run Caller(3);
#endif
    run Reconciler(0)
  }
}
