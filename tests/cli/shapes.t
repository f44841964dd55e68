Malformed --shape, and what tune and bench say where there is no GPU.

-- case a shape with a word for a number
-- args
tune mlstm-sig --shape B=8,NH=x,T=8192,dqk=128,dhv=256
-- exit 2
-- stderr
NH: expected a whole number of at least 1, found 'x'

-- case a shape that lacks a size
-- args
tune mlstm-sig --shape B=8,NH=16,T=8192,dqk=128
-- exit 2
-- stderr
dhv is missing
write all five, in any order: --shape B=8,NH=16,T=8192,dqk=128,dhv=256

-- case a shape with an unknown size
-- args
tune mlstm-sig --shape B=8,H=16,T=8192,dqk=128,dhv=256
-- exit 2
-- stderr
'H' is not one of B=, NH=, T=, dqk=, dhv=

-- case a shape that says a size twice
-- args
tune mlstm-sig --shape B=8,B=9,NH=16,T=8192,dqk=128,dhv=256
-- exit 2
-- stderr
B is given twice

-- case a shape of nothing
-- args
bench mlstm-sig --shape ""
-- exit 2
-- stderr
is not one of B=, NH=, T=, dqk=, dhv=

-- case no shape to tune for
-- args
tune mlstm-sig
-- exit 2
-- stderr
`tegula tune` needs one --shape, found 0

-- case a width that no kernel takes
-- args
tune mlstm-sig --gpu H200 --shape B=8,NH=16,T=8192,dqk=1024,dhv=256
-- exit 2
-- stderr
dqk is 1024: expected a multiple of 8 from 16 to 512

-- case what the model expects of a GPU that is named
-- args
explain mlstm-sig --gpu h200 --dqk 128 --dhv 256 --ptxas none
-- exit 0
-- stdout
predicted for H200 at B 8, NH 16, T 8192: walk
accepted on sm_90a

-- case ... and not of one whose name begins so
-- args
explain gated-delta --gpu h20 --shape B=1,NH=32,T=8192,dqk=128,dhv=128 --group 2 --ptxas none
-- exit 0
-- stdout
walk-narrow, chunk 64
predicted for H20 at B 1, NH 32, T 8192: walk-narrow
! predicted for H200

-- case ... and of another architecture
-- args
explain gla --gpu H200 --arch sm_80
-- exit 2
-- stderr
--arch sm_80: the GPU of --gpu is sm_90a

-- case one shape can be tuned for
-- args
tune --help
-- exit 0
-- stdout
--shape SHAPE
! may be repeated

-- case a GPU of which no numbers are known
-- args
tune mlstm-sig --gpu Voodoo2 --shape B=8,NH=16,T=8192,dqk=128,dhv=256
-- exit 2
-- stderr
unknown GPU 'Voodoo2'
H200, H100, H20

-- case a prediction says that it is one, and stores nothing
-- args
tune mlstm-sig --gpu h200 --wisdom w.txt --shape B=8,NH=16,T=8192,dqk=128,dhv=256
-- exit 0
-- stdout
PREDICTED by the cost model for H200 (sm_90a), not measured
workspace
  tfla-wide
  tfla-small
! remembered
! tfla-fp32
! tfla-keep
! step

-- case segments that hold the sequence are one candidate, however long; of one size there is no chart
-- args
tune mlstm-sig --gpu H200 --shape B=1,NH=1,T=100,dqk=64,dhv=64
-- exit 0
-- stdout
KiB  tfla-wgmma-narrow
  tfla-small
! tfla-wgmma-narrow seg

-- case few heads and a long sequence want short segments, in all kernels alike
-- args
tune mlstm-sig --gpu H200 --shape B=1,NH=4,T=65536,dqk=128,dhv=256
-- exit 0
-- stdout
segments seg=32
segments-wide seg=64
64 x 512  #########

-- case a name for a point of a schedule
-- args
check mlstm-sig --device emu --arch sm_90a --schedule "segments-shorter walk.stages=2" --shape B=1,NH=1,T=130,dqk=64,dhv=128
-- exit 0
-- stdout
schedule segments seg=16 walk.stages=2

-- case a segment's length is one for all kernels
-- args
check mlstm-sig --device emu --arch sm_90a --schedule "segments-narrow walk.seg=1" --shape B=1,NH=1,T=130,dqk=64,dhv=64 --grad --backward-schedule "segments-narrow dV.seg=2"
-- exit 0
-- stdout
segments-narrow seg=1
segments-narrow seg=2

