/* tests/bundle/generate.c - writes the sample programs as generated C: mlstm_sig for
 * examples/embed, the others, and a set, for test_generated.
 *
 *     generate recurrence.ptx FOLDER */
#include "tests/bundle/sample.h"
#include "tests/usage.h"

#include <stdio.h>
#include <stdlib.h>

static int write_text(const char *folder, const char *name, const char *text)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    return file && fputs(text, file) >= 0 && fclose(file) == 0;
}

static int write_both(char *source, char *header, const char *name, const char *folder)
{
    char file[2][100];
    snprintf(file[0], sizeof file[0], "%s.c", name);
    snprintf(file[1], sizeof file[1], "%s.h", name);
    int ok = write_text(folder, file[0], source) && write_text(folder, file[1], header);
    free(source);
    free(header);
    return ok;
}

static int write_program(const tg_program *program, const char *name, const char *folder)
{
    char *source, *header;
    return tg_program_c(program, name, &source, &header, NULL) == TG_OK && write_both(source, header, name, folder);
}

static int write_set(const char *ptx, const char *name, const char *folder)
{
    static tg_program programs[SAMPLE_SET_PROGRAMS];
    static tg_branch branches[SAMPLE_SET_BRANCHES];
    const tg_set set = sample_set(ptx, programs, branches);
    char *source, *header;
    return tg_set_c(&set, name, &source, &header, NULL) == TG_OK && write_both(source, header, name, folder);
}

int main(int argc, char **argv)
{
    static char ptx[1 << 20];
    FILE *file = usage_is(argc, argv, 2, 2, "recurrence.ptx FOLDER") ? fopen(argv[1], "rb") : NULL;
    if (!file || fread(ptx, 1, sizeof ptx - 1, file) == 0)
        return 2;
    fclose(file);
    tg_program plain = sample_program(ptx), packed = sample_program_packed(ptx);
    tg_program decode = sample_program_decode(ptx), maps = sample_program_maps(ptx),
               pieces = sample_program_pieces(ptx);
    return !(write_program(&plain, "mlstm_sig", argv[2]) && write_program(&packed, "packed", argv[2]) &&
             write_program(&decode, "decode", argv[2]) && write_program(&maps, "maps", argv[2]) &&
             write_program(&pieces, "pieces", argv[2]) && write_set(ptx, "choosing", argv[2]));
}
