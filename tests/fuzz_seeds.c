/* tests/fuzz_seeds.c FOLDER - a fuzz target without libFuzzer: it makes its seeds, and they are what it thinks. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

int main(int argc, char **argv)
{
    return argc == 2 ? LLVMFuzzerInitialize(&argc, &argv) : 2;
}
