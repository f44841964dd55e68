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

-- case a GPU of which no numbers are known
-- args
tune mlstm-sig --gpu Voodoo2 --shape B=8,NH=16,T=8192,dqk=128,dhv=256
-- exit 2
-- stderr
unknown GPU 'Voodoo2'
H200

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

-- case it makes nothing else
-- args
explain starts --load $LIB/starts.so --arch sm_90a --dqk 64 --dhv 64 --schedule by-one-kernel
-- exit 2
-- stderr
TG0518
to the caller in the input type, in a cluster one, and cannot write h

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
kernel state carries ns from chunk to chunk, but makes one state alone

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

-- case larger than any memory
-- args
check mlstm-sig --device emu --shape B=4000000000,NH=4000000000,T=4000000000,dqk=512,dhv=512
-- exit 2
-- stderr
does not fit an address space
hint: use a smaller shape

-- case larger than the device
-- args
bench mlstm-sig --device emu --shape B=1000,NH=16,T=65536,dqk=512,dhv=512
-- exit 1
-- stderr
of workspace do not fit Tegula emulator, which has
hint: use a smaller batch, or a larger chunk

-- case a program for few heads and long sequences is not that for many
-- args
compile mlstm-sig --arch sm_90a --shape B=1,NH=4,T=65536,dqk=128,dhv=256 -o out
-- exit 0
-- stdout
mlstm-sig, schedule segments (default for B 1, NH 4, T 65536), sm_90a, bf16, dqk 128, dhv 256

-- case widths twice
-- args
compile mlstm-sig --arch sm_90a --dqk 64 --shape B=1,NH=4,T=65536,dqk=128,dhv=256 -o out
-- exit 2
-- stderr
--shape has the widths already
leave --dqk and --dhv out

-- case a program for two shapes
-- args
compile mlstm-sig --arch sm_90a --shape B=1,NH=4,T=64,dqk=64,dhv=64 --shape B=2,NH=4,T=64,dqk=64,dhv=64 -o out
-- exit 2
-- stderr
2 --shape options; a schedule is for one

-- case what the model expects of a call
-- args
explain simple-gla --arch sm_90a --shape B=2,NH=4,T=2048,dqk=64,dhv=64
-- exit 0
-- stdout
predicted for H200 at B 2, NH 4, T 2048:
