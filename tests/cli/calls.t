Calls that are not [B, NH, T, d]: groups, packed sequences, pools, decode steps, scalars by name; and every mistake in asking for them.

-- case groups of heads
-- args
check mlstm-exp --shape B=2,NH=6,T=40,dqk=16,dhv=32 --group 3 --grad --device emu
-- exit 0
-- stdout
group=3
schedule tfla-grouped
grad.k

-- case one group of all heads
-- args
check linear --shape B=1,NH=4,T=40,dqk=16,dhv=32 --group 4 --layout bthd --grad --device emu
-- exit 0

-- case a group that does not divide the heads
-- args
check mamba2 --shape B=1,NH=4,T=40,dqk=16,dhv=32 --group 3 --device emu
-- exit 2
-- stderr
--group: 3, expected a divisor of NH = 4
hint: choose a group that divides NH

-- case the same, for the clock
-- args
bench mamba2 --shape B=1,NH=4,T=40,dqk=16,dhv=32 --group 3 --device emu
-- exit 2
-- stderr
--group: 3, expected a divisor of NH = 4

-- case a group that is not the file's
-- args
check $DATA/ssd_grouped_b.safetensors --group 4 --device emu
-- exit 2
-- stderr
2 heads share one
hint: leave out --group: the tensors of a file tell it

-- case keys for three heads, values for four
-- tensors x.safetensors
in.q BF16 1,3,16,16
in.k BF16 1,3,16,16
in.v BF16 1,4,16,16
-- args
check linear x.safetensors --device emu
-- exit 2
-- stderr
in.q has 3 heads, which do not divide the 4 of in.v

-- case a parameter with a batch
-- tensors x.safetensors
in.q BF16 1,2,16,16
in.k BF16 1,2,16,16
in.v BF16 1,2,16,16
in.log_lambda F32 1,2
-- args
check retention x.safetensors --device emu
-- exit 2
-- stderr
in.log_lambda has shape [1, 2], expected 1 axes [NH]

-- case packed sequences, an empty one among them
-- args
check mlstm-exp --shape B=1,NH=2,T=40,dqk=16,dhv=32 --cu 0,5,5,40 --grad --device emu
-- exit 0
-- stdout
B=3 NH=2 T=40 dqk=16 dhv=32 packed
grad.n0

-- case packed sequences of random lengths, boundaries as int64
-- args
check mamba2 --shape B=5,NH=4,T=90,dqk=16,dhv=32 --packed --int64 --group 2 --layout bthd --grad --device emu
-- exit 0
-- stdout
B=5 NH=4 T=90 dqk=16 dhv=32 group=2 packed int64
grad.A_log

-- case boundaries that take the place of the file's
-- args
check $DATA/sgla_varlen_b.safetensors --cu 0,1,2,3,4,150 --int64 --device emu
-- exit 0
-- stdout
B=5 NH=2 T=150
against the oracle
! against the file

-- case boundaries for other states than the file's
-- args
check $DATA/sgla_varlen_b.safetensors --cu 0,150 --device emu
-- exit 2
-- stderr
in.S0 has shape [5, 2, 32, 32], expected [B, NH, dqk, dhv] with B = 1 as in --cu

-- case boundaries that fall
-- args
check linear --shape B=1,NH=2,T=40,dqk=16,dhv=32 --cu 0,10,5,40 --device emu
-- exit 2
-- stderr
--cu: the boundaries fall from 10 to 5
hint: give where each sequence begins, then T: 0,5,5,40

-- case boundaries that end early
-- args
check linear --shape B=1,NH=2,T=40,dqk=16,dhv=32 --cu 0,10,39 --device emu
-- exit 2
-- stderr
--cu: the boundaries end with 39, expected T = 40

-- case boundaries that begin late
-- args
check linear --shape B=1,NH=2,T=40,dqk=16,dhv=32 --cu 1,10,40 --device emu
-- exit 2
-- stderr
--cu: the boundaries begin with 1, expected 0

-- case boundaries that are no numbers
-- args
check linear --shape B=1,NH=2,T=40,dqk=16,dhv=32 --cu 0,x,40 --device emu
-- exit 2
-- stderr
--cu: expected a whole number, found 'x,40'

-- case more sequences than the shape has
-- args
check linear --shape B=4,NH=2,T=40,dqk=16,dhv=32 --cu 0,10,40 --device emu
-- exit 2
-- stderr
--shape: B=4, expected 1 or the 2 sequences of --cu

-- case boundaries of a file that fall
-- tensors x.safetensors
in.q BF16 1,1,16,16
in.k BF16 1,1,16,16
in.v BF16 1,1,16,16
meta scalars {"cu": [0, 9, 4, 16]}
-- args
check linear x.safetensors --device emu
-- exit 2
-- stderr
x.safetensors: the boundaries fall from 9 to 4