-- case the kernel that makes the states to begin with writes the final one, whose segment is whole
-- args
check starts --load $LIB/starts.so --device emu --arch sm_90a --shape B=1,NH=2,T=256,dqk=64,dhv=64 --schedule final-by-state
-- exit 0
-- stdout
out.S

-- case ... or short
-- args
check starts --load $LIB/starts.so --device emu --arch sm_90a --shape B=1,NH=2,T=300,dqk=64,dhv=64 --schedule final-by-state
-- exit 0
-- stdout
out.S

-- case it may write what its chunks make, too
-- args
check starts --load $LIB/starts.so --device emu --arch sm_90a --shape B=1,NH=2,T=300,dqk=64,dhv=64 --schedule by-one-kernel
-- exit 0
-- stdout
out.h
out.S

-- case its states are for the kernels of the same call
-- args
explain starts --load $LIB/starts.so --arch sm_90a --dqk 64 --dhv 64 --schedule kept-segments
-- exit 2
-- stderr
TG0518
and cannot write states

-- case it runs on warpgroups
-- args
explain starts --load $LIB/starts.so --arch sm_90a --dqk 64 --dhv 64 --schedule by-mma-sync
-- exit 2
-- stderr
TG0521
has segments, but does not run on warpgroups

-- case what is carried beside a state begins as it does
-- args
explain starts-n --load $LIB/starts.so --arch sm_90a --dqk 64 --dhv 64 --schedule n-unsaid
-- exit 2
-- stderr
TG0521
kernel walk carries ns from chunk to chunk, but begins in the middle of the sequence

-- case ... and not in one walk over all segments
-- args
explain starts-n --load $LIB/starts.so --arch sm_90a --dqk 64 --dhv 64 --schedule n-started
-- exit 2
-- stderr
TG0521
kernel state carries ns from chunk to chunk, but leaves states of segments on its way

-- case no schedule is taken that was not named
-- args
compile starts-named --load $LIB/starts.so --arch sm_90a --dqk 64 --dhv 64 -o out
-- exit 2
-- stderr
error TG0546: starts-named: every schedule that fits is taken by name only
hint: name one

-- case ... and it is when it is named
-- args
compile starts-named --load $LIB/starts.so --arch sm_90a --dqk 64 --dhv 64 --schedule named -o out
-- exit 0

