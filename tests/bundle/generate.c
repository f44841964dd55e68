/* tests/bundle/generate.c - writes the sample program as generated C, for examples/embed.
 *
 *     generate recurrence.ptx FOLDER */
#include "tests/bundle/sample.h"

#include <stdio.h>
#include <stdlib.h>

static int write_text(const char *folder, const char *name, const char *text)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    return file && fputs(text, file) >= 0 && fclose(file) == 0;
}

int main(int argc, char **argv)
{
    static char ptx[1 << 20];
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!file || fread(ptx, 1, sizeof ptx - 1, file) == 0)
        return 2;
    fclose(file);
    tg_program program = sample_program(ptx);
    char *source, *header;
    if (tg_program_c(&program, "mlstm_sig", &source, &header, NULL) != TG_OK)
        return 1;
    int ok =
        write_text(argv[2], "mlstm_sig.c", source) && write_text(argv[2], "mlstm_sig.h", header);
    free(source);
    free(header);
    return !ok;
}
