/* tests/harness/harness.h - what the parts of `./dev fuzz command` share. Each plays rounds that follow from a seed, and says
 * at its end whether it reached what it is for. Internal. */
#ifndef TEGULA_HARNESS_H
#define TEGULA_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

struct harness {
    const char *tegula, *faulty, *emulator, *data; /* the command, faulty_cuda, the emulator's library, tests/data */
    char folder[64];                               /* everything is written there */
    uint64_t seed;                                 /* of this round */
    uint64_t drawn;
};

/* 0 .. n - 1. */
uint32_t harness_draw(struct harness *h, uint32_t n);

/* The command in our folder, which is where relative paths begin: what it said, cut off where there is no room. */
struct outcome {
    int code;   /* -1: a signal ended it, `signal` */
    int signal; /* SIGXCPU, SIGKILL: it took more than a minute of a processor; SIGALRM: it waits */
    char out[1 << 16], err[1 << 14];
};
enum { MAX_WORDS = 40 };
struct outcome *harness_run(const struct harness *h, char *const words[], char *const environment[]);
void harness_show(char *const words[]);

/* Each plays a round; with h NULL it says whether what was to be reached was. A failure is a failure of the TAP test. */
typedef bool harness_part(struct harness *h);
harness_part faults_play, options_play, kills_play, flips_play;

#endif