-- case a schedule without a space of its own is predicted too
-- args
tune mlstm-sig-backward --gpu h200 --shape B=8,NH=16,T=8192,dqk=128,dhv=256 --json
-- exit 0
-- stdout
{"schedule":"tfla-small-grouped","chunk":128,"state":"predicted"
! tfla-kept

-- case too large for the emulator
-- args
bench mlstm-sig --device emu
-- exit 2
-- stderr
too large to emulate

-- case random inputs against the oracle, in a layout whose strides are not the default
-- args
check mlstm-sig --device emu --layout bthd --shape B=2,NH=3,T=67,dqk=24,dhv=40
-- exit 0
-- stdout
out.h
against the oracle
! FAILED

-- case random inputs of what?
-- args
check --shape B=1,NH=1,T=64,dqk=32,dhv=32 $DATA/mlstmsig_a.safetensors
-- exit 2
-- stderr
no variant for the random inputs of --shape

-- case a layout that is none
-- args
check mlstm-sig --layout thd --shape B=1,NH=1,T=64,dqk=32,dhv=32
-- exit 2
-- stderr
--layout: unknown layout 'thd'
hint: choose bhtd or bthd

-- case larger than any memory, and than the emulator has time for
-- args
check mlstm-sig --device emu --shape B=4000000000,NH=4000000000,T=4000000000,dqk=512,dhv=512
-- exit 2
-- stderr
minutes for this; a smaller --shape takes less
does not fit an address space
hint: use a smaller shape

-- case larger than the device
-- args
bench mlstm-sig --device emu --shape B=1000,NH=16,T=65536,dqk=512,dhv=512
-- exit 1
-- stderr
of workspace do not fit Tegula emulator, which has
hint: use a smaller batch, or a larger chunk

-- case a program for few heads and long sequences is not that for many, and calls take either
-- args
compile mlstm-sig --arch sm_90a --shape B=1,NH=4,T=65536,dqk=128,dhv=256 -o out --ptxas none
-- exit 0
-- stdout
mlstm-sig, bf16, 2 programs of which each call takes one
program 0: sm_90a, dqk 128, dhv 256: walk
for no sizes of its own (default)
program 1: sm_90a, dqk 128, dhv 256: segments
for calls like B 1, NH 4, T 65536 (default)
other calls take the program that the cost model thinks fastest
out/mlstm_sig.1.compose.ptx
out/mlstm_sig.tgb
out/mlstm_sig.h

-- case the default is enough for some
-- args
compile mlstm-sig --arch sm_90a --shape B=8,NH=16,T=8192,dqk=128,dhv=256 --no-wisdom -o out --ptxas none
-- exit 0
-- stdout
mlstm-sig, schedule walk (default for B 8, NH 16, T 8192), sm_90a, bf16, dqk 128, dhv 256
out/mlstm_sig.walk.ptx
! programs

-- case widths twice
-- args
compile mlstm-sig --arch sm_90a --dqk 64 --shape B=1,NH=4,T=65536,dqk=128,dhv=256 -o out
-- exit 2
-- stderr
--shape has the widths already
leave --dqk and --dhv out

-- case programs for two pairs of widths and two architectures
-- args
compile mlstm-sig --arch sm_80,sm_90a --shape B=1,NH=4,T=64,dqk=64,dhv=64 --shape B=2,NH=4,T=64,dqk=32,dhv=64 -o out --json --no-wisdom
-- exit 0
-- stdout
{"variant":"mlstm-sig"
"signature":{"tensors":[{"name":"q","role":"in","dtype":"bf16","optional":false,"axes":["B","NH/group","T","dqk"]}
{"name":"S","role":"out","dtype":"f32","optional":true,"axes":["B","NH","dqk","dhv"]}
"arch":"sm_80","dqk":64,"dhv":64,"program":0
"shape":null
"shape":{"B":2,"NH":4,"T":64,"dqk":32,"dhv":64}
"arch":"sm_90a","dqk":32,"dhv":64
"programs":[{"schedule":

-- case schedules by name, which calls choose among
-- args
compile mlstm-sig --arch sm_80 --dqk 64 --dhv 64 --schedule tfla --schedule "tfla chunk=512" -o out
-- exit 0
-- stdout
2 programs of which each call takes one
program 0: sm_80, dqk 64, dhv 64: tfla
for no sizes of its own (--schedule)
program 1: sm_80, dqk 64, dhv 64: tfla chunk=512

-- case the same schedule twice is one program
-- args
compile mlstm-sig --arch sm_80 --dqk 64 --dhv 64 --schedule tfla --schedule tfla -o out
-- exit 0
-- stdout
mlstm-sig, schedule tfla (--schedule for B 8, NH 16, T 8192), sm_80

-- case what was measured goes before the model, also where there is no such GPU
-- text w.txt
tegula-wisdom 1
mlstm-sig | NVIDIA A100 | 80 bf16 | dqk 64 dhv 64 | B 2 NH 16 T 4096 | tfla chunk=512 | L 512 | 431000 ns
-- args
compile mlstm-sig --arch sm_80 --shape B=2,NH=16,T=4096,dqk=64,dhv=64 --wisdom w.txt -o out
-- exit 0
-- stdout
tfla chunk=512
for calls like B 2, NH 16, T 4096 (wisdom, NVIDIA A100)

-- case no wisdom where it was named
-- args
compile mlstm-sig --arch sm_80 --dqk 64 --dhv 64 --wisdom nowhere.txt -o out
-- exit 2
-- stderr
--wisdom nowhere.txt: No such file or directory
hint: `tegula tune` writes it

-- case an architecture of several that is none
-- args
compile mlstm-sig --arch sm_80,sm_91 --dqk 64 --dhv 64 -o out
-- exit 2
-- stderr
--arch: unknown architecture 'sm_91'

-- case decode steps that there are none of are said to be none
-- args
compile mlstm-sig --arch sm_80 --tokens 9 --dqk 32 --dhv 32 -o out
-- exit 0
-- stderr
is for calls of any length: mlstm-sig has no decode step for 9 tokens

-- case decode steps of packed sequences, counted, that store states behind every token
-- args
compile gated-delta --arch sm_80 --tokens 4 --packed --pool --count --states each-token --dqk 32 --dhv 32 --ptxas none -o out
-- exit 0
-- stdout
gated-delta, schedule step8

-- case what the model expects of a call
-- args
explain simple-gla --arch sm_90a --shape B=2,NH=4,T=2048,dqk=64,dhv=64 --ptxas none
-- exit 0
-- stdout
predicted for H200 at B 2, NH 4, T 2048:
