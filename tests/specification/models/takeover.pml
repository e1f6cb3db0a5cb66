/* Two callers of one key on a process and one on its successor, with every fault: crashes, leases, deadlines, and
 * commits whose answer is lost or that land after their process has died.
 */
#define TASKS 3
#define PROCESSES 2
#define PROCESS(t) (t == 2 -> 1 : 0)
#define DIE
#define CRASH
#define EXPIRE
#define LEAVE
#define DEADLINES
#define LOSE_COMMITS
#include "steps.pml"

init {
  d_step { up[0] = true; started[0] = true; holder[0] = 1; live[0] = true }
  atomic {
    run Caller(0); run Caller(1); run Caller(2);
    run LostOffer(0); run LostOffer(1); run LostOffer(2);
    run Reconciler(0);
    run Process(0); run Process(1)
  }
}
