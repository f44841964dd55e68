/* tests/usage.h - a test program that gets what it does not take says so in a line, and runs nothing: a test that was not run
 * must not look like one that passed. */
#ifndef TEGULA_TESTS_USAGE_H
#define TEGULA_TESTS_USAGE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The exit status. argument NULL: one is missing. */
static inline int usage_wrong(char **argv, const char *argument, const char *takes)
{
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    fprintf(stderr, "%s: %s%s%s; usage: %s%s%s\n", name, argument ? "unexpected argument '" : "an argument is missing",
            argument ? argument : "", argument ? "'" : "", name, *takes ? " " : "", takes);
    return 2;
}

/* Of a program without options: are there so many arguments? */
static inline bool usage_is(int argc, char **argv, int least, int most, const char *takes)
{
    const char *unexpected = argc - 1 > most ? argv[most + 1] : NULL;
    for (int i = argc - 1; i > 0; i--)
        if (argv[i][0] == '-')
            unexpected = argv[i];
    if (!unexpected && argc - 1 >= least)
        return true;
    usage_wrong(argv, unexpected, takes);
    return false;
}

#endif