-- case boundaries of a file that are no list of numbers
-- tensors x.safetensors
in.q BF16 1,1,16,16
in.k BF16 1,1,16,16
in.v BF16 1,1,16,16
meta scalars {"cu": [0, 9.5, 16]}
-- args
check linear x.safetensors --device emu
-- exit 2
-- stderr
`cu` in the metadata is not a list of whole numbers

-- case packed sequences in more than one row
-- tensors x.safetensors
in.q BF16 2,1,16,16
in.k BF16 2,1,16,16
in.v BF16 2,1,16,16
meta scalars {"cu": [0, 9, 16]}
-- args
check linear x.safetensors --device emu
-- exit 2
-- stderr
in.q has shape [2, 1, 16, 16], expected [1, NH/group, T, dqk] with 1 = 1 as in packed sequences

-- case a file that says no boundaries
-- args
check $DATA/la_b.safetensors --packed --device emu
-- exit 2
-- stderr
has no `cu` in the metadata `scalars`
hint: give the boundaries with --cu

-- case states as an engine keeps them
-- args
explain gla --dqk 64 --dhv 64 --arch sm_80 --tokens 4 --pool --states bf16,v-first,index-out --ptxas none
-- exit 0
-- stdout
at most 4 tokens, pooled with index_out, states bf16, states [dhv, dqk]

-- case a word that says nothing of states
-- args
explain gla --states bf16,values
-- exit 2
-- stderr
--states: unknown word 'values'
hint: words, with commas between: bf16, f16, f32, v-first, index-out, each-token, each-chunk

-- case words that contradict each other
-- args
explain gla --pool --states f32,v-first,bf16
-- exit 2
-- stderr
--states: 'bf16' contradicts a word before it
hint: one type, and one of index-out, each-token and each-chunk

-- case slots of two kinds
-- args
explain gla --pool --states each-chunk,each-chunk,index-out
-- exit 2
-- stderr
--states: 'index-out' contradicts a word before it

-- case slots without a pool
-- args
explain gla --states index-out
-- exit 2
-- stderr
--states: slots are of a pool, and there is none
hint: add --pool

-- case states in slots of a pool
-- args
check mlstm-sig-norm --shape B=3,NH=2,T=40,dqk=16,dhv=32 --pool --grad --device emu
-- exit 0
-- stdout
pooled
out.n
grad.C0

-- case slots as int64, of packed sequences
-- args
check simple-gla --shape B=4,NH=2,T=60,dqk=16,dhv=32 --pool --packed --int64 --grad --seed 3 --device emu
-- exit 0
-- stdout
packed pooled int64

-- case the states of a file in a pool
-- args
check $DATA/sgla_varlen_b.safetensors $DATA/la_b.safetensors --pool --device emu
-- exit 0
-- stdout
out.S    rms
against the file

-- case a pool, and into a file
-- args
run simple-gla --in $DATA/sgla_varlen_b.safetensors --out r.safetensors --pool --device emu
-- exit 0
-- stdout
simple-gla bf16, B=5

-- case a pool without tokens, and no initial state whose slots the final one could keep
-- tensors x.safetensors
in.q BF16 1,1,0,16
in.k BF16 1,1,0,16
in.v BF16 1,1,0,16
-- args
check linear x.safetensors --pool --device emu
-- exit 2
-- stderr
TG0827

-- case a pool without tokens: the final state is where the initial one was
-- tensors x.safetensors
in.q BF16 2,1,0,16
in.k BF16 2,1,0,16
in.v BF16 2,1,0,16
in.S0 F32 2,1,16,16
-- args
check linear x.safetensors --pool --device emu
-- exit 0
-- stdout
out.S    rms 0.00e+00

-- case decode steps
-- args
check mlstm-sig --shape B=3,NH=2,T=1,dqk=16,dhv=40 --tokens 1 --device emu
-- exit 0
-- stdout
schedule step (default)
out.S

-- case several tokens a step, shared keys, states in a pool
-- args
check gated-retention --shape B=2,NH=4,T=5,dqk=24,dhv=40 --tokens 8 --group 2 --pool --int64 --device emu
-- exit 0
-- stdout
schedule step8 (default)

-- case more tokens than a step has
-- args
check mlstm-sig --shape B=3,NH=2,T=9,dqk=16,dhv=40 --tokens 8 --device emu
-- exit 2
-- stderr
--tokens 8: a call of --shape has T = 9

-- case more tokens than the schedule takes
-- args
check mlstm-sig --shape B=3,NH=2,T=9,dqk=16,dhv=40 --schedule step8 --device emu
-- exit 2
-- stderr
longer calls need another schedule

-- case a step for packed sequences, some of which may have no tokens, wants their states in a pool
-- args
check mlstm-sig --shape B=3,NH=2,T=3,dqk=16,dhv=40 --schedule step8 --packed --device emu
-- exit 2
-- stderr
TG0554
hint: keep states in a pool

-- case where it has it
-- args
check mlstm-sig --shape B=3,NH=2,T=3,dqk=16,dhv=40 --schedule step8 --packed --pool --device emu
-- exit 0
-- stdout
packed pooled; schedule step8

