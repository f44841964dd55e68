/* tests/fuzz_seeds.c FOLDER - a fuzz target without libFuzzer: it makes its seeds, and they are what it thinks. */
#include "tests/usage.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

int main(int argc, char **argv)
{
    return usage_is(argc, argv, 1, 1, "FOLDER") ? LLVMFuzzerInitialize(&argc, &argv) : 2;
}
