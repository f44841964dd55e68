/* cli/wrap.c - lines for people, broken between words where a terminal ends, or after 100 columns. What goes to a file or a
 * pipe, and JSON and code anywhere, stays as it is. */
#include "cli.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDEST = 100, NARROWEST = 40, HANGING = 4 };

struct lines {
    int width;   /* columns there are */
    int column;  /* of the line so far, less blanks at its end */
    int blanks;  /* at its end */
    int indent;  /* of the lines that continue it */
    bool begins; /* nothing but blanks so far */
    bool in_word;
};

static int width_of(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col < NARROWEST)
        return WIDEST;
    return size.ws_col < WIDEST ? size.ws_col : WIDEST;
}

/* Bytes that go on with a character of UTF-8 take no column. */
static int columns(const char *text, size_t n)
{
    int count = 0;
    for (size_t i = 0; i < n; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

static void put_word(struct lines *lines, const char *word, size_t n, FILE *to)
{
    const int width = columns(word, n);
    if (!lines->in_word && !lines->begins && lines->column + lines->blanks + width > lines->width) {
        fprintf(to, "\n%*s", lines->indent, "");
        lines->column = lines->indent;
        lines->blanks = 0;
    }
    if (lines->begins)
        lines->indent = lines->blanks + HANGING < lines->width / 2 ? lines->blanks + HANGING : HANGING;
    fprintf(to, "%*s", lines->blanks, "");
    fwrite(word, 1, n, to);
    lines->column += lines->blanks + width;
    lines->blanks = 0;
    lines->begins = false;
    lines->in_word = true;
}

/* Some bytes of a text; a word may come in pieces, then it is not broken. */
static void put(struct lines *lines, const char *text, size_t size, FILE *to)
{
    size_t n;
    for (size_t i = 0; i < size; i += n ? n : 1) {
        for (n = 0; i + n < size && text[i + n] != ' ' && text[i + n] != '\n'; n++)
            continue;
        if (n) {
            put_word(lines, text + i, n, to);
            continue;
        }
        lines->in_word = false;
        if (text[i] == ' ') {
            lines->blanks++;
            continue;
        }
        fputc('\n', to);
        *lines = (struct lines){.width = lines->width, .begins = true};
    }
}

void print_list(FILE *to, int column, const char *text)
{
    struct lines lines = {.width = WIDEST, .column = column, .indent = column};
    put(&lines, text, strlen(text), to);
    fputc('\n', to);
}

void print_message(const char *text)
{
    struct lines lines = {.width = width_of(STDERR_FILENO), .begins = true};
    if (isatty(STDERR_FILENO))
        put(&lines, text, strlen(text), stderr);
    else
        fputs(text, stderr);
}

/* ---- standard output ---- */

static FILE *terminal; /* what stdout was */

static ssize_t write_lines(void *user, const char *bytes, size_t size)
{
    put(user, bytes, size, terminal);
    return fflush(terminal) == 0 ? (ssize_t)size : -1;
}

void wrap_output(void)
{
    static struct lines lines;
    if (terminal || !isatty(STDOUT_FILENO))
        return;
    lines = (struct lines){.width = width_of(STDOUT_FILENO), .begins = true};
    FILE *wrapped = fopencookie(&lines, "w", (cookie_io_functions_t){.write = write_lines});
    if (!wrapped)
        return;
    setvbuf(wrapped, NULL, _IOLBF, 0);
    terminal = stdout;
    stdout = wrapped;
}
