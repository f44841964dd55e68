/* tests/cost.h - what a call costs, in nanoseconds of a processor that is not shared.
 *
 * The same instructions take up to twice as long while a neighbour in the cloud uses the other half of a core, for seconds at
 * a time, so the least of many runs says little. Work that never changes is timed beside the calls: a cost is what the calls
 * take of that work's time, times what the work takes where nothing else runs. */
#ifndef TEGULA_TESTS_COST_H
#define TEGULA_TESTS_COST_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static const double quiet_work_ns = 6000; /* of known_work on a core of an AMD EPYC that does nothing else */

static inline double processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

struct record {
    int64_t extent[5], stride[5];
    uint64_t flags;
};

/* Walks records as a launch walks its tensors. */
static inline uint64_t known_work(void)
{
    enum { RECORDS = 64, ROUNDS = 10, AXES = 5 };
    static struct record records[RECORDS];
    uint64_t sum = 1;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < RECORDS; i++) {
            volatile struct record *r = &records[i];
            int64_t step = 1;
            r->flags = (uint64_t)(i * 7 % 32);
            for (int axis = AXES; axis-- > 0;) {
                const int64_t extent = r->flags >> axis & 1 ? r->extent[axis] + i * axis % 13 : 1;
                r->stride[axis] = step;
                step *= extent;
                sum += extent > 7 ? (uint64_t)step : 1;
            }
        }
    return sum;
}

static inline int compare_costs(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Calls `call(user)` many times; nanoseconds of one, the median of many runs. */
static inline double cost_ns(void (*call)(void *user), void *user)
{
    enum { RUNS = 101, CALLS = 100 };
    double costs[RUNS];
    uint64_t sum = 0;
    for (int run = 0; run < RUNS; run++) {
        const double begin = processor_ns();
        sum += known_work();
        const double from = processor_ns();
        for (int i = 0; i < CALLS; i++)
            call(user);
        const double to = processor_ns();
        sum += known_work();
        const double end = processor_ns();
        costs[run] = (to - from) / (from - begin + end - to);
    }
    qsort(costs, RUNS, sizeof *costs, compare_costs);
    return sum ? costs[RUNS / 2] * 2 * quiet_work_ns / CALLS : HUGE_VAL;
}

#endif
