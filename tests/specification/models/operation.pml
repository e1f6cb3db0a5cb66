/* Callers of one key on a process, its successor under the same name, and a process of another name. Tasks die,
 * processes crash or give their names back, leases end and are renewed: two live processes of one name are reached.
 */
#define TASKS 3
#define PROCESSES 3
#define NAMES 2
#define PROCESS(t) (t)
#define NAME(p) (p == 2 -> 1 : 0)
#define DIE
#define CRASH
#define EXPIRE
#define LEAVE
#include "steps.pml"

init {
  d_step {
    up[0] = true; started[0] = true; holder[0] = 1; live[0] = true;
    up[2] = true; started[2] = true; holder[1] = 3; live[1] = true
  }
  atomic {
    run Caller(0); run Caller(1); run Caller(2);
    run Reconciler(0);
    run Process(0); run Process(1); run Process(2)
  }
}
