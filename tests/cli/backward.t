Gradients: against golden files, and on random inputs against the fp64 adjoint of the recurrence. Widths that make
one block and several, odd lengths, chunks shorter and longer than the sequence, token-major strides, fp16.

-- case the golden files' gradients are checked with their outputs
-- args
check $DATA/mlstmsig_a.safetensors $DATA/mlstmsig_b.safetensors $DATA/mlstmsig_x.safetensors --device emu
-- exit 0
-- stdout
grad.q
grad.f
grad.S0

-- case one token
-- args
check mlstm-sig-backward --shape B=1,NH=2,T=1,dqk=16,dhv=16 --device emu
-- exit 0
-- stdout
grad.i

-- case widths that are no powers of two, keys and values of unlike width
-- args
check mlstm-sig-backward --shape B=2,NH=1,T=17,dqk=24,dhv=40 --shape B=1,NH=2,T=15,dqk=120,dhv=64 --device emu
-- exit 0
-- stdout
grad.v

-- case two loops: the values in several blocks
-- args
check mlstm-sig-backward --shape B=1,NH=1,T=300,dqk=128,dhv=256 --shape B=1,NH=1,T=63,dqk=48,dhv=512 --device emu
-- exit 0
-- stdout
grad.f

-- case a sequence of many chunks that none divides
-- args
check mlstm-sig-backward --shape B=1,NH=2,T=1000,dqk=32,dhv=16 --chunk 64 --device emu
-- exit 0
-- stdout
grad.S0

-- case one chunk for the whole sequence
-- args
check mlstm-sig-backward --shape B=1,NH=2,T=130,dqk=80,dhv=72 --chunk 256 --device emu
-- exit 0
-- stdout
grad.k

-- case token-major strides and fp16
-- args
check mlstm-sig-backward --shape B=2,NH=3,T=65,dqk=64,dhv=128 --layout bthd --dtype f16 --device emu
-- exit 0
-- stdout
grad.q

-- case keys too wide for one block
-- args
check mlstm-sig-backward --shape B=1,NH=1,T=64,dqk=256,dhv=64 --device emu
-- exit 0
-- stdout
grad.k

-- case fp32 inputs
-- args
check mlstm-sig-backward --shape B=1,NH=1,T=64,dqk=64,dhv=64 --dtype f32 --device emu
-- exit 0
-- stdout
mlstm-sig-backward f32
grad.q

-- case gradients alone, which take nothing of a forward: none runs
-- args
check mlstm-sig-backward $DATA/mlstmsig_b.safetensors --chunk 64 --device emu
-- exit 0
-- stdout
schedule tfla chunk=64 (default)
grad.S0
against the file
! out.h

-- case and which take what a forward computes: it runs, and is not compared
-- args
check mlstm-exp-backward $DATA/mlstmexp_x.safetensors --chunk 64 --device emu
-- exit 0
-- stdout
grad.n0
grad_paper.C0
! out.h

-- case forward and gradients of random inputs
-- args
check mlstm-sig-norm --shape B=2,NH=2,T=70,dqk=24,dhv=40 --grad --device emu
-- exit 0
-- stdout
mlstm-sig-norm bf16, B=2 NH=2 T=70
out.qn
mlstm-sig-norm-backward bf16
grad.n0
! exact=0

-- case the forward alone
-- args
check mlstm-sig --shape B=1,NH=1,T=16,dqk=16,dhv=16 --device emu
-- exit 0
-- stdout
out.h
! grad.

-- case the paper's convention: the normaliser is a constant
-- args
check mlstm-exp --shape B=1,NH=2,T=40,dqk=16,dhv=32 --grad --set exact=0 --device emu
-- exit 0
-- stdout
exact=0
dout.n: left out: with exact = 0 the normaliser is a constant

-- case a schedule of its own for the gradients
-- args
check linear --shape B=1,NH=1,T=40,dqk=32,dhv=32 --grad --schedule tfla-small --backward-schedule "tfla-small chunk=64" --device emu
-- exit 0
-- stdout
linear bf16, B=1 NH=1 T=40 dqk=32 dhv=32; schedule tfla-small (--schedule)
linear-backward bf16, B=1 NH=1 T=40 dqk=32 dhv=32; schedule tfla-small chunk=64 (--schedule)

-- case the forward's states, handed over
-- args
check mlstm-exp --shape B=2,NH=2,T=300,dqk=32,dhv=40 --keep-states --device emu
-- exit 0
-- stdout
schedule tfla-keep chunk=64 (--keep-states)
schedule tfla-kept chunk=64 (--keep-states)
grad.n0
! out.states

