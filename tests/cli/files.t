Files that do not hold what the variant takes: the tensor, what was expected, what was found.

-- case a file that does not exist
-- args
check nowhere.safetensors --device emu
-- exit 2
-- stderr
nowhere.safetensors
hint:

-- case a pipe in place of a file: nobody waits for it
-- pipe x.safetensors
-- args
check x.safetensors --device emu
-- exit 2
-- stderr
x.safetensors: expected a regular file, found a device, pipe or socket

-- case ... of one that would be written
-- pipe h.safetensors
-- args
run mlstm-sig --in $DATA/mlstmsig_a.safetensors --out h.safetensors --device emu
-- exit 2
-- stderr
--out h.safetensors: cannot write: it is there and no regular file

-- case ... of wisdom
-- pipe w.txt
-- args
compile mlstm-sig --arch sm_80 --dqk 16 --dhv 16 --ptxas none -o out --wisdom w.txt
-- exit 0
-- stderr
TG0831: cannot read w.txt: expected a regular file

-- case a file that is not safetensors
-- text x.safetensors
hello, I am a text file
-- args
check x.safetensors --device emu
-- exit 2
-- stderr
x.safetensors
hint:

-- case a variant name before the files that is none
-- args
check mlstmsgi a.safetensors --device emu
-- exit 2
-- stderr
unknown variant 'mlstmsgi'
hint: did you mean 'mlstmsig'?

-- case a variant name and no file
-- args
check mlstm-sig
-- exit 2
-- stderr
no file to check

-- case a file that does not say its variant
-- tensors x.safetensors
in.q BF16 1,2,64,32
-- args
check x.safetensors --device emu
-- exit 2
-- stderr
no metadata `variant`
hint: name it: tegula check VARIANT FILE

-- case a file of a variant that is not there yet
-- tensors x.safetensors
in.q BF16 1,2,64,32
meta variant srmsnorm
-- args
check x.safetensors --device emu
-- exit 2
-- stderr
unknown variant 'srmsnorm'

-- case two tensors are missing: both are said
-- tensors x.safetensors
in.q BF16 1,2,64,32
in.v BF16 1,2,64,32
in.f F32 1,2,64
-- args
run mlstm-sig --in x.safetensors --out h.safetensors --device emu
-- exit 2
-- stderr
x.safetensors: there is no tensor in.k
x.safetensors: there is no tensor in.i
mlstm-sig needs it, shape [B, NH/group, T, dqk]

-- case a tensor of too few axes
-- tensors x.safetensors
in.q BF16 2,64,32
in.k BF16 1,2,64,32
in.v BF16 1,2,64,32
in.f F32 1,2,64
in.i F32 1,2,64
-- args
run mlstm-sig --in x.safetensors --out h.safetensors --device emu
-- exit 2
-- stderr
in.q has shape [2, 64, 32], expected 4 axes [B, NH/group, T, dqk]

-- case two tensors that disagree in T
-- tensors x.safetensors
in.q BF16 1,2,64,32
in.k BF16 1,2,65,32
in.v BF16 1,2,64,32
in.f F32 1,2,64
in.i F32 1,2,64
-- args
run mlstm-sig --in x.safetensors --out h.safetensors --device emu
-- exit 2
-- stderr
in.k has shape [1, 2, 65, 32], expected [B, NH/group, T, dqk] with T = 64 as in in.q

-- case an integer tensor
-- tensors x.safetensors
in.q I32 1,2,64,32
in.k BF16 1,2,64,32
in.v BF16 1,2,64,32
in.f F32 1,2,64
in.i F32 1,2,64
-- args
run mlstm-sig --in x.safetensors --out h.safetensors --device emu
-- exit 2
-- stderr
in.q is I32, expected a floating-point type

-- case two input types at once
-- tensors x.safetensors
in.q BF16 1,2,64,32
in.k F16 1,2,64,32
in.v BF16 1,2,64,32
in.f F32 1,2,64
in.i F32 1,2,64
-- args
run mlstm-sig --in x.safetensors --out h.safetensors --device emu
-- exit 2
-- stderr
in.k is F16, expected BF16 like in.q
convert with --dtype

-- case doubles are not rounded without asking
-- tensors x.safetensors
in.q F64 1,2,64,32
in.k F64 1,2,64,32
in.v F64 1,2,64,32
in.f F32 1,2,64
in.i F32 1,2,64
-- args
run mlstm-sig --in x.safetensors --out h.safetensors --device emu
-- exit 2
-- stderr
in.q is F64, expected BF16, F16 or F32

-- case a width that no kernel takes
-- tensors x.safetensors
in.q BF16 1,2,64,20
in.k BF16 1,2,64,20
in.v BF16 1,2,64,32
in.f F32 1,2,64
in.i F32 1,2,64
-- args
run mlstm-sig --in x.safetensors --out h.safetensors --device emu
-- exit 2
-- stderr
dqk is 20: expected a multiple of 8 from 16 to 512

-- case metadata that is no JSON
-- tensors x.safetensors
in.q BF16 1,2,64,32
in.k BF16 1,2,64,32
in.v BF16 1,2,64,32
in.f F32 1,2,64
in.i F32 1,2,64
meta scalars scale=3
-- args
run mlstm-sig --in x.safetensors --out h.safetensors --device emu
-- exit 2
-- stderr
metadata `scalars` is not a JSON object with a number `scale`

