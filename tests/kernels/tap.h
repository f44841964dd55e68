/* tests/kernels/tap.h - tests as TAP, with nothing to install: the binary is carried to GPU
 * machines. */
#ifndef TEGULA_TESTS_TAP_H
#define TEGULA_TESTS_TAP_H

#include <stdbool.h>

/* Begins a test, unless its name lacks the text given to --only or has one given to --without.
 * Every begun test is ended. */
bool tap_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tap_end(void);
/* A failure does not end the test; what went wrong is printed under its name. Returns ok. */
bool tap_expect(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line under the test's name. */
void tap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The test begun last cannot run here. */
void tap_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

void tap_only(const char *text);
/* Tests are named, and not begun. */
void tap_list(void);
void tap_without(const char *text);
/* "2/8": the second of eight shares of the tests. False: that says nothing. */
bool tap_part(const char *text);
/* Takes the option at argv[*i], and what belongs to it, if it is one of these. */
#define TAP_USAGE "[--only TEXT] [--without TEXT]... [--part K/N] [--list]"
bool tap_argument(int argc, char **argv, int *i);
/* Of a program that has no others. False, after a line that says what it takes: there is another argument. */
bool tap_arguments(int argc, char **argv);
/* From here on the tests are shared with the processes that this one forks: each passes over those
 * that were begun before it. False: there is no memory. */
bool tap_share(void);
/* A test has begun and not ended. */
bool tap_is_open(void);
/* Prints the plan; the exit code. */
int tap_finish(void);

#endif