-- case states of segments, handed over
-- args
check mlstm-sig --shape B=1,NH=1,T=150,dqk=128,dhv=256 --keep-states --schedule "segments-keep walk.seg=3" --device emu --arch sm_90a
-- exit 2
-- stderr
has no schedules that hand states over for these sizes

-- case states of segments of one chunk, which are those of every chunk
-- args
check mlstm-sig --shape B=1,NH=1,T=150,dqk=128,dhv=256 --keep-states --schedule "segments-keep walk.seg=1" --device emu --arch sm_90a
-- exit 0
-- stdout
schedule tfla-kept chunk=64 (--keep-states)

-- case both told
-- args
check mlstm-sig --shape B=1,NH=1,T=150,dqk=128,dhv=256 --keep-states --schedule segments-keep --device emu --arch sm_90a
-- exit 0
-- stdout
schedule segments-keep (--schedule)
schedule segments-joint-kept (--keep-states)
grad.q
! out.states

-- case states that the forward does not leave
-- args
check linear --shape B=1,NH=1,T=40,dqk=32,dhv=32 --keep-states --schedule tfla --device emu
-- exit 2
-- stderr
schedule tfla-kept takes states, which the forward did not leave
hint: run both with --keep-states

-- case states that no forward leaves
-- args
check linear-backward --shape B=1,NH=1,T=40,dqk=32,dhv=32 --schedule tfla-kept --device emu
-- exit 2
-- stderr
schedule tfla-kept takes states, which the forward did not leave

-- case states of another chunk size
-- args
check linear --shape B=1,NH=1,T=600,dqk=32,dhv=32 --keep-states --schedule tfla-keep --backward-schedule "tfla-kept chunk=256" --device emu
-- exit 2
-- stderr
states: the forward left 20480 bytes, the backward takes 12288
hint: give both schedules one chunk size with --chunk

-- case states of groups
-- args
check linear --shape B=1,NH=2,T=40,dqk=32,dhv=32 --keep-states --group 2 --device emu
-- exit 0

-- case states that no schedule keeps
-- args
check linear --shape B=1,NH=2,T=40,dqk=32,dhv=32 --keep-states --dtype f32 --device emu
-- exit 2
-- stderr
--keep-states: linear has no schedules that hand states over for these sizes

-- case a schedule for gradients nobody asked for
-- args
check linear --shape B=1,NH=1,T=40,dqk=32,dhv=32 --backward-schedule tfla --device emu
-- exit 2
-- stderr
--backward-schedule: no gradients are asked for
hint: add --grad

-- case gradients of a variant that has none
-- args
check mine --load $LIB/mine.so --shape B=1,NH=1,T=40,dqk=32,dhv=32 --grad --device emu
-- exit 2
-- stderr
mine has no backward
hint: leave out --grad

-- case gradients in a file, and no program for them
-- args
check mine --load $LIB/mine.so $DATA/mlstmsig_x.safetensors --device emu
-- exit 0
-- stdout
grad.f: left out: no backward yet

-- case gradients asked for, and nothing that arrives
-- tensors x.safetensors
in.q BF16 1,1,16,16
in.k BF16 1,1,16,16
in.v BF16 1,1,16,16
-- args
check linear x.safetensors --grad --device emu
-- exit 2
-- stderr
there is no tensor dout.h, nor dh

-- case gradients into a file
-- tensors x.safetensors
in.q BF16 1,1,16,16
in.k BF16 1,1,16,16
in.v BF16 1,1,16,16
dout.h BF16 1,1,16,16
-- args
run linear-backward --in x.safetensors --out g.safetensors --device emu --json
-- exit 0
-- stdout
"outputs":["grad.q","grad.k","grad.v","grad.S0"]

-- case under plain names
-- tensors x.safetensors
q BF16 1,1,16,16
k BF16 1,1,16,16
v BF16 1,1,16,16
dh BF16 1,1,16,16
-- args
run linear-backward --in x.safetensors --out g.safetensors --device emu --json
-- exit 0
-- stdout
"origin":"default"
"outputs":["dq","dk","dv","dS0"]