-- case a truth of another shape
-- tensors x.safetensors
in.q BF16 1,2,64,32
in.k BF16 1,2,64,32
in.v BF16 1,2,64,32
in.f F32 1,2,64
in.i F32 1,2,64
out.h F32 1,2,64,16
-- args
check mlstm-sig x.safetensors --device emu
-- exit 2
-- stderr
out.h has not the shape of the output

-- case nowhere to write
-- args
run mlstm-sig --in $DATA/mlstmsig_a.safetensors --out nowhere/h.safetensors --device emu
-- exit 2
-- stderr
nowhere/h.safetensors: the folder does not exist

-- case a folder for the file of outputs
-- args
run mlstm-sig --in $DATA/mlstmsig_a.safetensors --out . --device emu
-- exit 2
-- stderr
--out .: cannot write: Is a directory
! checking

-- case no input named
-- args
run mlstm-sig --out h.safetensors
-- exit 2
-- stderr
`tegula run` needs --in

-- case no output folder named
-- args
compile mlstm-sig --arch sm_80
-- exit 2
-- stderr
name a folder: -o DIR

-- case an output folder that is a file
-- text out
a file
-- args
compile mlstm-sig --arch sm_80 -o out
-- exit 2
-- stderr
out: cannot be made a folder

-- case a name that C cannot use
-- args
compile mlstm-sig --arch sm_80 -o out --name 2fast
-- exit 2
-- stderr
name: expected a C identifier of at most 64 characters, found 2fast

-- case a name that C has for something else, before anything is compiled
-- args
compile mlstm-sig --arch sm_80 -o out --name int
-- exit 2
-- stderr
name: expected one that C, C++ and tegula_embed.h leave free, found int
! compiling

-- case names that differ by one large letter
-- tensors x.safetensors
in.q F32 1,1,8,16
in.k F32 1,1,8,16
in.v F32 1,1,8,16
in.f F32 1,1,8
in.i F32 1,1,8
in.s0 F32 1,1,16,16
out.H F32 1,1,8,16
-- args
check mlstm-sig x.safetensors --device emu
-- exit 2
-- stderr
x.safetensors: in.s0 is no tensor of mlstm-sig: expected in.S0
x.safetensors: out.H is no tensor of mlstm-sig: expected out.h

-- case what a terminal would obey
-- tensors x.safetensors
in.q BF16 1,2,64,32
meta variant [31mred
-- args
check x.safetensors --device emu
-- exit 2
-- stderr
unknown variant '?[31mred'

-- case a scalar that the variant does not have
-- tensors x.safetensors
meta variant linear
meta scalars {"scal": 3}
in.q BF16 1,1,16,16
in.k BF16 1,1,16,16
in.v BF16 1,1,16,16
-- args
check x.safetensors --device emu
-- exit 2
-- stderr
x.safetensors: linear has no scalar 'scal'
did you mean 'scale'?

-- case tokens before heads
-- tensors x.safetensors
meta variant linear
in.q BF16 1,16,2,16
in.k BF16 1,16,2,16
in.v BF16 1,16,2,16
-- args
run --in x.safetensors --out h.safetensors --device emu --layout bthd
-- exit 0
-- stdout
linear bf16, B=1 NH=2 T=16

-- case ... of all tensors
-- tensors x.safetensors
meta variant simple-gla
in.q BF16 1,16,2,16
in.k BF16 1,16,2,16
in.v BF16 1,16,2,16
in.a F32 1,2,16
-- args
run --in x.safetensors --out h.safetensors --device emu --layout bthd
-- exit 2
-- stderr
in.a has shape [1, 2, 16], expected [B, T, NH] with T = 16 as in in.q

-- case ... in no other order
-- args
run --in x.safetensors --out h.safetensors --device emu --layout thbd
-- exit 2
-- stderr
--layout: unknown layout 'thbd'

-- case run takes the variant of the file
-- tensors x.safetensors
meta variant linear
in.q BF16 1,1,16,16
in.k BF16 1,1,16,16
in.v BF16 1,1,16,16
-- args
run --in x.safetensors --out h.safetensors --device emu
-- exit 0
-- stdout
linear bf16, B=1 NH=1 T=16

-- case ... and says so if another is named
-- tensors x.safetensors
meta variant simple-gla
in.q BF16 1,1,16,16
in.k BF16 1,1,16,16
in.v BF16 1,1,16,16
in.a F32 1,1,16
-- args
run lightning --in x.safetensors --out h.safetensors --device emu
-- exit 2
-- stderr
x.safetensors says that it is for simple-gla; lightning is run, as named

-- case ... or if there is none
-- tensors x.safetensors
in.q BF16 1,1,16,16
-- args
run --in x.safetensors --out h.safetensors --device emu
-- exit 2
-- stderr
x.safetensors: no metadata `variant` says what it is for

-- case sizes that are none
-- args
tune mlstm-sig --gpu H200 --shape B=8,NH=16,T=9223372036854775807,dqk=128,dhv=256
-- exit 2
-- stderr
T: expected at most 1099511627776, found 9223372036854775807

-- case a figure that cannot be written, before anything is measured
-- args
bench mlstm-sig --device emu --shape B=1,NH=1,T=16,dqk=16,dhv=16 --runs 1 --roofline --svg nowhere/x.svg
-- exit 2
-- stderr
--svg: cannot write nowhere/x.svg: No such file or directory
-- stdout
! whole call
