Every variant on its golden file, found by the name in it: outputs, gradients, parameters of heads, packed sequences.

-- case all of them
-- args
check $DATA/la_b.safetensors $DATA/cdecay_b.safetensors $DATA/gret_x.safetensors $DATA/sgla_x.safetensors $DATA/ssd_x.safetensors $DATA/mlstmsig_x.safetensors --device emu
-- exit 0
-- stdout
linear bf16
linear-backward bf16
retention bf16
grad.log_lambda 
gated-retention bf16
simple-gla bf16
grad.a 
mamba2 bf16
grad.dt_raw 
grad.dt_bias 
grad.A_log 
grad.D 
6 of 6 within tolerance

-- case a decay of a channel
-- args
check $DATA/gla_b.safetensors $DATA/gla_x.safetensors $DATA/hgrn2_b.safetensors $DATA/hgrn2_x.safetensors --device emu
-- exit 0
-- stdout
gla bf16
gla-backward bf16
grad.gx 
hgrn2 bf16
hgrn2-backward bf16
the statements of hgrn2-backward agree with differences of the forward's
4 of 4 within tolerance

-- case read before it is written, with a bonus
-- args
check $DATA/rwkv6_b.safetensors $DATA/rwkv6_x.safetensors --device emu
-- exit 0
-- stdout
rwkv6 bf16
rwkv6-backward bf16
grad.u 
grad.w 
the statements of rwkv6-backward agree with differences of the forward's
2 of 2 within tolerance

-- case decays of rows and of columns
-- args
check $DATA/dfw_b.safetensors $DATA/dfw_x.safetensors --device emu
-- exit 0
-- stdout
dfw bf16
dfw-backward bf16
grad.gl 
grad.gr 
the statements of dfw-backward agree with differences of the forward's
2 of 2 within tolerance

-- case the delta rule with a decay of a channel
-- args
check $DATA/kda_b.safetensors $DATA/kda_x.safetensors $DATA/kda_full_x.safetensors $DATA/kda_lb_x.safetensors --device emu
-- exit 0
-- stdout
kda bf16
kda-backward bf16
grad.beta 
grad.g 
the statements of kda-backward agree with differences of the forward's
kda-gate bf16
kda-gate-backward bf16
grad.beta_raw 
grad.g_raw 
grad.A_log: left out: one number, off by more than it is by rounding alone, as the file says
grad.dt_bias 
kda-safe bf16
kda-safe-backward bf16
grad.A_log 
4 of 4 within tolerance

-- case the delta rule, with and without a decay
-- args
check $DATA/gdn_b.safetensors $DATA/delta_b.safetensors --device emu
-- exit 0
-- stdout
gated-delta bf16
gated-delta-backward bf16
grad.beta 
grad.a 
the statements of gated-delta-backward agree with differences of the forward's
delta-net bf16
delta-net-backward bf16
2 of 2 within tolerance

-- case normalisers: exact gradients, then the paper's; in mlstmsign_b that of n0 is h.dh of one token of each head
-- args
check $DATA/mlstmsign_x.safetensors $DATA/mlstmexp_x.safetensors $DATA/mlstmsign_b.safetensors --device emu
-- exit 0
-- stdout
mlstm-sig-norm bf16
out.n
mlstm-exp bf16
out.m
out.qn   rms
grad.n0 
dout.n: left out: with exact = 0 the normaliser is a constant
mlstm-exp-backward bf16, B=1 NH=1 T=72 dqk=32 dhv=32 exact=0
grad_paper.C0 rms
against the file
3 of 3 within tolerance

-- case normalised linear attention, causal and not; a and b are one number for all heads, whose gradients are summed over them
-- args
check $DATA/nla_b.safetensors $DATA/nla_full_b.safetensors --device emu
-- exit 0
-- stdout
nla bf16
count0=8
out.sv
grad.a 
against the file
grad.sv0
nla-full bf16
2 of 2 within tolerance

-- case the same as JSON
-- args
check $DATA/mlstmsign_x.safetensors --device emu --json
-- exit 0
-- stdout
{"name":"grad_paper.q","rms_ratio":
"skipped":[{"name":"dout.n","reason":"with exact = 0

-- case a file of another variant: without the gradient that this one does not give
-- args
check lightning $DATA/cdecay_b.safetensors --device emu
-- exit 0
-- stdout
lightning bf16
grad.k 
against the file
! grad.log_lambda

-- case heads that share queries and keys: the file tells the group
-- args
check $DATA/ssd_grouped_b.safetensors --device emu
-- exit 0
-- stdout
mamba2 bf16, B=1 NH=4 T=75 dqk=32 dhv=32 group=2
schedule tfla-grouped
grad.Bm 
grad.A_log 
against the file
! against the oracle

-- case packed sequences: the file tells the boundaries
-- args
check $DATA/sgla_varlen_b.safetensors --device emu
-- exit 0
-- stdout
simple-gla bf16, B=5 NH=2 T=150 dqk=32 dhv=32 packed
grad.S0 
! against the oracle

-- case every variant on random inputs: linear attention
-- args
check linear --shape B=2,NH=2,T=37,dqk=24,dhv=40 --grad --device emu
-- exit 0

-- case retention
-- args
check retention --shape B=3,NH=2,T=37,dqk=24,dhv=40 --grad --device emu
-- exit 0

-- case gated retention, another tau
-- args
check gated-retention --shape B=2,NH=2,T=37,dqk=24,dhv=40 --grad --set tau=4 --device emu
-- exit 0
-- stdout
gated-retention bf16, B=2 NH=2 T=37 dqk=24 dhv=40 tau=4
gated-retention-backward bf16, B=2 NH=2 T=37 dqk=24 dhv=40 tau=4

-- case simple GLA, fp32
-- args
check simple-gla --shape B=2,NH=2,T=37,dqk=24,dhv=40 --grad --dtype f32 --device emu
-- exit 0

-- case a decay for hundreds of tokens
-- args
check simple-gla --shape B=1,NH=2,T=400,dqk=16,dhv=16 --device emu
-- exit 0

-- case an exponential gate in fp32: nothing is divided by almost zero
-- args
check mlstm-exp --shape B=2,NH=4,T=77,dqk=40,dhv=72 --grad --dtype f32 --device emu
-- exit 0

-- case Mamba-2, with parameters of heads: their gradients are sums over sequences
-- args
check mamba2 --shape B=3,NH=4,T=37,dqk=24,dhv=40 --grad --device emu
-- exit 0
-- stdout
grad.dt_bias 
grad.D 

-- case sums of few tokens, which cancel
-- args
check mamba2 --shape B=1,NH=2,T=10,dqk=16,dhv=16 --cu 0,0,0,10,10 --grad --device emu
-- exit 0
-- stdout
(limit 3.20e-02)

-- case mLSTM with exponential gate, token-major, fp16
-- args
check mlstm-exp --shape B=2,NH=2,T=37,dqk=24,dhv=40 --grad --dtype f16 --layout bthd --set eps=0.25 --device emu
-- exit 0
-- stdout
eps=0.25

-- case variants lists names, scalars and shapes
-- args
variants
-- exit 0
-- stdout
mamba2 (also ssd, ssd_grouped)
mlstm-exp (also mlstmexp)
scalars: scale = 1/sqrt(dqk), eps = 0, exact = 1
scalars: scale = 1
in  Bm         io   [B, NH/group, T, dqk]
in  A_log      f32  [NH]
mlstm-exp-backward: what it takes beside those inputs, and what it gives
in  qn         f32  [B, NH, T]
out dn0        f32  [B, NH, dqk]  optional
! reference

-- case ... of one that is named
-- args
variants kda
-- exit 0
-- stdout
kda
kda-backward: what it takes beside those inputs, and what it gives
! mamba2
! (reference

-- case ... and of none
-- args
variants mamba3
-- exit 2
-- stderr
error: unknown variant 'mamba3'
did you mean 'mamba2'?

-- case the same as JSON
-- args
variants --json
-- exit 0
-- stdout
"scalars":{"scale":null,"eps":0.0,"exact":1.0}
{"name":"D","role":"in","dtype":"f32","optional":false,"axes":["NH"]}
"backward":{"name":"mamba2-backward"
"backward":null

-- case explain shows both directions
-- args
explain mlstm-exp --arch sm_80 --dqk 32 --dhv 64 --ptxas none
-- exit 0
-- stdout
mlstm-exp: mLSTM with exponential input gate
tegula_mlstm_exp_H:
mlstm-exp-backward: mLSTM with exponential input gate
tegula_mlstm_exp_backward_dK:
REFUSED tfla-fp32: TG0515
REFUSED TG0518 wgmma is an instruction of sm_90a: walk-n walk-n-wide
predicted for A100 at B 8, NH 16, T 8192: tfla 
      tfla-small 
! REFUSED walk
! step 0

-- case explain shows the equations of the schedule that is taken
-- args
explain mlstm-sig --arch sm_90a --dqk 128 --dhv 256 --ptxas none
-- exit 0
-- stdout
walk, chunk 64
pz[k] = sum_{s>k} zk[s]
tegula_mlstm_sig_backward_dQ:
! cdc

-- case wide values have gradients in parts, which a cluster adds up, or of several heads a row
-- args
explain mlstm-exp --arch sm_90a --dqk 256 --dhv 512 --ptxas none
-- exit 0
-- stdout
kernels of walk-n-wide, in launch order
P 128  C 256 | dq
kernels of walk-cluster, in launch order

-- case neighbours that load once what they share
-- args
explain mlstm-sig --arch sm_90a --dqk 256 --dhv 512 --schedule walk-wide-cast --ptxas none
-- exit 0
-- stdout
M2 128 | h
grid NH*4 x B, clusters of 2

-- case ... of which there is one alone
-- args
explain mlstm-sig --arch sm_90a --dqk 256 --dhv 128 --schedule walk-wide-cast --ptxas none
-- exit 0
-- stdout
M2 128 | h
grid NH x B
! clusters of

-- case those that add up, too
-- args
explain mlstm-sig-backward --arch sm_90a --dqk 256 --dhv 512 --schedule walk-cluster-cast4 --ptxas none
-- exit 0
-- stdout
M2 128  CM2 256 | dq
grid NH*4 x B, clusters of 4

-- case the same with shared heads
-- args
explain mlstm-exp --arch sm_90a --dqk 256 --dhv 512 --group 2 --ptxas none
-- exit 0
-- stdout
kernels of walk-parts, in launch order
tegula_mlstm_exp_backward_dQsum: 128 threads

-- case the plan of a walk says where each tile lives
-- args
explain mlstm-exp --arch sm_90a --dqk 128 --dhv 256 --stage plan --ptxas none
-- exit 0
-- stdout
] f32 shared at
] f32 shared vector of each warp

-- case explain of a kind of calls
-- args
explain mamba2 --arch sm_90a --dqk 32 --dhv 64 --group 4 --packed --pool --json --ptxas none
-- exit 0
-- stdout
"variant":"mamba2"
"backward":{"variant":"mamba2-backward"
"chosen":{"name":"walk-parts

-- case explain of a decode step
-- args
explain mlstm-exp --arch sm_80 --dqk 32 --dhv 64 --tokens 1 --ptxas none
-- exit 0
-- stdout
accepted on sm_80 with bf16, dqk 32, dhv 64, at most 1 tokens
kernels of step
! mlstm-exp-backward

-- case a program for packed sequences and pools, as files
-- args
compile mamba2 --arch sm_80 --dqk 32 --dhv 64 --group 2 --packed --pool -o out
-- exit 0
-- stdout
out/mamba2.tgb

-- case all variants timed at a shape
-- args
bench --shape B=1,NH=2,T=20,dqk=16,dhv=32 --runs 1 --device emu
-- exit 0
-- stdout
mlstm-sig-norm     1    2          20   16   32
mamba2             1    2          20   16   32
forward and backward; the latter
KiB

-- case a decode step timed
-- args
bench mlstm-exp --shape B=3,NH=2,T=1,dqk=16,dhv=32 --tokens 1 --grad --runs 1 --device emu --json
-- exit 0
-- stdout
"schedule":"step"
"gb_per_s":
"workspace_bytes":0.0,"tensor_bytes":26616.0
! backward

-- case groups timed, with gradients
-- args
bench mamba2 --shape B=2,NH=4,T=20,dqk=16,dhv=32 --group 2 --packed --pool --grad --runs 1 --device emu --json
-- exit 0
-- stdout
"group":2,"packed":true,"pooled":true
"backward":{"variant":"mamba2-backward"
"both_ms":

-- case the table of all has sizes of its own
-- args
bench --group 2 --device emu
-- exit 2
-- stderr
the table of all variants has sizes and schedules of its own
hint: name a variant, or give a --shape

-- case and they are too large to emulate
-- args
bench --device emu
-- exit 2
-- stderr
too large to emulate

-- case a tuning run of groups is a prediction too
-- args
tune mamba2 --gpu h200 --group 16 --shape B=8,NH=16,T=8192,dqk=128,dhv=64
-- exit 0
-- stdout
B=8 NH=16 T=8192 dqk=128 dhv=64 group=16, PREDICTED by the cost model for H200

-- case a step of several tokens: what all threads compute alike is shared out among them
-- args
explain mlstm-exp --arch sm_90a --dqk 128 --dhv 256 --tokens 8 --stage plan --ptxas none
-- exit 0
-- stdout
kw@Lkv [chunk 8, dqk 1] f32 uniform, staged at 128, 32 bytes a step
p [chunk 8] f32 uniform, at 32 in shared memory while a nest runs
what is uniform shared out first

-- case nothing is where a step is one token
-- args
explain mlstm-sig --arch sm_90a --dqk 128 --dhv 256 --tokens 1 --stage plan --ptxas none
-- exit 0
-- stdout
! shared out

-- case final states alone
-- args
check gated-delta-state --device emu --arch sm_90a --shape B=2,NH=2,T=100,dqk=64,dhv=64
-- exit 0
-- stdout
gated-delta-state bf16
out.S 
against the statements

-- case and of gradients
-- args
check gated-delta-backward-state --device emu --arch sm_90a --shape B=2,NH=2,T=100,dqk=64,dhv=64
-- exit 0
-- stdout
gated-delta-backward-state bf16
out.dS0 

-- case tuned
-- args
tune gated-delta-backward-state --gpu H200 --shape B=1,NH=16,T=32768,dqk=128,dhv=128 --budget-seconds 1
-- exit 0
-- stdout
segments-all

-- case no states
-- args
explain rms-norm-state
-- exit 2
-- stderr
error: unknown variant 'rms-norm-state'

-- case decays of channels by tensor cores without a product are for 16-bit rows
-- args
explain gla-state --dtype f32 --dqk 64 --dhv 64 --arch sm_90a --schedule "fused pairs.mma=tf32x3" --ptxas none
-- exit 2
-- stderr
TG0222
kernel pairs: it computes no matrix product, plain sum or decay of channels
