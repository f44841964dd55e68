Arguments that nobody can act on: the message says what is wrong and what to type instead.

-- case no command
-- args

-- exit 2
-- stderr
usage: tegula COMMAND

-- case the version, for people
-- args
--version
-- exit 0
-- stdout
tegula 0.

-- case ... and for scripts
-- args
--version --json
-- exit 0
-- stdout
{"version":"0.

-- case ... and nothing else
-- args
--version --jsn
-- exit 2
-- stderr
--version: unknown argument '--jsn'

-- case a misspelt command
-- args
chekc
-- exit 2
-- stderr
error: unknown command 'chekc'
hint: did you mean `tegula check`?

-- case nothing like a command
-- args
frobnicate
-- exit 2
-- stderr
unknown command 'frobnicate'
`tegula help` lists the commands

-- case a misspelt option
-- args
run mlstm-sig --tiem
-- exit 2
-- stderr
`tegula run` does not take --tiem
hint: did you mean --time?

-- case an option of another command
-- args
devices --chunk=64
-- exit 2
-- stderr
`tegula devices` does not take --chunk

-- case an option without its argument
-- args
run mlstm-sig --in
-- exit 2
-- stderr
--in needs an argument

-- case an argument too many
-- args
run mlstm-sig x.safetensors
-- exit 2
-- stderr
unexpected argument 'x.safetensors'
usage: tegula run [VARIANT] --in FILE --out FILE

-- case ... of a command that takes none
-- args
devices 1
-- exit 2
-- stderr
usage: tegula devices [OPTIONS]

-- case an argument too few
-- args
explain
-- exit 2
-- stderr
`tegula explain` needs an argument

-- case a misspelt variant
-- args
explain mlstm-sgi
-- exit 2
-- stderr
unknown variant 'mlstm-sgi'
hint: did you mean 'mlstm-sig'?

-- case nothing like a variant
-- args
explain resnet50
-- exit 2
-- stderr
unknown variant 'resnet50'
`tegula variants` lists them

-- case a word that is no number
-- args
run mlstm-sig --chunk=many
-- exit 2
-- stderr
--chunk: expected a whole number of at least 1, found 'many'

-- case a number beyond 64 bits
-- args
run mlstm-sig --chunk=99999999999999999999
-- exit 2
-- stderr
--chunk: expected a whole number

-- case a negative scale
-- args
run mlstm-sig --scale=-1
-- exit 2
-- stderr
--scale: expected a positive number, found '-1'

-- case a type that is none
-- args
explain mlstm-sig --dtype int8
-- exit 2
-- stderr
--dtype: 'int8', expected bf16, f16 or f32
hint: choose bf16, f16 or f32

-- case an architecture that is none
-- args
explain mlstm-sig --arch sm_75
-- exit 2
-- stderr
--arch: unknown architecture 'sm_75'
sm_80
sm_90a

-- case a stage that is none
-- args
explain mlstm-sig --stage sass
-- exit 2
-- stderr
--stage: unknown stage 'sass'
hint: choose plan, llvm or ptx

-- case a width that is no multiple of 8
-- args
explain mlstm-sig --dqk 100
-- exit 2
-- stderr
dqk is 100: expected a multiple of 8 from 16 to 512
pad the tensors

-- case a width beyond the largest, and one below the least: both are said
-- args
explain mlstm-sig --dqk 8 --dhv 5000000000
-- exit 2
-- stderr
dqk is 8: expected a multiple of 8 from 16 to 512
dhv is

-- case a schedule that is none
-- args
explain mlstm-sig --schedule flash
-- exit 2
-- stderr
mlstm-sig has no schedule 'flash'
mlstm-sig has:
tfla-wide

-- case a schedule field that is none
-- args
explain mlstm-sig --schedule "tfla H.Lhg=64"
-- exit 2
-- stderr
Lhg

-- case a chunk that the blocks do not divide
-- args
explain mlstm-sig --arch sm_80 --chunk 100
-- exit 2
-- stderr
error TG0547: mlstm-sig: none of its
chunk size 100, expected a multiple of
! TG0518

-- case one message where nothing has room: of what comes nearest
-- args
check kda --shape B=1,NH=1,T=100,dqk=504,dhv=512 --dtype f32 --device emu --arch sm_86 --no-wisdom
-- exit 2
-- stderr
error TG0547: kda: none of its
schedule portable-fp32-shared on sm_86: kernel walk needs 106560 bytes of shared memory; at most 101376
! TG0531

-- case errors as JSON too
-- args
explain mlstm-sig --json --dtype int8
-- exit 2
-- stdout
"ok":false
--dtype: 'int8', expected bf16, f16 or f32

-- case tune's help says where its results go, and what else is looked into
-- args
tune --help
-- exit 0
-- stdout
What it finds is remembered in --wisdom
then into what tegula brings for the H200
Ctrl-C ends the search early

-- case no room for what check prints
-- full
-- args
check $DATA/mlstmsig_a.safetensors --device emu
-- exit 1
-- stderr
cannot write to standard output

-- case no room for what bench prints
-- full
-- args
bench mlstm-sig --device emu --shape B=1,NH=1,T=20,dqk=16,dhv=16 --runs 1
-- exit 1
-- stderr
cannot write to standard output

-- case a misspelt variant and random inputs
-- args
check mlstm-sigg --shape B=1,NH=1,T=20,dqk=16,dhv=16
-- exit 2
-- stderr
unknown variant 'mlstm-sigg'
did you mean 'mlstm-sig'

-- case a value for an option that takes none
-- args
check mlstm-sig --grad=1
-- exit 2
-- stderr
--grad takes no argument, found '=1'

-- case a GPU, and the architecture of another
-- args
tune mlstm-sig --gpu H200 --arch sm_80 --shape B=1,NH=1,T=100,dqk=64,dhv=64
-- exit 2
-- stderr
--arch sm_80: the GPU of --gpu is sm_90a

-- case a schedule of gradients that nobody asked for
-- args
bench gla --backward-schedule tfla --device emu --shape B=1,NH=1,T=20,dqk=16,dhv=16
-- exit 2
-- stderr
--backward-schedule: no gradients are asked for
hint: add --grad

-- case the outputs in the place of the inputs
-- text x.safetensors
nothing yet
-- args
run mlstm-sig --in x.safetensors --out ./x.safetensors
-- exit 2
-- stderr
--out ./x.safetensors: it is the file with the inputs
-- file x.safetensors
nothing yet
