/* Follows traces of single operations: the committed changes of each, in their order, by transition, phase, version
 * and generation. The text that includes this file has the traces as a tree, and `follow_trace`, which keep_laws calls
 * after each step: a step that no trace has next ends the path.
 *
 * A caller begins when the one before has ended or died. Two at once commit the same changes, and a change whose answer
 * is lost is a change of a task that died. Any process may reap once a deadline has passed: leases make no other trace.
 */
#define TRACE
#define DIE
#define DEADLINES
#define REFUSE
#define CANCEL
#define BREAK
#define IN_TURN(t) (t == 0 || task[t - 1].stage == done || task[t - 1].stage == dead)

/* Node of the tree, and whether the last step has left it. */
short at;
bit astray;

#include "steps.pml"

init {
  byte t;
  d_step { up[0] = true; started[0] = true; holder[0] = 1; live[0] = true }
  atomic {
    for (t : 0 .. TASKS - 1) {
      run Caller(t)
    }
    run Reconciler(0);
    run Operator(0)
  }
}
