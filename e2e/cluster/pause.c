// The first process of a sandbox and of a node: waits forever and reaps orphaned processes.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_child(int signal_number) {
    (void)signal_number;
    while (waitpid(-1, 0, WNOHANG) > 0) {
    }
}

static void on_stop(int signal_number) {
    (void)signal_number;
    _exit(0);
}

int main(void) {
    signal(SIGCHLD, on_child);
    signal(SIGINT, on_stop);
    signal(SIGTERM, on_stop);
    for (;;) pause();
}