-- case gradients that need a forward's results
-- tensors x.safetensors
in.q BF16 1,1,16,16
in.k BF16 1,1,16,16
in.v BF16 1,1,16,16
in.f F32 1,1,16
in.i F32 1,1,16
out.h BF16 1,1,16,16
dout.h BF16 1,1,16,16
-- args
run mlstm-exp-backward --in x.safetensors --out g.safetensors --device emu
-- exit 2
-- stderr
there is no tensor in.qn, nor qn
! in.h

-- case a schedule that takes states, and no place to take them from
-- tensors x.safetensors
in.q BF16 1,1,16,16
in.k BF16 1,1,16,16
in.v BF16 1,1,16,16
dout.h BF16 1,1,16,16
-- args
run linear-backward --in x.safetensors --out g.safetensors --schedule tfla-kept --device emu
-- exit 2
-- stderr
schedule tfla-kept takes states of a forward

-- case a gradient that is wrong in the statements and in the oracle
-- args
check wrong-twice --load $LIB/gates.so --shape B=1,NH=2,T=70,dqk=32,dhv=32 --grad --device emu
-- exit 1
-- stdout
grad.f
ok, against the oracle
grad.f   the statements say
differences of the forward's
FAILED
! grad.q   the statements

-- case without an oracle the statements are the truth, both ways; the gradient is found wrong all the same
-- args
check bare --load $LIB/gates.so --shape B=1,NH=2,T=70,dqk=32,dhv=32 --grad --device emu --group 2 --packed
-- exit 1
-- stdout
out.h
ok, against the statements
grad.f
! against the oracle
-- stderr
! warning

-- case gradients that differences agree with
-- args
check mlstm-exp --shape B=1,NH=1,T=20,dqk=16,dhv=16 --grad --device emu
-- exit 0
-- stdout
the statements of mlstm-exp-backward agree with differences of the forward's

-- case differences are of the declared numbers, not of these, with which gradients are by convention others
-- args
check mlstm-exp-backward --shape B=1,NH=1,T=20,dqk=16,dhv=16 --set exact=0 --set eps=0.25 --device emu
-- exit 0
-- stdout
the statements of mlstm-exp-backward agree with differences of the forward's

-- case the same for programs
-- args
check mlstm-exp-backward --shape B=1,NH=1,T=20,dqk=16,dhv=16 --device emu --json
-- exit 0
-- stdout
"differences":[{"name":"grad.q","error":
"against":"oracle"

-- case one number, nearly zero, is judged by what cancels in it
-- args
check mlstm-sig --device emu --arch sm_80 --shape B=1,NH=1,T=1,dqk=16,dhv=16 --grad --seed 1
-- exit 0
-- stdout
grad.i   rms 1.20e-02

-- case ... and by how the forward rounded h, where the denominator takes nearly all of a gradient away
-- args
check mlstm-exp --device emu --arch sm_80 --shape B=1,NH=1,T=2,dqk=16,dhv=16 --grad --seed 14
-- exit 0
-- stdout
grad.q   rms 1.78e-02

-- case two heads of one token
-- args
check mlstm-sig --device emu --arch sm_80 --shape B=1,NH=2,T=1,dqk=16,dhv=24 --cu 0,1 --grad
-- exit 0

-- case one number that is wrong
-- args
check wrong-once --load $LIB/gates.so --device emu --arch sm_80 --shape B=1,NH=1,T=1,dqk=16,dhv=16 --grad --seed 1
-- exit 1
-- stdout
FAILED, against the oracle
grad.f

-- case a variant of one's own says how its inputs are drawn: its rates are never negative
-- args
check rates --load $LIB/rates_FRACTION.so --shape B=1,NH=4,T=200,dqk=32,dhv=32 --grad --device emu --seed 3
-- exit 0
-- stdout
grad.x
ok, against the oracle

-- case ... without a word they are normal, and states grow
-- args
check rates --load $LIB/rates_NORMAL.so --shape B=1,NH=4,T=200,dqk=32,dhv=32 --device emu --seed 3
-- exit 1
-- stdout
FAILED
: states grow beyond float

-- case ... in no way that there is not
-- args
check rates --load $LIB/rates_ODD.so --shape B=1,NH=4,T=200,dqk=32,dhv=32 --device emu
-- exit 2
-- stderr
TG0119
r: drawn is 99, expected at most 11
! TG0224
! TG0407

-- case a row of numbers counts as one: the normaliser's gradient of two sequences is two numbers
-- args
check mlstm-sig-norm --seed 111 --grad --device emu --shape B=2,NH=1,T=650,dqk=32,dhv=40
-- exit 0
-- stdout
grad.n0