-- case scalars by name, in place of the file's
-- args
check $DATA/gret_x.safetensors --set tau=8 --set scale=0.5 --device emu
-- exit 0
-- stdout
scale=0.5 tau=8
against the oracle
! against the file

-- case the short form
-- args
check $DATA/la_b.safetensors --scale 0.5 --device emu
-- exit 0
-- stdout
scale=0.5
! against the file

-- case scalars of the file
-- tensors x.safetensors
in.q BF16 1,1,16,16
in.k BF16 1,1,16,16
in.v BF16 1,1,16,16
in.f F32 1,1,16
meta scalars {"scale": 0.75, "tau": 5}
-- args
check gated-retention x.safetensors --device emu
-- exit 0
-- stdout
scale=0.75 tau=5

-- case a scalar of the file that is no number
-- tensors x.safetensors
in.q BF16 1,1,16,16
in.k BF16 1,1,16,16
in.v BF16 1,1,16,16
in.f F32 1,1,16
meta scalars {"tau": "large"}
-- args
check gated-retention x.safetensors --device emu
-- exit 2
-- stderr
metadata `scalars` is not a JSON object with a number `tau`

-- case a scalar that the variant has not
-- args
check mlstm-sig --shape B=1,NH=1,T=16,dqk=16,dhv=16 --set tau=3 --device emu
-- exit 2
-- stderr
--set: mlstm-sig has no scalar 'tau'
hint: mlstm-sig has: scale

-- case a pool of what has no states
-- args
check rms-norm --shape B=1,NH=1,T=5,dqk=16,dhv=32 --pool --device emu
-- exit 2
-- stderr
TG0556
rms-norm has no states: pool: expected none, found states in slots
hint: leave the pool out

-- case a pool of what has no states, timed
-- args
bench rms-norm --shape B=1,NH=1,T=5,dqk=16,dhv=32 --pool --device emu
-- exit 2
-- stderr
rms-norm has no states: pool: expected none, found states in slots

-- case a pool of what has no states, compiled
-- args
compile rms-norm --pool --dqk 64 --dhv 64 -o o
-- exit 2
-- stderr
rms-norm has no states: pool: expected none, found states in slots

-- case a type of states that there are not, tuned
-- args
tune rms-norm --shape B=1,NH=1,T=5,dqk=16,dhv=32 --states bf16 --arch sm_90a --device emu
-- exit 2
-- stderr
rms-norm has no states [dqk, dhv]: type of states: expected none, found bf16

-- case states that lie otherwise in device memory, in and out, and in slots
-- args
check linear --shape B=2,NH=1,T=40,dqk=16,dhv=32 --states v-first,bf16 --pool --grad --device emu
-- exit 0
-- stdout
pooled states=bf16 states=[dhv,dqk]
out.S
grad.S0

-- case ... without a pool
-- args
run linear --in $DATA/la_b.safetensors --out r.safetensors --states v-first,f16 --device emu
-- exit 0

-- case a file's states
-- args
check $DATA/mlstmsig_b.safetensors --states v-first,bf16 --device emu
-- exit 0
-- stdout
out.S

-- case states of 16 bits beside inputs of fp32
-- args
check linear --shape B=1,NH=2,T=40,dqk=16,dhv=32 --states bf16 --dtype f32 --device emu
-- exit 0
-- stdout
out.S

-- case a prediction for such states
-- args
tune linear --shape B=1,NH=2,T=100,dqk=64,dhv=64 --states v-first,bf16 --arch sm_90a --device emu --json
-- exit 0
-- stdout
"states":"bf16","values_first":true

-- case slots of their own in a call
-- args
check linear --shape B=1,NH=2,T=40,dqk=16,dhv=32 --pool --states index-out --device emu
-- exit 2
-- stderr
--states: expected bf16, f16, f32 or v-first, found 'index-out'
hint: `compile` and `explain` take it

-- case a misspelt scalar
-- args
run mlstm-exp --in $DATA/mlstmexp_x.safetensors --out r.safetensors --set esp=1 --device emu
-- exit 2
-- stderr
mlstm-exp has no scalar 'esp'
hint: did you mean 'eps'?

-- case a scalar without a number
-- args
check $DATA/la_b.safetensors --set scale --device emu
-- exit 2
-- stderr
--set: expected NAME=NUMBER, found 'scale'
hint: write a name and a number: --set tau=16

-- case a scalar that is no number
-- args
check $DATA/la_b.safetensors --set scale=nan --device emu
-- exit 2
-- stderr
--set: expected NAME=NUMBER, found 'scale=nan'

-- case too many scalars
-- args
check $DATA/la_b.safetensors --set scale=1 --set scale=1 --set scale=1 --set scale=1 --set scale=1 --set scale=1 --set scale=1 --set scale=1 --set scale=1 --device emu
-- exit 2
-- stderr
more than 8 --set options
