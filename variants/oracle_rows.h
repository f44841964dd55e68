/* variants/oracle_rows.h - rows of doubles: what the oracles do at every token. Rows do not overlap; n >= 0.
 *
 * Vector code for two kinds of CPU, of which the machine chooses; asked for here, since who has a variant of his own compiles
 * scalar_oracle.c with flags of his own. A product is rounded before it is added, so that every machine gives the same bits. */
#ifndef TEGULA_ORACLE_ROWS_H
#define TEGULA_ORACLE_ROWS_H

#include <stdint.h>

/* Sanitizers run before ifuncs can. */
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define ORACLE_ROWS __attribute__((target_clones("avx2", "default"), optimize("O3"), unused)) static
#else
#define ORACLE_ROWS __attribute__((unused)) static
#endif

/* sum += factor row */
ORACLE_ROWS void oracle_add(double *restrict sum, const double *restrict row, double factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += factor * row[i];
}

/* row = factor row */
ORACLE_ROWS void oracle_scale(double *row, double factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        row[i] *= factor;
}

/* to = decay from + factor row; `to` may be `from`. */
ORACLE_ROWS void oracle_update(double *to, const double *from, double decay, const double *row, double factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = decay * from[i] + factor * row[i];
}

/* a.b by eight sums, since one would wait for every addition. */
ORACLE_ROWS double oracle_dot(const double *restrict a, const double *restrict b, int64_t n)
{
    enum { SUMS = 8 };
    double sum[SUMS] = {0}, rest = 0;
    int64_t at = 0;
    for (; at + SUMS <= n; at += SUMS)
        for (int64_t i = 0; i < SUMS; i++)
            sum[i] += a[at + i] * b[at + i];
    for (; at < n; at++)
        rest += a[at] * b[at];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])) + rest;
}

#endif
