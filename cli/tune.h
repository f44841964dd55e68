/* cli/tune.h - what the files of `tegula tune` share. */
#ifndef TEGULA_CLI_TUNE_H
#define TEGULA_CLI_TUNE_H

#include "cli.h"

/* ---- tune_show.c ---- */

void tuning_print(const tg_tune_request *request, const tg_tuning *tuning);
json_t *tuning_json(const tg_tune_request *request, const tg_tuning *tuning);

#endif
